/* SPDX-License-Identifier: BSD-3-Clause */
#include "onecopy/onecopy.h"
#include "support/test.h"

TEST(ranks_of_one_version_and_options_may_work_in_two_levels)
{
	assert_true(oc_levels() != 0);
	assert_true(oc_levels() == oc_levels());
}

TEST(what_gains_nothing_on_several_nodes_is_the_mpis)
{
	assert_null(oc_levels_refusal(OC_BCAST, 8, 4));
	assert_null(oc_levels_refusal(OC_BARRIER, 0, 4));
	assert_non_null(oc_levels_refusal(OC_SCATTER, 4096, 4));
	assert_null(oc_levels_refusal(OC_SCATTER, 1 << 20, 4));
}
