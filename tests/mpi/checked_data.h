/* SPDX-License-Identifier: BSD-3-Clause */
/* Between checked.c, the calls, and checked_data.c, their blocks and bytes. */
#ifndef ONECOPY_TESTS_CHECKED_DATA_H
#define ONECOPY_TESTS_CHECKED_DATA_H

#include "checked.h"

static inline int checked_has_table(enum case_collective collective)
{
	return oci_has_counts(case_of(collective));
}

static inline int checked_is_alltoall(enum case_collective collective)
{
	return collective == CASE_ALLTOALL || collective == CASE_ALLTOALLV ||
	       collective == CASE_ALLTOALLW;
}

static inline int checked_is_scatter(enum case_collective collective)
{
	return collective == CASE_SCATTER || collective == CASE_SCATTERV;
}

static inline int checked_is_gather(enum case_collective collective)
{
	return collective == CASE_GATHER || collective == CASE_GATHERV;
}

static inline int checked_is_reduce_scatter(enum case_collective collective)
{
	return collective == CASE_REDUCE_SCATTER_BLOCK || collective == CASE_REDUCE_SCATTER;
}

/* Elements of the block that `from` gives to `to`: both know it without talking. */
int checked_block_elements(const struct checked *c, int from, int to);
/* Is the operation the layout's one that does not commute? */
int checked_uses_maps(const struct checked *c);
/* Sizes, layouts, places and memory of the blocks of both sides. */
void checked_place(struct checked *c);

#endif
