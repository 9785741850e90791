/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The measured rows. Each says up to how many bytes (of a block, as in plan.h) an algorithm is
 * taken, for two ranks, for more, and for more than the CPUs hold.
 *
 * PAIR and CROWD are measured on a 2-core machine: docs/results.md has machine, date, figures and
 * commands. Bytes through a slot cross the way between two CPUs twice, so above 8 KiB they win
 * where it is short (up to 1.7 times) and lose where it is long (up to 3 times). PAIR takes what
 * loses least; of ranks that share a cache (team/near.c) slots serve larger messages. TEAM,
 * which that machine cannot run, is PAIR with what paper 002 found best for many readers of one
 * process: throttle factors of 4 to 10, a k-nomial tree, no cooperation with a root that all others
 * keep busy. The rows of Reduce_scatter(_block), Scan and Exscan are reasoned from those of Reduce
 * and Allreduce, which move and reduce as many bytes, and wait for a measurement of their own.
 */
#include "coll/rows.h"

#include <string.h>

struct row {
	size_t up_to;  /* bytes of a block */
	char name[20]; /* here, not pointed to: the linker has nothing to write into the tables */
	uint32_t parameter; /* 0: the algorithm's default */
};

#define ANY SIZE_MAX
/*
 * Up to here nonblocking calls do without heaps. What a rank has put into a slot its peers take
 * when they come to it; its own memory they read and fill while it waits for them, and one that
 * computes comes late: by heaps examples/train, with sums of 16 KiB, took 1.2 times as long
 * (docs/results/train-heap-2.csv). Of larger blocks copies count more: an Allgather of 64 KiB on 4
 * ranks and 2 CPUs took 28 us by heaps and 44 through slots.
 */
#define NONBLOCKING_BYTES 16384
#define ROWS 6

/* Short, for the tables. */
#define PAIR OCI_PAIR
#define TEAM OCI_TEAM
#define CROWD OCI_CROWD
#define KINDS OCI_KINDS

/* Where TEAM or CROWD is missing, PAIR is for it. */
static const struct row table[OC_COLLECTIVES][KINDS][ROWS] = {
	[OC_BARRIER] = { [PAIR] = { { ANY, "flat", 0 } } },
	[OC_BCAST] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "knomial", 4 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "direct-read", 0 } },
	},
	[OC_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-read", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-read", 8 } },
	},
	[OC_GATHER] = {
		[PAIR] = { { 496, "inline", 0 },
			   { 4096, "cico", 0 },
			   { 524288, "throttled-write", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-write", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-write", 8 } },
	},
	[OC_ALLGATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "ring-source-read", 0 } },
	},
	[OC_ALLTOALL] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "pairwise", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "pairwise", 0 } },
	},
	[OC_REDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { 16384, "tree", 2 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 65536, "cico-sliced", 0 },
			   { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OC_ALLREDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { 32768, "direct-read", 0 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 65536, "cico-sliced", 0 },
			   { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By each block's own size: the thresholds are those of offers, src/plan/offer.c. */
	[OC_SCATTERV] = { [PAIR] = { { ANY, "throttled-read", 8 } } },
	[OC_GATHERV] = { [PAIR] = { { ANY, "throttled-write", 8 } } },
	[OC_ALLGATHERV] = { [PAIR] = { { ANY, "ring-source-read", 0 } } },
	[OC_ALLTOALLV] = { [PAIR] = { { ANY, "pairwise", 0 } } },
	[OC_NEIGHBOR_ALLTOALLV] = { [PAIR] = { { ANY, "pairwise", 0 } } },
	[OC_REDUCE_SCATTER_BLOCK] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By the bytes of the whole input. */
	[OC_REDUCE_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OC_SCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
	[OC_EXSCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
};

/*
 * Where every rank has a shared heap: a copy needs no system call, so single copies win from 1 or 2
 * KiB on, and no page is locked, so nothing is throttled that was not before. A collective that is
 * not here goes by the table above. PAIR and CROWD are measured (docs/results.md, "Shared heap"),
 * TEAM is PAIR with the algorithms of TEAM above. Of reading and writing that take as long, reading
 * is taken: it leaves the bytes in the cache of the rank that wants them.
 */
static const struct row mapped[OC_COLLECTIVES][KINDS][ROWS] = {
	[OC_BCAST] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { 32768, "direct-read", 0 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "knomial", 4 } },
		[CROWD] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 524288, "knomial", 4 },
			    { ANY, "cooperative", 0 } },
	},
	[OC_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 2097152, "throttled-read", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "throttled-read", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-read", 8 } },
	},
	[OC_GATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { 2097152, "throttled-write", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "throttled-write", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-write", 8 } },
	},
	[OC_ALLGATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { ANY, "ring-source-write", 0 } },
	},
	[OC_ALLTOALL] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "pairwise", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "pairwise", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 131072, "pairwise", 0 },
			    { ANY, "point-to-point", 0 } },
	},
	[OC_REDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { 16384, "tree", 2 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { 32768, "tree", 3 },
			    { ANY, "sliced", 0 } },
	},
	[OC_ALLREDUCE] = {
		/* Two ranks read as many bytes of each other by direct-read as by sliced, and wait once
		   less (docs/results/allreduce-direct-2.csv). */
		[PAIR] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 8192, "direct-read", 0 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { 32768, "tree", 3 },
			    { ANY, "sliced", 0 } },
	},
};

/*
 * What two near ranks take where PAIR takes something else (docs/results/near-slots-2.csv). Of two
 * operands an operation that commutes gives the same in either order, and one that does not keeps
 * it: results do not depend on where a job's ranks sit.
 */
static const struct near_row {
	size_t above, up_to;
	char name[20];
} near_rows[OC_COLLECTIVES][2] = {
	[OC_BCAST] = { { 4096, 32768, "cico" } },
	[OC_SCATTER] = { { 4096, 32768, "cico" } },
	[OC_GATHER] = { { 4096, 262144, "cico" } },
	/* Between them a slot loses to the MPI in a loop of the same buffers, and a single copy
	   never. */
	[OC_ALLGATHER] = { { 4096, 32768, "cico" }, { 98304, 262144, "cico" } },
	[OC_ALLTOALL] = { { 4096, 32768, "cico" }, { 98304, 262144, "cico" } },
	[OC_REDUCE] = { { 4096, 65536, "cico" } },
	[OC_ALLREDUCE] = { { 16384, 262144, "cico-sliced" } },
};

bool oci_choice_fits(const struct oci_shape *shape, const struct oci_choice *choice)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice->algorithm);

	return !a->fits || a->fits(shape, choice->parameter);
}

/* What a row says; the tests see to it that every name in the table is an algorithm's. */
static struct oci_choice choice_of(enum oc_collective collective, const char *name,
				   uint32_t parameter)
{
	struct oci_choice choice = { OCI_CHOICE_MPI, parameter };
	const struct oci_algorithm *a;

	for (uint8_t i = 0; (a = oci_algorithm(collective, i)) != NULL; i++) {
		if (strcmp(a->name, name))
			continue;
		choice.algorithm = i;
		if (!choice.parameter)
			choice.parameter = a->parameter_default;
	}
	return choice;
}

enum oci_team_kind oci_team_kind(const struct oci_shape *shape)
{
	return shape->oversubscribed ? OCI_CROWD : shape->size > 2 ? OCI_TEAM : OCI_PAIR;
}

static const struct near_row *near_row(enum oc_collective collective, size_t bytes)
{
	for (size_t i = 0; i < 2; i++)
		if (bytes > near_rows[collective][i].above &&
		    bytes <= near_rows[collective][i].up_to)
			return &near_rows[collective][i];
	return NULL;
}

bool oci_near_decides(enum oc_collective collective, size_t bytes)
{
	return near_row(collective, bytes) != NULL;
}

struct oci_choice oci_by_rows(const struct oci_shape *shape)
{
	enum oci_team_kind kind = oci_team_kind(shape);
	bool by_heap = shape->mapped && mapped[shape->collective][kind][0].name[0] &&
		       (!shape->nonblocking || shape->bytes > NONBLOCKING_BYTES);
	const struct row *row = (by_heap ? mapped : table)[shape->collective][kind], *end;
	const struct near_row *by_slot = near_row(shape->collective, shape->bytes);
	struct oci_choice near = { OCI_CHOICE_MPI, 0 };

	if (kind == PAIR && oci_topo_near(shape->common) && !by_heap && by_slot)
		near = choice_of(shape->collective, by_slot->name, 0);
	if (near.algorithm != OCI_CHOICE_MPI && oci_choice_fits(shape, &near))
		return near;
	if (!*row->name)
		row = table[shape->collective][PAIR];
	for (end = row + ROWS; row < end && *row->name; row++) {
		struct oci_choice choice = choice_of(shape->collective, row->name, row->parameter);

		/* A row may end beyond what fits with this many ranks: the next one takes over. */
		if (shape->bytes <= row->up_to &&
		    (choice.algorithm == OCI_CHOICE_MPI || oci_choice_fits(shape, &choice)))
			return choice;
	}
	return (struct oci_choice){ OCI_CHOICE_MPI, 0 };
}
