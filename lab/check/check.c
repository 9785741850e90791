/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's entry, and its schedules: who makes the next step; every interleaving of few ranks.
 */
#include "lab/check/check.h"
#include "lab/check/check_world.h"
#include "lab/check/op_text.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_EXHAUSTIVE 4

static const char *call_fault(const struct oci_check *c, const struct oci_check_call *call)
{
	size_t end = 0;

	if ((unsigned int)call->collective >= OC_COLLECTIVES)
		return "no such collective";
	if (call->root >= c->size || (call->root && !oci_is_rooted(call->collective)))
		return "no such root";
	if (!call->unit || call->bytes % call->unit ||
	    (!oci_is_reduction(call->collective) && call->unit != 1))
		return "bytes are not whole units, or this collective has none";
	if ((call->blocks != NULL) != oci_has_parts(call->collective))
		return "a Reduce_scatter, and only it, has a table of blocks";
	for (uint32_t r = 0; call->blocks && r < c->size; r++) {
		if (call->blocks[r].offset != end || call->blocks[r].bytes % call->unit)
			return "the blocks are not dense, or not whole units";
		end += call->blocks[r].bytes;
	}
	if (call->blocks && end != call->bytes)
		return "the blocks are not the bytes of the input";
	if (call->bytes > UINT32_MAX / c->size)
		return "too many bytes";
	if (oci_is_v(call->collective) != (call->from_to != NULL) || (call->from_to && call->bytes))
		return "the v-variants, and only they, have a size for each pair";
	if (call->in_place &&
	    (!oci_has_in_place(call->collective) || oci_is_apart(call->collective)))
		return "this collective has no form in place";
	return NULL;
}

static int check_description(const struct oci_check *c, char *why, size_t n)
{
	if (!c->size || !c->lanes || !c->plan || c->favoured >= c->size) {
		snprintf(why, n, "no ranks, lanes or plans, or the favoured one is no rank");
		return -EINVAL;
	}
	if (c->schedule == OCI_CHECK_EXHAUSTIVE && c->size > MAX_EXHAUSTIVE) {
		snprintf(why, n, "%u ranks are too many for an exhaustive search", c->size);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < c->count; i++) {
		const char *fault = call_fault(c, &c->calls[i]);

		if (fault) {
			snprintf(why, n, "call %u: %s", i, fault);
			return -EINVAL;
		}
	}
	return 0;
}

static uint64_t next_random(struct oci_world *w)
{
	w->random = oci_symbol_mix(w->random, 0x5eed);
	return w->random >> 8;
}

static int deadlock(struct oci_world *w)
{
	size_t used = (size_t)snprintf(w->why, w->why_bytes, "deadlock:");

	for (uint32_t r = 0; r < w->check->size && used < w->why_bytes; r++) {
		const struct oci_actor *a = &w->actors[r];
		char op[OCI_OP_TEXT] = "begin", missing[96];

		if (a->call == w->check->count)
			continue;
		if (a->running)
			oci_op_text(op, sizeof(op), oci_actor_op(a));
		oci_actor_missing(w, a, missing, sizeof(missing));
		used += (size_t)snprintf(w->why + used, w->why_bytes - used,
					 " rank %u (v%u) in call %u op %u %s waits for %s;", r,
					 a->v, a->call, a->running ? a->pc : 0, op, missing);
	}
	return -EPROTO;
}

static int step(struct oci_world *w, uint32_t rank)
{
	return oci_actor_step(w, &w->actors[rank], (uint32_t)next_random(w));
}

/* The first rank from `rank` on that can step, but for `skipped`, steps. */
static int step_one_from(struct oci_world *w, uint32_t rank, uint32_t skipped, uint32_t *stepped)
{
	uint32_t p = w->check->size;

	for (uint32_t i = 0; i < p; i++) {
		uint32_t r = (rank + i) % p;
		int rc = r == skipped ? OCI_BLOCKED : step(w, r);

		if (rc != OCI_BLOCKED) {
			*stepped = r;
			return rc;
		}
	}
	return OCI_BLOCKED;
}

/* One step by whom the schedule says. *last: who stepped last. */
static int schedule(struct oci_world *w, uint32_t *last)
{
	const struct oci_check *c = w->check;
	uint32_t next = (*last + 1) % c->size, favoured = c->favoured;
	uint64_t random;
	int rc;

	switch (c->schedule) {
	case OCI_CHECK_RANDOM:
		/* Half of the time the same rank goes on, so that ranks drift far apart. */
		random = next_random(w);
		next = random & 1 ? *last : (uint32_t)((random >> 1) % c->size);
		return step_one_from(w, next, c->size, last);
	case OCI_CHECK_FIRST:
		rc = step(w, favoured);
		return rc == OCI_BLOCKED ? step_one_from(w, next, favoured, last) : rc;
	case OCI_CHECK_LAST:
		rc = step_one_from(w, next, favoured, last);
		return rc == OCI_BLOCKED ? step(w, favoured) : rc;
	default:
		return step_one_from(w, next, c->size, last);
	}
}

static int run(struct oci_world *w)
{
	uint32_t last = w->check->size - 1;
	int rc = 0;

	while (!rc && w->finished < w->check->size)
		rc = schedule(w, &last);
	return rc == OCI_BLOCKED ? deadlock(w) : rc;
}

/*
 * The exhaustive search: depth first over every choice of which rank makes the next step, and for
 * HELP of whom it helps. A state is where all ranks stand and how far all claims are; it is
 * expanded once. States are told apart by a 64-bit hash: two of n states are mistaken for one with
 * probability n^2 / 2^65, for a million states 3e-8.
 *
 * To go back, the search runs the path to a state again from the start: the checker has no undo,
 * paths are short, and only one in two or three steps has to be run again.
 */

#define DEFAULT_STATES 4000000

/* A step of the path, and the choices of the state before it that were tried. */
struct node {
	uint32_t rank, choice; /* the next to try */
	uint32_t taken_rank, taken_choice;
	bool any;
};

struct state {
	uint64_t key; /* 0: free */
	uint64_t memory;
};

struct search {
	struct node *path;
	size_t depth, path_room;
	struct state *table;
	size_t states, table_room; /* room is a power of two */
};

static uint64_t state_key(const struct oci_world *w)
{
	uint32_t p = w->check->size;
	uint64_t key = 1;

	for (uint32_t r = 0; r < p; r++) {
		const struct oci_actor *a = &w->actors[r];

		key = oci_symbol_mix(key, (uint64_t)a->call << 1 | a->running);
		if (a->running)
			key = oci_symbol_mix(key, a->segment << 32 | a->pc);
	}
	for (size_t i = 0; i < (size_t)p * w->check->lanes; i++) {
		const struct oci_claim *claim = &w->places[i].claim;

		key = oci_symbol_mix(key, claim->front * 2 + claim->done);
		key = oci_symbol_mix(key, claim->back);
	}
	return key ? key : 1;
}

static struct state *find(const struct search *s, uint64_t key)
{
	size_t i = key & (s->table_room - 1);

	while (s->table[i].key && s->table[i].key != key)
		i = (i + 1) & (s->table_room - 1);
	return &s->table[i];
}

static int table_grow(struct search *s)
{
	size_t room = s->table_room;
	struct state *old = s->table, *table;

	if (s->states * 2 < room)
		return 0;
	table = calloc(room ? room * 2 : 1024, sizeof(*table));
	if (!table)
		return -ENOMEM;
	s->table = table;
	s->table_room = room ? room * 2 : 1024;
	for (size_t i = 0; i < room; i++)
		if (old[i].key)
			*find(s, old[i].key) = old[i];
	free(old);
	return 0;
}

/* 1 when the state is new, 0 when it was reached before. */
static int visit(struct oci_world *w, struct search *s)
{
	uint64_t most = w->check->max_states ? w->check->max_states : DEFAULT_STATES;
	uint64_t memory = oci_world_digest(w);
	struct state *state;

	if (table_grow(s))
		return -ENOMEM;
	state = find(s, state_key(w));
	if (state->key && state->memory != memory)
		return oci_world_fail(w, NULL, "the bytes depend on the interleaving");
	if (state->key)
		return 0;
	if (s->states == most) {
		oci_world_fail(w, NULL, "more than %llu states", (unsigned long long)most);
		return -E2BIG;
	}
	*state = (struct state){ .key = state_key(w), .memory = memory };
	s->states++;
	return 1;
}

static int push(struct search *s)
{
	if (s->depth == s->path_room) {
		size_t room = s->path_room ? s->path_room * 2 : 256;
		struct node *path = reallocarray(s->path, room, sizeof(*path));

		if (!path)
			return -ENOMEM;
		s->path = path;
		s->path_room = room;
	}
	s->path[s->depth++] = (struct node){ 0 };
	return 0;
}

/* Back to the state of the last node. A step that succeeded once does so again. */
static int replay(struct oci_world *w, const struct search *s)
{
	int rc = 0;

	oci_world_reset(w);
	for (size_t i = 0; !rc && i + 1 < s->depth; i++)
		rc = oci_actor_step(w, &w->actors[s->path[i].taken_rank], s->path[i].taken_choice);
	return rc;
}

/* Tries the next choice of the last node: 1 a new state, 0 none or an old one. *moved: a step was
 * made, so the world is no longer in that node's state. */
static int try_next(struct oci_world *w, struct search *s, bool *moved)
{
	struct node *node = &s->path[s->depth - 1];
	struct oci_actor *a = &w->actors[node->rank];
	int rc;

	node->taken_rank = node->rank;
	node->taken_choice = node->choice;
	if (++node->choice >= oci_actor_choices(w, a)) {
		node->choice = 0;
		node->rank++;
	}
	rc = oci_actor_step(w, a, node->taken_choice);
	if (rc)
		return rc == OCI_BLOCKED ? 0 : rc;
	node->any = true;
	*moved = true;
	return visit(w, s);
}

static int explore(struct oci_world *w)
{
	struct search s = { 0 };
	uint64_t digest = 0;
	bool moved = false;
	int rc = push(&s);

	if (!rc)
		rc = visit(w, &s);
	while (rc >= 0 && s.depth) {
		struct node *node = &s.path[s.depth - 1];

		if (moved && node->rank < w->check->size)
			rc = replay(w, &s);
		if (rc < 0)
			break;
		if (node->rank == w->check->size) {
			if (!node->any) {
				if (w->finished < w->check->size)
					rc = deadlock(w);
				digest = w->result.digest;
			}
			s.depth--;
			moved = true;
			continue;
		}
		moved = false;
		rc = try_next(w, &s, &moved);
		if (rc > 0) {
			rc = push(&s);
			moved = false;
		}
	}
	w->result.states = s.states;
	w->result.digest = digest;
	free(s.path);
	free(s.table);
	return rc < 0 ? rc : 0;
}

int oci_check_sequence(const struct oci_check *c, struct oci_check_result *result, char *why,
		       size_t n)
{
	int rc = check_description(c, why, n);
	struct oci_world *w;

	if (result)
		*result = (struct oci_check_result){ 0 };
	if (rc || !c->count)
		return rc;
	w = oci_world_begin(c, why, n);
	if (!w)
		return -ENOMEM;
	rc = c->schedule == OCI_CHECK_EXHAUSTIVE ? explore(w) : run(w);
	if (result)
		*result = w->result;
	oci_world_end(w);
	return rc;
}
