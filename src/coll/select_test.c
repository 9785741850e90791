/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "coll/coll.h"
#include "pattern/knomial.h"

static void every_size_and_team_gets_an_algorithm_that_fits(void **state)
{
	(void)state;
	for (unsigned int c = 0; c < OCI_COLLECTIVES; c++) {
		for (uint32_t p = 1; p <= 300; p++) {
			for (size_t bytes = 0; bytes < (size_t)1 << 40; bytes = bytes * 3 + 1) {
				struct oci_shape shape = { .collective = c,
							   .bytes = bytes,
							   .unit = 1,
							   .size = p,
							   .oversubscribed = p % 2,
							   .single_copy = true };
				struct oci_choice choice = oci_select(&shape, NULL);
				const struct oci_algorithm *a;

				if (choice.algorithm == OCI_CHOICE_MPI)
					continue;
				a = oci_algorithm(c, choice.algorithm);
				assert_non_null(a);
				assert_true(!a->fits || a->fits(&shape, choice.parameter));
				assert_true(choice.parameter >= a->parameter_min);
			}
		}
	}
}

static void the_largest_messages_never_go_through_slots(void **state)
{
	(void)state;
	for (unsigned int c = OCI_BCAST; c < OCI_COLLECTIVES; c++) {
		struct oci_shape shape = { .collective = c,
					   .bytes = (size_t)1 << 30,
					   .unit = 1,
					   .size = 4,
					   .single_copy = true };
		struct oci_choice choice = oci_select(&shape, NULL);

		if (choice.algorithm != OCI_CHOICE_MPI)
			assert_true(oci_algorithm(c, choice.algorithm)->single_copy);
	}
}

static void a_forced_algorithm_is_taken_where_it_fits(void **state)
{
	struct oci_shape shape = { .collective = OCI_BCAST, .bytes = 100, .unit = 1, .size = 4 };
	struct oci_forced forced;
	const char *expected = "";

	(void)state;
	assert_int_equal(oci_forced_parse(OCI_BCAST, "inline", &forced, &expected), 0);
	assert_string_equal(oci_algorithm(OCI_BCAST, oci_select(&shape, &forced).algorithm)->name,
			    "inline");
	shape.bytes = 497;
	assert_string_not_equal(
		oci_algorithm(OCI_BCAST, oci_select(&shape, &forced).algorithm)->name, "inline");
	assert_int_equal(oci_forced_parse(OCI_BCAST, "knomial:7", &forced, &expected), 0);
	assert_int_equal(oci_select(&shape, &forced).parameter, 7);
	assert_int_equal(oci_forced_parse(OCI_BCAST, "mpi", &forced, &expected), 0);
	assert_int_equal(oci_select(&shape, &forced).algorithm, OCI_CHOICE_MPI);
}

static void wrong_names_are_refused_with_the_valid_ones(void **state)
{
	static const char *const wrong[] = { "",	  "knomial:0",	"knomial:",
					     "knomial:x", "Inline",	"knomial:99999999999",
					     "inline:3",  "knomial:4 ", "knomia" };
	struct oci_forced forced = { .forced = true, .choice = { 3, 4 } };
	const char *expected;

	(void)state;
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		expected = "";
		assert_int_equal(oci_forced_parse(OCI_BCAST, wrong[i], &forced, &expected),
				 -EINVAL);
		assert_non_null(strstr(expected, "knomial[:N]"));
		assert_int_equal(forced.choice.algorithm, 3);
	}
}

static void knomial_children_and_parents_agree(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_and_team_gets_an_algorithm_that_fits),
		cmocka_unit_test(the_largest_messages_never_go_through_slots),
		cmocka_unit_test(a_forced_algorithm_is_taken_where_it_fits),
		cmocka_unit_test(wrong_names_are_refused_with_the_valid_ones),
		cmocka_unit_test(knomial_children_and_parents_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
