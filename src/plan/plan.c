/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The builder: collects operations, keeps the first error, and refuses a plan that no executor
 * could run. What needs sizes or the other ranks' plans (bounds, deadlock, races) is not looked
 * at here but proven by the checker, lab/check/check.h.
 *
 * One file of more than 500 lines: each operation's row in the table and the functions that put,
 * refuse and name it have to agree.
 */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct oci_builder {
	struct oci_plan_key key;
	int error;
	uint32_t nparts;
	uint32_t segment_bytes;
	uint32_t work_blocks;
	uint32_t count;
	uint32_t capacity;
	bool in_loop;
	uint32_t loop; /* index of the open LOOP */
	struct oci_op *ops;
};

/* What an operation has, and what is checked of it. */
enum {
	LOCAL = 1,  /* range `local`, whose bytes it touches */
	SIZE = 2,   /* the same, of which it asks the size alone */
	SECOND = 4, /* range `second` */
	REMOTE = 8, /* range `remote`, of a buffer whose address was posted */
	LANE = 16,  /* which may be a slot or payload as well, as it is only read */
	STEP = 32,  /* a step of a flag */
	PEER = 64,  /* one other rank */
};

static const struct {
	const char *name;
	unsigned int has;
} kinds[OCI_OP_COUNT] = {
	[OCI_OP_END] = { "END", 0 },
	[OCI_OP_POST] = { "POST", STEP },
	[OCI_OP_SIGNAL] = { "SIGNAL", STEP },
	[OCI_OP_WAIT_POST] = { "WAIT_POST", STEP | SIZE },
	[OCI_OP_WAIT_ACK] = { "WAIT_ACK", STEP | SIZE },
	[OCI_OP_PULL] = { "PULL", LOCAL | REMOTE | LANE | PEER },
	[OCI_OP_PUSH] = { "PUSH", LOCAL | REMOTE | PEER },
	[OCI_OP_SHARE] = { "SHARE", LOCAL | REMOTE | PEER },
	[OCI_OP_HELP] = { "HELP", LOCAL | REMOTE },
	[OCI_OP_COPY] = { "COPY", LOCAL | SECOND },
	[OCI_OP_REDUCE] = { "REDUCE", LOCAL | SECOND },
	[OCI_OP_REDUCE_FROM] = { "REDUCE_FROM", LOCAL | REMOTE | LANE | PEER },
	[OCI_OP_OFFER] = { "OFFER", LOCAL },
	[OCI_OP_TAKE] = { "TAKE", LOCAL | PEER },
	[OCI_OP_GIVE] = { "GIVE", LOCAL | PEER },
	[OCI_OP_TRADE] = { "TRADE", LOCAL | REMOTE | PEER },
	[OCI_OP_LOOP] = { "LOOP", SIZE },
	[OCI_OP_NEXT] = { "NEXT", 0 },
};

const char *oci_opcode_name(enum oci_opcode code)
{
	return (unsigned int)code < OCI_OP_COUNT ? kinds[code].name : "?";
}

const char *oci_buf_name(enum oci_buf buf)
{
	static const char *const names[OCI_BUF_COUNT] = {
		[OCI_BUF_SEND] = "SEND",     [OCI_BUF_RECV] = "RECV", [OCI_BUF_SLOT] = "SLOT",
		[OCI_BUF_WORK] = "WORK",     [OCI_BUF_TEMP] = "TEMP", [OCI_BUF_ACC] = "ACC",
		[OCI_BUF_INLINE] = "INLINE",
	};

	return (unsigned int)buf < OCI_BUF_COUNT ? names[buf] : "?";
}

/* ---- operations ---------------------------------------------------------------------------- */

static void reject(struct oci_builder *b, int error)
{
	if (!b->error)
		b->error = error;
}

void oci_build_refuse(struct oci_builder *b)
{
	reject(b, -EINVAL);
}

static bool is_user_buffer(const struct oci_range *range)
{
	return range->buf == OCI_BUF_SEND || range->buf == OCI_BUF_RECV ||
	       range->buf == OCI_BUF_WORK;
}

static bool is_lane(const struct oci_range *range)
{
	return range->buf == OCI_BUF_SLOT || range->buf == OCI_BUF_INLINE;
}

static bool range_is_good(const struct oci_builder *b, const struct oci_range *range)
{
	uint32_t size = b->key.size;

	if (range->buf >= OCI_BUF_COUNT || (range->segmented && !b->in_loop))
		return false;
	/* The halves of a slot take turns in a loop. */
	if (range->halves && (range->buf != OCI_BUF_SLOT || !range->segmented))
		return false;
	/* WORK has blocks, and no table says where. */
	if (range->buf == OCI_BUF_WORK &&
	    (range->relative || range->table || range->block >= b->work_blocks ||
	     range->blocks > b->work_blocks - range->block))
		return false;
	if (range->relative && (range->blocks > 1 || range->block >= size))
		return false;
	if (range->parts && (range->blocks > 1 || range->table))
		return false;
	return !range->table ||
	       (range->blocks && range->block < size && range->blocks <= size - range->block);
}

static bool op_is_good(const struct oci_builder *b, const struct oci_op *op)
{
	unsigned int has = kinds[op->code].has;

	/* Without a loop there is no index for step_loop to be multiplied by. */
	if (has & STEP && (!op->step || (op->step_loop && !b->in_loop)))
		return false;
	if (has & (LOCAL | SIZE) && !range_is_good(b, &op->local))
		return false;
	if (has & SECOND && !range_is_good(b, &op->second))
		return false;
	if (has & REMOTE && !op->offered &&
	    (!range_is_good(b, &op->remote) ||
	     !(is_user_buffer(&op->remote) || (has & LANE && is_lane(&op->remote)))))
		return false;
	return !(has & PEER) || (op->peer < b->key.size && op->peer != b->key.v);
}

/* Nothing after an error. */
static void append(struct oci_builder *b, struct oci_op op)
{
	if (!op_is_good(b, &op))
		reject(b, -EINVAL);
	if (b->error)
		return;
	if (b->count == b->capacity) {
		uint32_t capacity = b->capacity ? b->capacity * 2 : 16;
		struct oci_op *ops = reallocarray(b->ops, capacity, sizeof(*ops));

		if (!ops) {
			reject(b, -ENOMEM);
			return;
		}
		b->ops = ops;
		b->capacity = capacity;
	}
	if (kinds[op.code].has & PEER)
		op.peers = 1;
	b->ops[b->count++] = op;
}

void oci_build_post(struct oci_builder *b, enum oci_post what, uint16_t step, uint16_t step_loop)
{
	append(b, (struct oci_op){ .code = OCI_OP_POST,
				   .address = what == OCI_POST_ADDRESS,
				   .slot = what == OCI_POST_SLOT,
				   .step = step,
				   .step_loop = step_loop });
}

void oci_build_signal(struct oci_builder *b, uint16_t step, uint16_t step_loop)
{
	append(b, (struct oci_op){ .code = OCI_OP_SIGNAL, .step = step, .step_loop = step_loop });
}

static void append_wait(struct oci_builder *b, struct oci_op op)
{
	if (!op.peers)
		return;
	if (op.peer >= b->key.size || op.peers > b->key.size)
		reject(b, -EINVAL);
	append(b, op);
}

void oci_build_wait_when(struct oci_builder *b, enum oci_opcode code, uint32_t peer, uint32_t peers,
			 uint16_t step, enum oci_when when, struct oci_range block, bool by_peer,
			 uint32_t limit)
{
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

/* Between `local` and `remote` of one peer. */
static void append_between(struct oci_builder *b, enum oci_opcode code, bool push,
			   struct oci_range local, uint32_t peer, struct oci_range remote)
{
	append(b, (struct oci_op){ .code = code,
				   .push = push,
				   .peer = peer,
				   .local = local,
				   .remote = remote });
}

void oci_build_pull(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote)
{
	append_between(b, OCI_OP_PULL, false, local, peer, remote);
}

void oci_build_push(struct oci_builder *b, struct oci_range local, uint32_t peer,
		    struct oci_range remote)
{
	append_between(b, OCI_OP_PUSH, false, local, peer, remote);
}

void oci_build_share(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		     uint32_t peer, struct oci_range remote)
{
	append_between(b, OCI_OP_SHARE, direction == OCI_SHARE_PUSH, local, peer, remote);
}

void oci_build_trade(struct oci_builder *b, struct oci_range local, uint32_t peer,
		     struct oci_range remote)
{
	append_between(b, OCI_OP_TRADE, false, local, peer, remote);
}

void oci_build_reduce_from(struct oci_builder *b, uint32_t peer, struct oci_range remote,
			   struct oci_range inout)
{
	if (!is_lane(&remote))
		reject(b, -EINVAL);
	append_between(b, OCI_OP_REDUCE_FROM, false, inout, peer, remote);
}

void oci_build_help(struct oci_builder *b, enum oci_share direction, struct oci_range local,
		    bool by_peer, uint32_t peer, uint32_t peers, struct oci_range remote)
{
	uint32_t size = b->key.size;

	if (!peers)
		return;
	if (peer >= size || peers >= size || (b->key.v + size - peer) % size < peers)
		reject(b, -EINVAL);
	append(b, (struct oci_op){ .code = OCI_OP_HELP,
				   .push = direction == OCI_SHARE_PUSH,
				   .by_peer = by_peer,
				   .peer = peer,
				   .peers = peers,
				   .local = local,
				   .remote = remote });
}

void oci_build_copy(struct oci_builder *b, struct oci_range from, struct oci_range to)
{
	append(b, (struct oci_op){ .code = OCI_OP_COPY, .local = from, .second = to });
}

void oci_build_reduce(struct oci_builder *b, struct oci_range in, struct oci_range inout)
{
	append(b, (struct oci_op){ .code = OCI_OP_REDUCE, .local = in, .second = inout });
}

static void append_offer(struct oci_builder *b, struct oci_range block, uint32_t cells,
			 bool addresses, uint32_t limit)
{
	if (!oci_offer_fits(cells) || (block.table ? cells != b->key.size - 1 : cells != 1))
		reject(b, -EINVAL);
	append(b, (struct oci_op){ .code = OCI_OP_OFFER,
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
	append_offer(b, block, cells, false, oci_offer_most(cells));
}

void oci_build_offer_addresses(struct oci_builder *b, struct oci_range block, uint32_t cells,
			       uint32_t limit)
{
	append_offer(b, block, cells, true, limit);
}

/* With the cell that a peer's offer has for this rank. */
static void append_offered(struct oci_builder *b, enum oci_opcode code, struct oci_range local,
			   uint32_t peer, uint32_t cells, enum oci_when when, uint32_t limit)
{
	uint32_t p = b->key.size;
	uint32_t cell = cells > 1 ? (b->key.v + 2 * p - peer - 1) % p : 0;

	if (!oci_offer_fits(cells) || cell >= cells)
		reject(b, -EINVAL);
	append(b, (struct oci_op){ .code = code,
				   .when = (uint8_t)when & 3,
				   .offered = code == OCI_OP_TRADE,
				   .peer = peer,
				   .limit = limit,
				   .local = local,
				   .offer = oci_offer_layout(cells, cell) });
}

void oci_build_take(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    enum oci_when when)
{
	append_offered(b, OCI_OP_TAKE, local, peer, cells, when, oci_offer_most(cells));
}

void oci_build_give(struct oci_builder *b, struct oci_range local, uint32_t peer, uint32_t cells,
		    uint32_t limit)
{
	append_offered(b, OCI_OP_GIVE, local, peer, cells, OCI_WHEN_LARGE, limit);
}

void oci_build_trade_offered(struct oci_builder *b, struct oci_range local, uint32_t peer,
			     uint32_t cells, uint32_t limit)
{
	append_offered(b, OCI_OP_TRADE, local, peer, cells, OCI_WHEN_LARGE, limit);
}

void oci_build_loop(struct oci_builder *b, struct oci_range over)
{
	over.segmented = 0;
	/* A jump has 16 bits; in_loop here would be a nested loop, which has no second index. */
	if (b->in_loop || b->count > UINT16_MAX)
		reject(b, -EINVAL);
	b->in_loop = true;
	b->loop = b->count;
	append(b, (struct oci_op){ .code = OCI_OP_LOOP, .local = over });
}

void oci_build_next(struct oci_builder *b)
{
	if (!b->in_loop || b->count > UINT16_MAX)
		reject(b, -EINVAL);
	if (b->error)
		return;
	b->in_loop = false;
	b->ops[b->loop].jump = (uint16_t)b->count;
	append(b, (struct oci_op){ .code = OCI_OP_NEXT, .jump = (uint16_t)b->loop });
}

/* ---- the whole plan ------------------------------------------------------------------------ */

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

/* What a plan uses of this rank's own buffers. */
struct use {
	bool buf[OCI_BUF_COUNT];
	bool parts, posts, addresses, shares, halves, trades;
	uint32_t slot_blocks;
	bool whole_slot;
	unsigned int handles; /* publications */
	unsigned int offers;
	uint32_t most_segments;
};

/* How often a loop may raise or await a flag until its step leaves the operation's. */
static void use_step(struct use *use, const struct oci_op *op)
{
	uint32_t most;

	if (!op->step_loop)
		return;
	most = (OCI_STEPS - 1 - op->step) / op->step_loop + 1;
	if (!use->most_segments || most < use->most_segments)
		use->most_segments = most;
}

/* How far into a slot. */
static void use_slot(struct use *use, const struct oci_range *range, const struct oci_plan_key *key)
{
	uint32_t end = range->block + (range->parts ? 1 : range->blocks);

	/* What a Reduce_scatter's calls count as a block is all that its table has. */
	if (range->table && key->collective == OC_REDUCE_SCATTER)
		end = 1;
	else if (range->table)
		use->whole_slot = true;
	use->whole_slot |= range->halves || range->relative;
	if (end > use->slot_blocks)
		use->slot_blocks = end;
}

static void use_range(struct use *use, const struct oci_range *range,
		      const struct oci_plan_key *key, bool mine)
{
	use->buf[range->buf] |= mine;
	use->parts |= range->parts > 0;
	use->halves |= range->halves;
	if (mine && range->buf == OCI_BUF_SLOT)
		use_slot(use, range, key);
}

static void use_op(struct use *use, const struct oci_op *op, const struct oci_plan_key *key)
{
	unsigned int has = kinds[op->code].has;

	use_step(use, op);
	/* Of each peer another block may be meant. */
	use->whole_slot |= op->code == OCI_OP_HELP && op->local.buf == OCI_BUF_SLOT;
	if (has & (LOCAL | SIZE))
		use_range(use, &op->local, key, has & LOCAL);
	if (has & SECOND)
		use_range(use, &op->second, key, true);
	if (has & REMOTE && !op->offered)
		use_range(use, &op->remote, key, false);
	use->shares |= op->code == OCI_OP_SHARE;
	if (op->code == OCI_OP_POST) {
		use->posts = true;
		use->handles += op->address + op->slot;
		use->addresses |= op->address;
		use->buf[OCI_BUF_SLOT] |= op->slot;
	} else if (op->code == OCI_OP_OFFER) {
		/* In the payload of the POST line, and in the slot if a block is small. */
		use->offers++;
		use->addresses = true;
		use->buf[OCI_BUF_INLINE] = true;
	} else if (op->code == OCI_OP_TRADE) {
		use->trades = use->buf[OCI_BUF_TEMP] = true;
	}
}

/* Does all of it go together? */
static bool use_is_good(const struct oci_builder *b, const struct use *use)
{
	/* An offer takes its slot when a block is small; one that is there already is not its. */
	if (use->offers > 1 || (use->offers && use->buf[OCI_BUF_SLOT]))
		return false;
	/* Two segments lie in a slot. */
	if (use->halves && (!b->segment_bytes || b->segment_bytes > OCI_SLOT_BYTES / 2))
		return false;
	/* A trade goes by segments. */
	if (use->trades && !b->segment_bytes)
		return false;
	/* The payload of a POST line and the handles it publishes are the same bytes of it. */
	return use->handles <= 1 && !(use->handles && use->buf[OCI_BUF_INLINE]) &&
	       (!use->parts || b->nparts);
}

struct oci_plan *oci_builder_finish(struct oci_builder *b, int *error)
{
	struct oci_plan *plan = NULL;
	struct use use = { 0 };

	append(b, (struct oci_op){ .code = OCI_OP_END });
	for (uint32_t i = 0; i < b->count; i++)
		use_op(&use, &b->ops[i], &b->key);
	if (b->in_loop || !use_is_good(b, &use))
		reject(b, -EINVAL);
	if (!b->error) {
		plan = malloc(sizeof(*plan) + b->count * sizeof(*b->ops));
		if (!plan)
			reject(b, -ENOMEM);
	}
	if (plan) {
		*plan = (struct oci_plan){
			.key = b->key,
			.nparts = b->nparts,
			.segment_bytes = b->segment_bytes,
			.most_segments = use.most_segments,
			.count = b->count,
			.work_blocks = b->work_blocks,
			.slot_blocks = use.whole_slot ? 0 : use.slot_blocks,
			.uses_slot = use.buf[OCI_BUF_SLOT],
			.uses_temp = use.buf[OCI_BUF_TEMP],
			.uses_acc = use.buf[OCI_BUF_ACC],
			.posts_addresses = use.addresses,
			.posts = use.posts,
			.uses_share = use.shares,
		};
		memcpy(plan->ops, b->ops, b->count * sizeof(*b->ops));
	} else {
		*error = b->error;
	}
	free(b->ops);
	free(b);
	return plan;
}
