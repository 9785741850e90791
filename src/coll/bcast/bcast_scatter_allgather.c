/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Scatter of p parts, then an Allgather of them in the order of a ring, each part read at its
 * source (paper 002, V-B3): scatter-allgather, whose Scatter is a parallel read, with the other
 * Scatters of IV-A. (allgather/allgather_ring_source.c has that one.)
 *
 * scatter-write-allgather: the root writes one part after the other. The paper's model is held
 * against it (VI). scatter-throttled-allgather: at most k ranks read from the root at a time.
 *
 * They win where so many readers of the root hold each other up more than p - 1 or p / k turns
 * take. The ring begins when all parts are there: ranks that began it early would meet at the
 * ranks whose parts come last.
 * Cost: T_gather(address) + (p - 1) (alpha + n/p beta + l ceil(n / (p s))) + T_bcast(ack), or
 * T_bcast(address) + ceil(p / k) (alpha + n/p beta + l gamma(k) ceil(n / (p s))) + T_gather(ack of
 * k); then (p - 1) (alpha + n/p beta + l ceil(n / (p s))) + T_gather(ack).
 */
#include "coll/allgather/spread.h"

/* The root's parts may be read all the time: at whatever step is waited for. */
static void build_root_post(struct oci_builder *b)
{
	oci_build_parts(b, oci_builder_key(b)->size);
	if (!oci_builder_key(b)->v)
		oci_build_post(b, OCI_POST_ADDRESS, OCI_STEPS - 1, 0);
}

static void build_write(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t last = key->size - 1;

	build_root_post(b);
	if (key->v) {
		oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
		oci_build_wait_ack(b, 0, 1, 1, 0);
		/* From here on all parts are where they belong. */
		oci_build_ring_read(b, 1, 1);
		return;
	}
	for (uint32_t v = 1; v <= last; v++) {
		struct oci_range part = oci_pieces(key, v, 1);

		oci_build_wait_post(b, v, 1, 1, 0);
		oci_build_push(b, part, v, part);
	}
	if (last) {
		oci_build_signal(b, 1, 0);
		oci_build_wait_others_ack(b, 1);
	}
}

/* Acknowledgements of ranks first .. p - 1, but for my own. */
static void build_wait_last(struct oci_builder *b, uint32_t first, uint16_t step)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t v = key->v;

	if (v < first) {
		oci_build_wait_ack(b, first, key->size - first, step, 0);
		return;
	}
	oci_build_wait_ack(b, first, v - first, step, 0);
	oci_build_wait_ack(b, oci_next(key, 1), key->size - 1 - v, step, 0);
}

static void build_throttled(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t others = key->size - 1, k = key->parameter < others ? key->parameter : others;
	struct oci_range mine = oci_pieces(key, key->v, 1);

	build_root_post(b);
	if (!key->v) {
		oci_build_wait_others_ack(b, 2);
		return;
	}
	oci_build_wait_post(b, 0, 1, 1, 0);
	if (key->v > k)
		oci_build_wait_ack(b, key->v - k, 1, 1, 0);
	oci_build_pull(b, mine, 0, mine);
	oci_build_post(b, OCI_POST_ADDRESS, 1, 0);
	oci_build_signal(b, 1, 0);
	/* The chain brings all acknowledgements into those of the last k. */
	build_wait_last(b, key->size - k, 1);
	oci_build_ring_read(b, 1, 2);
}

static void cost_ring(struct oci_costing *c, size_t part)
{
	double others = c->shape->size - 1.0;

	oci_cost_flag_row(c, others);
	oci_cost_copies_all(c, OCI_MODEL_PULL, others, part);
	oci_spread_cost_end(c, others, 2 * others);
}

static void cost_write(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	oci_cost_flag_row(c, others);
	oci_cost_copies(c, OCI_MODEL_PUSH, others, part, 1);
	oci_cost_flags(c, 1);
	oci_cost_ops(c, 2 * others);
	cost_ring(c, part);
}

static void cost_throttled(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	uint32_t others = c->shape->size > 1 ? c->shape->size - 1 : 1;
	uint32_t k = c->parameter < others ? c->parameter : others;
	uint32_t turns = others / k, rest = others % k;

	oci_cost_flags(c, turns + (rest > 0));
	oci_cost_blocks(c, OCI_MODEL_PULL, turns, part, k);
	oci_cost_blocks(c, OCI_MODEL_PULL, rest > 0, part, rest);
	oci_cost_flag_row(c, k);
	oci_cost_ops(c, 5 + 3.0 * (turns + (rest > 0)));
	cost_ring(c, part);
}

const struct oci_algorithm oci_bcast_scatter_write_allgather = {
	.name = "scatter-write-allgather",
	.idea = "p parts: the root writes each to its rank, the others are read from those",
	.build = build_write,
	.cost = cost_write,
	.single_copy = true,
};

const struct oci_algorithm oci_bcast_scatter_throttled_allgather = {
	.name = "scatter-throttled-allgather",
	.idea = "p parts: read mine from the root, at most k at a time, the others from their ranks",
	.build = build_throttled,
	.cost = cost_throttled,
	.tries = oci_tries_fanout,
	.parameter_default = 4,
	.parameter_min = 1,
	.single_copy = true,
};
