/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: bytes that move while others may slow them down.
 *
 * A task is first its alpha, which nobody disturbs, then `left` of 1 at the rate 1 / whole_s. When
 * the number of tasks changes that lock the pages of a process, or use a domain, the rates of these
 * are set anew, once a moment.
 */
#include "lab/virtual/virtual_world.h"

static void use(struct oci_virtual_world *w, uint32_t shared, int more)
{
	if (shared == OCI_NOBODY)
		return;
	w->shared[shared].users += (uint32_t)more;
	w->shared[shared].changed = w->changed = true;
}

static void enter(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_task *t = &w->ranks[rank].task;

	t->at = w->moving_count;
	w->moving[w->moving_count++] = rank;
	use(w, t->process, 1);
	use(w, t->domain[0], 1);
	use(w, t->domain[1], 1);
	if (t->process != OCI_NOBODY && w->shared[t->process].users > w->result.most_copiers)
		w->result.most_copiers = w->shared[t->process].users;
}

static void leave(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_task *t = &w->ranks[rank].task;
	uint32_t last = w->moving[--w->moving_count];

	w->moving[t->at] = last;
	w->ranks[last].task.at = t->at;
	use(w, t->process, -1);
	use(w, t->domain[0], -1);
	use(w, t->domain[1], -1);
}

/* Time of the whole task at the present number of copiers and users of its domains. */
static double whole(const struct oci_virtual_world *w, const struct oci_virtual_task *t)
{
	double seconds = t->bytes_s;

	for (uint32_t d = 0; d < 2; d++) {
		double least;

		if (t->domain[d] == OCI_NOBODY)
			continue;
		least = (double)t->bytes * t->shared_s * w->shared[t->domain[d]].users;
		if (least > seconds)
			seconds = least;
	}
	if (t->process != OCI_NOBODY)
		seconds += t->lock_s * w->gamma[w->shared[t->process].users];
	return seconds;
}

static void set_rate(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_task *t = &w->ranks[rank].task;
	double seconds = whole(w, t);

	if (seconds == t->whole_s)
		return;
	if (t->whole_s > 0)
		t->left -= (w->now_s - t->since_s) / t->whole_s;
	if (t->left < 0)
		t->left = 0;
	t->whole_s = seconds;
	t->since_s = w->now_s;
	oci_queue_set(w, rank, w->now_s + t->left * seconds);
}

static bool changed(const struct oci_virtual_world *w, uint32_t shared)
{
	return shared != OCI_NOBODY && w->shared[shared].changed;
}

void oci_task_settle(struct oci_virtual_world *w)
{
	if (!w->changed)
		return;
	for (uint32_t i = 0; i < w->moving_count; i++) {
		const struct oci_virtual_task *t = &w->ranks[w->moving[i]].task;

		if (changed(w, t->process) || changed(w, t->domain[0]) || changed(w, t->domain[1]))
			set_rate(w, w->moving[i]);
	}
	for (uint32_t i = 0; i < w->size + w->domains; i++)
		w->shared[i].changed = false;
	w->changed = false;
}

uint32_t oci_virtual_core(const struct oci_virtual_world *w, uint32_t rank)
{
	return w->call->cores ? w->call->cores[rank] : rank;
}

/* shared_s: a byte, for each user of the domains; 0: none is used. */
static void start(struct oci_virtual_world *w, uint32_t rank, uint32_t remote, size_t bytes,
		  double shared_s, double before_s)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_task *t = &r->task;
	uint32_t there = w->size + oci_model_domain(w->model, oci_virtual_core(w, remote));

	t->active = true;
	t->moving = false;
	t->left = 1;
	t->whole_s = 0;
	t->bytes = bytes;
	t->domain[0] = t->domain[1] = OCI_NOBODY;
	t->shared_s = shared_s;
	if (shared_s > 0) {
		t->domain[0] = w->size + oci_model_domain(w->model, oci_virtual_core(w, rank));
		t->domain[1] = there == t->domain[0] ? OCI_NOBODY : there;
	}
	oci_queue_set(w, rank, r->now_s + before_s);
}

void oci_task_copy(struct oci_virtual_world *w, uint32_t rank, enum oci_model_direction direction,
		   uint32_t remote, size_t bytes, size_t extent)
{
	enum oci_model_mechanism mechanism = w->call->mechanism;
	struct oci_virtual_task *t = &w->ranks[rank].task;
	enum oci_model_distance distance = oci_model_distance(w->model, oci_virtual_core(w, rank),
							      oci_virtual_core(w, remote));

	double beyond = oci_model_beyond(w->model, extent, w->call->working);

	t->bytes_s = oci_model_bytes_of_s(w->model, mechanism, direction, bytes, distance, beyond);
	t->lock_s = oci_model_lock_s(w->model, mechanism, bytes, 1);
	t->process = remote;
	w->result.copies++;
	w->result.bytes += bytes;
	start(w, rank, remote, bytes, oci_model_domain_of_s(w->model, 1, beyond),
	      oci_model_alpha_s(w->model, mechanism, direction));
}

bool oci_task_touch(struct oci_virtual_world *w, uint32_t rank, uint32_t remote, size_t bytes,
		    size_t extent, enum oci_touch touch)
{
	const struct oci_model *m = w->model;
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_task *t = &r->task;
	double beyond = oci_model_beyond(m, extent, w->call->working), seconds;

	if (!bytes)
		return true;
	seconds = touch == OCI_TOUCH_FILL ? oci_model_fill_of_s(m, bytes, beyond) :
					    oci_model_memcpy_of_s(m, bytes, beyond);
	/* A peer's bytes come from his cache, as from a mapping of his memory. */
	if (remote != rank && oci_model_knows(m, OCI_MODEL_MAP))
		seconds = oci_model_bytes_of_s(m, OCI_MODEL_MAP, OCI_MODEL_PULL, bytes,
					       oci_model_distance(m, oci_virtual_core(w, rank),
								  oci_virtual_core(w, remote)),
					       beyond);
	if (touch == OCI_TOUCH_REDUCE && seconds < oci_model_reduce_s(m, bytes))
		seconds = oci_model_reduce_s(m, bytes);
	if (!m->domain.given || beyond <= 0) {
		r->now_s += seconds;
		return true;
	}
	t->bytes_s = seconds;
	t->lock_s = 0;
	t->process = OCI_NOBODY;
	start(w, rank, remote, bytes, beyond * oci_model_domain_s(m, 1), 0);
	return false;
}

bool oci_task_event(struct oci_virtual_world *w, uint32_t rank)
{
	struct oci_virtual_rank *r = &w->ranks[rank];
	struct oci_virtual_task *t = &r->task;

	if (!t->moving) {
		t->moving = true;
		t->start_s = t->since_s = w->now_s;
		enter(w, rank);
		/* It may share nothing, so that nobody sets its rate later. */
		set_rate(w, rank);
		if (t->whole_s == 0)
			oci_queue_set(w, rank, w->now_s);
		return false;
	}
	leave(w, rank);
	t->active = false;
	r->now_s = w->now_s;
	w->result.delayed_s += w->now_s - t->start_s - t->bytes_s - t->lock_s;
	return true;
}
