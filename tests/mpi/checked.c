/* SPDX-License-Identifier: BSD-3-Clause */
#include "checked_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill_arguments(struct checked *c)
{
	struct checked_side *send = &c->send, *recv = &c->recv;
	enum case_collective collective = c->spec.collective;
	enum oc_collective row = case_of(collective);
	int is_root = c->rank == c->spec.root;
	const struct layout *layout = recv->layout[0];
	int in_place = c->spec.in_place;

	c->arguments = (struct arguments){
		.collective = collective,
		.large = LARGE_COUNTS && c->spec.large,
		.send = send->memory + send->origin + send->begin,
		.recv = recv->memory + recv->origin + recv->begin,
		.send_count = send->counts[0],
		.recv_count = recv->counts[0],
		.send_counts = send->counts,
		.send_places = send->places,
		.recv_counts = recv->counts,
		.recv_places = recv->places,
		.send_counts_c = send->counts_c,
		.send_places_c = send->places_c,
		.recv_counts_c = recv->counts_c,
		.recv_places_c = recv->places_c,
		.send_type = send->types[0],
		.recv_type = recv->types[0],
		.send_types = send->types,
		.recv_types = recv->types,
		.op = checked_uses_maps(c) ? layout->maps : layout->sum,
		.root = c->spec.root,
		.comm = c->comm,
	};
	/* What means nothing on a rank is not there. A Bcast's buffer is `recv`. */
	if (collective == CASE_BCAST)
		return;
	if (!oci_sends(row, is_root)) {
		c->arguments.send = NULL;
		c->arguments.send_counts = c->arguments.send_places = NULL;
		c->arguments.send_counts_c = NULL;
		c->arguments.send_places_c = NULL;
	}
	if (!oci_receives(row, is_root)) {
		c->arguments.recv = NULL;
		c->arguments.recv_counts = c->arguments.recv_places = NULL;
		c->arguments.recv_counts_c = NULL;
		c->arguments.recv_places_c = NULL;
	}
	if (in_place && oci_may_receive_in_place(row, is_root))
		c->arguments.recv = MPI_IN_PLACE;
	else if (in_place && oci_may_send_in_place(row, is_root))
		c->arguments.send = MPI_IN_PLACE;
}

/*
 * What the MPIs by themselves get wrong is left out where they may serve a call. Both take
 * different algorithms of Allgatherv, or cut its blocks otherwise, on ranks with different types.
 * MPICH 4.0.2 takes a type's true extent for its extent in Reduce_scatters that keep the order, a
 * pending call does not hold its types, so that one freed meanwhile may have become another, and
 * Ialltoallw in place takes the size of one block's type for another's. A Reduce in place, at a
 * root other than 0, that keeps the order reads MPI_IN_PLACE as an address.
 */
static void avoid_faults(struct checked *c)
{
	if (c->spec.collective == CASE_ALLGATHERV)
		c->spec.differ = 0;
#ifdef MPICH_VERSION
	c->keep_handles = 1;
	if (checked_is_reduce_scatter(c->spec.collective))
		c->spec.maps = 0;
	if (c->spec.collective == CASE_REDUCE && c->spec.root)
		c->spec.in_place = 0;
	if (c->spec.collective == CASE_ALLTOALLW && c->spec.in_place)
		c->spec.differ = 0;
#endif
}

/* The blocks that all ranks get, for Reduce_scatter, whose recv side has one block. */
static void fill_reduce_scatter(struct checked *c)
{
	int per_element = c->recv.layout[0]->per_element;

	for (int b = 0; b < c->ranks; b++)
		c->recv.counts[b] = checked_block_elements(c, 0, b) * per_element;
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
	if (checked_is_reduction(c->spec.collective) && !layout->plain) {
		MPI_Op_create(checked_uses_maps(c) ? layout->maps_function : layout->sum_function,
			      !checked_uses_maps(c), &c->own_op);
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
	MPI_Get_address(side->memory + side->origin + side->offset[block], &address);
	MPI_Type_create_hindexed(1, &side->counts[block], &address, type, &side->types[block]);
	MPI_Type_commit(&side->types[block]);
	MPI_Type_free(&type);
	side->counts[block] = 1;
	side->places[block] = 0;
}

/* For a side of one block, and for those of an Alltoallw; the others keep their address. */
static void use_bottom(struct checked *c)
{
	int is_w = checked_has_types(c->spec.collective);
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

static void widen(struct checked_side *side)
{
	for (int b = 0; b < CHECKED_RANKS; b++) {
		side->counts_c[b] = side->counts[b];
		side->places_c[b] = side->places[b];
	}
}

void checked_open(struct checked *c, MPI_Comm comm, const struct checked_spec *spec)
{
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
	if (spec->collective == CASE_BARRIER) {
		c->arguments = (struct arguments){ .collective = CASE_BARRIER, .comm = comm };
		return;
	}
	if (!layout_count)
		layouts_make();
	checked_place(c);
	fill_arguments(c);
	if (checked_is_reduce_scatter(spec->collective))
		fill_reduce_scatter(c);
	if (spec->bottom)
		use_bottom(c);
	widen(&c->send);
	widen(&c->recv);
	checked_fill(c, spec->salt);
}

/* Those are Open MPI's own (mpi/ompi/README.md): all neighbors here make a graph. */
static int is_given_back(const struct checked *c)
{
#ifdef OPEN_MPI
	return c->form == FORM_BLOCKING && oci_is_neighbor(case_of(c->spec.collective)) &&
	       oci_function_is_uniform(case_function(c->spec.collective));
#else
	(void)c;
	return 0;
#endif
}

void checked_count(const struct checked *c)
{
	int must = c->ranks > 1;

	if (is_given_back(c))
		return;

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
		 "shape %u, from '%s' to '%s', %s%s",
		 form_names[c->form], case_names[c->spec.collective],
		 (unsigned long long)c->spec.salt, name, c->spec.elements, c->spec.root, c->ranks,
		 c->spec.in_place ? "in place" : "two buffers", c->spec.shape,
		 c->send.layout[0] ? c->send.layout[0]->name : "",
		 c->recv.layout[0] ? c->recv.layout[0]->name : "",
		 c->had_own_handles ? "types of its own" : "types of all",
		 c->arguments.large ? ", large counts here" : "");
	return text;
}

int checked_call(struct checked *c)
{
	c->form = FORM_BLOCKING;
	checked_count(c);
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
	c->form = FORM_NONBLOCKING;
	checked_count(c);
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

void checked_begin(struct checked *c, enum form form)
{
	if (form == FORM_BLOCKING) {
		must_succeed(c, checked_call(c), "blocking");
	} else if (form == FORM_NONBLOCKING) {
		checked_start(c);
	} else {
		checked_init(c);
		checked_restart(c);
	}
}

static void verify_side(const struct checked *c, const struct checked_side *side, const char *what)
{
	if (!memcmp(side->memory, side->expected, side->bytes))
		return;
	for (size_t i = 0; i < side->bytes; i++)
		if (side->memory[i] != side->expected[i])
			case_fail("%s: byte %ld of the %s buffer is 0x%02x, not 0x%02x",
				  describe(c), (long)i - (long)side->origin, what, side->memory[i],
				  side->expected[i]);
}

/* In place, MPI says nothing of the operands that lay behind the result. */
static void forgive_operands(const struct checked *c)
{
	const struct layout *layout = c->recv.layout[0];
	unsigned char *to = c->recv.expected + c->recv.origin;
	const unsigned char *from = c->recv.memory + c->recv.origin;

	for (int e = checked_block_elements(c, 0, c->rank); e < c->recv.elements[0]; e++) {
		ptrdiff_t at = (ptrdiff_t)e * layout->extent;

		if (layout->plain)
			memcpy(to + at, from + at, (size_t)layout->extent);
		for (int i = 0; !layout->plain && i < LAYOUT_INTS; i++)
			memcpy(to + at + layout->offset[i], from + at + layout->offset[i],
			       sizeof(int));
	}
}

int checked_is_right(const struct checked *c)
{
	if (c->spec.collective == CASE_BARRIER)
		return 1;
	if (checked_is_reduce_scatter(c->spec.collective) && c->spec.in_place)
		forgive_operands(c);
	return !memcmp(c->recv.memory, c->recv.expected, c->recv.bytes);
}

void checked_verify(const struct checked *c)
{
	if (c->spec.collective == CASE_BARRIER)
		return;
	if (checked_is_reduce_scatter(c->spec.collective) && c->spec.in_place)
		forgive_operands(c);
	verify_side(c, &c->recv, "receive");
	verify_side(c, &c->send, "send");
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

void checked_end(struct checked *c)
{
	/* Nothing but the call itself of a blocking one. */
	if (c->form != FORM_BLOCKING)
		must_succeed(c, MPI_Wait(&c->request, MPI_STATUS_IGNORE), "MPI_Wait");
	if (c->request != MPI_REQUEST_NULL)
		MPI_Request_free(&c->request);
	checked_verify(c);
	checked_close(c);
}

void checked_run(MPI_Comm comm, const struct checked_spec *spec, enum form form)
{
	struct checked c;

	checked_open(&c, comm, spec);
	checked_begin(&c, form);
	checked_end(&c);
}
