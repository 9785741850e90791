/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/inspect/dump.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

/* Two ranks: one posts, the other awaits it. */
TEST(plan_dump_joins_flags_across_ranks)
{
	const struct oci_plan *plans[2];
	char *text = NULL;
	size_t bytes;
	FILE *out;

	for (uint32_t v = 0; v < 2; v++) {
		struct oci_plan_key key = { .collective = OC_BARRIER, .v = v, .size = 2 };
		struct oci_builder *b = oci_builder_create(&key);
		int error;

		if (v == 0)
			oci_build_post(b, OCI_POST_FLAG, 1, 0);
		else
			oci_build_wait_post(b, 0, 1, 1, 0);
		plans[v] = oci_builder_finish(b, &error);
		assert_non_null(plans[v]);
	}
	out = open_memstream(&text, &bytes);
	assert_non_null(out);
	oci_plan_dump_dot(out, "flat", plans, 2);
	fclose(out);
	assert_non_null(strstr(text, "digraph \"barrier flat of 2\" {"));
	assert_non_null(strstr(text, "n0_0 [label=\"0 POST step 1\"];"));
	assert_non_null(strstr(text, "\tn0_0 -> n1_0 [style=dashed];"));
	assert_non_null(strstr(text, "\t\tn1_0 -> n1_1;"));
	free(text);
	free((void *)plans[0]);
	free((void *)plans[1]);
}
