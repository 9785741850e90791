/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD ((size_t)64)
#define GUARD_BYTE 0xa5
#define GARBAGE 0x5a /* in a receive buffer before the call */

size_t oct_memory_bytes(size_t bytes, uint32_t size)
{
	return bytes * size + 2 * GUARD;
}

void oct_memory_free(struct oct_memory *memory)
{
	free(memory->send);
	free(memory->recv);
	*memory = (struct oct_memory){ 0 };
}

static uint8_t *guarded(uint8_t *memory, size_t bytes)
{
	memset(memory, GUARD_BYTE, GUARD);
	memset(memory + GUARD, GARBAGE, bytes);
	memset(memory + GUARD + bytes, GUARD_BYTE, GUARD);
	return memory + GUARD;
}

static bool guards_hold(const uint8_t *memory, size_t bytes)
{
	return oct_all(memory, GUARD_BYTE, GUARD) &&
	       oct_all(memory + GUARD + bytes, GUARD_BYTE, GUARD);
}

/* The blocks that all ranks know: equal ones, or parts that begin with another rank each time. */
static size_t cut(struct oct_call *c)
{
	size_t at = 0;

	for (uint32_t r = 0; r < c->size; r++) {
		size_t times = c->spec.uneven ? (r + c->spec.n) % 4 : 1;

		c->parts[r] = (struct oc_block){ at, times * c->spec.bytes };
		at += c->parts[r].bytes;
	}
	return at;
}

/* What this rank gives, as it lies in a send buffer. */
static void fill(const struct oct_call *c, uint8_t *to)
{
	if (!oci_sends_each(c->spec.collective)) {
		oct_fill(to, c->spec.n, c->rank, 0, c->spec.bytes);
		return;
	}
	for (uint32_t r = 0; r < c->size; r++)
		oct_fill(to + c->parts[r].offset, c->spec.n, c->rank, r, c->parts[r].bytes);
}

/* The rule of MPI for each collective: where its input is in place, and at which ranks. */
static void put_in_place(struct oct_call *c, bool is_root)
{
	enum oc_collective collective = c->spec.collective;
	uint8_t *recv = c->memory->recv + GUARD;

	if (collective == OC_SCATTER && is_root) {
		c->call.recv = OC_IN_PLACE;
	} else if (collective == OC_ALLGATHER || (collective == OC_GATHER && is_root)) {
		fill(c, recv + c->parts[c->rank].offset);
		c->call.send = OC_IN_PLACE;
	} else if (collective == OC_ALLTOALL || (oci_is_reduction(collective) && c->recv_bytes)) {
		fill(c, recv);
		c->call.send = OC_IN_PLACE;
	}
}

static void make_room(struct oct_memory *memory, size_t bytes)
{
	if (bytes + 2 * GUARD <= memory->bytes)
		return;
	oct_memory_free(memory);
	memory->bytes = bytes + 2 * GUARD;
	memory->send = malloc(memory->bytes);
	memory->recv = malloc(memory->bytes);
}

void oct_call_make(struct oct_call *c, struct oct_memory *memory, const struct oct_spec *spec,
		   uint32_t rank, uint32_t size)
{
	enum oc_collective collective = spec->collective;
	bool is_root = rank == spec->root;
	size_t all;

	*c = (struct oct_call){ .spec = *spec, .rank = rank, .size = size, .memory = memory };
	if (oci_is_v(collective)) {
		oct_blocks_make(&c->blocks, collective, spec->n, rank, size, spec->root,
				spec->in_place);
		c->call = c->blocks.call;
		return;
	}
	all = cut(c);
	c->send_bytes = oct_send_bytes(collective, spec->bytes, size, is_root);
	c->recv_bytes = oct_recv_bytes(collective, spec->bytes, size, is_root);
	if (collective == OC_REDUCE_SCATTER) {
		c->send_bytes = all;
		c->recv_bytes = c->parts[rank].bytes;
	}
	/* The input of a Reduce_scatter in place is longer than the result. */
	if (spec->in_place && oci_is_reduction(collective) && c->recv_bytes)
		c->recv_bytes = c->send_bytes > c->recv_bytes ? c->send_bytes : c->recv_bytes;
	make_room(memory, c->send_bytes > c->recv_bytes ? c->send_bytes : c->recv_bytes);
	c->call = (struct oc_call){
		.collective = collective,
		.bytes = collective == OC_BARRIER || collective == OC_REDUCE_SCATTER ? 0 :
										       spec->bytes,
		.root = oci_is_rooted(collective) ? spec->root : 0,
		.op = spec->op,
		.send = guarded(memory->send, c->send_bytes),
		.recv = guarded(memory->recv, c->recv_bytes),
		.recv_blocks = collective == OC_REDUCE_SCATTER ? c->parts : NULL,
	};
	if (collective == OC_BCAST)
		c->call.send = c->call.recv;
	if (collective == OC_BCAST ? is_root : c->send_bytes > 0)
		fill(c, collective == OC_BCAST ? c->call.recv : memory->send + GUARD);
	/* Who receives nothing has no buffer. */
	if (!oct_recv_bytes(collective, 1, size, is_root) ||
	    (collective == OC_EXSCAN && !rank && !spec->in_place))
		c->call.recv = NULL;
	if (spec->in_place)
		put_in_place(c, is_root);
}

/* The result over ranks 0 .. operands - 1 of what each means for rank `to`. */
static bool is_reduced(const struct oct_call *c, const uint8_t *got, uint32_t operands, uint32_t to,
		       size_t bytes)
{
	uint8_t want[16 * OCT_RUN], other[16 * OCT_RUN];

	for (size_t at = 0; at < bytes; at += sizeof(want)) {
		size_t length = bytes - at < sizeof(want) ? bytes - at : sizeof(want);

		oct_fill_from(want, c->spec.n, operands - 1, to, at, length);
		for (uint32_t r = operands - 1; r-- > 0;) {
			oct_fill_from(other, c->spec.n, r, to, at, length);
			c->spec.op->apply(NULL, other, want, length / c->spec.op->bytes);
		}
		if (memcmp(got + at, want, length))
			return false;
	}
	return true;
}

static bool reduction_right(const struct oct_call *c, const uint8_t *got)
{
	bool each = oci_sends_each(c->spec.collective);
	uint32_t operands = c->size;

	if (c->spec.collective == OC_SCAN)
		operands = c->rank + 1;
	if (c->spec.collective == OC_EXSCAN)
		operands = c->rank;
	if (operands)
		return is_reduced(c, got, operands, each ? c->rank : 0,
				  c->spec.collective == OC_REDUCE_SCATTER ?
					  c->parts[c->rank].bytes :
					  c->spec.bytes);
	/* Rank 0 of an Exscan gets nothing. */
	return c->spec.in_place ? oct_filled(got, c->spec.n, c->rank, 0, c->spec.bytes) :
				  oct_all(got, GARBAGE, c->spec.bytes);
}

bool oct_call_right(const struct oct_call *c)
{
	const struct oct_spec *s = &c->spec;
	const uint8_t *got;
	size_t blocks = s->bytes ? c->recv_bytes / s->bytes : 0;
	bool right = true;

	if (oci_is_v(s->collective))
		return oct_blocks_right(&c->blocks);
	got = c->memory->recv + GUARD;
	if (c->call.recv == OC_IN_PLACE)
		got = c->memory->send + GUARD + c->parts[c->rank].offset;
	if (s->collective == OC_BCAST || s->collective == OC_SCATTER)
		right = oct_filled(got, s->n, s->root, s->collective == OC_SCATTER ? c->rank : 0,
				   s->bytes);
	else if (oci_is_reduction(s->collective))
		right = !c->recv_bytes || reduction_right(c, got);
	else
		for (uint32_t r = 0; r < blocks && right; r++)
			right = oct_filled(got + r * s->bytes, s->n, r,
					   s->collective == OC_ALLTOALL ? c->rank : 0, s->bytes);
	return right && guards_hold(c->memory->send, c->send_bytes) &&
	       guards_hold(c->memory->recv, c->recv_bytes);
}

void oct_call_free(struct oct_call *c)
{
	if (oci_is_v(c->spec.collective))
		oct_blocks_free(&c->blocks);
}

static int run(struct oc_team *team, const struct oct_call *c)
{
	struct oc_request *request;

	if (!c->spec.by_request)
		return oc_collective(team, &c->call);
	return oc_start(team, &c->call, &request) ?: oc_wait(request);
}

int oct_call_run(struct oc_team *team, struct oct_memory *memory, const struct oct_spec *spec)
{
	struct oct_call c;
	int result;
	bool right;

	oct_call_make(&c, memory, spec, oc_team_rank(team), oc_team_size(team));
	result = run(team, &c);
	right = !result && oct_call_right(&c);
	if (!right)
		fprintf(stderr, "rank %u of %u: %s number %u of %zu bytes, root %u%s%s: %s (%s)\n",
			c.rank, c.size, oci_collective_name(spec->collective), spec->n, spec->bytes,
			spec->root, spec->in_place ? ", in place" : "",
			spec->uneven ? ", uneven" : "", result ? strerror(-result) : "wrong bytes",
			oc_team_error(team));
	oct_call_free(&c);
	return !right;
}
