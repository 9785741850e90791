/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary heap of ranks; equal times go by rank, so that runs are alike everywhere. */
#include "lab/virtual/virtual_world.h"

static bool before(const struct oci_virtual_world *w, uint32_t a, uint32_t b)
{
	if (w->event_s[a] != w->event_s[b])
		return w->event_s[a] < w->event_s[b];
	return a < b;
}

static void put(struct oci_virtual_world *w, uint32_t at, uint32_t rank)
{
	w->heap[at] = rank;
	w->heap_at[rank] = at;
}

static void rise(struct oci_virtual_world *w, uint32_t at)
{
	uint32_t rank = w->heap[at];

	while (at && before(w, rank, w->heap[(at - 1) / 2])) {
		put(w, at, w->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(w, at, rank);
}

static void sink(struct oci_virtual_world *w, uint32_t at)
{
	uint32_t rank = w->heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < w->heap_count && before(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (child >= w->heap_count || !before(w, w->heap[child], rank))
			break;
		put(w, at, w->heap[child]);
		at = child;
	}
	put(w, at, rank);
}

void oci_queue_set(struct oci_virtual_world *w, uint32_t rank, double at_s)
{
	w->event_s[rank] = at_s;
	if (w->heap_at[rank] == OCI_NOBODY)
		put(w, w->heap_count++, rank);
	rise(w, w->heap_at[rank]);
	sink(w, w->heap_at[rank]);
}

bool oci_queue_pop(struct oci_virtual_world *w, uint32_t *rank, double *at_s)
{
	if (!w->heap_count)
		return false;
	*rank = w->heap[0];
	*at_s = w->event_s[*rank];
	w->heap_at[*rank] = OCI_NOBODY;
	if (--w->heap_count) {
		put(w, 0, w->heap[w->heap_count]);
		sink(w, 0);
	}
	return true;
}
