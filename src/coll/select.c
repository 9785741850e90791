/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice among algorithms: the first table of thresholds.
 *
 * Each row says up to how many bytes (of a block, as in plan.h) an algorithm is taken, for two
 * ranks, for more, and for more than the CPUs hold. PAIR and CROWD are measured on a 2-core
 * machine: docs/results.md has machine, date, figures and commands. TEAM, which that machine cannot
 * run, is PAIR with what paper 002 found best for many readers of one process: throttle factors of
 * 4 to 10, a k-nomial tree, no cooperation with a root that all others keep busy. The rows of
 * Reduce_scatter(_block), Scan and Exscan are reasoned from those of Reduce and Allreduce, which
 * move and reduce as many bytes, and wait for a measurement of their own.
 */
#include "coll/coll.h"

#include <string.h>

struct row {
	size_t up_to; /* bytes of a block */
	const char *name;
	uint32_t parameter; /* 0: the algorithm's default */
};

#define ANY SIZE_MAX
#define ROWS 6

enum team_kind { PAIR, TEAM, CROWD, KINDS }; /* two ranks; more; more than CPUs */

static const struct row table[OCI_COLLECTIVES][KINDS][ROWS] = {
	[OCI_BARRIER] = {
		[PAIR] = { { ANY, "flat", 0 } },
		[TEAM] = { { ANY, "flat", 0 } },
		[CROWD] = { { ANY, "flat", 0 } },
	},
	[OCI_BCAST] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "knomial", 4 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "direct-read", 0 } },
	},
	[OCI_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-read", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-read", 8 } },
	},
	[OCI_GATHER] = {
		[PAIR] = { { 496, "inline", 0 },
			   { 8192, "cico", 0 },
			   { 524288, "throttled-write", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-write", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-write", 8 } },
	},
	[OCI_ALLGATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "ring-source-read", 0 } },
	},
	[OCI_ALLTOALL] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "pairwise", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "pairwise", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "pairwise", 0 } },
	},
	[OCI_REDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OCI_ALLREDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { 65536, "cico-sliced", 0 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 65536, "cico-sliced", 0 },
			   { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By each block's own size: the thresholds are those of offers, src/plan/offer.c. */
	[OCI_SCATTERV] = {
		[PAIR] = { { ANY, "throttled-read", 8 } },
		[TEAM] = { { ANY, "throttled-read", 8 } },
		[CROWD] = { { ANY, "throttled-read", 8 } },
	},
	[OCI_GATHERV] = {
		[PAIR] = { { ANY, "throttled-write", 8 } },
		[TEAM] = { { ANY, "throttled-write", 8 } },
		[CROWD] = { { ANY, "throttled-write", 8 } },
	},
	[OCI_ALLGATHERV] = {
		[PAIR] = { { ANY, "ring-source-read", 0 } },
		[TEAM] = { { ANY, "ring-source-read", 0 } },
		[CROWD] = { { ANY, "ring-source-read", 0 } },
	},
	[OCI_ALLTOALLV] = {
		[PAIR] = { { ANY, "pairwise", 0 } },
		[TEAM] = { { ANY, "pairwise", 0 } },
		[CROWD] = { { ANY, "pairwise", 0 } },
	},
	[OCI_REDUCE_SCATTER_BLOCK] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By the bytes of the whole input. */
	[OCI_REDUCE_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OCI_SCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
	[OCI_EXSCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
};

static bool fits(const struct oci_shape *shape, const struct oci_choice *choice)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice->algorithm);

	return !a->fits || a->fits(shape, choice->parameter);
}

/* What a row says; the tests see to it that every name in the table is an algorithm's. */
static struct oci_choice choice_of(enum oci_collective collective, const struct row *row)
{
	struct oci_choice choice = { OCI_CHOICE_MPI, row->parameter };
	const struct oci_algorithm *a;

	for (uint8_t i = 0; (a = oci_algorithm(collective, i)) != NULL; i++) {
		if (strcmp(a->name, row->name))
			continue;
		choice.algorithm = i;
		if (!choice.parameter)
			choice.parameter = a->parameter_default;
	}
	return choice;
}

struct oci_choice oci_select(const struct oci_shape *shape, const struct oci_forced *forced)
{
	enum team_kind kind = shape->oversubscribed ? CROWD : shape->size > 2 ? TEAM : PAIR;
	const struct row *row = table[shape->collective][kind];

	if (forced && forced->forced &&
	    (forced->choice.algorithm == OCI_CHOICE_MPI || fits(shape, &forced->choice)))
		return forced->choice;
	for (; row < table[shape->collective][kind] + ROWS && row->name; row++) {
		struct oci_choice choice = choice_of(shape->collective, row);

		/* A row may end beyond what fits with this many ranks: the next one takes over. */
		if (shape->bytes <= row->up_to &&
		    (choice.algorithm == OCI_CHOICE_MPI || fits(shape, &choice)))
			return choice;
	}
	return (struct oci_choice){ OCI_CHOICE_MPI, 0 };
}
