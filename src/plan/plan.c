/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The builder: collects operations, keeps the first error, and refuses a plan that no executor
 * could run. What needs sizes or the other ranks' plans (bounds, deadlock, races) is not looked
 * at here but proven by the checker, lab/check/check.h.
 */
#include "plan/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct oci_builder *oci_builder_create(const struct oci_plan_key *key)
{
	struct oci_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->key = *key;
	if (!key->size || key->v >= key->size)
		b->error = -EINVAL;
	return b;
}

const struct oci_plan_key *oci_builder_key(const struct oci_builder *b)
{
	return &b->key;
}

void oci_build_parts(struct oci_builder *b, uint32_t nparts)
{
	b->nparts = nparts;
}

void oci_build_segment(struct oci_builder *b, uint32_t bytes)
{
	b->segment_bytes = bytes;
}

void oci_build_work(struct oci_builder *b, uint32_t blocks)
{
	b->work_blocks = blocks;
}

void oci_builder_reject(struct oci_builder *b, int error)
{
	if (!b->error)
		b->error = error;
}

void oci_build_refuse(struct oci_builder *b)
{
	oci_builder_reject(b, -EINVAL);
}

void oci_builder_append(struct oci_builder *b, const struct oci_op *op)
{
	if (b->error)
		return;
	if (b->count == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 16;
		struct oci_op *ops = reallocarray(b->ops, capacity, sizeof(*ops));

		if (!ops) {
			oci_builder_reject(b, -ENOMEM);
			return;
		}
		b->ops = ops;
		b->capacity = capacity;
	}
	b->ops[b->count++] = *op;
}

/* WORK has blocks, and no table says where; the halves of a slot take turns in a loop. */
static bool is_placed(const struct oci_builder *b, const struct oci_range *range)
{
	if (range->buf == OCI_BUF_WORK &&
	    (range->relative || range->table || range->block >= b->work_blocks ||
	     range->blocks > b->work_blocks - range->block))
		return false;
	return !range->halves || (range->buf == OCI_BUF_SLOT && range->segmented);
}

static void check_range(struct oci_builder *b, const struct oci_range *range)
{
	if (!is_placed(b, range))
		oci_builder_reject(b, -EINVAL);
	if (range->buf >= OCI_BUF_COUNT || (range->segmented && !b->in_loop))
		oci_builder_reject(b, -EINVAL);
	if (range->relative && (range->blocks > 1 || range->block >= b->key.size))
		oci_builder_reject(b, -EINVAL);
	if (range->parts && (range->blocks > 1 || range->table))
		oci_builder_reject(b, -EINVAL);
	if (range->table && (!range->blocks || range->block >= b->key.size ||
			     range->blocks > b->key.size - range->block))
		oci_builder_reject(b, -EINVAL);
}

/* A range in a peer's buffers: TEMP and ACC are private, slot and POST line can only be read. */
static void check_remote(struct oci_builder *b, const struct oci_range *range, bool readable)
{
	bool user = range->buf == OCI_BUF_SEND || range->buf == OCI_BUF_RECV ||
		    range->buf == OCI_BUF_WORK;
	bool lane = range->buf == OCI_BUF_SLOT || range->buf == OCI_BUF_INLINE;

	check_range(b, range);
	if (!user && !(lane && readable))
		oci_builder_reject(b, -EINVAL);
}

static void check_peer(struct oci_builder *b, uint32_t peer)
{
	if (peer >= b->key.size || peer == b->key.v)
		oci_builder_reject(b, -EINVAL);
}

static void append_flag(struct oci_builder *b, struct oci_op op)
{
	/* Without a loop there is no index for step_loop to be multiplied by. */
	if (!op.step || (op.step_loop && !b->in_loop))
		oci_builder_reject(b, -EINVAL);
	oci_builder_append(b, &op);
}

void oci_build_post(struct oci_builder *b, enum oci_post what, uint16_t step, uint16_t step_loop)
{
	append_flag(b, (struct oci_op){ .code = OCI_OP_POST,
					.address = what == OCI_POST_ADDRESS,
					.slot = what == OCI_POST_SLOT,
					.step = step,
					.step_loop = step_loop });
}

void oci_build_signal(struct oci_builder *b, uint16_t step, uint16_t step_loop)
{
	append_flag(b,
		    (struct oci_op){ .code = OCI_OP_SIGNAL, .step = step, .step_loop = step_loop });
}

static void append_wait(struct oci_builder *b, struct oci_op op)
{
	if (!op.peers)
		return;
	if (op.peer >= b->key.size || op.peers > b->key.size)
		oci_builder_reject(b, -EINVAL);
	append_flag(b, op);
}

void oci_build_wait_when(struct oci_builder *b, enum oci_opcode code, uint32_t peer, uint32_t peers,
			 uint16_t step, enum oci_when when, struct oci_range block, bool by_peer,
			 uint32_t limit)
{
	check_range(b, &block);
	append_wait(b, (struct oci_op){ .code = code,
					.by_peer = by_peer,
					.when = (uint8_t)when & 3,
					.step = step,
					.peer = peer,
					.peers = peers,
					.limit = limit,
					.local = block });
}

void oci_build_wait_post(struct oci_builder *b, uint32_t peer, uint32_t peers, uint16_t step,
			 uint16_t step_loop)
{
	append_wait(b, (struct oci_op){ .code = OCI_OP_WAIT_POST,
					.step = step,
					.step_loop = step_loop,
					.peer = peer,
					.peers = peers });
}

void oci_build_wait_ack(struct oci_builder *b, uint32_t peer, uint32_t peers, uint16_t step,
			uint16_t step_loop)
{
	append_wait(b, (struct oci_op){ .code = OCI_OP_WAIT_ACK,
					.step = step,
					.step_loop = step_loop,
					.peer = peer,
					.peers = peers });
}

/* The operations between `local` of this rank and `remote` of one peer. */
static void append_transfer(struct oci_builder *b, struct oci_op op, bool lane)
{
	check_range(b, &op.local);
	check_remote(b, &op.remote, lane);
	check_peer(b, op.peer);
	op.peers = 1;
	oci_builder_append(b, &op);
}

void oci_build_pull(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote)
{
	append_transfer(b,
			(struct oci_op){ .code = OCI_OP_PULL,
					 .peer = peer,
					 .local = local,
					 .remote = remote },
			true);
}

void oci_build_push(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote)
{
	append_transfer(b,
			(struct oci_op){ .code = OCI_OP_PUSH,
					 .peer = peer,
					 .local = local,
					 .remote = remote },
			false);
}

void oci_build_share(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		     uint32_t peer, struct oci_range remote)
{
	bool push = direction == OCI_SHARE_PUSH;

	append_transfer(b,
			(struct oci_op){ .code = OCI_OP_SHARE,
					 .push = push,
					 .peer = peer,
					 .local = local,
					 .remote = remote },
			false);
}

void oci_build_help(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		    bool by_peer, uint32_t peer, uint32_t peers, struct oci_range remote)
{
	uint32_t size = b->key.size;
	bool push = direction == OCI_SHARE_PUSH;
	struct oci_op op = {
		.code = OCI_OP_HELP,
		.push = push,
		.by_peer = by_peer,
		.peer = peer,
		.peers = peers,
		.local = local,
		.remote = remote,
	};

	if (!peers)
		return;
	check_range(b, &local);
	check_remote(b, &remote, false);
	if (peer >= size || peers >= size || (b->key.v + size - peer) % size < peers)
		oci_builder_reject(b, -EINVAL);
	oci_builder_append(b, &op);
}

void oci_build_copy(struct oci_builder *b, struct oci_range from, struct oci_range to)
{
	check_range(b, &from);
	check_range(b, &to);
	oci_builder_append(b, &(struct oci_op){ .code = OCI_OP_COPY, .local = from, .second = to });
}

void oci_build_reduce(struct oci_builder *b, struct oci_range in, struct oci_range inout)
{
	check_range(b, &in);
	check_range(b, &inout);
	oci_builder_append(b,
			   &(struct oci_op){ .code = OCI_OP_REDUCE, .local = in, .second = inout });
}

void oci_build_reduce_from(struct oci_builder *b, uint32_t peer, struct oci_range remote,
			   struct oci_range inout)
{
	if (remote.buf != OCI_BUF_SLOT && remote.buf != OCI_BUF_INLINE)
		oci_builder_reject(b, -EINVAL);
	append_transfer(b,
			(struct oci_op){ .code = OCI_OP_REDUCE_FROM,
					 .peer = peer,
					 .local = inout,
					 .remote = remote },
			true);
}

static void append_offer(struct oci_builder *b, struct oci_range block, uint32_t cells,
			 bool addresses, uint32_t limit)
{
	check_range(b, &block);
	if (!oci_offer_fits(cells) ||
	    (block.table ? cells != b->key.size - 1 && cells != b->key.size : cells != 1))
		oci_builder_reject(b, -EINVAL);
	oci_builder_append(b, &(struct oci_op){ .code = OCI_OP_OFFER,
						.address = addresses,
						.by_peer = block.table != OCI_TABLE_NONE,
						.peer = (b->key.v + 1) % b->key.size,
						.peers = cells,
						.limit = limit,
						.local = block,
						.offer = oci_offer_layout(cells, 0) });
}

void oci_build_offer(struct oci_builder *b, struct oci_range block, uint32_t cells)
{
	struct oci_offer layout = oci_offer_layout(cells, 0);

	append_offer(b, block, cells, false, oci_offer_limit(&layout));
}

void oci_build_offer_addresses(struct oci_builder *b, struct oci_range block, uint32_t cells,
			       uint32_t limit)
{
	append_offer(b, block, cells, true, limit);
}

/* Operations on the cell that a peer's offer has for rank `whose`. */
static void append_offered(struct oci_builder *b, struct oci_op op, uint32_t whose, uint32_t cells)
{
	uint32_t p = b->key.size;
	uint32_t cell = cells > 1 ? (whose + 2 * p - op.peer - 1) % p : 0;

	if (whose >= p)
		oci_builder_reject(b, -EINVAL);
	check_range(b, &op.local);
	check_peer(b, op.peer);
	if (!oci_offer_fits(cells) || cell >= cells)
		oci_builder_reject(b, -EINVAL);
	op.peers = 1;
	op.offer = oci_offer_layout(cells, cell);
	oci_builder_append(b, &op);
}

void oci_build_take(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    enum oci_when when)
{
	append_offered(b,
		       (struct oci_op){ .code = OCI_OP_TAKE,
					.when = (uint8_t)when & 3,
					.peer = peer,
					.limit = oci_offer_most(cells),
					.local = local },
		       b->key.v, cells);
}

void oci_build_take_block(struct oci_builder *b, struct oci_range local, uint32_t peer,
			  uint32_t whose, uint32_t cells, uint32_t limit)
{
	append_offered(b,
		       (struct oci_op){ .code = OCI_OP_TAKE,
					.when = OCI_WHEN_LARGE,
					.peer = peer,
					.limit = limit,
					.local = local },
		       whose, cells);
}

void oci_build_give_block(struct oci_builder *b, struct oci_range local, uint32_t peer,
			  uint32_t whose, uint32_t cells, uint32_t limit)
{
	append_offered(b,
		       (struct oci_op){ .code = OCI_OP_GIVE,
					.when = OCI_WHEN_LARGE,
					.peer = peer,
					.limit = limit,
					.local = local },
		       whose, cells);
}

void oci_build_give(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    uint32_t limit)
{
	oci_build_give_block(b, local, peer, b->key.v, cells, limit);
}

void oci_build_trade(struct oci_builder *b, struct oci_range local, uint32_t peer,
		     struct oci_range remote)
{
	append_transfer(b,
			(struct oci_op){ .code = OCI_OP_TRADE,
					 .peer = peer,
					 .local = local,
					 .remote = remote },
			false);
}

void oci_build_trade_offered(struct oci_builder *b, struct oci_range local, uint32_t peer,
			     uint32_t cells, uint32_t limit)
{
	append_offered(b,
		       (struct oci_op){ .code = OCI_OP_TRADE,
					.when = OCI_WHEN_LARGE,
					.offered = 1,
					.peer = peer,
					.limit = limit,
					.local = local },
		       b->key.v, cells);
}

void oci_build_loop(struct oci_builder *b, struct oci_range over)
{
	over.segmented = 0;
	check_range(b, &over);
	/* A jump has 16 bits; in_loop here would be a nested loop, which has no second index. */
	if (b->in_loop || b->count > UINT16_MAX)
		oci_builder_reject(b, -EINVAL);
	b->in_loop = true;
	b->loop = b->count;
	oci_builder_append(b, &(struct oci_op){ .code = OCI_OP_LOOP, .local = over });
}

void oci_build_next(struct oci_builder *b)
{
	if (!b->in_loop || b->count > UINT16_MAX)
		oci_builder_reject(b, -EINVAL);
	if (b->error)
		return;
	b->in_loop = false;
	b->ops[b->loop].jump = (uint16_t)b->count;
	oci_builder_append(b, &(struct oci_op){ .code = OCI_OP_NEXT, .jump = (uint16_t)b->loop });
}
