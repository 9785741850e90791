/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's state as a whole: made, set back, hashed, freed; and its sentences. */
#include "lab/check/check_world.h"
#include "lab/check/op_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool place_init(struct oci_place *place, uint32_t rank, uint32_t size)
{
	static const char *const names[OCI_PLACE_REGIONS] = { "SEND", "RECV", "SLOT", "INLINE",
							      "WORK" };

	for (unsigned int i = 0; i < OCI_PLACE_REGIONS; i++)
		oci_memory_init(&place->region[i], names[i], rank, 0);
	place->line.limit = OCI_INLINE_BYTES;
	place->send_blocks = calloc(size, sizeof(*place->send_blocks));
	place->recv_blocks = calloc(size, sizeof(*place->recv_blocks));
	place->cells = calloc(size, sizeof(*place->cells));
	return place->send_blocks && place->recv_blocks && place->cells;
}

static void place_fini(struct oci_place *place)
{
	for (unsigned int i = 0; i < OCI_PLACE_REGIONS; i++)
		oci_memory_fini(&place->region[i]);
	free(place->send_blocks);
	free(place->recv_blocks);
	free(place->cells);
	for (unsigned int i = 0; i < OCI_FLAGS; i++)
		free(place->flags[i].list);
}

static bool actor_init(struct oci_actor *a, uint32_t rank, uint32_t size)
{
	a->rank = rank;
	a->clock = calloc(size, sizeof(*a->clock));
	a->seen = calloc(size, sizeof(*a->seen));
	oci_memory_init(&a->temp, "TEMP", rank, 0);
	oci_memory_init(&a->acc, "ACC", rank, 0);
	a->temp.is_private = true;
	a->acc.is_private = true;
	return a->clock && a->seen;
}

static void actor_fini(struct oci_actor *a)
{
	free(a->clock);
	free(a->seen);
	oci_memory_fini(&a->temp);
	oci_memory_fini(&a->acc);
}

static struct oci_world *world_create(uint32_t size, uint32_t lanes)
{
	struct oci_world *w = calloc(1, sizeof(*w));
	size_t places = (size_t)size * lanes;
	bool ok;

	if (!w)
		return NULL;
	w->size = size;
	w->lanes = lanes;
	w->actors = calloc(size, sizeof(*w->actors));
	w->places = calloc(places, sizeof(*w->places));
	w->expects = calloc(lanes, sizeof(*w->expects));
	ok = w->actors && w->places && w->expects;
	for (uint32_t r = 0; ok && r < size; r++)
		ok = actor_init(&w->actors[r], r, size);
	for (size_t i = 0; ok && i < places; i++)
		ok = place_init(&w->places[i], (uint32_t)(i % size), size);
	if (!ok) {
		oci_check_forget(w);
		return NULL;
	}
	return w;
}

void oci_check_forget(struct oci_world *w)
{
	if (!w)
		return;
	for (uint32_t r = 0; w->actors && r < w->size; r++)
		actor_fini(&w->actors[r]);
	for (size_t i = 0; w->places && i < (size_t)w->size * w->lanes; i++)
		place_fini(&w->places[i]);
	for (uint32_t i = 0; w->expects && i < w->lanes; i++)
		free(w->expects[i].fold);
	free(w->actors);
	free(w->places);
	free(w->expects);
	free(w->clocks);
	free(w);
}

struct oci_world *oci_world_begin(const struct oci_check *check, char *why, size_t n)
{
	struct oci_world *w = check->kept ? *check->kept : NULL;

	if (w && (w->size != check->size || w->lanes < check->lanes)) {
		oci_check_forget(w);
		*check->kept = w = NULL;
	}
	if (!w)
		w = world_create(check->size, check->lanes);
	if (!w)
		return NULL;
	w->check = check;
	w->result = (struct oci_check_result){ 0 };
	w->random = check->seed;
	w->why = why;
	w->why_bytes = n;
	oci_world_reset(w);
	return w;
}

void oci_world_end(struct oci_world *w)
{
	if (w->check->kept)
		*w->check->kept = w;
	else
		oci_check_forget(w);
}

void oci_world_reset(struct oci_world *w)
{
	uint32_t p = w->check->size;
	size_t places = (size_t)p * w->check->lanes;

	for (uint32_t r = 0; r < p; r++) {
		struct oci_actor *a = &w->actors[r];

		a->call = 0;
		a->running = false;
		a->cursor = 0;
		memset(a->clock, 0, p * sizeof(*a->clock));
		a->clock[r] = 1; /* so that what r did before its first release is unknown to all */
		oci_memory_clear(&a->temp, r);
		oci_memory_clear(&a->acc, r);
	}
	for (size_t i = 0; i < places; i++) {
		struct oci_place *place = &w->places[i];

		for (unsigned int j = 0; j < OCI_PLACE_REGIONS; j++)
			oci_memory_clear(&place->region[j], oci_symbol_mix(i, j));
		place->slot.limit = place->work.limit = 0;
		for (unsigned int f = 0; f < OCI_FLAGS; f++)
			place->flags[f].count = 0;
		place->claim = (struct oci_claim){ 0 };
		place->cell_count = 0;
	}
	for (uint32_t i = 0; i < w->check->lanes; i++)
		w->expects[i].call = 0;
	w->clocks_used = 0;
	w->finished = 0;
	w->result.digest = 0;
}

/* Taken of every state. The sanitizers would look at each half of each cell, which all lie in
 * `cells`; and no cell waits for the one before it. */
__attribute__((no_sanitize("address", "undefined"))) static uint64_t cells_digest(
	const struct oci_symbol *cells, size_t count)
{
	uint64_t digest = 0;

	for (size_t i = 0; i < count; i++)
		digest += oci_symbol_mix(cells[i].value + i, cells[i].tree);
	return digest;
}

static uint64_t region_digest(const struct oci_memory *r, uint64_t digest)
{
	digest = oci_symbol_mix(digest, cells_digest(r->cells, r->room));
	return oci_symbol_mix(oci_symbol_mix(digest, r->garbage), r->room);
}

uint64_t oci_world_digest(const struct oci_world *w)
{
	size_t places = (size_t)w->check->size * w->check->lanes;
	uint64_t digest = 0;

	for (uint32_t r = 0; r < w->check->size; r++) {
		digest = region_digest(&w->actors[r].temp, digest);
		digest = region_digest(&w->actors[r].acc, digest);
	}
	for (size_t i = 0; i < places * OCI_PLACE_REGIONS; i++)
		digest = region_digest(
			&w->places[i / OCI_PLACE_REGIONS].region[i % OCI_PLACE_REGIONS], digest);
	return digest;
}

/* "call 3 (bcast, 48 bytes, root 1), rank 2 (v1), op 4 PULL ...: " */
static int prefix(const struct oci_world *w, const struct oci_actor *a)
{
	const struct oci_check_call *c = oci_world_call(w, a->call);
	char where[OCI_OP_TEXT + 16], text[OCI_OP_TEXT];

	if (a->running && a->pc < a->plan->count)
		snprintf(where, sizeof(where), "op %u %s", a->pc,
			 oci_op_text(text, sizeof(text), oci_actor_op(a)));
	else
		snprintf(where, sizeof(where), "%s", a->running ? "after END" : "before op 0");
	return snprintf(w->why, w->why_bytes,
			"call %u (%s, %zu bytes, root %u%s), rank %u (v%u), %s: ", a->call,
			oci_collective_name(c->collective), c->bytes, c->root,
			c->in_place ? ", in place" : "", a->rank, a->v, where);
}

int oci_world_fail(struct oci_world *w, const struct oci_actor *a, const char *format, ...)
{
	int used = a ? prefix(w, a) : 0;
	va_list arguments;

	if (used >= 0 && (size_t)used < w->why_bytes) {
		va_start(arguments, format);
		vsnprintf(w->why + used, w->why_bytes - (size_t)used, format, arguments);
		va_end(arguments);
	}
	return -EPROTO;
}
