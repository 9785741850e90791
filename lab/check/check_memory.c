/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker's memory: ranges to bytes, bounds, and the order of accesses, by clocks. clock[q] of
 * rank r is the epoch of q up to which r knows what q did; r's own epoch advances with every
 * release.
 */
#include "lab/check/check_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void oci_memory_init(struct oci_memory *r, const char *name, uint32_t owner, uint64_t garbage)
{
	*r = (struct oci_memory){ .name = name, .owner = owner, .garbage = garbage };
}

void oci_memory_fini(struct oci_memory *r)
{
	free(r->cells);
	free(r->log);
}

void oci_memory_clear(struct oci_memory *r, uint64_t garbage)
{
	oci_memory_garbage(r, garbage);
	r->logged = 0;
}

void oci_memory_garbage(struct oci_memory *r, uint64_t garbage)
{
	r->garbage = oci_symbol_mix(garbage, 0);
	r->room = 0;
}

/* The sanitizers would look at each of two halves of each cell: there is room for all of them. */
__attribute__((no_sanitize("address", "undefined"))) static void cells_garbage(
	struct oci_symbol *cells, size_t count, uint64_t garbage)
{
	for (size_t i = 0; i < count; i++)
		cells[i] = (struct oci_symbol){ garbage + i, garbage + i };
}

/* Large regions (a slot) are rarely used to the end: cells come with the first access. */
static int region_grow(struct oci_memory *r, size_t room)
{
	if (room > r->capacity) {
		size_t capacity = r->capacity * 2 > room ? r->capacity * 2 : room;
		struct oci_symbol *cells = reallocarray(r->cells, capacity, sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		r->cells = cells;
		r->capacity = capacity;
	}
	if (r->room < room) {
		cells_garbage(r->cells + r->room, room - r->room, oci_memory_left(r, r->room));
		r->room = room;
	}
	return 0;
}

static struct oci_view whole(const struct oci_memory *r)
{
	return (struct oci_view){ .region = (struct oci_memory *)r, .bytes = r->limit };
}

/* TEMP and ACC are reached by their owner alone, the others by whoever has the handle. */
static struct oci_view private_view(const struct oci_actor *a, const struct oci_memory *r)
{
	return (struct oci_view){ .region = (struct oci_memory *)r,
				  .bytes = a->params.segment_bytes,
				  .no_offset = true };
}

static struct oci_view view_of(const struct oci_world *w, const struct oci_actor *a, uint32_t owner,
			       uint8_t buf)
{
	const struct oci_place *place = oci_world_place(w, a->call, owner);
	const struct oci_view none = { 0 };

	switch (buf) {
	case OCI_BUF_SEND:
		return place->send;
	case OCI_BUF_RECV:
		return place->recv;
	case OCI_BUF_SLOT:
		return whole(&place->slot);
	case OCI_BUF_INLINE:
		return whole(&place->line);
	case OCI_BUF_WORK:
		return whole(&place->work);
	case OCI_BUF_TEMP:
		return owner == a->rank ? private_view(a, &a->temp) : none;
	case OCI_BUF_ACC:
		if (owner != a->rank)
			return none;
		if (place->recv.region && place->recv.region != place->send.region)
			return place->recv;
		return private_view(a, &a->acc);
	default:
		return none;
	}
}

int oci_span_resolve(struct oci_world *w, const struct oci_actor *a, uint32_t owner,
		     const struct oci_range *range, struct oci_span *span)
{
	struct oci_view view = view_of(w, a, owner, range->buf);
	size_t offset, length;

	oci_range_eval(range, &a->params, a->segment, &offset, &length);
	if (view.no_offset)
		offset = 0;
	if (length && !view.region)
		return oci_world_fail(w, a, "rank %u has no %s", owner, oci_buf_name(range->buf));
	if (length && (offset > view.bytes || length > view.bytes - offset))
		return oci_world_fail(
			w, a, "out of bounds: bytes [%zu, %zu) of %s of rank %u, which has %zu",
			offset, offset + length, oci_buf_name(range->buf), owner, view.bytes);
	span->region = view.region;
	span->from = length ? view.base + offset : 0;
	span->bytes = length;
	return 0;
}

static void access_text(char *text, size_t n, const struct oci_access *e)
{
	const char *what = e->write ? "write" : "read";

	if (e->op == OCI_OP_BEGIN)
		snprintf(text, n, "write by the user of rank %u before call %u", e->rank, e->call);
	else if (e->op == OCI_OP_AFTER)
		snprintf(text, n, "write by the user of rank %u after call %u", e->rank, e->call);
	else
		snprintf(text, n, "%s by rank %u in call %u op %u", what, e->rank, e->call, e->op);
}

static int fail_race(struct oci_world *w, const struct oci_actor *a, const struct oci_span *span,
		     bool write, const struct oci_access *other)
{
	char text[96];

	access_text(text, sizeof(text), other);
	return oci_world_fail(
		w, a, "race: %s of bytes [%zu, %zu) of %s of rank %u is not ordered with the %s",
		write ? "write" : "read", span->from, span->from + span->bytes, span->region->name,
		span->region->owner, text);
}

static int log_append(struct oci_memory *r, const struct oci_access *access)
{
	if (r->logged == r->log_room) {
		uint32_t room = r->log_room ? r->log_room * 2 : 8;
		struct oci_access *log = reallocarray(r->log, room, sizeof(*log));

		if (!log)
			return -ENOMEM;
		r->log = log;
		r->log_room = room;
	}
	r->log[r->logged++] = *access;
	return 0;
}

/*
 * What is ordered after `fresh` is ordered after an old access that `fresh` is ordered after; so
 * an old one may be forgotten when every access that conflicts with it conflicts with `fresh`.
 */
static bool replaces(const struct oci_access *fresh, const struct oci_access *old)
{
	return fresh->begin <= old->begin && old->end <= fresh->end &&
	       fresh->helped == old->helped &&
	       (fresh->write || (!old->write && old->rank == fresh->rank));
}

/* Segment after segment by one rank between two flags is one access. */
static bool extends(const struct oci_access *fresh, struct oci_access *old)
{
	if (old->end != fresh->begin || old->rank != fresh->rank || old->epoch != fresh->epoch ||
	    old->write != fresh->write || old->helped != fresh->helped || old->op != fresh->op ||
	    old->call != fresh->call)
		return false;
	old->end = fresh->end;
	return true;
}

int oci_span_access(struct oci_world *w, const struct oci_actor *a, const struct oci_span *span,
		    bool write, uint32_t helped)
{
	struct oci_memory *r = span->region;
	struct oci_access fresh = {
		.begin = (uint32_t)span->from,
		.end = (uint32_t)(span->from + span->bytes),
		.rank = a->rank,
		.epoch = a->clock[a->rank],
		.call = a->call,
		.op = a->pc,
		.helped = helped,
		.write = write,
	};
	struct oci_access *log = r->log;
	uint32_t kept = 0, logged = r->logged;
	bool extended = false;

	if (!span->bytes)
		return 0;
	if (region_grow(r, span->from + span->bytes))
		return -ENOMEM;
	if (r->is_private)
		return 0;
	for (uint32_t i = 0; i < logged; i++) {
		struct oci_access *e = &log[i];
		bool apart = e->end < fresh.begin || fresh.end <= e->begin;

		if (!apart && e->begin < fresh.end && fresh.begin < e->end && e->rank != a->rank &&
		    (write || e->write) && a->clock[e->rank] < e->epoch)
			return fail_race(w, a, span, write, e);
		if (!apart && replaces(&fresh, e))
			continue;
		if (kept != i)
			log[kept] = *e;
		if (!apart)
			extended |= extends(&fresh, &log[kept]);
		kept++;
	}
	r->logged = kept;
	return extended ? 0 : log_append(r, &fresh);
}

void oci_span_drop_helped(const struct oci_span *span, uint32_t rank)
{
	struct oci_memory *r = span->region;
	uint32_t kept = 0;

	if (!r)
		return;
	for (uint32_t i = 0; i < r->logged; i++)
		if (r->log[i].helped != rank + 1)
			r->log[kept++] = r->log[i];
	r->logged = kept;
}

void oci_span_copy(const struct oci_span *target, const struct oci_span *source)
{
	if (source->bytes)
		memcpy(target->region->cells + target->from, source->region->cells + source->from,
		       source->bytes * sizeof(struct oci_symbol));
}

void oci_span_garbage(const struct oci_span *span, uint64_t garbage)
{
	for (size_t i = span->from; i < span->from + span->bytes; i++) {
		uint64_t value = oci_symbol_mix(garbage, i);

		span->region->cells[i] = (struct oci_symbol){ value, value };
	}
}

bool oci_span_overlap(const struct oci_span *a, const struct oci_span *b)
{
	return a->bytes && b->bytes && a->region == b->region && a->from < b->from + b->bytes &&
	       b->from < a->from + a->bytes;
}

int oci_clock_save(struct oci_world *w, struct oci_actor *a, uint32_t *index)
{
	uint32_t p = w->check->size;

	if (w->clocks_used == w->clocks_room) {
		size_t room = w->clocks_room ? w->clocks_room * 2 : 64;
		uint32_t *clocks = reallocarray(w->clocks, room, p * sizeof(*clocks));

		if (!clocks)
			return -ENOMEM;
		w->clocks = clocks;
		w->clocks_room = room;
	}
	memcpy(w->clocks + w->clocks_used * p, a->clock, p * sizeof(*a->clock));
	*index = (uint32_t)w->clocks_used++;
	a->clock[a->rank]++;
	return 0;
}

void oci_clock_acquire(struct oci_world *w, struct oci_actor *a, uint32_t index)
{
	uint32_t p = w->check->size, *mine = a->clock;
	const uint32_t *clock = w->clocks + (size_t)index * p;

	for (uint32_t q = 0; q < p; q++) {
		uint32_t known = clock[q];

		if (mine[q] < known)
			mine[q] = known;
	}
}
