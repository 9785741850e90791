/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of onecopy-network-MPI into terms. */
#include "lab/tune/between.h"
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static struct oci_tune_network network;
static struct oci_model model;

static void says(const char *line)
{
	assert_true(oci_tune_network_line(&network, line));
}

static void near_to(const struct oci_term *term, double want)
{
	assert_true(term->given);
	if (fabs(term->value / want - 1) > 1e-6)
		fail_msg("found %g, expected %g", term->value, want);
}

/* One way of 10 us and 1 ns a byte, 30 us more for large ones; overheads of 2 and 4 us. */
static void measured(void)
{
	char line[64];

	network = (struct oci_tune_network){ .mpi = "Open MPI 4.1.4", .host = "node1" };
	oci_model_init(&model);
	for (int bytes = 1; bytes <= 4 << 20; bytes *= 4) {
		snprintf(line, sizeof(line), "half %d %.9g", bytes,
			 10e-6 + bytes * 1e-9 + (bytes >= 65536 ? 30e-6 : 0));
		says(line);
	}
	says("send 2e-6");
	says("receive 4e-6");
}

TEST(the_terms_of_a_network_are_found_again)
{
	measured();
	assert_int_equal(oci_tune_network_terms(&network, &model), -ENODATA);
	assert_false(model.net_latency.given);
	says("gap 3e-6");
	says("eager 32768");
	assert_int_equal(oci_tune_network_terms(&network, &model), 0);
	near_to(&model.net_overhead, 3e-6);
	near_to(&model.net_latency, 10e-6 + 1e-9 - 6e-6);
	near_to(&model.net_gap, 3e-6);
	near_to(&model.net_gap_byte, 1e-9);
	near_to(&model.net_eager, 32768);
	assert_string_equal(model.net_gap.source, "measured by Open MPI 4.1.4");
	assert_string_equal(model.net_gap.host, "node1");
}

TEST(overheads_are_no_longer_than_the_way_that_has_both)
{
	measured();
	says("send 20e-6");
	says("gap 3e-6");
	assert_int_equal(oci_tune_network_terms(&network, &model), 0);
	near_to(&model.net_overhead, (10e-6 + 1e-9) / 2);
	assert_true(model.net_latency.value < 1e-12);
	assert_false(model.net_eager.given);
}

TEST(other_lines_are_none)
{
	network = (struct oci_tune_network){ .count = 0 };
	assert_false(oci_tune_network_line(&network, "both ranks are on node1"));
	assert_false(oci_tune_network_line(&network, ""));
	assert_false(oci_tune_network_line(&network, "half a"));
}
