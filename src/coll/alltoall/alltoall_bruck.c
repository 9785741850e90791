/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks travel by the bits of their distance: the one for rank + i goes on by 2^k in step k, with
 * all others whose distance has bit k, in one copy (paper 002, IV-C2, Bruck et al.).
 *
 * Wins for the smallest blocks and many ranks, where (p - 1) start-ups or lines are what costs:
 * ceil(lg p) of them. Each block is copied once for each bit of its distance, so it loses from
 * medium blocks on.
 *
 * A block lies where its next step is read from, one after the other in falling distance: those
 * that begin with bit k in the order of the ranks that they are for, so that the last step is read
 * to its place, in two pieces where the place goes beyond the last rank. What another step brings
 * is read to one landing place and copied on. Nothing in it is written twice while others read, so
 * nobody waits but for the step before.
 *
 * In place all blocks set out before the first step, as what it brings overwrites them.
 *
 * Cost: T_allgather(address) + sum over k of (alpha + b(k) (n beta + l ceil(n / s)) + T_flag)
 *       + T_memcpy of p + sum of all b(k) but the last blocks + T_ack; b(k), the distances below p
 * that have bit k, are p / 2 each where p is a power of two.
 * Memory: (sum of b(k) + max b(k)) n on each rank.
 */
#include "coll/build.h"

/* How many of the distances below `end` have bit k. */
static uint32_t count_bit(uint32_t end, unsigned int k)
{
	uint32_t period = 2u << k, rest = end % period;

	return end / period * (period / 2) + (rest > period / 2 ? rest - period / 2 : 0);
}

/* Bits of the distances of p ranks. */
static unsigned int bits_of(uint32_t p)
{
	unsigned int k = 0;

	while (k < 31 && 1u << k < p)
		k++;
	return k;
}

/* First block of what step k reads; behind the last step, that of the landing place. */
static uint32_t first_of(uint32_t p, unsigned int k)
{
	uint32_t first = 0;

	while (k-- > 0)
		first += count_bit(p, k);
	return first;
}

static struct oci_range waiting(uint32_t p, unsigned int k, uint32_t distance)
{
	uint32_t before = count_bit(p, k) - count_bit(distance + 1, k);

	return oci_block(OCI_BUF_WORK, first_of(p, k) + before);
}

/* To where the landed block of a distance goes on: it has a bit above k. */
static struct oci_range onward(const struct oci_plan_key *key, unsigned int k, uint32_t distance)
{
	uint32_t above = distance >> (k + 1);

	if (!above)
		return oci_block(OCI_BUF_RECV, oci_previous(key, distance));
	return waiting(key->size, k + 1 + (unsigned int)__builtin_ctz(above), distance);
}

static void read_last(struct oci_builder *b, uint32_t source, uint32_t first, uint32_t blocks)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	/* The greatest distance comes first, and from the rank after mine. */
	uint32_t at = oci_next(key, 1), front = key->size - at;

	if (front > blocks)
		front = blocks;
	oci_build_pull(b, oci_blocks(OCI_BUF_RECV, at, front), source,
		       oci_blocks(OCI_BUF_WORK, first, front));
	if (front < blocks)
		oci_build_pull(b, oci_blocks(OCI_BUF_RECV, 0, blocks - front), source,
			       oci_blocks(OCI_BUF_WORK, first + front, blocks - front));
}

/* The blocks that go on in step k for the first time. */
static void set_out(struct oci_builder *b, unsigned int k)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	for (uint32_t i = 1u << k; i < key->size; i += 2u << k)
		oci_build_copy(b, oci_block(OCI_BUF_SEND, oci_next(key, i)),
			       waiting(key->size, k, i));
}

static void build_step(struct oci_builder *b, unsigned int k, bool is_last)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	uint32_t p = key->size, source = oci_previous(key, 1u << k);
	uint32_t blocks = count_bit(p, k), first = first_of(p, k);
	uint32_t landing = first_of(p, bits_of(p)), at = 0;

	/* The distances whose lowest bit is k set out here; the others have come before. */
	if (!key->in_place)
		set_out(b, k);
	oci_build_post(b, k ? OCI_POST_FLAG : OCI_POST_ADDRESS, (uint16_t)(k + 1), 0);
	if (!k)
		oci_build_copy(b, oci_block(OCI_BUF_SEND, key->v), oci_block(OCI_BUF_RECV, key->v));
	oci_build_wait_post(b, source, 1, (uint16_t)(k + 1), 0);
	if (is_last) {
		read_last(b, source, first, blocks);
		return;
	}
	oci_build_pull(b, oci_blocks(OCI_BUF_WORK, landing, blocks), source,
		       oci_blocks(OCI_BUF_WORK, first, blocks));
	for (uint32_t i = p - 1; i > 0; i--)
		if (i >> k & 1)
			oci_build_copy(b, oci_block(OCI_BUF_WORK, landing + at++),
				       onward(key, k, i));
}

static uint32_t work_blocks(uint32_t p)
{
	return first_of(p, bits_of(p)) + count_bit(p, 0);
}

static bool fits(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return shape->size == 1 || oci_fits_work(work_blocks(shape->size), shape);
}

static void build(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	unsigned int bits = bits_of(key->size);

	if (!bits) {
		oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_RECV, 0));
		return;
	}
	/* No bit is in more distances than the lowest one or, of an odd p, as many. */
	oci_build_work(b, work_blocks(key->size));
	for (unsigned int k = 0; k < bits && key->in_place; k++)
		set_out(b, k);
	for (unsigned int k = 0; k < bits; k++)
		build_step(b, k, k == bits - 1);
	oci_build_signal(b, 1, 0);
	for (unsigned int k = 0; k < bits; k++)
		oci_build_wait_ack(b, oci_next(key, 1u << k), 1, 1, 0);
}

static void cost(struct oci_costing *c)
{
	uint32_t p = c->shape->size;
	unsigned int bits = bits_of(p);
	size_t n = c->shape->bytes;

	oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, p, n);
	for (unsigned int k = 0; k < bits; k++) {
		uint32_t blocks = count_bit(p, k);

		oci_cost_flags(c, 1);
		oci_cost_copies_all(c, OCI_MODEL_PULL, 1, (size_t)blocks * n);
		/* What has landed is copied on; most ranks read the last in two pieces. */
		if (k + 1 < bits)
			oci_cost_touch(c, OCI_TOUCH_OWN, OCI_BY_ONE, blocks, n);
		else if (blocks > 1)
			oci_cost_copies_all(c, OCI_MODEL_PULL, 1, 1);
		oci_cost_ops(c, 4.0 + blocks);
	}
	oci_cost_flag_row(c, bits);
	oci_cost_ops(c, 2.0 + p + bits);
}

const struct oci_algorithm oci_alltoall_bruck = {
	.name = "bruck",
	.idea = "in step k all blocks whose distance has bit k go on by 2^k ranks together",
	.build = build,
	.fits = fits,
	.cost = cost,
	.single_copy = true,
};
