/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in two levels: of which parts they are made, and how these add up. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lab/virtual/flat.h"
#include "lab/virtual/nodes.h"
#include "lab/virtual/predict.h"
#include "model/terms_test.h"
#include "support/test.h"

static struct oci_nodes_predicted p;

static int predict(enum oc_collective collective, size_t bytes, uint32_t nodes, uint32_t each,
		   size_t together)
{
	struct oci_shape shape = { .collective = collective,
				   .bytes = bytes,
				   .unit = 1,
				   .size = each,
				   .single_copy = true };
	char why[256];
	int error;

	oci_model_destroy(&model);
	assert_int_equal(oci_model_profile("broadwell", &model), 0);
	give_to(&model, "reduce", 2e-10); /* which the paper did not measure */
	assert_int_equal(oci_predict_hierarchy(&model, each, &shape.hierarchy), 0);
	error = oci_nodes_predict(&model, &shape, nodes, together, &p, why, sizeof(why));
	oci_hierarchy_put(shape.hierarchy);
	return error;
}

static double sum(void)
{
	double s = p.copies_s;

	for (unsigned int i = 0; i < p.parts; i++)
		s += p.part[i].s;
	return s;
}

/* "reduce ALLREDUCE bcast": those between nodes are in capitals. */
static void are(const char *want)
{
	char text[256] = "";

	for (unsigned int i = 0; i < p.parts; i++) {
		const char *name = oci_collective_name(p.part[i].collective);
		size_t at = strlen(text);

		snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "", name);
		for (char *c = text + at; *c && p.part[i].between; c++)
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c - 'a' + 'A');
	}
	assert_string_equal(text, want);
}

TEST(parts_are_those_of_the_front_ends_and_add_up)
{
	static const struct {
		enum oc_collective collective;
		const char *parts;
	} of[] = {
		{ OC_BARRIER, "barrier BARRIER barrier" },
		{ OC_BCAST, "BCAST bcast" },
		{ OC_REDUCE, "reduce REDUCE" },
		{ OC_ALLREDUCE, "reduce ALLREDUCE bcast" },
		{ OC_GATHER, "gather GATHER" },
		{ OC_GATHERV, "allgather gatherv GATHERV" },
		{ OC_SCATTER, "scatter SCATTER" },
		{ OC_ALLGATHER, "gather ALLGATHERV bcast" },
		{ OC_ALLGATHERV, "gatherv ALLGATHERV bcast" },
		{ OC_ALLTOALL, "gather ALLTOALLV scatter" },
		{ OC_REDUCE_SCATTER, "reduce REDUCE_SCATTER scatterv" },
		{ OC_REDUCE_SCATTER_BLOCK, "reduce REDUCE_SCATTER scatterv" },
		{ OC_SCAN, "reduce EXSCAN scan bcast" },
		{ OC_EXSCAN, "reduce EXSCAN exscan bcast" },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		assert_int_equal(predict(of[i].collective, 1024, 4, 28, 65536), 0);
		are(of[i].parts);
		/* A prefix is applied once more. */
		if (oci_is_prefix(of[i].collective))
			assert_true(p.s >= sum() && p.s < 1.2 * sum());
		else
			assert_true(fabs(p.s / sum() - 1) < 1e-9);
	}
	assert_int_equal(predict(OC_ALLTOALLV, 4096, 4, 28, 0), -ENOTSUP);
}

TEST(a_bcast_of_single_ranks_goes_in_pieces)
{
	assert_int_equal(predict(OC_BCAST, 4 << 20, 4, 1, 0), 0);
	are("BCAST");
	assert_int_equal(p.part[0].times, 8);
	assert_true(fabs(p.s / sum() - 1) < 1e-9);
}

/* With fewer bytes by leaders, then in shares. */
static void are_from(enum oc_collective collective, size_t bytes, const char *leaders,
		     const char *shares)
{
	assert_int_equal(predict(collective, bytes - 8, 4, 32, 0), 0);
	are(leaders);
	assert_int_equal(predict(collective, bytes, 4, 32, 0), 0);
	are(shares);
	assert_true(fabs(p.s / sum() - 1) < 1e-9);
}

TEST(many_bytes_go_in_shares)
{
	double s;
	size_t least = oc_levels_shared(OC_ALLREDUCE, 32, 0);

	assert_int_equal(predict(OC_ALLREDUCE, least - 8, 4, 32, 0), 0);
	s = p.part[1].s;
	are_from(OC_ALLREDUCE, least, "reduce ALLREDUCE bcast",
		 "reduce_scatter ALLREDUCE allgatherv");
	assert_true(p.part[1].s < s);
	assert_int_equal(p.part[2].bytes, least / 32);
	are_from(OC_REDUCE, oc_levels_shared(OC_REDUCE, 32, 0), "reduce REDUCE",
		 "reduce_scatter REDUCE gatherv");
	are_from(OC_BCAST, oc_levels_shared(OC_BCAST, 32, 0), "BCAST bcast",
		 "scatterv BCAST allgatherv");
	are_from(OC_ALLGATHER, oc_levels_shared(OC_ALLGATHER, 32, 0) / 32,
		 "gather ALLGATHERV bcast", "ALLGATHERV allgather");
	assert_int_equal(p.part[1].times, 4);
	are_from(OC_REDUCE_SCATTER, 4 * oc_levels_shared(OC_REDUCE_SCATTER, 32, 0),
		 "reduce REDUCE_SCATTER scatterv", "reduce_scatter REDUCE_SCATTER");
	assert_int_equal(p.part[0].times, 4);
}

TEST(ranks_of_small_nodes_have_a_leader_for_longer)
{
	assert_int_equal(predict(OC_ALLREDUCE, oc_levels_shared(OC_ALLREDUCE, 32, 0), 4, 2, 0), 0);
	are("reduce ALLREDUCE bcast");
}

TEST(blocks_that_do_not_travel_together_are_a_message_each)
{
	assert_int_equal(predict(OC_SCATTERV, 4096, 4, 28, 0), 0);
	are("scatterv SCATTERV");
	assert_string_equal(p.part[1].algorithm, "a message a rank");
	assert_int_equal(p.part[1].bytes, 4096);
	assert_int_equal(predict(OC_GATHER, 4096, 4, 28, SIZE_MAX), 0);
	assert_string_equal(p.part[1].algorithm, "a message a node");
	assert_int_equal(p.part[1].bytes, 28 * 4096);
}

TEST(a_rank_alone_on_its_node_has_no_part_there)
{
	assert_int_equal(predict(OC_ALLREDUCE, 4096, 4, 1, 0), 0);
	are("ALLREDUCE");
}

TEST(parts_on_a_node_are_by_what_its_team_chooses)
{
	assert_int_equal(predict(OC_GATHER, 65536, 4, 28, SIZE_MAX), 0);
	assert_true(strncmp(p.part[0].algorithm, "throttled-write", 15) == 0);
}

int main(void)
{
	int failed = oct_test_run(NULL, NULL);

	oci_model_destroy(&model);
	return failed;
}
