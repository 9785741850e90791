/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between nodes and on them, by dictated terms. */
#include <math.h>

#include "lab/virtual/network.h"
#include "model/terms_test.h"
#include "support/test.h"

static int terms(void **state)
{
	(void)state;
	oci_model_init(&model);
	give("net.latency", 10);
	give("net.overhead", 1);
	give("net.gap", 3);
	give("net.gap_byte", 0.001);
	give("net.eager", 10000);
	give("cma.alpha", 2);
	give("cma.beta", 0.0001);
	give("cma.lock", 0.5);
	give("cma.page", 4096);
	give("cma.gamma1", 1);
	give("flag.cache", 0.25);
	give("memcpy.cache", 0.0002);
	return 0;
}

#define MESSAGES(name) TEST_WITH(name, terms, NULL)

static struct oci_network n;

static void begin(uint32_t nodes, uint32_t each, bool alike)
{
	assert_int_equal(oci_network_open(&n, &model, nodes, each, alike), 0);
}

static void ends_at(uint32_t rank, double s)
{
	if (fabs(n.clock_s[rank] - s) > 1e-9)
		fail_msg("rank %u ends at %.9g, not %.9g", rank, n.clock_s[rank], s);
}

MESSAGES(a_message_between_nodes_takes_both_overheads_the_latency_and_its_bytes)
{
	begin(2, 1, false);
	oci_network_add(&n, 0, 1, 1000, false);
	oci_network_round(&n);
	ends_at(0, 1);
	ends_at(1, 1 + 1 + 10 + 1);
	oci_network_close(&n);
}

MESSAGES(messages_of_one_node_wait_for_its_card_and_of_two_nodes_do_not)
{
	begin(4, 2, false);
	oci_network_add(&n, 0, 4, 0, false);
	oci_network_add(&n, 1, 6, 0, false); /* leaves 3 later */
	oci_network_add(&n, 2, 5, 5000, false);
	oci_network_round(&n);
	ends_at(4, 1 + 10 + 1);
	ends_at(6, 1 + 3 + 10 + 1);
	/* Its first byte finds node 2's card busy with the one for rank 4 until 11 + 3. */
	ends_at(5, 14 + 5 + 1);
	oci_network_close(&n);
}

MESSAGES(a_large_message_is_asked_for_first)
{
	begin(2, 1, false);
	oci_network_add(&n, 0, 1, 20000, false);
	oci_network_round(&n);
	/* The question; its overheads on either end, the answer's, the message. */
	ends_at(0, 1 + 10 + 2 + 10 + 2 + 20);
	ends_at(1, 1 + 10 + 2 + 10 + 2 + 20 + 10 + 1);
	oci_network_close(&n);
}

MESSAGES(on_a_node_small_messages_are_copied_twice_and_large_ones_read)
{
	begin(1, 4, false);
	oci_network_add(&n, 0, 1, 1000, false);
	oci_network_round(&n);
	ends_at(1, 0.2 + 0.25 + 0.2);
	oci_network_close(&n);
	begin(1, 4, false);
	oci_network_add(&n, 0, 1, 8192, false);
	oci_network_round(&n);
	ends_at(1, 0.25 + 2 + 0.8192 + 2 * 0.5);
	ends_at(0, 0.25 + 2 + 0.8192 + 2 * 0.5 + 0.25);
	oci_network_close(&n);
}

MESSAGES(readers_of_one_rank_contend_and_those_of_several_do_not)
{
	begin(1, 8, false);
	for (uint32_t r = 1; r < 4; r++)
		oci_network_add(&n, 0, r, 8192, false);
	oci_network_add(&n, 4, 5, 8192, false);
	oci_network_round(&n);
	ends_at(3, 0.25 + 2 + 0.8192 + 2 * 0.5 * 3);
	ends_at(5, 0.25 + 2 + 0.8192 + 2 * 0.5);
	oci_network_close(&n);
}

MESSAGES(all_who_copy_on_a_node_share_its_memory)
{
	give("domain", 0.0005);
	give("cache.bytes", 1);
	begin(2, 4, false);
	for (uint32_t r = 0; r < 4; r += 2)
		oci_network_add(&n, r, r + 1, 8192, false);
	oci_network_add(&n, 4, 5, 8192, false);
	oci_network_round(&n);
	ends_at(1, 0.25 + 2 + 2 * 8192 * 0.0005 + 2 * 0.5);
	ends_at(5, 0.25 + 2 + 8192 * 0.0005 + 2 * 0.5);
	oci_network_close(&n);
}

MESSAGES(one_node_stands_for_nodes_that_do_alike)
{
	double end_s[2];

	for (int alike = 0; alike < 2; alike++) {
		begin(4, 6, alike);
		for (uint32_t k = 1; k < 24; k += 3) {
			for (uint32_t r = 0; r < n.kept; r++)
				oci_network_add(&n, (r + 24 - k) % 24, r, k * 700, false);
			oci_network_round(&n);
		}
		end_s[alike] = oci_network_end(&n);
		oci_network_close(&n);
	}
	/* But for which of a node's messages its card takes first. */
	if (fabs(end_s[1] / end_s[0] - 1) > 0.2)
		fail_msg("one node ends at %g, all at %g", end_s[1], end_s[0]);
}
