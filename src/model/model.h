/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost model of one machine: its terms, where each comes from, and the costs made of them.
 *
 * All times are double seconds (names end in _s), all sizes are bytes; rates are kept as seconds
 * per byte so that costs are sums. Paper 002, section II: moving n bytes by a single copy, while c
 * copiers work on the memory of one process, takes
 *
 *     alpha + n beta + l gamma(c) ceil(n / page)
 *
 * with the start-up alpha, l the time to lock and pin a page alone, and gamma(c) how much longer
 * that takes with company. Its Table IV gives gamma as gamma2 c^2 + gamma1 c. Here gamma(1) = 1,
 * because l is by definition the cost without company: the fitted polynomial, which was not forced
 * through 1, holds from two copiers on.
 *
 * The paper takes reads and writes alike. They are not where caches are: who writes into a peer has
 * the source in its own cache, and who reads from one gets it out of the peer's. So writes (PUSH)
 * have terms of their own, push_alpha and push_beta; locks and their contention are alike.
 *
 * A model is plain data: copy it, change a term, and it is another machine. Nothing here measures;
 * lab/tune does. A term that nobody gave is not `given` and has the value that leaves it out.
 */
#ifndef OC_MODEL_MODEL_H
#define OC_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ways of copying; how each works is DESIGN section 4. A mechanism that this machine or profile
 * knows nothing about has no term given: oci_model_knows(). */
enum oci_model_mechanism {
	OCI_MODEL_SHM,	/* through a bounce buffer, owner and requester together */
	OCI_MODEL_CMA,	/* process_vm_readv, process_vm_writev */
	OCI_MODEL_MAP,	/* load and store in a mapping of the peer's memory */
	OCI_MODEL_KMOD, /* the kernel module */
	OCI_MODEL_MECHANISMS
};

enum oci_model_distance {
	OCI_MODEL_CACHE,   /* under one last-level cache, or closer */
	OCI_MODEL_PACKAGE, /* in one package, not under one cache */
	OCI_MODEL_MACHINE, /* in different packages */
	OCI_MODEL_DISTANCES
};

#define OCI_TERM_TEXT 256

struct oci_term {
	double value;
	/* Relative root mean square of what the fit leaves unexplained; of a plain measurement,
	 * half the distance of its quartiles over its median. 0 when there is none (a paper's
	 * value). */
	double residual;
	bool given;
	char source[OCI_TERM_TEXT]; /* "paper 002, Table IV"; "measured"; "ours: reason" */
	char method[OCI_TERM_TEXT]; /* how it was measured or derived */
	char host[64];		    /* where */
	char date[24];		    /* when: 2026-11-20 */
};

/* Which end makes a single copy. */
enum oci_model_direction {
	OCI_MODEL_PULL, /* who needs the bytes reads them, out of the cache of who wrote them */
	OCI_MODEL_PUSH	/* who has just written the bytes writes them to their place */
};

/* Terms of one mechanism. Units in brackets, as in the file. */
struct oci_model_copy {
	struct oci_term alpha;		  /* [s] start of a copy */
	struct oci_term beta;		  /* [s/B] while both buffers stay in the cache */
	struct oci_term beta_memory;	  /* [s/B] beyond cache_bytes; not given: beta */
	struct oci_term push_alpha;	  /* [s] start of a write; not given: alpha */
	struct oci_term push_beta;	  /* [s/B] of a write; not given: that of a read */
	struct oci_term push_beta_memory; /* [s/B] beyond cache_bytes; not given: push_beta */
	struct oci_term beta_across;	  /* [1] factor on both when the ends are in two packages */
	struct oci_term lock;		  /* [s/page] l */
	struct oci_term page;		  /* [B] s of the paper: what one lock covers */
	struct oci_term lock_span;	  /* [B] copiers further apart do not contend; not given: a
					   * whole process, as in the paper */
	struct oci_term gamma1;		  /* [1] of c */
	struct oci_term gamma2;		  /* [1] of c^2 */
	struct oci_term
		gamma_across;	     /* [1] factor on gamma once c exceeds the cores of a package */
	struct oci_term gamma_range; /* [copiers] up to here gamma was measured, beyond it is
				      * extrapolated */
};

/*
 * A choice that overrules the model: for this collective, these numbers of ranks and these bytes of
 * a block (ends included), take this algorithm ("knomial:4", or "mpi").
 */
struct oci_model_cell {
	char collective[32];
	char algorithm[64];
	uint32_t ranks_min, ranks_max;
	size_t bytes_min, bytes_max;
};

/* What a file was made on; a file is used where all but `kernel` are the same. */
struct oci_machine {
	char host[64];	 /* in a file: a pattern as in the shell, such as "node*" */
	char cpu[128];	 /* model name */
	char kernel[96]; /* release: told, not compared */
	uint32_t cpus;	 /* online */
	size_t page_bytes;
};

struct oci_model {
	char name[64];	 /* "default", "knl", "tuned" */
	char path[512];	 /* file it was read from; empty: built in */
	bool calibrated; /* measured on this machine: false for profiles and defaults */
	struct oci_machine machine;

	struct oci_model_copy copy[OCI_MODEL_MECHANISMS];
	struct oci_term flag[OCI_MODEL_DISTANCES]; /* [s] from a store to the waiting rank's load */
	struct oci_term flag_more; /* [s] each further flag of a row that is up: loads overlap; not
				    * given: as the first */
	struct oci_term memcpy_cache;  /* [s/B] local copy, both buffers in cache */
	struct oci_term memcpy_memory; /* [s/B] local copy beyond cache_bytes */
	struct oci_term memcpy_slot;  /* [s/B] local copy into a slot whose last contents a peer has
				       * read, from whose cache it has to be taken back; not given:
				       * as any local copy */
	struct oci_term cache_bytes;  /* [B] a copy's source and target together: still in cache */
	struct oci_term cache_shared; /* [B] size of a cache that cache_cores cores share; not
				       * given: what other ranks touch takes no room in it */
	struct oci_term reduce;	      /* [s/B] of one operand: the sum of doubles into a buffer */
	struct oci_term domain; /* [s/B] bytes copied by all cores of a memory domain at once */
	struct oci_term domain_cache; /* [s/B] the same of single copies that stay in the caches,
				       * whose ends are busy themselves; not given: no limit */
	struct oci_term call;	      /* [s] a collective call besides its copies and flags */
	struct oci_term op;	 /* [s] an operation of a plan besides what it copies or awaits */
	struct oci_term dma_min; /* [B] operations of more are quicker by a DMA engine, where the
				  * kernel module has one; not given: DMAmin of the papers. No part
				  * of a cost */
	/* Messages between nodes by the MPI, as of LogGP (Alexandrov et al., SPAA 1995). Not given:
	 * the model knows no network. */
	struct oci_term net_latency;  /* [s] L: from the sender's node to the receiver's */
	struct oci_term net_overhead; /* [s] o: of a message, on the CPU of either end */
	struct oci_term net_gap;      /* [s] g: between two messages of one node */
	struct oci_term net_gap_byte; /* [s/B] G: that each byte adds to it */
	struct oci_term net_eager;    /* [B] larger messages are asked for first; not given: none */
	struct oci_term packages;     /* [packages] */
	struct oci_term package_cores; /* [cores] in one: the step of gamma is behind it */
	struct oci_term cache_cores;   /* [cores] under one last-level cache */
	struct oci_term domain_cores;  /* [cores] with one memory domain */

	struct oci_model_cell *cells; /* in the file's order: the first that fits counts */
	size_t cell_count;
};

/* ---- costs: pure functions of the model -------------------------------------------------------
 */

bool oci_model_knows(const struct oci_model *model, enum oci_model_mechanism mechanism);

/* gamma of `copiers` concurrent copiers of one process, all in its package as far as they fit. */
double oci_model_gamma(const struct oci_model *model, enum oci_model_mechanism mechanism,
		       double copiers);
/* Of `copiers` that copy consecutive blocks of `bytes` of one process: how many meet at a lock. */
double oci_model_contending(const struct oci_model *model, enum oci_model_mechanism mechanism,
			    double copiers, size_t bytes);
/*
 * Which part of what a copy moves goes by memory, 0 to 1. None of it where the caches hold the
 * message that it is a piece of, of `extent` bytes, and all that the ranks under one cache touch in
 * the call, `working` bytes (0: not known). That counts twice, as a program works on one message
 * while it makes the next. Up to half of cache.shared the cache holds it, from all of it on nothing
 * is there when it is used again, between them the part grows.
 */
double oci_model_beyond(const struct oci_model *model, size_t extent, size_t working);
/* The three parts of a single copy: start, bytes (alone in its memory domain, that part of them by
 * memory), locks. */
double oci_model_alpha_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			 enum oci_model_direction direction);
double oci_model_bytes_of_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			    enum oci_model_direction direction, size_t bytes,
			    enum oci_model_distance distance, double beyond);
double oci_model_lock_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			size_t bytes, double copiers);
/*
 * Does the kernel module copy quicker than process_vm_readv() in a team of so many ranks? In the
 * geometric mean of reads of 16 KiB, 256 KiB and 4 MiB, each alone and with all other ranks reading
 * from the same one. False where terms of either are not given.
 */
bool oci_model_prefers_kmod(const struct oci_model *model, uint32_t ranks);
/* Their sum for a read by itself, at the closest distance: the formula above. */
double oci_model_copy_s(const struct oci_model *model, enum oci_model_mechanism mechanism,
			size_t bytes, double copiers);
double oci_model_memcpy_of_s(const struct oci_model *model, size_t bytes, double beyond);
/* The same into a slot: never less. */
double oci_model_fill_of_s(const struct oci_model *model, size_t bytes, double beyond);
double oci_model_reduce_s(const struct oci_model *model, size_t bytes);
double oci_model_flag_s(const struct oci_model *model, enum oci_model_distance distance);
/* A flag that is up, looked at right after another one. */
double oci_model_flag_more_s(const struct oci_model *model, enum oci_model_distance distance);
/* Seconds per byte at least, of each of `copiers` that share a memory domain. */
double oci_model_domain_s(const struct oci_model *model, double copiers);
/* The same of single copies of which such a part goes by memory. */
double oci_model_domain_of_s(const struct oci_model *model, double copiers, double beyond);

/* Where a rank sits when ranks fill the machine core by core, as launchers bind them; ranks beyond
 * the last core begin again with the first. */
enum oci_model_distance oci_model_distance(const struct oci_model *model, uint32_t a, uint32_t b);
/* Where a rank placed like that sits: numbers of its last-level cache, memory domain and package.
 */
uint32_t oci_model_cache(const struct oci_model *model, uint32_t rank);
uint32_t oci_model_domain(const struct oci_model *model, uint32_t rank);
uint32_t oci_model_package(const struct oci_model *model, uint32_t rank);

/* The cell for a call, or NULL: the model decides. */
const struct oci_model_cell *oci_model_cell(const struct oci_model *model, const char *collective,
					    uint32_t ranks, size_t bytes);

/*
 * Equal for models that give equal costs and cells, on every run and rank: over the values of all
 * terms, the cells and the state, not over names, sources and dates. Agreed at team creation.
 */
uint64_t oci_model_hash(const struct oci_model *model);

/* ---- terms by name, for files, tables and `explain` -------------------------------------------
 */

struct oci_term_info {
	const char *name; /* "cma.alpha", "flag.cache" */
	const char *unit;
	const char *what;
	double least, most; /* a value outside of these is refused */
	double absent;	    /* its value when not given */
	size_t offset;	    /* of its struct oci_term in a struct oci_model */
};
/* NULL past the end. */
const struct oci_term_info *oci_term_info(unsigned int index);
/* NULL when there is no such name. */
const struct oci_term_info *oci_term_named(const char *name);
struct oci_term *oci_term_of(struct oci_model *model, const struct oci_term_info *info);
const struct oci_term *oci_term_in(const struct oci_model *model, const struct oci_term_info *info);

/* ---- whole models -----------------------------------------------------------------------------
 */

/* No term given, each at the value that leaves it out; no cells. Needs no destroying. */
void oci_model_init(struct oci_model *model);
/* Frees the cells. */
void oci_model_destroy(struct oci_model *model);

/* Built-in models, as src/model/profiles has them: "default", "knl", "broadwell", "power8", "ig".
 * NULL past the end. */
const char *oci_model_profile_name(unsigned int index);
/* 0, -ENOENT (no such name), -ENOMEM. The model is the caller's, to be destroyed. */
int oci_model_profile(const char *name, struct oci_model *model);

/*
 * Does a cell name a collective and an algorithm that exist? 0, or -EINVAL and *expected, a static
 * or thread-local sentence of what is valid. src/coll has it; the model knows no algorithms.
 */
typedef int oci_model_cell_check(const char *collective, const char *algorithm,
				 const char **expected);

/* Why a file cannot be used: "FILE:LINE:COLUMN: expected ..., found ...". */
struct oci_model_error {
	char text[1024];
};

enum oci_model_read_flags {
	OCI_MODEL_ANY_MACHINE = 1, /* also a file made on another machine */
	OCI_MODEL_ANY_OWNER = 2,   /* also a file of another user: the path was given by this one */
};

/*
 * Reads a tuning file. 0; -ENOENT; -EINVAL (malformed, or not for this machine: error says which),
 * -EACCES (not ours to trust), -EFBIG, -ENOMEM, or what opening gave. The model is written on
 * success only, and is the caller's. check may be NULL.
 */
int oci_model_read(const char *path, unsigned int flags, oci_model_cell_check *check,
		   struct oci_model *model, struct oci_model_error *error);
/* The same of text in memory; `name` stands for the file in errors. */
int oci_model_parse(const char *name, const char *text, size_t length, unsigned int flags,
		    oci_model_cell_check *check, struct oci_model *model,
		    struct oci_model_error *error);
/* This machine. What cannot be found out is empty or 0. */
void oci_machine_self(struct oci_machine *machine);
/* The model name in the text of /proc/cpuinfo; empty when there is none. */
void oci_machine_cpu_name(const char *cpuinfo, char *name, size_t bytes);
/*
 * The first thing in which `here` is not what a file was made on: its key in the file ("cpu"), and
 * both as text. NULL: the file is for this machine.
 */
const char *oci_machine_differs(const struct oci_machine *file, const struct oci_machine *here,
				char *expected, size_t expected_bytes, char *found,
				size_t found_bytes);

/* Where files are looked for, in this order; false: there is no such place (no home directory). */
enum oci_model_place {
	OCI_MODEL_PLACE_VARIABLE, /* ONECOPY_TUNING, which alone counts when it is set; "none": no
				   * file is looked for */
	OCI_MODEL_PLACE_USER,	  /* $XDG_CONFIG_HOME/onecopy/HOST.json, else under ~/.config */
	OCI_MODEL_PLACE_HOST,	  /* /etc/onecopy/HOST.json */
	OCI_MODEL_PLACE_SITE,	  /* /etc/onecopy/tuning.json */
	OCI_MODEL_PLACES
};
bool oci_model_place(enum oci_model_place place, char *path, size_t bytes);

/*
 * The model of this process, found at the first call and the same ever after; thread safe. The
 * first place that has a file counts. A file that cannot be used gives one warning and the built-in
 * default; a place that this user may not look into counts as empty, unless ONECOPY_TUNING names
 * it. Never NULL, never to be destroyed.
 */
const struct oci_model *oci_model_current(oci_model_cell_check *check);

#endif
