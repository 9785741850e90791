/* SPDX-License-Identifier: BSD-3-Clause */
/* Between checked.c, the calls, and checked_data.c, their blocks and bytes. */
#ifndef ONECOPY_TESTS_CHECKED_DATA_H
#define ONECOPY_TESTS_CHECKED_DATA_H

#include "checked.h"

/* Has each block its own size? */
static inline int checked_has_table(enum case_collective collective)
{
	return oci_function_array_sent(case_function(collective)) ||
	       oci_function_array_received(case_function(collective)) ||
	       collective == CASE_REDUCE_SCATTER;
}

/* And its own type? */
static inline int checked_has_types(enum case_collective collective)
{
	return collective == CASE_ALLTOALLW || collective == CASE_neighbor_alltoallw;
}

static inline int checked_is_scatter(enum case_collective collective)
{
	return oci_is_rooted(case_of(collective)) && oci_sends_each(case_of(collective));
}

static inline int checked_is_gather(enum case_collective collective)
{
	return oci_is_rooted(case_of(collective)) && oci_receives_each(case_of(collective));
}

static inline int checked_is_reduce_scatter(enum case_collective collective)
{
	return oci_is_reduction(case_of(collective)) && oci_sends_each(case_of(collective));
}

/* Is the block that a rank gives for one rank alone? */
static inline int checked_gives_each(enum case_collective collective)
{
	return oci_function_sends_each(case_function(collective)) &&
	       !checked_is_reduce_scatter(collective);
}

/* Elements of the block that `from` gives to `to`: both know it without talking. */
int checked_block_elements(const struct checked *c, int from, int to);
/* Is the operation the layout's one that does not commute? */
int checked_uses_maps(const struct checked *c);
/* Sizes, layouts, places and memory of the blocks of both sides. */
void checked_place(struct checked *c);

#endif
