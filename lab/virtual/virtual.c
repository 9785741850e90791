/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/virtual/virtual.h"
#include "lab/virtual/virtual_world.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the queue: a binary heap of ranks; equal times go by rank, so that runs are alike everywhere
 * -- */

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

static bool queue_pop(struct oci_virtual_world *w, uint32_t *rank, double *at_s)
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

/* ---- the world and its events ---------------------------------------------------------------- */

/* Equal blocks one after the other; of a Reduce_scatter `bytes` is all of them. */
static struct oc_block *equal_blocks(const struct oci_virtual_call *call, uint8_t collective)
{
	struct oc_block *blocks = calloc(call->size, sizeof(*blocks));
	size_t bytes = call->bytes, at = 0;

	for (uint32_t i = 0; blocks && i < call->size; i++) {
		if (oci_has_parts(collective)) {
			bytes = (call->bytes - at) / call->unit / (call->size - i) * call->unit;
			if (i + 1 == call->size)
				bytes = call->bytes - at;
		}
		blocks[i] = (struct oc_block){ .offset = at, .bytes = bytes };
		at += bytes;
	}
	return blocks;
}

static void rank_init(struct oci_virtual_world *w, uint32_t rank)
{
	const struct oci_virtual_call *call = w->call;
	struct oci_virtual_rank *r = &w->ranks[rank];

	r->v = (rank + call->size - call->root) % call->size;
	r->plan = call->plans[r->v];
	r->params =
		(struct oci_params){ .bytes = oci_is_v(r->plan->key.collective) ? 0 : call->bytes,
				     .root = call->root,
				     .size = call->size,
				     .send_blocks = w->blocks,
				     .recv_blocks = w->blocks };
	oci_params_derive(&r->params, r->plan, call->unit);
	r->now_s = (call->start_s ? call->start_s[rank] : 0) + w->model->call.value;
	r->next_waiter = OCI_NOBODY;
	for (int f = 0; f < OCI_FLAGS; f++)
		r->waiter[f] = OCI_NOBODY;
	w->heap_at[rank] = OCI_NOBODY;
	oci_queue_set(w, rank, r->now_s);
	/* A plan without a POST announces itself when it starts. */
	if (!r->plan->posts)
		oci_virtual_raise(w, rank, OCI_FLAG_POST, 0);
}

static int world_create(struct oci_virtual_world *w, const struct oci_virtual_call *call)
{
	uint32_t p = call->size;

	w->call = call;
	w->model = call->model;
	w->size = p;
	w->domains = 1;
	for (uint32_t r = 0; r < p; r++) {
		uint32_t domain = oci_model_domain(w->model, oci_virtual_core(w, r));

		if (domain >= w->domains)
			w->domains = domain + 1;
	}
	w->gamma = calloc(p + 1, sizeof(*w->gamma));
	for (uint32_t c = 0; w->gamma && c <= p; c++)
		w->gamma[c] = oci_model_gamma(w->model, call->mechanism, c);
	w->ranks = calloc(p, sizeof(*w->ranks));
	w->shared = calloc(p + w->domains, sizeof(*w->shared));
	w->moving = calloc(p, sizeof(*w->moving));
	w->heap = calloc(p, sizeof(*w->heap));
	w->heap_at = calloc(p, sizeof(*w->heap_at));
	w->event_s = calloc(p, sizeof(*w->event_s));
	w->blocks = equal_blocks(call, call->plans[0]->key.collective);
	for (int f = 0; f < OCI_FLAGS; f++)
		w->seen[f] = calloc((size_t)p * p, sizeof(*w->seen[f]));
	if (!w->gamma || !w->ranks || !w->shared || !w->moving || !w->heap || !w->heap_at ||
	    !w->event_s || !w->blocks || !w->seen[0] || !w->seen[1])
		return -ENOMEM;
	for (uint32_t r = 0; r < p; r++)
		rank_init(w, r);
	return 0;
}

static void world_destroy(struct oci_virtual_world *w)
{
	for (uint32_t r = 0; w->ranks && r < w->size; r++)
		for (int f = 0; f < OCI_FLAGS; f++)
			free(w->ranks[r].flags[f].list);
	free(w->gamma);
	free(w->ranks);
	free(w->shared);
	free(w->moving);
	free(w->heap);
	free(w->heap_at);
	free(w->event_s);
	free(w->blocks);
	free(w->seen[0]);
	free(w->seen[1]);
}

static void run_event(struct oci_virtual_world *w, uint32_t rank)
{
	if (!w->ranks[rank].task.active)
		oci_virtual_go(w, rank);
	else if (oci_task_event(w, rank))
		oci_virtual_go_on(w, rank);
}

static void finish(struct oci_virtual_world *w, struct oci_virtual_result *result)
{
	w->result.first_s = w->ranks[0].now_s;
	for (uint32_t r = 0; r < w->size; r++) {
		if (w->ranks[r].now_s > w->result.end_s)
			w->result.end_s = w->ranks[r].now_s;
		if (w->ranks[r].now_s < w->result.first_s)
			w->result.first_s = w->ranks[r].now_s;
	}
	*result = w->result;
}

static int deadlock(const struct oci_virtual_world *w, char *why, size_t n)
{
	for (uint32_t rank = 0; rank < w->size; rank++) {
		const struct oci_virtual_rank *r = &w->ranks[rank];

		if (r->state == OCI_VIRTUAL_OVER)
			continue;
		snprintf(why, n, "rank %u waits for ever in operation %u (%s) of its plan", rank,
			 r->pc, oci_opcode_name(r->plan->ops[r->pc].code));
		return -EPROTO;
	}
	return 0;
}

int oci_virtual_run(const struct oci_virtual_call *call, struct oci_virtual_result *result,
		    char *why, size_t n)
{
	struct oci_virtual_world w = { 0 };
	int error = world_create(&w, call);
	uint32_t rank;
	double at_s;

	while (!error && queue_pop(&w, &rank, &at_s)) {
		/* All of one moment first, so that copies which start together share from the
		 * start, then the rates. */
		w.now_s = at_s;
		run_event(&w, rank);
		while (w.heap_count && w.event_s[w.heap[0]] == at_s) {
			queue_pop(&w, &rank, &at_s);
			run_event(&w, rank);
		}
		oci_task_settle(&w);
		if (w.failed)
			error = -ENOMEM;
	}
	if (error)
		snprintf(why, n, "no memory to model %u ranks", call->size);
	else
		error = deadlock(&w, why, n);
	if (!error)
		finish(&w, result);
	world_destroy(&w);
	return error;
}
