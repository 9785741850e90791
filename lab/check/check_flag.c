/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker's clocks and flags. clock[q] of rank r is the epoch of q up to which r knows what q
 * did; r's own epoch advances with every release. A flag keeps each of its values with the clock
 * of that moment, so that a WAIT can acquire the least it is entitled to (see check.h).
 */
#include "lab/check/check_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* As executors do it (DESIGN.md 5); the first call is 1, so that 0 is below every value. */
uint64_t oci_flag_value(uint32_t call, uint64_t step)
{
	return (uint64_t)(call + 1) * OCI_STEPS + step;
}

static uint64_t step_of(const struct oci_actor *a, const struct oci_op *op)
{
	return op->step + op->step_loop * a->segment;
}

static enum oci_flag flag_of(const struct oci_op *op)
{
	return op->code == OCI_OP_POST || op->code == OCI_OP_WAIT_POST ? OCI_FLAG_POST :
									 OCI_FLAG_ACK;
}

static int events_append(struct oci_events *events, const struct oci_event *event)
{
	if (events->count == events->room) {
		uint32_t room = events->room ? events->room * 2 : 8;
		struct oci_event *list = reallocarray(events->list, room, sizeof(*list));

		if (!list)
			return -ENOMEM;
		events->list = list;
		events->room = room;
	}
	events->list[events->count++] = *event;
	return 0;
}

int oci_flag_raise(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	struct oci_place *place = oci_world_place(w, a->call, a->rank);
	struct oci_events *events = &place->flags[flag_of(op)];
	const struct oci_event *last = events->count ? &events->list[events->count - 1] : NULL;
	uint64_t step = step_of(a, op);
	struct oci_event event = { .value = oci_flag_value(a->call, step), .seen = OCI_SEEN_POST };

	if (!step || step >= OCI_STEPS)
		return oci_world_fail(w, a, "step %llu is not one of an operation",
				      (unsigned long long)step);
	if (last && last->value >= event.value)
		return oci_world_fail(w, a, "the flag does not grow: it stands at step %llu",
				      (unsigned long long)(last->value % OCI_STEPS));
	if (last && last->value > oci_flag_value(a->call, 0))
		event.seen |= last->seen;
	if (op->address)
		event.seen |= OCI_SEEN_ADDRESS;
	if (op->slot)
		event.seen |= OCI_SEEN_SLOT;
	if (oci_clock_save(w, a, &event.clock))
		return -ENOMEM;
	return events_append(events, &event);
}

const struct oci_event *oci_flag_reached(const struct oci_world *w, const struct oci_actor *a,
					 enum oci_flag flag, uint32_t rank, uint64_t value)
{
	const struct oci_events *events = &oci_world_place(w, a->call, rank)->flags[flag];
	uint32_t low = 0, high = events->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (events->list[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < events->count ? &events->list[low] : NULL;
}

int oci_flag_wait(struct oci_world *w, struct oci_actor *a, const struct oci_op *op)
{
	uint64_t value = oci_flag_value(a->call, step_of(a, op));
	enum oci_flag flag = flag_of(op);

	for (; a->cursor < op->peers; a->cursor++) {
		uint32_t rank = oci_actor_peer(w, a, op->peer + a->cursor);

		if (oci_wait_counts(w, a, op, rank) && !oci_flag_reached(w, a, flag, rank, value))
			return OCI_BLOCKED;
	}
	a->cursor = 0;
	for (uint32_t i = 0; i < op->peers; i++) {
		uint32_t rank = oci_actor_peer(w, a, op->peer + i);
		const struct oci_event *event;

		if (!oci_wait_counts(w, a, op, rank))
			continue;
		event = oci_flag_reached(w, a, flag, rank, value);
		oci_clock_acquire(w, a, event->clock);
		if (flag == OCI_FLAG_POST)
			a->seen[rank] |= event->seen;
	}
	return 0;
}

void oci_flag_missing(const struct oci_world *w, const struct oci_actor *a, char *text, size_t n)
{
	const struct oci_op *op = oci_actor_op(a);
	uint32_t rank = oci_actor_peer(w, a, op->peer + a->cursor);
	const struct oci_events *events = &oci_world_place(w, a->call, rank)->flags[flag_of(op)];
	const struct oci_event *last = events->count ? &events->list[events->count - 1] : NULL;
	unsigned long long step = 0;

	if (last && last->value > oci_flag_value(a->call, 0))
		step = last->value % OCI_STEPS;
	snprintf(text, n, "step %llu of rank %u's %s flag, which stands at %llu",
		 (unsigned long long)step_of(a, op), rank,
		 flag_of(op) == OCI_FLAG_POST ? "POST" : "ACK", step);
}
