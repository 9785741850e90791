/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPIs' own algorithms, by terms of a network that make their time easy to tell. */
#include <errno.h>
#include <math.h>

#include "lab/virtual/flat.h"
#include "model/terms_test.h"
#include "support/test.h"

/* A message of b bytes takes 2 + 10 + b / 1000. */
static int terms(void **state)
{
	(void)state;
	oci_model_init(&model);
	give("net.latency", 10);
	give("net.overhead", 1);
	give("net.gap_byte", 0.001);
	give("cma.beta", 0.00001);
	give("flag.cache", 0.01);
	return 0;
}

#define ALGORITHMS(name) TEST_WITH(name, terms, NULL)

static void takes(enum oc_collective collective, const char *name, size_t bytes, uint32_t nodes,
		  uint32_t each, double want)
{
	double s = 0;

	assert_int_equal(oci_flat_by(&model, collective, name, bytes, nodes, each, &s), 0);
	if (fabs(s - want) > 1e-6 * want)
		fail_msg("%s of %zu bytes on %u x %u takes %.9g, not %.9g", name, bytes, nodes,
			 each, s, want);
}

ALGORITHMS(rounds_follow_each_other)
{
	takes(OC_BARRIER, "dissemination", 0, 16, 1, 4 * 12);
	takes(OC_BARRIER, "dissemination", 0, 17, 1, 5 * 12);
	takes(OC_ALLREDUCE, "recursive-doubling", 1000, 8, 1, 3 * 13);
	/* Five ranks: one gives its part first and gets the result last, while others are ahead. */
	takes(OC_ALLREDUCE, "recursive-doubling", 1000, 5, 1, 3 * 13);
	takes(OC_ALLGATHER, "ring", 1000, 9, 1, 8 * 13);
	takes(OC_ALLGATHER, "bruck", 1000, 8, 1, 13 + 14 + 16);
	takes(OC_ALLGATHER, "bruck", 1000, 6, 1, 13 + 14 + 14);
	takes(OC_REDUCE_SCATTER, "halving", 8000, 8, 1, (12 + 4) + (12 + 2) + (12 + 1));
	takes(OC_ALLTOALL, "pairwise", 1000, 8, 1, 7 * 13);
	takes(OC_ALLTOALL, "bruck", 1000, 8, 1, 3 * (12 + 4));
	takes(OC_SCAN, "linear", 1000, 5, 1, 4 * 13);
}

ALGORITHMS(trees_are_as_deep_as_their_logarithm)
{
	/* The root's sends follow each other by their overhead; the last child's way counts. */
	takes(OC_BCAST, "binomial-far", 0, 8, 1, 3 * 12);
	takes(OC_BCAST, "binomial-near", 0, 8, 1, 3 * 12);
	takes(OC_REDUCE, "binomial-near", 0, 8, 1, 3 * 12);
	takes(OC_REDUCE, "binomial-far", 0, 8, 1, 3 * 12);
	/* Rank 4 is a child of the root's there. */
	takes(OC_REDUCE, "binomial-far", 0, 5, 1, 2 * 12);
	takes(OC_GATHER, "binomial", 1000, 4, 1, 13 + 14);
	takes(OC_SCATTER, "binomial", 1000, 4, 1, 14 + 13);
}

ALGORITHMS(a_root_that_gets_all_blocks_is_bound_by_its_cpu_or_its_card)
{
	/* 15 messages of which each takes 1 of its CPU, or 5 of its card. */
	takes(OC_GATHER, "linear", 0, 16, 1, 1 + 10 + 15);
	takes(OC_GATHER, "linear", 5000, 16, 1, 1 + 10 + 15 * 5 + 1);
}

ALGORITHMS(near_first_trees_cross_between_nodes_more_often_than_far_first_ones)
{
	double near, far;

	assert_int_equal(oci_flat_by(&model, OC_BCAST, "binomial-near", 100000, 8, 8, &near), 0);
	assert_int_equal(oci_flat_by(&model, OC_BCAST, "binomial-far", 100000, 8, 8, &far), 0);
	assert_true(near > 3 * far);
}

ALGORITHMS(many_rounds_of_the_same_are_not_all_run_and_take_as_long)
{
	takes(OC_ALLGATHER, "ring", 1000, 1000, 1, 999 * 13);
	takes(OC_ALLTOALL, "pairwise", 1000, 1000, 1, 999 * 13);
}

ALGORITHMS(the_quickest_is_taken)
{
	struct oci_flat small, large;
	double s;

	assert_int_equal(oci_flat_quickest(&model, OC_ALLREDUCE, 8, 64, 1, &small), 0);
	assert_int_equal(oci_flat_quickest(&model, OC_ALLREDUCE, 64 << 20, 64, 1, &large), 0);
	assert_string_equal(small.name, "recursive-doubling");
	assert_string_not_equal(large.name, "recursive-doubling");
	assert_int_equal(
		oci_flat_by(&model, OC_ALLREDUCE, "recursive-doubling", 64 << 20, 64, 1, &s), 0);
	assert_true(s > large.s);
	assert_int_equal(oci_flat_quickest(&model, OC_EXSCAN, 8, 4, 2, &small), 0);
	assert_int_equal(oci_flat_quickest(&model, OC_NEIGHBOR_ALLTOALLV, 8, 4, 2, &small),
			 -ENOTSUP);
	assert_int_equal(oci_flat_by(&model, OC_BCAST, "ring", 8, 4, 2, &s), -ENOENT);
}

/* Where all of a node's ranks would exchange halves over one card. */
ALGORITHMS(two_others_are_taken_where_they_are_quicker_together)
{
	struct oci_flat both, reduce, bcast;

	assert_int_equal(oci_flat_quickest(&model, OC_ALLREDUCE, 16384, 8, 64, &both), 0);
	assert_int_equal(oci_flat_quickest(&model, OC_REDUCE, 16384, 8, 64, &reduce), 0);
	assert_int_equal(oci_flat_quickest(&model, OC_BCAST, 16384, 8, 64, &bcast), 0);
	assert_string_equal(both.name, "reduce-bcast");
	assert_true(both.s == reduce.s + bcast.s);
}

ALGORITHMS(a_block_of_each_rank_is_a_part_of_all_blocks)
{
	double blocks, all;

	assert_int_equal(oci_flat_by(&model, OC_REDUCE_SCATTER_BLOCK, "ring", 1000, 4, 2, &blocks),
			 0);
	assert_int_equal(oci_flat_by(&model, OC_REDUCE_SCATTER, "ring", 8000, 4, 2, &all), 0);
	assert_true(blocks == all);
}
