/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "coll/dictated_test.h"
#include "coll/select.h"
#include "lab/virtual/predict.h"
#include "pattern/knomial.h"
#include "support/test.h"

TEST_WITH(the_cheapest_by_the_model_is_taken, dictated, NULL)
{
	enum oci_decided decided;
	struct oci_shape shape = shape_of(OC_SCATTER, 9, 16 << 20);
	struct oci_choice choice;

	/* Free locks: all at once; and the root, soon through with its own block, helps. */
	give("cma.lock", 0);
	give("memcpy.cache", 1e-11);
	choice = oci_select(&shape, &model, NULL, NULL, &decided);
	assert_int_equal(decided, OCI_BY_MODEL);
	assert_string_equal(name_of(OC_SCATTER, choice), "cooperative");
	/* Memory so slow to copy twice that the smallest message is copied once. */
	give("memcpy.cache", 1e-6);
	shape.bytes = 4;
	choice = oci_select(&shape, &model, NULL, NULL, &decided);
	assert_true(oci_algorithm(OC_SCATTER, choice.algorithm)->single_copy);
	/* And the other way round. */
	give("memcpy.cache", 1e-13);
	shape.bytes = 8192;
	choice = oci_select(&shape, &model, NULL, NULL, &decided);
	assert_string_equal(name_of(OC_SCATTER, choice), "cico");
}

/* Without its terms those of cma are the guess. */
TEST_WITH(the_kernel_module_is_weighed_by_terms_of_its_own, dictated, NULL)
{
	struct oci_shape shape = shape_of(OC_SCATTER, 9, 4);
	struct oci_choice choice;

	give("memcpy.cache", 1e-6);
	shape.kmod = true;
	choice = oci_select(&shape, &model, NULL, NULL, NULL);
	assert_true(oci_algorithm(OC_SCATTER, choice.algorithm)->single_copy);
	give("kmod.alpha", 1e-2);
	give("kmod.beta", 1e-9);
	choice = oci_select(&shape, &model, NULL, NULL, NULL);
	assert_false(oci_algorithm(OC_SCATTER, choice.algorithm)->single_copy);
	shape.kmod = false;
	choice = oci_select(&shape, &model, NULL, NULL, NULL);
	assert_true(oci_algorithm(OC_SCATTER, choice.algorithm)->single_copy);
}

TEST_WITH(measured_rows_overrule_a_model_that_nobody_calibrated, dictated, NULL)
{
	struct oci_shape pair = shape_of(OC_BCAST, 2, 1 << 20),
			 crowd = shape_of(OC_BCAST, 8, 1 << 20);
	enum oci_decided decided;

	crowd.oversubscribed = true;
	assert_string_equal(name_of(OC_BCAST, oci_select(&pair, &model, NULL, NULL, &decided)),
			    "cooperative");
	assert_int_equal(decided, OCI_BY_MEASURED);
	model.calibrated = true;
	give("cma.alpha", 1e-3); /* so dear that two halves of a message are no gain */
	assert_string_not_equal(name_of(OC_BCAST, oci_select(&pair, &model, NULL, NULL, &decided)),
				"cooperative");
	assert_int_equal(decided, OCI_BY_MODEL);
	/* Ranks that share cores have no term: their rows stay. */
	assert_string_equal(name_of(OC_BCAST, oci_select(&crowd, &model, NULL, NULL, &decided)),
			    "direct-read");
	assert_int_equal(decided, OCI_BY_MEASURED);
}

TEST_WITH(a_model_that_knows_nothing_leaves_it_to_the_rows, without_terms, NULL)
{
	struct oci_shape shape = shape_of(OC_BCAST, 16, 1 << 20);
	enum oci_decided decided;

	assert_string_equal(name_of(OC_BCAST, oci_select(&shape, &model, NULL, NULL, &decided)),
			    "knomial");
	assert_int_equal(decided, OCI_BY_RULE);
}

TEST_WITH(cells_of_the_file_overrule_the_model_and_are_overruled, dictated, NULL)
{
	struct oci_model_cell cells[] = {
		{ "bcast", "knomial:7", 8, 8, 1000, 2000 },
		{ "bcast", "inline", 8, 8, 0, 3000 },
		{ "bcast", "mpi", 8, 8, 3001, 4000 },
	};
	struct oci_shape shape = shape_of(OC_BCAST, 8, 1000);
	struct oci_forced forced;
	const char *expected = "";
	enum oci_decided decided;

	model.cells = cells;
	model.cell_count = 3;
	assert_int_equal(oci_select(&shape, &model, NULL, NULL, &decided).parameter, 7);
	assert_int_equal(decided, OCI_BY_FILE);
	shape.bytes = 999; /* does not fit what its cell says: the model decides */
	oci_select(&shape, &model, NULL, NULL, &decided);
	assert_int_equal(decided, OCI_BY_MODEL);
	shape.bytes = 4000;
	assert_string_equal(name_of(OC_BCAST, oci_select(&shape, &model, NULL, NULL, &decided)),
			    "mpi");
	shape.bytes = 1000;
	assert_int_equal(oci_forced_parse(OC_BCAST, "direct-read", &forced, &expected), 0);
	assert_string_equal(name_of(OC_BCAST, oci_select(&shape, &model, &forced, NULL, &decided)),
			    "direct-read");
	assert_int_equal(decided, OCI_BY_FORCE);
	shape.size = 9;
	oci_select(&shape, &model, NULL, NULL, &decided);
	assert_int_equal(decided, OCI_BY_MODEL);
}

TEST_WITH(every_algorithm_with_a_closed_form_is_a_candidate, dictated, NULL)
{
	static struct oci_candidate list[OCI_CANDIDATES_MOST];
	const struct oci_algorithm *a;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		struct oci_shape shape = shape_of(c, 1024, 65536);
		unsigned int count = oci_candidates(&shape, &model, list);

		for (uint8_t i = 0; (a = oci_algorithm(c, i)) != NULL; i++) {
			bool found = false;

			for (unsigned int j = 0; j < count; j++)
				found |= list[j].choice.algorithm == i;
			assert_int_equal(found, a->cost && (!a->fits ||
							    a->fits(&shape, a->parameter_default)));
		}
	}
}

/* Of a flat team, or of two ranks that share a cache. */
TEST_WITH(what_was_asked_before_changes_nothing, dictated, NULL)
{
	struct oci_choices of[2] = { 0 };
	uint64_t random = 1;

	model.calibrated = true;
	for (unsigned int i = 0; i < 40000; i++) {
		struct oci_choices *kept = &of[i % 2];
		struct oci_shape shape;
		struct oci_choice a, b;

		random = random * 6364136223846793005u + 1442695040888963407u;
		shape = shape_of((random >> 33) % OC_COLLECTIVES, i % 2 ? 2 : 16,
				 (random >> 20) >> (random >> 58));
		if (i % 2) {
			shape.common = OCI_TOPO_L3;
			shape.large_slots = random >> 10 & 1;
		}
		shape.in_place = random >> 11 & 1;
		a = oci_select(&shape, &model, NULL, kept, NULL);
		b = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_int_equal(a.algorithm, b.algorithm);
		assert_int_equal(a.parameter, b.parameter);
	}
}

/* Sizes apart by a power of two are the ones that a program alternates. */
TEST_WITH(kept_choices_of_one_collective_do_not_push_each_other_out, dictated, NULL)
{
	struct oci_choices kept = { 0 };

	for (unsigned int first = 2; first < 30; first++) {
		for (unsigned int second = first + 1; second < 30; second++) {
			struct oci_shape a = shape_of(OC_BCAST, 16, (size_t)1 << first), b = a;
			unsigned int used = 0;

			b.bytes = (size_t)1 << second;
			memset(&kept, 0, sizeof(kept));
			oci_select(&a, &model, NULL, &kept, NULL);
			oci_select(&b, &model, NULL, &kept, NULL);
			for (unsigned int i = 0; i < OCI_KEPT; i++)
				used += kept.kept[i].key != 0;
			assert_true(used >= 2);
		}
	}
}

static int built_in(void **state)
{
	(void)state;
	return oci_model_profile("default", &model);
}

/* The closed forms that choose, held against all plans in virtual time. */
TEST_WITH(what_is_chosen_is_near_the_best_of_the_plans, built_in, NULL)
{
	static struct oci_candidate list[OCI_CANDIDATES_MOST];
	static const enum oc_collective collectives[] = { OC_BCAST, OC_ALLGATHER, OC_ALLTOALL,
							  OC_REDUCE, OC_ALLREDUCE };
	static const size_t sizes[] = { 65536, 1 << 20, 16 << 20 };

	for (unsigned int i = 0; i < 5 * 3 * 2; i++) {
		struct oci_shape shape =
			shape_of(collectives[i % 5], i < 15 ? 8 : 24, sizes[i / 5 % 3]);
		struct oci_choice chosen;
		struct oci_virtual_result result;
		double best = 0, taken;
		unsigned int count;
		char why[256];

		shape.unit = 8;
		chosen = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_int_equal(oci_predict(&model, &shape, chosen, &result, why, sizeof(why)), 0);
		taken = result.end_s;
		count = oci_candidates(&shape, &model, list);
		for (unsigned int j = 0; j < count; j++) {
			/* The model flatters copies through slots: its domain term is of all bytes
			 * of single copies, and of others only beyond the cache. */
			if (oci_algorithm(shape.collective, list[j].choice.algorithm)->baseline)
				continue;
			if (oci_predict(&model, &shape, list[j].choice, &result, why, sizeof(why)))
				continue;
			if (!best || result.end_s < best)
				best = result.end_s;
		}
		if (taken > 1.25 * best)
			fail_msg("%s of %zu bytes on %u ranks: the choice takes %g s, the best %g",
				 oci_collective_name(shape.collective), shape.bytes, shape.size,
				 taken, best);
	}
}

/* The least time of any candidate by the plans of all ranks. */
static double best_of_plans(const struct oci_shape *shape)
{
	static struct oci_candidate list[OCI_CANDIDATES_MOST];
	unsigned int count = oci_candidates(shape, &model, list);
	struct oci_virtual_result result;
	double best = 0;
	char why[256];

	for (unsigned int i = 0; i < count; i++) {
		if (oci_algorithm(shape->collective, list[i].choice.algorithm)->baseline ||
		    oci_predict(&model, shape, list[i].choice, &result, why, sizeof(why)))
			continue;
		if (!best || result.end_s < best)
			best = result.end_s;
	}
	return best;
}

/* 48 cores as paper 000's: where readers of one process hold each other up and slots are slow,
 * there are messages too large for a tree's rounds and too small for 48 parts, which each node gets
 * once, in segments. Ranks without a hierarchy do not. */
TEST_WITH(on_a_machine_with_a_hierarchy_a_bcast_goes_by_it, dictated, NULL)
{
	struct oci_shape shape = shape_of(OC_BCAST, 48, 0);
	const struct oci_hierarchy *hierarchy;
	struct oci_virtual_result result;
	enum oci_decided decided;
	struct oci_choice choice;
	char why[256];

	give("cma.gamma1", 0.15);
	give("cma.gamma2", 0);
	give("memcpy.cache", 1e-9);
	give("machine.packages", 8);
	give("machine.package_cores", 6);
	give("machine.cache_cores", 6);
	give("machine.domain_cores", 6);
	assert_int_equal(oci_predict_hierarchy(&model, shape.size, &hierarchy), 0);
	assert_non_null(hierarchy);
	shape.hierarchy = hierarchy;
	shape.bytes = 65536;
	choice = oci_select(&shape, &model, NULL, NULL, &decided);
	assert_int_equal(decided, OCI_BY_MODEL);
	assert_string_equal(name_of(OC_BCAST, choice), "hierarchical");
	for (shape.bytes = 4096; shape.bytes <= 1 << 20; shape.bytes *= 2) {
		shape.hierarchy = hierarchy;
		choice = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_int_equal(oci_predict(&model, &shape, choice, &result, why, sizeof(why)), 0);
		assert_true(result.end_s <= 1.1 * best_of_plans(&shape));
		shape.hierarchy = NULL;
		choice = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_string_not_equal(name_of(OC_BCAST, choice), "hierarchical");
	}
	oci_hierarchy_put(hierarchy);
}

/* Its 48 ranks by the profile of the machine, none of whose terms is chosen for this. By it a tree
 * or a scatter and a ring beat the paper's hierarchy, which no MPI of its time could choose from:
 * 835 and 760 us against 1016 for 1 MiB. */
TEST_WITH(on_paper_000s_machine_a_bcast_is_nearly_the_best_there_is, without_terms, NULL)
{
	struct oci_shape shape = shape_of(OC_BCAST, 48, 0);
	const struct oci_hierarchy *hierarchy;
	struct oci_virtual_result result;
	char why[256];

	oci_model_destroy(&model);
	assert_int_equal(oci_model_profile("ig", &model), 0);
	assert_int_equal(oci_predict_hierarchy(&model, shape.size, &hierarchy), 0);
	shape.hierarchy = hierarchy;
	for (shape.bytes = 16384; shape.bytes <= 8 << 20; shape.bytes *= 2) {
		struct oci_choice choice = oci_select(&shape, &model, NULL, NULL, NULL);
		double best = best_of_plans(&shape);

		assert_int_equal(oci_predict(&model, &shape, choice, &result, why, sizeof(why)), 0);
		print_message("ig, bcast, %zu bytes: %s, %.3f of the best\n", shape.bytes,
			      name_of(OC_BCAST, choice), result.end_s / best);
		assert_true(result.end_s <= 1.2 * best);
	}
	oci_hierarchy_put(hierarchy);
}

/* Ranks that go round three nodes in turn: the ring takes steps of three, where these lead through
 * all ranks, else it goes by the hierarchy. */
TEST_WITH(a_ring_goes_by_where_ranks_sit, dictated, NULL)
{
	static const struct {
		uint32_t size;
		const char *name;
		uint32_t j;
	} expected[] = { { 16, "ring-neighbor", 3 }, { 12, "ring-near", 0 } };

	give("machine.packages", 3);
	give("machine.package_cores", 6);
	give("machine.domain_cores", 6);
	give("domain", 1e-10);
	for (size_t i = 0; i < 2; i++) {
		struct oci_shape shape = shape_of(OC_ALLGATHER, expected[i].size, 1 << 20);
		struct oci_topo_place places[16];
		struct oci_choice choice;

		for (uint32_t r = 0; r < shape.size; r++)
			places[r] = (struct oci_topo_place){ .core = r,
							     .l2 = r,
							     .l3 = r % 3,
							     .numa = r % 3,
							     .package = r % 3,
							     .cpus = 1 };
		assert_int_equal(oci_hierarchy_get(places, shape.size, &shape.hierarchy), 0);
		choice = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_string_equal(name_of(OC_ALLGATHER, choice), expected[i].name);
		assert_int_equal(choice.parameter, expected[i].j);
		oci_hierarchy_put(shape.hierarchy);
	}
}

TEST(cells_are_checked_by_the_names_that_exist)
{
	const char *expected = "";

	assert_int_equal(oci_cell_check("bcast", "knomial:4", &expected), 0);
	assert_int_equal(oci_cell_check("bcast", "pairwise", &expected), -EINVAL);
	assert_non_null(strstr(expected, "knomial[:N]"));
	assert_int_equal(oci_cell_check("broadcast", "knomial:4", &expected), -EINVAL);
	assert_non_null(strstr(expected, "bcast, scatter"));
}

TEST_WITH(a_forced_algorithm_is_taken_where_it_fits, dictated, NULL)
{
	struct oci_shape shape = { .collective = OC_BCAST, .bytes = 100, .unit = 1, .size = 4 };
	struct oci_forced forced;
	const char *expected = "";

	assert_int_equal(oci_forced_parse(OC_BCAST, "inline", &forced, &expected), 0);
	assert_string_equal(
		oci_algorithm(OC_BCAST, oci_select(&shape, &model, &forced, NULL, NULL).algorithm)
			->name,
		"inline");
	shape.bytes = 497;
	assert_string_not_equal(
		oci_algorithm(OC_BCAST, oci_select(&shape, &model, &forced, NULL, NULL).algorithm)
			->name,
		"inline");
	assert_int_equal(oci_forced_parse(OC_BCAST, "knomial:7", &forced, &expected), 0);
	assert_int_equal(oci_select(&shape, &model, &forced, NULL, NULL).parameter, 7);
	assert_int_equal(oci_forced_parse(OC_BCAST, "mpi", &forced, &expected), 0);
	assert_int_equal(oci_select(&shape, &model, &forced, NULL, NULL).algorithm, OCI_CHOICE_MPI);
}

TEST(wrong_names_are_refused_with_the_valid_ones)
{
	static const char *const wrong[] = { "",	  "knomial:0",	"knomial:",
					     "knomial:x", "Inline",	"knomial:99999999999",
					     "inline:3",  "knomial:4 ", "knomia" };
	struct oci_forced forced = { .forced = true, .choice = { 3, 4 } };
	const char *expected;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		expected = "";
		assert_int_equal(oci_forced_parse(OC_BCAST, wrong[i], &forced, &expected), -EINVAL);
		assert_non_null(strstr(expected, "knomial[:N]"));
		assert_int_equal(forced.choice.algorithm, 3);
	}
}

TEST(knomial_children_and_parents_agree)
{
	for (uint32_t p = 1; p <= 130; p++) {
		for (uint32_t k = 1; k <= 9; k++) {
			uint32_t found = 0, child;

			for (uint32_t v = 0; v < p; v++) {
				for (uint32_t i = 0; (child = oci_knomial_child(v, k, p, i)); i++) {
					assert_true(child < p && child > v);
					assert_int_equal(oci_knomial_parent(child, k), v);
					found++;
				}
			}
			assert_int_equal(found, p - 1);
		}
	}
}
