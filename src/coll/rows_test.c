/* SPDX-License-Identifier: BSD-3-Clause */

#include "coll/dictated_test.h"
#include "coll/rows.h"
#include "support/test.h"

/* Where all ranks have shared heaps, neither a calibrated model nor the rows for system calls. */
TEST_WITH(shared_heaps_bring_single_copies_of_small_messages, dictated, NULL)
{
	static const enum oc_collective all[] = { OC_BCAST,	OC_SCATTER,  OC_GATHER,
						  OC_ALLGATHER, OC_ALLTOALL, OC_REDUCE,
						  OC_ALLREDUCE };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (uint32_t p = 2; p < 40; p = p * 2 + 1) {
			struct oci_shape shape = shape_of(all[i], p, 4096);
			struct oci_choice with, without;
			enum oci_decided decided;

			without = oci_select(&shape, &model, NULL, NULL, NULL);
			shape.mapped = true;
			with = oci_select(&shape, &model, NULL, NULL, &decided);
			assert_true(oci_algorithm(all[i], with.algorithm)->single_copy);
			assert_true(decided == OCI_BY_MEASURED || decided == OCI_BY_RULE);
			if (p == 2)
				assert_false(oci_algorithm(all[i], without.algorithm)->single_copy);
			/* Not of peers that may compute. */
			without = oci_by_rows(&(struct oci_shape){ .collective = all[i],
								   .bytes = 4096,
								   .unit = shape.unit,
								   .size = p });
			shape.nonblocking = true;
			with = oci_select(&shape, &model, NULL, NULL, NULL);
			assert_int_equal(with.algorithm, without.algorithm);
			/* Of larger blocks the copies count more. */
			shape.bytes = 65536;
			with = oci_select(&shape, &model, NULL, NULL, NULL);
			shape.nonblocking = false;
			without = oci_select(&shape, &model, NULL, NULL, NULL);
			assert_int_equal(with.algorithm, without.algorithm);
		}
	}
}

/* Whose choices were measured to be better; what a call costs there the model tells all the same.
 */
TEST_WITH(shared_heaps_go_by_rows_however_well_the_machine_is_known, dictated, NULL)
{
	struct oci_shape pair = shape_of(OC_BCAST, 2, 1 << 20);
	struct oci_candidate list[OCI_CANDIDATES_MOST];
	enum oci_decided decided;

	pair.mapped = true;
	model.calibrated = true;
	give("map.beta", 3e-11);
	give("map.push_beta", 4e-11);
	oci_select(&pair, &model, NULL, NULL, &decided);
	assert_int_equal(decided, OCI_BY_MEASURED);
	/* No system call and no lock, whatever these cost. */
	give("cma.alpha", 1);
	assert_true(oci_candidates(&pair, &model, list) > 3);
	for (unsigned int i = 0; i < 3; i++)
		assert_true(list[i].cost.lock == 0 && oci_cost_total(&list[i].cost) < 1e-3);
}

/* Slots between cores that share a cache; of teams of other kinds nobody asked. */
TEST_WITH(near_ranks_take_slots_for_longer, dictated, NULL)
{
	static const enum oc_collective all[] = { OC_BCAST,	OC_SCATTER,  OC_GATHER,
						  OC_ALLGATHER, OC_ALLTOALL, OC_REDUCE };
	static const size_t up_to[] = { 32768, 32768, 262144, 262144, 262144, 65536 };
	static const size_t ordinary[] = { 32768, 32768, OCI_SLOT_BYTES, 32768, 32768, 65536 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct oci_shape shape = shape_of(all[i], 2, 20000);
		struct oci_choice far = oci_select(&shape, &model, NULL, NULL, NULL), near;
		enum oci_decided decided;

		shape.common = OCI_TOPO_L3;
		shape.large_slots = true;
		near = oci_select(&shape, &model, NULL, NULL, &decided);
		assert_true(oci_algorithm(all[i], far.algorithm)->single_copy);
		assert_string_equal(name_of(all[i], near), "cico");
		assert_int_equal(decided, OCI_BY_MEASURED);
		shape.bytes = up_to[i];
		near = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_string_equal(name_of(all[i], near), "cico");
		if (all[i] == OC_ALLGATHER || all[i] == OC_ALLTOALL) {
			shape.bytes = 65536;
			near = oci_select(&shape, &model, NULL, NULL, NULL);
			assert_true(oci_algorithm(all[i], near.algorithm)->single_copy);
			shape.bytes = up_to[i];
		}
		shape.bytes++;
		near = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_true(oci_algorithm(all[i], near.algorithm)->single_copy);
		/* Without large slots, as far as ordinary ones hold. */
		shape.large_slots = false;
		shape.bytes = ordinary[i];
		near = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_string_equal(name_of(all[i], near), "cico");
		shape.bytes++;
		near = oci_select(&shape, &model, NULL, NULL, NULL);
		assert_true(oci_algorithm(all[i], near.algorithm)->single_copy);
		for (unsigned int other = 0; other < 3; other++) {
			struct oci_choice with, without;

			shape = shape_of(all[i], other ? 2 : 3, 20000);
			shape.oversubscribed = other == 1;
			shape.mapped = other == 2;
			without = oci_select(&shape, &model, NULL, NULL, NULL);
			shape.common = OCI_TOPO_L3;
			with = oci_select(&shape, &model, NULL, NULL, NULL);
			assert_int_equal(with.algorithm, without.algorithm);
		}
	}
}

static void expect_algorithms_that_fit(void)
{
	for (unsigned int i = 0; i < OC_COLLECTIVES * 2 * 2 * 2; i++) {
		unsigned int c = i / 8;

		model.calibrated = i & 4;
		for (uint32_t p = 1; p <= 300; p += 1 + p / 16) {
			for (size_t bytes = 0; bytes < (size_t)1 << 40; bytes = bytes * 3 + 1) {
				struct oci_shape shape = shape_of(c, p, bytes);
				struct oci_choice choice;
				const struct oci_algorithm *a;

				shape.oversubscribed = i & 1;
				shape.mapped = p % 2 && bytes % 2;
				shape.common = bytes % 3 ? OCI_TOPO_MACHINE : OCI_TOPO_L3;
				shape.large_slots = p == 2 && bytes % 3 == 0 && bytes % 2;
				shape.single_copy = i & 2;
				choice = oci_select(&shape, &model, NULL, NULL, NULL);
				if (choice.algorithm == OCI_CHOICE_MPI)
					continue;
				a = oci_algorithm(c, choice.algorithm);
				assert_non_null(a);
				assert_true(!a->fits || a->fits(&shape, choice.parameter));
				assert_true(choice.parameter >= a->parameter_min);
				assert_true(!a->parameter_max ||
					    choice.parameter <= a->parameter_max);
			}
		}
	}
}

TEST_WITH(every_size_and_team_gets_an_algorithm_that_fits, dictated, NULL)
{
	expect_algorithms_that_fit();
}

TEST_WITH(every_size_and_team_gets_an_algorithm_that_fits_without_terms, without_terms, NULL)
{
	expect_algorithms_that_fit();
}

static void expect_no_slots_for_the_largest(void)
{
	for (unsigned int c = OC_BCAST; c < OC_COLLECTIVES; c++) {
		struct oci_shape shape = shape_of(c, 4, (size_t)1 << 30);
		struct oci_choice choice = oci_select(&shape, &model, NULL, NULL, NULL);

		if (choice.algorithm != OCI_CHOICE_MPI)
			assert_true(oci_algorithm(c, choice.algorithm)->single_copy);
	}
}

TEST_WITH(the_largest_messages_never_go_through_slots, dictated, NULL)
{
	expect_no_slots_for_the_largest();
}

TEST_WITH(the_largest_messages_never_go_through_slots_without_terms, without_terms, NULL)
{
	expect_no_slots_for_the_largest();
}
