/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "coll/dictated_test.h"
#include "coll/state.h"

/* A pair goes by a tuning file only in the state of the machine that the file is of. */
static void a_model_of_another_state_is_not_asked(void **state)
{
	static const struct {
		const char *name;
		double flag_s;
		bool by_model[3]; /* unknown, near, far */
		bool reductions;
		enum oci_apart apart; /* of the machine when it was measured */
	} rows[] = {
		{ "", 0, { true, true, true }, true, OCI_APART_UNKNOWN },
		{ "near", 4e-8, { false, true, false }, false, OCI_NEAR },
		{ "near", 8e-8, { false, true, false }, false, OCI_NEAR },
		/* The other one is still farther, */
		{ "near", 2e-7, { true, false, true }, false, OCI_APART_UNKNOWN },
		/* or nearer. */
		{ "far", 8e-8, { true, true, true }, true, OCI_APART_UNKNOWN },
		{ "far", 2e-7, { true, false, true }, false, OCI_APART_UNKNOWN },
		{ "only", 4e-8, { true, true, false }, false, OCI_NEAR },
		{ "only", 8e-8, { true, true, true }, true, OCI_APART_UNKNOWN },
		{ "only", 2e-7, { true, false, true }, false, OCI_APART_UNKNOWN },
	};

	(void)state;
	give("cma.beta", 1e-10);
	model.calibrated = true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		strcpy(model.state.name, rows[i].name);
		model.state.flag_s = rows[i].flag_s;
		assert_int_equal(oci_state_apart(&model), rows[i].apart);
		assert_int_equal(
			oci_state_decides(&model),
			!(rows[i].by_model[0] && rows[i].by_model[1] && rows[i].by_model[2]));
		for (int apart = 0; apart < 3; apart++) {
			struct oci_shape pair = shape_of(OC_BCAST, 2, 1 << 20);
			struct oci_shape more = shape_of(OC_BCAST, 3, 1 << 20);
			enum oci_decided decided;

			pair.apart = more.apart = (enum oci_apart)apart;
			oci_select(&pair, &model, NULL, NULL, &decided);
			assert_int_equal(decided,
					 rows[i].by_model[apart] ? OCI_BY_MODEL : OCI_BY_MEASURED);
			/* Its order of combining may not change meanwhile. */
			pair.collective = OC_ALLREDUCE;
			oci_select(&pair, &model, NULL, NULL, &decided);
			assert_int_equal(decided,
					 rows[i].reductions ? OCI_BY_MODEL : OCI_BY_MEASURED);
			oci_select(&more, &model, NULL, NULL, &decided);
			assert_int_equal(decided, OCI_BY_MODEL);
			/* What near ranks take is no model's to say, but of reductions. */
			pair.bytes = 20000;
			oci_select(&pair, &model, NULL, NULL, &decided);
			assert_int_equal(decided,
					 rows[i].reductions ? OCI_BY_MODEL : OCI_BY_MEASURED);
			pair.collective = OC_GATHER;
			if (apart == OCI_NEAR) {
				struct oci_choice choice =
					oci_select(&pair, &model, NULL, NULL, &decided);

				assert_int_equal(decided, OCI_BY_MEASURED);
				assert_string_equal(name_of(OC_GATHER, choice), "cico");
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_model_of_another_state_is_not_asked, dictated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
