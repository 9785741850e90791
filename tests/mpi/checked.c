/* SPDX-License-Identifier: BSD-3-Clause */
#include "checked.h"

#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 0xa5

int checked_is_reduction(enum case_collective collective)
{
	return collective == CASE_REDUCE || collective == CASE_ALLREDUCE ||
	       (collective >= CASE_REDUCE_SCATTER_BLOCK && collective <= CASE_EXSCAN);
}

static int has_table(enum case_collective collective)
{
	return (collective >= CASE_SCATTERV && collective <= CASE_ALLTOALLV) ||
	       collective == CASE_REDUCE_SCATTER || collective == CASE_ALLTOALLW;
}

static int is_alltoall(enum case_collective collective)
{
	return collective == CASE_ALLTOALL || collective == CASE_ALLTOALLV ||
	       collective == CASE_ALLTOALLW;
}

static int is_scatter(enum case_collective collective)
{
	return collective == CASE_SCATTER || collective == CASE_SCATTERV;
}

static int is_gather(enum case_collective collective)
{
	return collective == CASE_GATHER || collective == CASE_GATHERV;
}

static int is_reduce_scatter(enum case_collective collective)
{
	return collective == CASE_REDUCE_SCATTER_BLOCK || collective == CASE_REDUCE_SCATTER;
}

/* Elements of the block that `from` gives to `to`: both know it without talking. */
static int block_elements(const struct checked *c, int from, int to)
{
	const struct checked_spec *spec = &c->spec;
	unsigned int low = (unsigned int)from, high = (unsigned int)to, hash;

	if (!has_table(spec->collective))
		return spec->elements;
	if (spec->collective == CASE_ALLGATHERV)
		high = 0;
	if (spec->collective == CASE_REDUCE_SCATTER)
		low = 0;
	/* In place, what comes in the stead of a block has its size. */
	if (is_alltoall(spec->collective) && spec->in_place && low > high) {
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

/* Blocks of `elements` each: one behind the other, or, with a table, in any order, with gaps. */
static void place_blocks(const struct checked *c, struct checked_side *side, int layout)
{
	int is_w = c->spec.collective == CASE_ALLTOALLW, at = 0;
	int tabled = has_table(c->spec.collective) && side->many;
	/* The two buffers of a reduction have one type. */
	int total = checked_is_reduction(c->spec.collective) ? c->ranks * c->spec.elements : 0;
	size_t behind = 0;

	for (int b = 0; b < side->blocks; b++)
		total += checked_is_reduction(c->spec.collective) ? 0 : side->elements[b] + tabled;
	for (int i = 0; i < side->blocks; i++) {
		int b = tabled && c->spec.shape % 2 ? side->blocks - 1 - i : i;
		const struct layout *is =
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
	side->bytes = behind + 2 * LAYOUT_MARGIN;
	side->memory = malloc(side->bytes);
	side->expected = malloc(side->bytes);
	if (!side->memory || !side->expected)
		case_fail("no memory for buffers of %zu bytes", side->bytes);
}

static void size_blocks(struct checked *c)
{
	enum case_collective collective = c->spec.collective;
	int own = block_elements(c, c->rank, c->rank), root = c->spec.root;
	struct checked_side *send = &c->send, *recv = &c->recv;

	send->many = is_alltoall(collective) || is_scatter(collective);
	recv->many = is_alltoall(collective) || is_gather(collective) ||
		     collective == CASE_ALLGATHER || collective == CASE_ALLGATHERV;
	send->blocks = send->many ? c->ranks : 1;
	recv->blocks = recv->many ? c->ranks : 1;
	send->elements[0] = own;
	recv->elements[0] = own;
	if (is_gather(collective))
		send->elements[0] = block_elements(c, c->rank, root);
	if (is_scatter(collective))
		recv->elements[0] = block_elements(c, root, c->rank);
	for (int b = 0; send->many && b < c->ranks; b++)
		send->elements[b] = block_elements(c, is_scatter(collective) ? root : c->rank, b);
	for (int b = 0; recv->many && b < c->ranks; b++)
		recv->elements[b] = block_elements(c, b, is_gather(collective) ? root : c->rank);
	if (is_reduce_scatter(collective)) {
		send->elements[0] = 0;
		for (int b = 0; b < c->ranks; b++)
			send->elements[0] += block_elements(c, 0, b);
		/* In place the input is in the receive buffer. */
		if (c->spec.in_place)
			recv->elements[0] = send->elements[0];
	}
}

/* ---- data ----------------------------------------------------------------------------------- */

static void put_block(unsigned char *image, const struct checked_side *side, int block, int from,
		      int to, uint64_t salt)
{
	unsigned char *at = image + LAYOUT_MARGIN + side->offset[block];

	for (int k = 0; k < side->elements[block] * LAYOUT_INTS; k++)
		layout_put(at, side->layout[block], k, value(salt, from, to, k));
}

static int uses_maps(const struct checked *c)
{
	return c->spec.maps && c->recv.layout[0]->maps != MPI_OP_NULL;
}

/* The result of ranks 0 to last at the ints from `first` on, put at the start of the buffer. */
static void put_result(struct checked *c, int first, int count, int last)
{
	const struct checked_side *side = &c->recv;
	unsigned char *at = side->expected + LAYOUT_MARGIN;
	uint64_t salt = c->spec.salt;

	for (int k = 0; k < count; k += 2) {
		unsigned int a = (unsigned int)value(salt, 0, 0, first + k);
		unsigned int b = (unsigned int)value(salt, 0, 0, first + k + 1);

		for (int r = 1; r <= last; r++) {
			unsigned int next_a = (unsigned int)value(salt, r, 0, first + k);
			unsigned int next_b = (unsigned int)value(salt, r, 0, first + k + 1);

			if (uses_maps(c)) {
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
	int last = c->ranks - 1, first = 0, count = block_elements(c, 0, c->rank) * LAYOUT_INTS;

	switch (c->spec.collective) {
	case CASE_REDUCE:
		if (c->rank != c->spec.root)
			return;
		break;
	case CASE_SCAN:
		last = c->rank;
		break;
	case CASE_EXSCAN:
		last = c->rank - 1;
		if (!c->rank)
			return; /* not significant there */
		break;
	case CASE_REDUCE_SCATTER:
	case CASE_REDUCE_SCATTER_BLOCK:
		for (int b = 0; b < c->rank; b++)
			first += block_elements(c, 0, b) * LAYOUT_INTS;
		break;
	default:
		break;
	}
	put_result(c, first, count, last);
}

static void expect_movement(struct checked *c)
{
	enum case_collective collective = c->spec.collective;
	int root = c->spec.root;
	uint64_t salt = c->spec.salt;

	if (collective == CASE_BCAST)
		put_block(c->recv.expected, &c->recv, 0, root, 0, salt);
	else if (is_scatter(collective) && c->arguments.recv != MPI_IN_PLACE)
		put_block(c->recv.expected, &c->recv, 0, root, c->rank, salt);
	else if (is_gather(collective) && c->rank != root)
		return;
	for (int b = 0; c->recv.many && b < c->ranks; b++)
		put_block(c->recv.expected, &c->recv, b, b,
			  is_alltoall(collective) ? c->rank :
			  is_gather(collective)	  ? root :
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

	if (is_alltoall(collective) || is_scatter(collective)) {
		for (int b = 0;
		     (is_alltoall(collective) || c->rank == c->spec.root) && b < c->ranks; b++)
			put_block(side->memory, side, b, c->rank, b, salt);
		return;
	}
	if (collective == CASE_BCAST && c->rank != c->spec.root)
		return;
	put_block(side->memory, side, side->many ? c->rank : 0, c->rank,
		  is_gather(collective) ? c->spec.root : 0, salt);
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

/* ---- calls ---------------------------------------------------------------------------------- */

static void fill_arguments(struct checked *c)
{
	struct checked_side *send = &c->send, *recv = &c->recv;
	enum case_collective collective = c->spec.collective;
	int is_root = c->rank == c->spec.root;
	const struct layout *layout = recv->layout[0];
	int in_place = c->spec.in_place;

	c->arguments = (struct arguments){
		.collective = collective,
		.send = send->memory + LAYOUT_MARGIN,
		.recv = recv->memory + LAYOUT_MARGIN,
		.send_count = send->counts[0],
		.recv_count = recv->counts[0],
		.send_counts = send->counts,
		.send_places = send->places,
		.recv_counts = recv->counts,
		.recv_places = recv->places,
		.send_type = send->types[0],
		.recv_type = recv->types[0],
		.send_types = send->types,
		.recv_types = recv->types,
		.op = uses_maps(c) ? layout->maps : layout->sum,
		.root = c->spec.root,
		.comm = c->comm,
	};
	/* What means nothing on a rank is not there. */
	if (is_scatter(collective) && !is_root) {
		c->arguments.send = NULL;
		c->arguments.send_counts = c->arguments.send_places = NULL;
	}
	if ((is_gather(collective) || collective == CASE_REDUCE) && !is_root)
		c->arguments.recv = NULL;
	if (is_gather(collective) && !is_root)
		c->arguments.recv_counts = c->arguments.recv_places = NULL;
	if (is_scatter(collective) && is_root && in_place)
		c->arguments.recv = MPI_IN_PLACE;
	else if ((is_gather(collective) || collective == CASE_REDUCE ?
			  is_root :
			  collective != CASE_BCAST && !is_scatter(collective)) &&
		 in_place)
		c->arguments.send = MPI_IN_PLACE;
}

/*
 * What the MPIs by themselves get wrong is left out where they may serve a call. Both take
 * different algorithms of Allgatherv, or cut its blocks otherwise, on ranks with different types.
 * MPICH 4.0.2 takes a type's true extent for its extent in Reduce_scatters that keep the order, a
 * pending call does not hold its types, so that one freed meanwhile may have become another, and
 * Ialltoallw in place takes the size of one block's type for another's.
 */
static void avoid_faults(struct checked *c)
{
	if (c->spec.collective == CASE_ALLGATHERV)
		c->spec.differ = 0;
#ifdef MPICH_VERSION
	c->keep_handles = 1;
	if (is_reduce_scatter(c->spec.collective))
		c->spec.maps = 0;
	if (c->spec.collective == CASE_ALLTOALLW && c->spec.in_place)
		c->spec.differ = 0;
#endif
}

/* The blocks that all ranks get, for Reduce_scatter, whose recv side has one block. */
static void fill_reduce_scatter(struct checked *c)
{
	int per_element = c->recv.layout[0]->per_element;

	for (int b = 0; b < c->ranks; b++)
		c->recv.counts[b] = block_elements(c, 0, b) * per_element;
	c->arguments.recv_count = c->recv.counts[c->rank];
}

static void own_types(struct checked_side *side)
{
	for (int b = 0; b < side->blocks; b++) {
		MPI_Datatype type = side->types[b];

		MPI_Type_dup(type, &side->types[b]);
	}
}

void checked_own_handles(struct checked *c)
{
	const struct layout *layout = c->recv.layout[0];

	if (c->spec.collective == CASE_BARRIER)
		return;
	own_types(&c->send);
	own_types(&c->recv);
	c->own_types = c->had_own_handles = 1;
	if (checked_is_reduction(c->spec.collective)) {
		MPI_Op_create(uses_maps(c) ? layout->maps_function : layout->sum_function,
			      !uses_maps(c), &c->own_op);
		c->arguments.op = c->own_op;
	}
	c->arguments.send_type = c->send.types[0];
	c->arguments.recv_type = c->recv.types[0];
}

/* A type that says where the block lies. */
static void absolute(struct checked_side *side, int block)
{
	MPI_Datatype type = side->types[block];
	MPI_Aint address;

	/* One element of an empty type is not to every MPI the same as none. */
	if (!side->counts[block])
		return;
	MPI_Get_address(side->memory + LAYOUT_MARGIN + side->offset[block], &address);
	MPI_Type_create_hindexed(1, &side->counts[block], &address, type, &side->types[block]);
	MPI_Type_commit(&side->types[block]);
	MPI_Type_free(&type);
	side->counts[block] = 1;
	side->places[block] = 0;
}

/* For a side of one block, and for those of an Alltoallw; the others keep their address. */
static void use_bottom(struct checked *c)
{
	int is_w = c->spec.collective == CASE_ALLTOALLW;
	struct arguments *a = &c->arguments;

	if (checked_is_reduction(c->spec.collective))
		return;
	checked_own_handles(c);
	for (int b = 0; is_w && b < c->ranks; b++) {
		absolute(&c->send, b);
		absolute(&c->recv, b);
	}
	if (a->send && a->send != MPI_IN_PLACE && (is_w || !c->send.many)) {
		if (!is_w)
			absolute(&c->send, 0);
		a->send = MPI_BOTTOM;
	}
	if (a->recv && a->recv != MPI_IN_PLACE && (is_w || !c->recv.many)) {
		if (!is_w)
			absolute(&c->recv, 0);
		a->recv = MPI_BOTTOM;
	}
	a->send_count = c->send.counts[0];
	a->recv_count = c->recv.counts[0];
	a->send_type = c->send.types[0];
	a->recv_type = c->recv.types[0];
}

void checked_open(struct checked *c, MPI_Comm comm, const struct checked_spec *spec)
{
	int layout;

	*c = (struct checked){ .spec = *spec,
			       .comm = comm,
			       .request = MPI_REQUEST_NULL,
			       .own_op = MPI_OP_NULL };
	MPI_Comm_rank(comm, &c->rank);
	MPI_Comm_size(comm, &c->ranks);
	if (spec->stock || getenv("OC_TEST_STOCK"))
		avoid_faults(c);
	if (c->ranks > CHECKED_RANKS)
		case_fail("these tests are for up to %d ranks", CHECKED_RANKS);
	if (!layout_count)
		layouts_make();
	if (spec->collective == CASE_BARRIER) {
		c->arguments = (struct arguments){ .collective = CASE_BARRIER, .comm = comm };
		return;
	}
	size_blocks(c);
	layout = spec->layout + (differs(c) ? c->rank : 0);
	place_blocks(c, &c->send, layout);
	place_blocks(c, &c->recv, layout + (differs(c) ? 3 : 0));
	fill_arguments(c);
	if (is_reduce_scatter(spec->collective))
		fill_reduce_scatter(c);
	if (spec->bottom)
		use_bottom(c);
	checked_fill(c, spec->salt);
}

void checked_count(const struct checked *c)
{
	int must = c->ranks > 1;

	/* What the MPI itself may end at once, having nothing to do on any rank. */
	if (c->spec.collective != CASE_BARRIER && !c->spec.elements)
		must = 0;
	case_count(c->spec.collective, must);
}

static const char *describe(const struct checked *c)
{
	static char text[512 + MPI_MAX_OBJECT_NAME];
	char name[MPI_MAX_OBJECT_NAME];
	int length;

	MPI_Comm_get_name(c->comm, name, &length);
	snprintf(text, sizeof(text),
		 "%s %s number %llu on %s of blocks of %d elements, root %d of %d ranks, %s, "
		 "shape %u, from '%s' to '%s', %s",
		 form_names[c->form], case_names[c->spec.collective],
		 (unsigned long long)c->spec.salt, name, c->spec.elements, c->spec.root, c->ranks,
		 c->spec.in_place ? "in place" : "two buffers", c->spec.shape,
		 c->send.layout[0] ? c->send.layout[0]->name : "",
		 c->recv.layout[0] ? c->recv.layout[0]->name : "",
		 c->had_own_handles ? "types of its own" : "types of all");
	return text;
}

int checked_call(struct checked *c)
{
	checked_count(c);
	c->form = FORM_BLOCKING;
	return form_call(&c->arguments);
}

static void must_succeed(const struct checked *c, int error, const char *what)
{
	char sentence[MPI_MAX_ERROR_STRING];
	int length;

	if (error == MPI_SUCCESS)
		return;
	MPI_Error_string(error, sentence, &length);
	case_fail("%s: %s: %s", describe(c), what, sentence);
}

void checked_start(struct checked *c)
{
	checked_count(c);
	c->form = FORM_NONBLOCKING;
	must_succeed(c, form_start(&c->arguments, &c->request), "nonblocking");
}

void checked_init(struct checked *c)
{
	c->form = FORM_PERSISTENT;
	must_succeed(c, form_init(&c->arguments, &c->request), "persistent");
}

void checked_restart(struct checked *c)
{
	checked_count(c);
	must_succeed(c, MPI_Start(&c->request), "MPI_Start");
}

static void verify_side(const struct checked *c, const struct checked_side *side, const char *what)
{
	if (!memcmp(side->memory, side->expected, side->bytes))
		return;
	for (size_t i = 0; i < side->bytes; i++)
		if (side->memory[i] != side->expected[i])
			case_fail("%s: byte %ld of the %s buffer is 0x%02x, not 0x%02x",
				  describe(c), (long)i - LAYOUT_MARGIN, what, side->memory[i],
				  side->expected[i]);
}

/* In place, MPI says nothing of the operands that lay behind the result. */
static void forgive_operands(const struct checked *c)
{
	const struct layout *layout = c->recv.layout[0];
	int first = block_elements(c, 0, c->rank) * LAYOUT_INTS;

	for (int k = first; k < c->recv.elements[0] * LAYOUT_INTS; k++) {
		ptrdiff_t place = LAYOUT_MARGIN + (ptrdiff_t)(k / LAYOUT_INTS) * layout->extent +
				  layout->offset[k % LAYOUT_INTS];

		memcpy(c->recv.expected + place, c->recv.memory + place, sizeof(int));
	}
}

int checked_is_right(const struct checked *c)
{
	if (c->spec.collective == CASE_BARRIER)
		return 1;
	if (is_reduce_scatter(c->spec.collective) && c->spec.in_place)
		forgive_operands(c);
	return !memcmp(c->recv.memory, c->recv.expected, c->recv.bytes);
}

void checked_verify(const struct checked *c)
{
	if (c->spec.collective == CASE_BARRIER)
		return;
	if (is_reduce_scatter(c->spec.collective) && c->spec.in_place)
		forgive_operands(c);
	verify_side(c, &c->recv, "receive");
	verify_side(c, &c->send, "send");
	if (!is_reduce_scatter(c->spec.collective) || !c->spec.in_place)
		case_add_checksum(c->recv.memory, c->recv.bytes);
}

/* The arrays of handles are the pending call's, and stay as they are. */
static void free_types(const struct checked_side *side)
{
	for (int b = 0; b < side->blocks; b++) {
		MPI_Datatype type = side->types[b];

		MPI_Type_free(&type);
	}
}

static void free_handles(struct checked *c)
{
	if (c->own_op != MPI_OP_NULL)
		MPI_Op_free(&c->own_op);
	if (c->own_types) {
		free_types(&c->send);
		free_types(&c->recv);
	}
	c->own_types = 0;
}

void checked_free_handles(struct checked *c)
{
	if (!c->keep_handles)
		free_handles(c);
}

void checked_close(struct checked *c)
{
	free_handles(c);
	free(c->send.memory);
	free(c->send.expected);
	free(c->recv.memory);
	free(c->recv.expected);
}

void checked_run(MPI_Comm comm, const struct checked_spec *spec, enum form form)
{
	struct checked c;

	checked_open(&c, comm, spec);
	if (form == FORM_BLOCKING) {
		must_succeed(&c, checked_call(&c), "blocking");
	} else if (form == FORM_NONBLOCKING) {
		checked_start(&c);
		must_succeed(&c, MPI_Wait(&c.request, MPI_STATUS_IGNORE), "MPI_Wait");
	} else {
		checked_init(&c);
		checked_restart(&c);
		must_succeed(&c, MPI_Wait(&c.request, MPI_STATUS_IGNORE), "MPI_Wait");
		MPI_Request_free(&c.request);
	}
	checked_verify(&c);
	checked_close(&c);
}
