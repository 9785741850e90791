/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/build.h"

bool oci_fits_inline_one(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_inline(1, shape);
}

bool oci_fits_inline_others(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_inline(shape->size > 1 ? shape->size - 1 : 1, shape);
}

bool oci_fits_slot_one(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_slot(1, shape);
}

bool oci_fits_slot_others(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_slot(shape->size > 1 ? shape->size - 1 : 1, shape);
}

bool oci_fits_work_one(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return oci_fits_work(1, shape);
}

bool oci_is_ring(uint32_t p, uint32_t j)
{
	while (j) {
		uint32_t rest = p % j;

		p = j;
		j = rest;
	}
	return p == 1;
}

bool oci_fits_step_each(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return shape->size <= OCI_STEPS;
}

bool oci_fits_offer_others(const struct oci_shape *shape, uint32_t parameter)
{
	(void)parameter;
	return shape->size == 1 || oci_offer_fits(shape->size - 1);
}

void oci_stage_begin(struct oci_builder *b, struct oci_range over)
{
	uint32_t piece = oci_building(b)->piece;

	if (!piece)
		return;
	oci_build_segment(b, piece);
	oci_build_loop(b, over);
}

void oci_stage_end(struct oci_builder *b)
{
	if (oci_building(b)->piece)
		oci_build_next(b);
}

void oci_stage_post(struct oci_builder *b)
{
	bool slot = oci_building(b)->piece;

	oci_build_post(b, slot ? OCI_POST_SLOT : OCI_POST_FLAG, 1, slot);
}

void oci_stage_wait(struct oci_builder *b, uint32_t peer)
{
	oci_build_wait_post(b, peer, 1, 1, oci_building(b)->piece > 0);
}

/* v of the i-th operand of the expression. */
static uint32_t operand(const struct oci_plan_key *key, bool rotated, uint32_t i)
{
	if (rotated && key->commutative)
		return oci_next(key, i);
	/* v of absolute rank i; without a root v is the rank. */
	return (i + key->size - key->root) % key->size;
}

static void combine(struct oci_builder *b, const struct oci_reduction *r, uint32_t v, bool first)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool in_place = r->remote.buf == OCI_BUF_SLOT || r->remote.buf == OCI_BUF_INLINE;
	uint16_t step = r->step;

	if (v == key->v) {
		if (first)
			oci_build_copy(b, r->mine, r->acc);
		else
			oci_build_reduce(b, r->mine, r->acc);
		return;
	}
	if (r->step_by_distance)
		step = (uint16_t)((key->v + key->size - v) % key->size);
	oci_build_wait_post(b, v, 1, step, r->step_loop);
	if (first) {
		oci_build_pull(b, r->acc, v, r->remote);
	} else if (in_place) {
		oci_build_reduce_from(b, v, r->remote, r->acc);
	} else {
		oci_build_pull(b, r->temp, v, r->remote);
		oci_build_reduce(b, r->temp, r->acc);
	}
}

void oci_build_reduction(struct oci_builder *b, const struct oci_reduction *r)
{
	const struct oci_plan_key *key = oci_builder_key(b);

	for (uint32_t i = key->size; i-- > 0;)
		combine(b, r, operand(key, r->rotated, i), i == key->size - 1);
}

struct oci_reduction oci_staged_reduction(struct oci_builder *b)
{
	uint32_t piece = oci_building(b)->piece;

	/* ACC is a segment long. */
	oci_build_segment(b, piece ? piece : OCI_INLINE_BYTES);
	return (struct oci_reduction){
		.mine = oci_by_piece(b, oci_block(OCI_BUF_SEND, 0)),
		.remote = oci_stage(b),
		.acc = oci_by_piece(b, oci_block(OCI_BUF_ACC, 0)),
		.step = 1,
		.step_loop = piece > 0,
	};
}

void oci_build_slot_parts(struct oci_builder *b, bool gives, bool takes)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	struct oci_range part = oci_part(OCI_BUF_SLOT, key->v, 1);
	struct oci_reduction r = {
		.mine = oci_part(OCI_BUF_SEND, key->v, 1),
		.remote = part,
		.acc = oci_part(OCI_BUF_ACC, key->v, 1),
		.step = 1,
		.rotated = true,
	};

	oci_build_parts(b, key->size);
	oci_build_segment(b, OCI_NEAR_SLOT_BYTES);
	oci_build_copy(b, oci_block(OCI_BUF_SEND, 0), oci_block(OCI_BUF_SLOT, 0));
	oci_build_post(b, OCI_POST_SLOT, 1, 0);
	oci_build_reduction(b, &r);
	if (gives) {
		oci_build_copy(b, r.acc, part);
		oci_build_signal(b, 1, 0);
	}
	if (!takes)
		return;
	oci_build_copy(b, r.acc, oci_part(OCI_BUF_RECV, key->v, 1));
	for (uint32_t i = 1; i < key->size; i++) {
		uint32_t source = oci_next(key, i);

		oci_build_wait_ack(b, source, 1, 1, 0);
		oci_build_pull(b, oci_part(OCI_BUF_RECV, source, 1), source,
			       oci_part(OCI_BUF_SLOT, source, 1));
	}
}

void oci_build_prefix(struct oci_builder *b, const struct oci_reduction *r, uint32_t operands)
{
	for (uint32_t i = operands; i-- > 0;)
		combine(b, r, i, i == operands - 1);
}
