/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the `onecopy` command shows of the library's inside. The library's own tables (options,
 * algorithms) it shows as they are, so their headers come along.
 */
#ifndef OC_LAB_INSPECT_H
#define OC_LAB_INSPECT_H

#include "base/options.h"
#include "coll/coll.h"
#include "coll/cost.h"
#include "lab/inspect/large.h"
#include "lab/virtual/flat.h"
#include "lab/virtual/nodes.h"
#include "model/model.h"

#include <jansson.h>
#include <onecopy/onecopy.h>

/* A mechanism as it works between this process and a child of its own. NULL past the end. */
struct oc_mechanism_info {
	const char *name; /* "cma" */
	const char *what; /* one line: what it is */
	int works;
	const char *sentence; /* what was tried and came of it */
	const char *remedy;   /* "" when it works */
};
/* Probes at the first call (forks one child that exits at once). */
const struct oc_mechanism_info *oc_inspect_mechanism(unsigned int index);
/* What the kernel module counts, of all processes since it was loaded. JSON's null: there is none;
 * the mechanism kmod says why. */
json_t *oc_inspect_module(void);

/* ---- predictions ---------------------------------------------------------------------------- */

/* A call to be predicted, on a machine. */
struct oc_predict_call {
	/* A profile's name, or the path of a tuning file (it has a '/'); NULL: what jobs of this
	 * user on this machine go by. */
	const char *profile;
	enum oc_collective collective;
	size_t bytes; /* of a block, as for oc_collective() */
	uint32_t ranks;
	bool shm;	  /* no pair of ranks can single-copy */
	bool mapped;	  /* all ranks have shared heaps, and all buffers lie there */
	bool shared_cpus; /* more ranks than CPUs */
	bool near;	  /* all ranks share a cache */
	bool nonblocking; /* or persistent */
	bool forced; /* heed ONECOPY, ONECOPY_MECHANISM and ONECOPY_<COLLECTIVE> of this process */
	bool virtual_time; /* run the plans of each algorithm, too, with its best parameter */
	/* These alone, "knomial:4", of which those are listed that can run the call, each with its
	 * plans; NULL, 0: all that there are. */
	const char *const *algorithms;
	unsigned int algorithm_count;
};

/* An algorithm that can run the call. Times are seconds. */
struct oc_prediction {
	char algorithm[64]; /* "knomial:4" */
	bool best;	    /* the first of its algorithm, which is its best parameter */
	bool baseline;	    /* there to compare with: never chosen by its cost */
	bool closed;	    /* it has a closed form: `total` and its parts are true */
	double total;
	struct oci_cost cost;
	double virtual_s;      /* of the last rank; negative where they were not run */
	uint32_t most_copiers; /* of one process at a moment, in virtual time */
};

struct oc_predicted {
	char model[64];	 /* its name */
	char path[512];	 /* the file it is from; "" if built in */
	int calibrated;	 /* measured on this machine */
	char chosen[64]; /* "knomial:4", or "mpi" */
	const char *why; /* what decided, as a sentence */
	unsigned int count;
};

#define OC_PREDICTIONS_MOST 160
/*
 * Fills list[] by rising total, those without a closed form last; or in the call's own order. 0;
 * -EINVAL (0 ranks, no such collective or algorithm), -ENOENT (no such profile or file) or what
 * reading the file gave, with a sentence in error[0..n); -ENOMEM.
 */
int oc_inspect_predict(const struct oc_predict_call *call, struct oc_predicted *predicted,
		       struct oc_prediction list[OC_PREDICTIONS_MOST], char *error, size_t n);

/* Most nodes, and ranks on each, that calls are predicted for. */
#define OC_NODES_MOST 1024u

/* A call of ranks on several nodes. */
struct oc_nodes_predicted {
	struct oci_nodes_predicted levels; /* no parts: it never goes so */
	struct oci_flat flat;		   /* the quickest of the MPIs' own, over all ranks */
	const char *handed_back; /* why the MPI has it all the same; NULL: it goes in two levels */
	bool shares;		 /* in shares */
	const char *why;
};

/*
 * Predicts a call of `nodes` nodes of call->ranks each in two levels, and by the MPI alone.
 * `predicted` as of oc_inspect_predict(), without its algorithms. What two levels do not serve has
 * -ENOTSUP, a model without a network -ENODATA, and how the call goes all the same; else as there.
 */
int oc_inspect_nodes(const struct oc_predict_call *call, uint32_t nodes,
		     struct oc_predicted *predicted, struct oc_nodes_predicted *over_nodes,
		     char *error, size_t n);

/* For oci_model_read(): what jobs refuse in a cell of a tuning file. */
int oc_inspect_cell_check(const char *collective, const char *algorithm, const char **expected);

/* This machine's packages, caches, cores and CPUs; NULL: hwloc cannot load it. */
json_t *oc_inspect_topology(void);
/* Memory of one team on one rank, bytes. */
size_t oc_inspect_team_bytes(void);
/* Warns of algorithms in the environment that do not exist; oci_option_info() has the defaults
 * then. */
void oc_inspect_algorithm_options(void);
/* Why this process cannot have a shared heap, as a sentence; NULL: it can. Loads it. */
const char *oc_inspect_heap(void);
/* Which allocator it is by, and which versions of that are known; "": there is none. */
const char *oc_inspect_allocator(void);

/*
 * The plans of all ranks of a collective, as a Graphviz graph on `fd`: on a flat team, or with a
 * profile (NULL: none; a name or a file, as above) as its ranks fill that machine core by core. 0;
 * -EINVAL (no such algorithm, none that has a plan on so many ranks, or the profile is none) and a
 * sentence, -ENOMEM, or what writing gave.
 */
int oc_inspect_plan_dot(int fd, enum oc_collective collective, const char *algorithm, uint32_t size,
			const char *profile, char *error, size_t n);

#endif
