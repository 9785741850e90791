/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One call: checked, resolved to buffers, chosen. In one file, so that the compiler can put all of
 * it into the path of a short call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "base/log.h"
#include "copy/kmod.h"
#include "copy/layout.h"
#include "os/os.h"

/* Blocks up to this size need no division to see that all ranks' fit an address space. */
#define CALL_BYTES_SAFE ((size_t)UINT32_MAX)

/* Elements are almost always of 1, 2, 4, 8 or 16 bytes: no division for those. */
static bool divides(size_t unit, size_t bytes)
{
	return unit & (unit - 1) ? bytes % unit == 0 : (bytes & (unit - 1)) == 0;
}

/* Is it one whose form in place has plans of its own? MPI has all ranks say so, or none. */
static bool trades(const struct oc_call *call)
{
	return call->send == OC_IN_PLACE && oci_trades(call->collective);
}

/* Has a side what it needs? Beside a table a buffer may be NULL: offsets may be addresses. */
static bool has_side(const void *buffer, bool may_be_in_place, bool has_table,
		     const struct oc_block *table, size_t bytes)
{
	if (has_table)
		return buffer == OC_IN_PLACE ? may_be_in_place : table != NULL;
	return !bytes || (buffer && (buffer != OC_IN_PLACE || may_be_in_place));
}

/* Has a Reduce_scatter its buffers and a table of dense parts of whole elements? */
static bool has_parts(const struct oc_team *team, const struct oc_call *call)
{
	const struct oc_block *parts = call->recv_blocks;
	size_t end = 0;

	if (!parts || !call->op || !call->op->bytes)
		return false;
	for (uint32_t r = 0; r < team->team.size; r++) {
		if (parts[r].offset != end || parts[r].bytes % call->op->bytes ||
		    parts[r].bytes > SIZE_MAX / 2 - end)
			return false;
		end += parts[r].bytes;
	}
	if (!end)
		return true;
	if (call->recv == OC_IN_PLACE || !call->send)
		return false;
	/* A rank without a part needs no buffer for it. */
	return call->recv || (call->send != OC_IN_PLACE && !parts[team->team.rank].bytes);
}

static bool has_buffers(const struct oc_team *team, const struct oc_call *call)
{
	enum oc_collective c = call->collective;
	bool root = call->root == team->team.rank, receives = oci_receives(c, root);

	if (oci_has_parts(c))
		return has_parts(team, call);
	/* Rank 0 receives nothing, but in place its input lies there. */
	if (oci_is_exclusive(c) && !team->team.rank)
		receives = call->send == OC_IN_PLACE;
	if (oci_sends(c, root) && !has_side(call->send, oci_may_send_in_place(c, root),
					    oci_counts_sent(c), call->send_blocks, call->bytes))
		return false;
	return !receives || has_side(call->recv, oci_may_receive_in_place(c, root),
				     oci_counts_received(c), call->recv_blocks, call->bytes);
}

static int check(struct oc_team *team, const struct oc_call *call)
{
	const struct oc_op *op = call->op;

	if ((unsigned int)call->collective >= OC_COLLECTIVES)
		return oci_team_say(&team->team, -EINVAL, "there is no collective %d",
				    call->collective);
	if (oci_is_rooted(call->collective) && call->root >= team->team.size)
		return oci_team_say(&team->team, -EINVAL, "root %u is not a rank of a team of %u",
				    call->root, team->team.size);
	if (!has_buffers(team, call))
		return oci_team_say(&team->team, -EINVAL, "%s of %zu bytes lacks a buffer",
				    oci_collective_name(call->collective), call->bytes);
	if (oci_is_reduction(call->collective) &&
	    (!op || !op->apply || !op->bytes || op->bytes > OC_OP_MAX_BYTES ||
	     !divides(op->bytes, call->bytes) || call->send_layout || call->recv_layout))
		return oci_team_say(
			&team->team, -EINVAL,
			"a reduction needs an operation on elements of 1 to %d bytes that "
			"divide the message of %zu bytes",
			OC_OP_MAX_BYTES, call->bytes);
	if (call->bytes > CALL_BYTES_SAFE && call->bytes > SIZE_MAX / 2 / team->team.size)
		return oci_team_say(&team->team, -EINVAL,
				    "%zu bytes a rank are more than memory can hold", call->bytes);
	return 0;
}

const struct oc_call *oci_call_inside(const struct oc_team *team, const struct oc_call *call,
				      struct oc_call *room)
{
	bool placed = call->send_layout || call->recv_layout;
	/* The call is checked later, but a row is asked of a collective alone. */
	bool whole = call->recv_blocks && (unsigned int)call->collective < OC_COLLECTIVES &&
		     oci_has_parts(call->collective);

	if (__builtin_expect(!placed && !whole, 1))
		return call;
	*room = *call;
	if (call->send_layout && call->send != OC_IN_PLACE)
		room->send = (const void *)OCI_LAID_OUT;
	if (call->recv_layout && call->recv != OC_IN_PLACE)
		room->recv = (void *)(OCI_LAID_OUT | OCI_LAID_OUT_RECV);
	if (whole) {
		const struct oc_block *last = &call->recv_blocks[team->team.size - 1];

		room->bytes = last->offset + last->bytes;
	}
	return room;
}

/* The layouts of a call, where the executor finds them. */
static void lay_out(const struct oc_call *call, struct oci_operation *o)
{
	if (call->send_layout)
		o->layouts.send = *call->send_layout;
	if (call->recv_layout)
		o->layouts.recv = *call->recv_layout;
	o->x.layouts = &o->layouts;
	/* A bound form knows addresses only. */
	o->x.bound = NULL;
}

/*
 * A place for the result beside that of the input, which peers read until all is over; then it is
 * copied. A local matter: the plan is the same.
 */
static int resolve_apart(struct oci_operation *o, const struct oc_call *call, size_t bytes)
{
	o->temporary = malloc(bytes);
	if (!o->temporary)
		return -ENOMEM;
	o->result = call->recv;
	o->result_bytes = bytes;
	o->x.send = call->recv;
	o->x.recv = o->temporary;
	return 0;
}

/* The address of a block: numbers, whose sum may wrap. */
static uint8_t *address_of(const void *buffer, const struct oc_block *block)
{
	return (uint8_t *)((uintptr_t)buffer + block->offset);
}

/* Where the bytes of this rank are in a v-variant. */
static void resolve_blocks(struct oc_team *team, const struct oc_call *call,
			   struct oci_operation *o)
{
	enum oc_collective c = call->collective;
	bool root = call->root == team->team.rank;
	const struct oc_block *mine = NULL;
	struct oci_exec *x = &o->x;

	x->send = oci_sends(c, root) ? (uint8_t *)(uintptr_t)call->send : NULL;
	x->recv = oci_receives(c, root) ? call->recv : NULL;
	x->params.bytes = call->bytes;
	x->params.send_blocks = call->send_blocks;
	x->params.recv_blocks = call->recv_blocks;
	if (oci_counts_sent(c) && oci_counts_received(c)) {
		/* Only the statistics look at these. */
		x->params.bytes = 0;
		for (uint32_t r = 0; r < team->team.size; r++)
			x->params.bytes += call->recv_blocks[r].bytes;
		if (call->send == OC_IN_PLACE) {
			x->send = x->recv;
			x->params.send_blocks = call->recv_blocks;
		}
	} else if (call->send == OC_IN_PLACE && oci_sends(c, root)) {
		mine = &call->recv_blocks[team->team.rank];
		x->send = address_of(call->recv, mine);
	} else if (call->recv == OC_IN_PLACE && oci_receives(c, root)) {
		mine = &call->send_blocks[team->team.rank];
		x->recv = address_of(call->send, mine);
	}
	if (mine)
		x->params.bytes = mine->bytes;
}

/* Where the bytes of this rank are; MPI_IN_PLACE becomes an address. */
static int resolve(struct oc_team *team, const struct oc_call *call, struct oci_operation *o)
{
	enum oc_collective c = call->collective;
	bool root = call->root == team->team.rank, in_place = call->send == OC_IN_PLACE;
	uint8_t *send = (uint8_t *)(uintptr_t)call->send, *recv = call->recv;
	size_t mine = (size_t)team->team.rank * call->bytes, result = call->bytes;

	if (oci_is_v(c)) {
		resolve_blocks(team, call, o);
		return 0;
	}
	if (oci_has_parts(c)) {
		o->x.params.recv_blocks = call->recv_blocks;
		result = call->recv_blocks[team->team.rank].bytes;
	}
	if (in_place)
		send = oci_receives_each(c) && !oci_trades(c) ? recv + mine : recv;
	else if (recv == OC_IN_PLACE)
		recv = send + mine;
	if (!oci_sends(c, root))
		send = NULL;
	if (oci_has_one_buffer(c))
		recv = send;
	else if (!oci_receives(c, root) || (oci_is_exclusive(c) && !team->team.rank))
		recv = NULL;
	if (in_place && recv && result && oci_is_apart(c))
		return resolve_apart(o, call, result);
	o->x.send = send;
	o->x.recv = recv;
	return 0;
}

/* One side's buffer: peers copy from or to it. */
static void expose_side(const struct oc_call *call, const uint8_t *buffer,
			const struct oc_block *table, size_t ranks, size_t bytes)
{
	uint64_t place = (uintptr_t)buffer;

	if (oci_is_laid_out(place))
		oci_register_layout(place & OCI_LAID_OUT_RECV ? call->recv_layout :
								call->send_layout);
	else if (table)
		oci_register_blocks(place, table, ranks);
	else if (buffer)
		oci_register(place, bytes);
}

/* Where some pair copies by kmod: what is posted is registered before. */
static void expose(const struct oc_team *team, const struct oc_call *call,
		   const struct oci_operation *o)
{
	enum oc_collective c = call->collective;
	bool root = call->root == team->team.rank, parts = oci_has_parts(c);
	const struct oci_params *params = &o->x.params;
	size_t ranks = team->team.size, bytes = params->bytes;

	if (!o->x.plan->posts_addresses || o->x.bound)
		return;
	if (o->x.layouts)
		oci_register((uintptr_t)team->team.layouts, sizeof(team->team.layouts));
	if (oci_sends(c, root) || oci_has_one_buffer(c))
		expose_side(call, o->x.send, oci_counts_sent(c) ? params->send_blocks : NULL, ranks,
			    oci_sends_each(c) && !parts ? ranks * bytes : bytes);
	if (oci_receives(c, root))
		expose_side(call, o->x.recv, oci_counts_received(c) ? params->recv_blocks : NULL,
			    ranks,
			    parts		 ? params->recv_blocks[team->team.rank].bytes :
			    oci_receives_each(c) ? ranks * bytes :
						   bytes);
}

/* What a choice goes by: the message's bytes, 0 where ranks may differ in them; an element's. */
static size_t bytes_of(const struct oc_call *call)
{
	return oci_is_v(call->collective) ? 0 : call->bytes;
}

/* An abandoned call may have no operation. */
static size_t unit_of(const struct oc_call *call)
{
	return oci_is_reduction(call->collective) && call->op ? call->op->bytes : 1;
}

static struct oci_choice choose(struct oc_team *team, const struct oc_call *call,
				enum oci_form form)
{
	struct oci_shape shape = {
		.collective = call->collective,
		.bytes = bytes_of(call),
		.unit = unit_of(call),
		.size = team->team.size,
		.hierarchy = team->team.hierarchy,
		.oversubscribed = team->team.oversubscribed,
		.single_copy = team->team.single_copy || team->team.mapped,
		.kmod = team->team.kmod,
		.mapped = team->team.mapped,
		.common = team->team.common,
		.large_slots = form == OCI_LARGE,
		.nonblocking = form == OCI_NONBLOCKING,
		.in_place = trades(call),
	};

	struct oci_choice choice = oci_select(&shape, team->model, &team->forced[call->collective],
					      &team->choices, NULL);

	if (choice.algorithm == OCI_CHOICE_MPI && team->serves_all)
		choice = oci_select_ours(&shape, team->model);
	return choice;
}

static struct oci_plan_key key_of(struct oc_team *team, const struct oc_call *call,
				  struct oci_choice choice)
{
	uint32_t root = oci_is_rooted(call->collective) ? call->root : 0;
	struct oci_plan_key key = {
		.collective = (uint8_t)call->collective,
		.algorithm = choice.algorithm,
		.parameter = choice.parameter,
		.in_place = trades(call),
		.size = team->team.size,
		.v = (team->team.rank + team->team.size - root) % team->team.size,
	};

	if (oci_is_reduction(call->collective)) {
		key.commutative = call->op->commutative != 0;
		if (!key.commutative)
			key.root = root;
	}
	if (team->team.hierarchy && oci_algorithm(key.collective, key.algorithm)->by_hierarchy) {
		key.hierarchy = team->team.hierarchy->id;
		key.root = root;
	}
	return key;
}

void oci_recent_forget(struct oc_team *team)
{
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		struct oci_recent *recent = team->recent[c];

		if (recent)
			recent->left.is = false;
		if (!recent || !recent->cached)
			continue;
		oci_cache_put(recent->cached);
		recent->cached = NULL;
		oci_bound_put(recent->ready.bound);
		recent->ready.bound = NULL;
	}
}

/* Everything of an execution that is alike in all such calls. */
static void make_ready(struct oc_team *team, const struct oc_call *call, struct oci_exec *ready,
		       const struct oci_plan *plan)
{
	bool reduces = oci_is_reduction(call->collective);

	oci_bound_put(ready->bound);
	memset(ready, 0, sizeof(*ready));
	ready->team = &team->team;
	ready->plan = plan;
	ready->params.bytes = call->bytes;
	ready->params.root = oci_is_rooted(call->collective) ? call->root : 0;
	ready->params.size = team->team.size;
	ready->unit = reduces ? call->op->bytes : 1;
	ready->record = (struct oci_record){
		.collective = plan->key.collective,
		.algorithm = plan->key.algorithm,
		.parameter = plan->key.parameter,
		.root = ready->params.root,
		.bytes = oci_is_v(call->collective) ? UINT64_MAX : call->bytes,
		.in_place = plan->key.in_place,
		.op = reduces ? call->op->id : 0,
		.unit = (uint16_t)ready->unit,
	};
	oci_exec_ready(ready);
	ready->bound = oci_bound_create(ready);
}

static bool is_left(const struct oci_recent *recent, const struct oc_call *call, enum oci_form form)
{
	return recent && recent->left.is && recent->left.form == form &&
	       recent->left.in_place == trades(call) && recent->left.bytes == bytes_of(call) &&
	       recent->left.unit == unit_of(call);
}

/* To the MPI, and remembers that. Without memory for it, it is decided anew each time. */
static int leave(struct oc_team *team, const struct oc_call *call, enum oci_form form)
{
	struct oci_recent **recent = &team->recent[call->collective];

	if (!*recent)
		*recent = calloc(1, sizeof(**recent));
	if (*recent) {
		(*recent)->left.is = true;
		(*recent)->left.in_place = trades(call);
		(*recent)->left.form = form;
		(*recent)->left.bytes = bytes_of(call);
		(*recent)->left.unit = unit_of(call);
	}
	oci_count_left(call->collective);
	return OC_HAND_BACK;
}

/* Decides anew and remembers. 0, OC_HAND_BACK or -errno. */
static int decide(struct oc_team *team, const struct oc_call *call, enum oci_form form)
{
	struct oci_choice choice = choose(team, call, form);
	struct oci_recent *recent = team->recent[call->collective];
	struct oci_plan_key key;
	struct oci_cached *cached;
	int error = -ENOMEM;

	if (choice.algorithm == OCI_CHOICE_MPI)
		return leave(team, call, form);
	key = key_of(team, call, choice);
	if (!recent)
		recent = calloc(1, sizeof(*recent));
	cached = recent ? oci_cache_get(&team->cache, &key, oci_plan_build, &error) : NULL;
	if (!cached) {
		if (!team->recent[call->collective])
			free(recent);
		return oci_team_fail(&team->team, error, -1, "no plan for %s: %s",
				     oci_collective_name(key.collective), strerror(-error));
	}
	if (recent->cached)
		oci_cache_put(recent->cached);
	team->recent[call->collective] = recent;
	recent->cached = cached;
	recent->counted = false;
	recent->form = form;
	make_ready(team, call, &recent->ready, cached->plan);
	return 0;
}

static bool is_recent(const struct oci_recent *recent, const struct oc_call *call,
		      enum oci_form form)
{
	const struct oci_exec *ready;

	if (!recent || !recent->cached || recent->form != form)
		return false;
	ready = &recent->ready;
	if (ready->plan->key.in_place != trades(call) ||
	    (ready->params.bytes != call->bytes && !oci_is_v(call->collective)))
		return false;
	if (oci_is_reduction(call->collective) &&
	    (ready->unit != call->op->bytes || ready->record.op != call->op->id ||
	     ready->plan->key.commutative != (call->op->commutative != 0)))
		return false;
	return !oci_is_rooted(call->collective) || ready->params.root == call->root;
}

int oci_operation_prepare(struct oc_team *team, const struct oc_call *call, enum oci_form form,
			  struct oci_operation *o)
{
	const struct oci_recent *recent = team->recent[call->collective];
	int error;

	/* Nothing else is decided by this. */
	if (form == OCI_NONBLOCKING && !team->team.mapped)
		form = OCI_BLOCKING;
	if (!is_recent(recent, call, form)) {
		if (is_left(recent, call, form)) {
			oci_count_left(call->collective);
			return OC_HAND_BACK;
		}
		error = decide(team, call, form);
		if (error)
			return error;
		recent = team->recent[call->collective];
	}
	oci_exec_copy(&o->x, &recent->ready);
	if (__builtin_expect(call->send_layout || call->recv_layout, 0))
		lay_out(call, o);
	o->temporary = o->result = NULL;
	error = resolve(team, call, o);
	if (error)
		return oci_team_fail(&team->team, error, -1,
				     "no memory for a second buffer of %s in place",
				     oci_collective_name(call->collective));
	o->cached = recent->cached;
	o->cached->users++;
	o->x.op = call->op;
	oci_exec_init(&o->x, team->team.next++);
	if (o->x.bound)
		o->x.bound->users++;
	if (__builtin_expect(team->team.any_kmod, 0))
		expose(team, call, o);
	return 0;
}

void oci_operation_over(struct oc_team *team, struct oci_operation *o, int result)
{
	if (result == 1) {
		oci_team_finish(&team->team, o->x.seq, o->x.signature);
		oci_counts_add(team, &o->x);
	} else {
		oci_exec_over(&o->x);
		if (result == -EMSGSIZE)
			oci_team_finish(&team->team, o->x.seq, o->x.signature);
	}
	oci_cache_put(o->cached);
	oci_bound_put(o->x.bound);
	if (o->temporary) {
		if (result == 1)
			memcpy(o->result, o->temporary, o->result_bytes);
		free(o->temporary);
	}
}

/* Looks at a team under creation before its waiter gives its CPU away: a state of it takes some
 * microseconds, a turn of whoever else wants the CPU takes milliseconds. */
#define AWAIT_SPINS 2000 /* by the number of ranks, each of which is looked at */

void oci_team_await(struct oc_team *team)
{
	for (unsigned int turn = 0; oc_team_progress(team) == 0; turn++) {
		oci_wait_drive();
		if (turn >= AWAIT_SPINS / team->team.size || team->team.oversubscribed)
			oci_os_yield();
	}
}

/* Waits for the team. 0: the engine serves this call, unless the selector says otherwise. */
static int await(struct oc_team *team, const struct oc_call *call)
{
	if (__builtin_expect(oci_team_state(&team->team) != OCI_TEAM_READY, 0)) {
		oci_team_await(team);
		if (oci_team_state(&team->team) == OCI_TEAM_REFUSED) {
			oci_count_back(call->collective, "the ranks could not form a team");
			return OC_HAND_BACK;
		}
	}
	return team->team.error;
}

int oci_call_enter(struct oc_team *team, const struct oc_call *call)
{
	return check(team, call) ?: await(team, call);
}

/* Does the choice leave this call, as the front end has it, to the MPI? */
static bool left_to_mpi(struct oc_team *team, const struct oc_call *call)
{
	struct oc_call room;

	return choose(team, oci_call_inside(team, call, &room), OCI_BLOCKING).algorithm ==
	       OCI_CHOICE_MPI;
}

int oc_team_serves(struct oc_team *team, const struct oc_call *call)
{
	return oci_team_state(&team->team) == OCI_TEAM_READY && !left_to_mpi(team, call);
}

int oc_team_abandon(struct oc_team *team, const struct oc_call *call, int error)
{
	int result = await(team, call);

	if (result)
		return result;
	if (left_to_mpi(team, call)) {
		oci_count_left(call->collective);
		return OC_HAND_BACK;
	}
	return oci_team_fail(&team->team, error, -1,
			     "rank %u could not take part in %s of %zu bytes (%s); this "
			     "communicator cannot be used any more",
			     oci_team_name(&team->team, team->team.rank),
			     oci_collective_name(call->collective), call->bytes, strerror(-error));
}
