/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives: one ordered list of algorithms each, and the choice among them.
 *
 * Adding an algorithm is a file src/coll/<collective>/<collective>_<algorithm>.c and a line in
 * that collective's list; the checker's tests, the forced-algorithm tests and the benchmark take
 * it from there.
 */
#ifndef OC_COLL_COLL_H
#define OC_COLL_COLL_H

#include "plan/plan.h"
#include "team/team.h"
#include "topo/hierarchy.h"

/* What is alike on all ranks of a call, and all that a choice may depend on. */
struct oci_shape {
	enum oc_collective collective;
	size_t bytes; /* of a block, as in plan.h; of a Reduce_scatter those of all blocks */
	size_t unit;  /* bytes of an element of a reduction, else 1 */
	uint32_t size;
	/* Of the members' places; NULL: flat. An object of this rank, with alike contents on all.
	 */
	const struct oci_hierarchy *hierarchy;
	bool oversubscribed; /* agreed at team creation */
	bool single_copy; /* agreed: every pair of the team can single-copy, in both directions */
	bool kmod;	  /* agreed: the kernel module makes them */
	bool mapped;	  /* agreed: every rank of the team has a shared heap */
	enum oci_topo_level common; /* agreed: the closest that all ranks share (team/near.c) */
	bool large_slots;	    /* agreed: both ranks have one, and the call is blocking */
	bool nonblocking;	    /* peers may compute when it would need them */
	bool in_place;		    /* of an Alltoall(v), as in the plan's key */
};

struct oci_costing;

struct oci_algorithm {
	const char *name; /* "knomial" */
	const char *idea; /* one line, for `onecopy info --algorithms` */
	/* Builds the plan of key->v; parameter is in range. */
	void (*build)(struct oci_builder *b);
	/* Can it run this call at all? Sizes that do not fit a slot, ... NULL: always. */
	bool (*fits)(const struct oci_shape *shape, uint32_t parameter);
	/* What a team lacks on which it fits no call at all, after "needs"; NULL: sizes decide. */
	const char *needs;
	/*
	 * Adds up what a call of this shape costs by the model (coll/cost.h); NULL: no closed form,
	 * so the selector never chooses it by itself and the `model` executor alone tells its time.
	 */
	void (*cost)(struct oci_costing *c);
	/* Parameters that the selector weighs, rising, ended by 0; NULL: the default alone. */
	const uint32_t *tries;
	/* Of what goes through a slot piece by piece as `inline` goes beside the flag (stages in
	 * coll/build.h): bytes of a piece. */
	uint32_t piece;
	/* Range of the parameter; parameter_min = 0 and max = 0: it takes none. max 0 with a min >
	 * 0: oci_parameter_most(). */
	uint32_t parameter_default, parameter_min, parameter_max;
	/* Payload words this algorithm moves by single copy (so a mechanism matters to it). */
	bool single_copy;
	/* There to compare with: not chosen where single copies work. */
	bool baseline;
	/* Its plans depend on who sits where: their key has the hierarchy, and with it the root. */
	bool by_hierarchy;
};

/* Of one that takes a parameter. */
static inline uint32_t oci_parameter_most(const struct oci_algorithm *a)
{
	return a->parameter_max ? a->parameter_max : UINT16_MAX;
}

/* Of tries: how many may read or write one process at a time; ends where there are no more peers.
 */
extern const uint32_t oci_tries_fanout[];
/* Children that a rank of a tree takes in a round: each more is one copy more in a row. */
extern const uint32_t oci_tries_radix[];
/* Ranks from one to the next in a ring: of ranks that go round so many sockets. */
extern const uint32_t oci_tries_ring[];
/* Segments: what paper 000 found best below 2 MiB and beyond, and one between. */
extern const uint32_t oci_tries_segment[];

struct oci_choice {
	uint8_t algorithm; /* index in the list; OCI_CHOICE_MPI: hand the call back to the MPI */
	uint32_t parameter;
};
#define OCI_CHOICE_MPI UINT8_MAX

/* NULL past the end of a collective's list. */
const struct oci_algorithm *oci_algorithm(enum oc_collective collective, unsigned int index);
/* Whose plan is being built. */
static inline const struct oci_algorithm *oci_building(const struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	return oci_algorithm(key->collective, key->algorithm);
}

/* A choice in words: "auto", "mpi", "knomial:4". */
struct oci_forced {
	bool forced;
	struct oci_choice choice;
};
/* Parses the words; -EINVAL for an unknown name or a parameter out of range (nothing is written
 * but *expected, a static or thread-local sentence of what is valid). */
int oci_forced_parse(enum oc_collective collective, const char *words, struct oci_forced *forced,
		     const char **expected);

/* Builds the plan of a key. NULL and *error when out of memory or the builder rejects it. */
struct oci_plan *oci_plan_build(const struct oci_plan_key *key, int *error);

#endif
