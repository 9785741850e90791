/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags: every value with the time of its raise. */
#include "lab/virtual/virtual_world.h"

#include <stdlib.h>

double oci_virtual_latency(const struct oci_virtual_world *w, uint32_t a, uint32_t b)
{
	return oci_model_flag_s(w->model, oci_model_distance(w->model, oci_virtual_core(w, a),
							     oci_virtual_core(w, b)));
}

static double latency_more(const struct oci_virtual_world *w, uint32_t a, uint32_t b)
{
	return oci_model_flag_more_s(w->model, oci_model_distance(w->model, oci_virtual_core(w, a),
								  oci_virtual_core(w, b)));
}

const struct oci_virtual_event *oci_virtual_raised(const struct oci_virtual_world *w, uint32_t rank,
						   enum oci_virtual_flag flag, uint32_t value)
{
	const struct oci_virtual_events *events = &w->ranks[rank].flags[flag];
	uint32_t low = 0, high = events->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (events->list[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low < events->count ? &events->list[low] : NULL;
}

static void wake(struct oci_virtual_world *w, struct oci_virtual_events *events)
{
	uint32_t waiter = events->waiter;

	events->waiter = OCI_NOBODY;
	while (waiter != OCI_NOBODY) {
		uint32_t next = w->ranks[waiter].next_waiter;

		/* It looks again, when this moment's events are through; its clock says when. */
		w->ranks[waiter].state = OCI_VIRTUAL_READY;
		oci_queue_set(w, waiter, w->now_s);
		waiter = next;
	}
}

void oci_virtual_raise(struct oci_virtual_world *w, uint32_t rank, enum oci_virtual_flag flag,
		       uint32_t value)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_events *events = &r->flags[flag];

	if (events->count == events->room) {
		uint32_t room = events->room ? 2 * events->room : 4;
		struct oci_virtual_event *list = realloc(events->list, room * sizeof(*list));

		if (!list) {
			w->failed = true;
			return;
		}
		events->list = list;
		events->room = room;
	}
	events->list[events->count++] =
		(struct oci_virtual_event){ .value = value, .at_s = r->now_s };
	wake(w, events);
	if (flag != OCI_VIRTUAL_POST || !w->helpers)
		return;
	for (uint32_t helper = 0; helper < w->size; helper++) {
		if (w->ranks[helper].state != OCI_VIRTUAL_HELPS)
			continue;
		w->ranks[helper].state = OCI_VIRTUAL_READY;
		w->helpers--;
		oci_queue_set(w, helper, w->now_s);
	}
}

bool oci_virtual_await(struct oci_virtual_world *w, uint32_t rank, uint32_t peer,
		       enum oci_virtual_flag flag, uint32_t value)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_events *events = &w->ranks[peer].flags[flag];
	const struct oci_virtual_event *event = oci_virtual_raised(w, peer, flag, value);
	uint32_t *seen = &w->seen[flag][(size_t)rank * w->size + peer];
	double latency = oci_virtual_latency(w, rank, peer);

	if (!event) {
		if (r->state != OCI_VIRTUAL_WAITS) {
			r->state = OCI_VIRTUAL_WAITS;
			r->next_waiter = events->waiter;
			events->waiter = rank;
		}
		return false;
	}
	if (event - events->list < (ptrdiff_t)*seen)
		return true;
	*seen = (uint32_t)(event - events->list) + 1;
	if (event->at_s > r->now_s)
		r->now_s = event->at_s;
	else if (r->row)
		latency = latency_more(w, rank, peer);
	r->now_s += latency;
	r->row = true;
	/* Values that came while this one was on its way came with it. */
	while (*seen < events->count && events->list[*seen].at_s + latency <= r->now_s)
		(*seen)++;
	return true;
}
