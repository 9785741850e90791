/* SPDX-License-Identifier: BSD-3-Clause */
/* The checker's entry, and its schedules: who makes the next step. */
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
	if ((call->blocks != NULL) != (call->collective == OC_REDUCE_SCATTER))
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

/* What a rank that cannot step waits for. */
static void missing_text(const struct oci_world *w, const struct oci_actor *a, char *text, size_t n)
{
	if (!a->running) {
		snprintf(text, n, "the end of call %u on rank %u", a->call - w->check->lanes,
			 a->cursor);
	} else if (oci_actor_op(a)->code == OCI_OP_HELP) {
		snprintf(text, n, "the first POST of another rank it should help");
	} else {
		oci_flag_missing(w, a, text, n);
	}
}

int oci_world_deadlock(struct oci_world *w)
{
	size_t used = (size_t)snprintf(w->why, w->why_bytes, "deadlock:");

	for (uint32_t r = 0; r < w->check->size && used < w->why_bytes; r++) {
		const struct oci_actor *a = &w->actors[r];
		char op[OCI_OP_TEXT] = "begin", missing[96];

		if (a->call == w->check->count)
			continue;
		if (a->running)
			oci_op_text(op, sizeof(op), oci_actor_op(a));
		missing_text(w, a, missing, sizeof(missing));
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
	return rc == OCI_BLOCKED ? oci_world_deadlock(w) : rc;
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
	rc = c->schedule == OCI_CHECK_EXHAUSTIVE ? oci_world_explore(w) : run(w);
	if (result)
		*result = w->result;
	oci_world_end(w);
	return rc;
}
