/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the blocks of a checked call lie, what is in them, and what must be there afterwards. */
#include "checked_data.h"

#include "data.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 0xa5

int checked_is_reduction(enum case_collective collective)
{
	return oci_is_reduction(case_of(collective));
}

int checked_block_elements(const struct checked *c, int from, int to)
{
	const struct checked_spec *spec = &c->spec;
	unsigned int low = (unsigned int)from, high = (unsigned int)to, hash;

	if (!checked_has_table(spec->collective))
		return spec->elements;
	if (!checked_gives_each(spec->collective) && !checked_is_gather(spec->collective) &&
	    !checked_is_reduce_scatter(spec->collective))
		high = 0;
	if (spec->collective == CASE_REDUCE_SCATTER)
		low = 0;
	/* In place, what comes in the stead of a block has its size. */
	if (oci_trades(case_of(spec->collective)) && spec->in_place && low > high) {
		low = (unsigned int)to;
		high = (unsigned int)from;
	}
	if (!low && !high)
		return spec->elements;
	hash = (unsigned int)(data_seed(spec->shape, (int)low, (int)high) >> 20) % 6;
	return hash == 0 ? 0 :
	       hash == 1 ? spec->elements > 0 :
	       hash == 2 ? spec->elements / 3 :
			   spec->elements;
}

static int value(uint64_t salt, int from, int to, int k)
{
	uint64_t x = (salt * 16 + (uint64_t)from) * 0x9e3779b97f4a7c15u +
		     ((uint64_t)(unsigned int)to << 32) + (unsigned int)k;

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (int)(x >> 32);
}

/* ---- places --------------------------------------------------------------------------------- */

static int differs(const struct checked *c)
{
	return c->spec.differ && !checked_is_reduction(c->spec.collective);
}

/* The call gets the address of this block: the places of those in front of it are negative. */
static void begin_at(struct checked_side *side, int block)
{
	int place = side->places[block];

	side->begin = side->offset[block];
	for (int b = 0; b < side->blocks; b++)
		side->places[b] -= place;
}

/* The i-th block in the order of their places. */
static int in_order(const struct checked *c, const struct checked_side *side, int i)
{
	return checked_has_table(c->spec.collective) && side->many && c->spec.shape % 2 ?
		       side->blocks - 1 - i :
		       i;
}

/* Blocks of `elements` each: one behind the other, or, with a table, in any order, with gaps. */
static void place_side(const struct checked *c, struct checked_side *side, int layout)
{
	int is_w = checked_has_types(c->spec.collective), at = 0;
	int tabled = checked_has_table(c->spec.collective) && side->many;
	/* The two buffers of a reduction have one type. */
	int total = checked_is_reduction(c->spec.collective) ? c->ranks * c->spec.elements : 0;
	size_t behind = 0;

	for (int b = 0; b < side->blocks; b++)
		total += checked_is_reduction(c->spec.collective) ? 0 : side->elements[b] + tabled;
	for (int i = 0; i < side->blocks; i++) {
		int b = in_order(c, side, i);
		const struct layout *is =
			c->spec.plain ? &layout_plain[c->spec.plain - 1] :
					layout_choose(layout + (is_w && differs(c) ? b : 0), total);

		side->layout[b] = is;
		side->types[b] = is->type;
		side->counts[b] = side->elements[b] * is->per_element;
		if (is_w) {
			side->offset[b] = behind;
			side->places[b] = (int)behind;
			behind += layout_bytes(is, side->elements[b]) + 2 * LAYOUT_MARGIN;
			behind = behind / 8 * 8;
		} else {
			side->offset[b] = (size_t)at * (size_t)is->extent;
			side->places[b] = at * is->per_element;
			at += side->elements[b] + tabled;
			behind = layout_bytes(is, at);
		}
	}
	if (tabled && c->spec.shape % 3 == 2)
		begin_at(side, in_order(c, side, side->blocks / 2));
	/* At any multiple of the largest number. */
	side->origin = LAYOUT_MARGIN + c->spec.salt % 5 * 8;
	side->bytes = side->origin + behind + LAYOUT_MARGIN;
	side->memory = malloc(side->bytes);
	side->expected = malloc(side->bytes);
	if (!side->memory || !side->expected)
		case_fail("no memory for buffers of %zu bytes", side->bytes);
}

static void size_blocks(struct checked *c)
{
	enum case_collective collective = c->spec.collective;
	int own = checked_block_elements(c, c->rank, c->rank), root = c->spec.root;
	struct checked_side *send = &c->send, *recv = &c->recv;

	send->many = checked_gives_each(collective);
	recv->many = oci_receives_each(case_of(collective));
	send->blocks = send->many ? c->ranks : 1;
	recv->blocks = recv->many ? c->ranks : 1;
	send->elements[0] = own;
	recv->elements[0] = own;
	if (checked_is_gather(collective))
		send->elements[0] = checked_block_elements(c, c->rank, root);
	if (checked_is_scatter(collective))
		recv->elements[0] = checked_block_elements(c, root, c->rank);
	for (int b = 0; send->many && b < c->ranks; b++)
		send->elements[b] = checked_block_elements(
			c, checked_is_scatter(collective) ? root : c->rank, b);
	for (int b = 0; recv->many && b < c->ranks; b++)
		recv->elements[b] = checked_block_elements(
			c, b, checked_is_gather(collective) ? root : c->rank);
	if (checked_is_reduce_scatter(collective)) {
		send->elements[0] = 0;
		for (int b = 0; b < c->ranks; b++)
			send->elements[0] += checked_block_elements(c, 0, b);
		/* In place the input is in the receive buffer. */
		if (c->spec.in_place)
			recv->elements[0] = send->elements[0];
	}
}

void checked_place(struct checked *c)
{
	int layout = c->spec.layout + (differs(c) ? c->rank : 0);

	size_blocks(c);
	place_side(c, &c->send, layout);
	place_side(c, &c->recv, layout + (differs(c) ? 3 : 0));
}

/* ---- data ----------------------------------------------------------------------------------- */

static void put_block(unsigned char *image, const struct checked_side *side, int block, int from,
		      int to, uint64_t salt)
{
	const struct layout *layout = side->layout[block];
	unsigned char *at = image + side->origin + side->offset[block];

	if (layout->plain) {
		data_fill(at, (enum plain)(layout - layout_plain), data_seed(salt, from, to), 0,
			  (size_t)side->elements[block]);
		return;
	}
	for (int e = 0, k = 0; e < side->elements[block]; e++, at += layout->extent)
		for (int i = 0; i < LAYOUT_INTS; i++, k++) {
			int is = value(salt, from, to, k);

			memcpy(at + layout->offset[i], &is, sizeof(is));
		}
}

int checked_uses_maps(const struct checked *c)
{
	return c->spec.maps && c->recv.layout[0]->maps != MPI_OP_NULL;
}

static void put_plain_result(struct checked *c, size_t first, size_t count, int last)
{
	enum plain plain = (enum plain)(c->recv.layout[0] - layout_plain);
	unsigned char *at = c->recv.expected + c->recv.origin;

	data_fill(at, plain, data_seed(c->spec.salt, 0, 0), first, count);
	for (int r = 1; r <= last; r++)
		data_combine(at, plain, data_seed(c->spec.salt, r, 0), first, count);
}

/* The result of ranks 0 to last at the ints from `first` on, put at the start of the buffer. */
static void put_result(struct checked *c, int first, int count, int last)
{
	const struct checked_side *side = &c->recv;
	unsigned char *at = side->expected + side->origin;
	uint64_t salt = c->spec.salt;

	for (int k = 0; k < count; k += 2) {
		unsigned int a = (unsigned int)value(salt, 0, 0, first + k);
		unsigned int b = (unsigned int)value(salt, 0, 0, first + k + 1);

		for (int r = 1; r <= last; r++) {
			unsigned int next_a = (unsigned int)value(salt, r, 0, first + k);
			unsigned int next_b = (unsigned int)value(salt, r, 0, first + k + 1);

			if (checked_uses_maps(c)) {
				layout_compose(&a, &b, next_a, next_b);
			} else {
				a += next_a;
				b += next_b;
			}
		}
		layout_put(at, side->layout[0], k, (int)a);
		layout_put(at, side->layout[0], k + 1, (int)b);
	}
}

static void expect_reduction(struct checked *c)
{
	int last = c->ranks - 1, first = 0, count = checked_block_elements(c, 0, c->rank);
	enum oc_collective collective = case_of(c->spec.collective);

	if (!oci_receives(collective, c->rank == c->spec.root))
		return;
	if (oci_is_prefix(collective))
		last = oci_is_exclusive(collective) ? c->rank - 1 : c->rank;
	if (last < 0)
		return; /* not significant there */
	for (int b = 0; oci_sends_each(collective) && b < c->rank; b++)
		first += checked_block_elements(c, 0, b);
	if (c->recv.layout[0]->plain)
		put_plain_result(c, (size_t)first, (size_t)count, last);
	else
		put_result(c, first * LAYOUT_INTS, count * LAYOUT_INTS, last);
}

static void expect_movement(struct checked *c)
{
	enum case_collective collective = c->spec.collective;
	int root = c->spec.root;
	uint64_t salt = c->spec.salt;

	if (collective == CASE_BCAST)
		put_block(c->recv.expected, &c->recv, 0, root, 0, salt);
	else if (checked_is_scatter(collective) && c->arguments.recv != MPI_IN_PLACE)
		put_block(c->recv.expected, &c->recv, 0, root, c->rank, salt);
	else if (checked_is_gather(collective) && c->rank != root)
		return;
	for (int b = 0; c->recv.many && b < c->ranks; b++)
		put_block(c->recv.expected, &c->recv, b, b,
			  checked_gives_each(collective) ? c->rank :
			  checked_is_gather(collective)	 ? root :
							   0,
			  salt);
}

/* What this rank gives, in the send buffer or, in place, in the receive buffer. */
static void fill_input(struct checked *c)
{
	enum case_collective collective = c->spec.collective;
	int in_place = c->arguments.send == MPI_IN_PLACE;
	struct checked_side *side = in_place || collective == CASE_BCAST ? &c->recv : &c->send;
	uint64_t salt = c->spec.salt;

	/* Of a Bcast only the root gives. */
	if (collective == CASE_BCAST ? c->rank != c->spec.root :
				       !oci_sends(case_of(collective), c->rank == c->spec.root))
		return;
	if (checked_gives_each(collective)) {
		for (int b = 0; b < c->ranks; b++)
			put_block(side->memory, side, b, c->rank, b, salt);
		return;
	}
	put_block(side->memory, side, side->many ? c->rank : 0, c->rank,
		  checked_is_gather(collective) ? c->spec.root : 0, salt);
}

void checked_fill(struct checked *c, uint64_t salt)
{
	if (c->spec.collective == CASE_BARRIER)
		return;
	c->spec.salt = salt;
	memset(c->send.memory, GUARD, c->send.bytes);
	memset(c->recv.memory, GUARD, c->recv.bytes);
	fill_input(c);
	memcpy(c->send.expected, c->send.memory, c->send.bytes);
	memcpy(c->recv.expected, c->recv.memory, c->recv.bytes);
	if (checked_is_reduction(c->spec.collective))
		expect_reduction(c);
	else
		expect_movement(c);
}
