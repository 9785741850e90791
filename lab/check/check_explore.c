/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exhaustive search: depth first over every choice of which rank makes the next step, and for
 * HELP of whom it helps. A state is where all ranks stand and how far all claims are; it is
 * expanded once. States are told apart by a 64-bit hash: two of n states are mistaken for one with
 * probability n^2 / 2^65, for a million states 3e-8.
 *
 * To go back, the search runs the path to a state again from the start: the checker has no undo,
 * paths are short, and only one in two or three steps has to be run again.
 */
#include "lab/check/check_world.h"

#include <errno.h>
#include <stdlib.h>

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

int oci_world_explore(struct oci_world *w)
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
					rc = oci_world_deadlock(w);
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
