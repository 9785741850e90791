/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks: bytes that move while others may slow them down.
 *
 * A task is first its alpha, which nobody disturbs, then `left` of 1 at the rate 1 / whole_s. It
 * is in the list of the process whose pages it locks and in those of the domains it uses; when such
 * a list grows or shrinks, the rates of its tasks are set anew, once a moment.
 */
#include "lab/virtual/virtual_world.h"

enum { OF_PROCESS, OF_DOMAIN };

/* List `i` of a task: its process, its first, its second domain. */
static struct oci_virtual_list *list_of(struct oci_virtual_world *w,
					const struct oci_virtual_task *t, uint32_t i)
{
	uint32_t index = i ? t->domain[i - 1] : t->process;

	if (index == OCI_NOBODY)
		return NULL;
	return i ? &w->domain[index] : &w->processes[index];
}

static void mark(struct oci_virtual_world *w, struct oci_virtual_list *list, uint32_t i)
{
	uint32_t of = i ? OF_DOMAIN : OF_PROCESS;

	if (list->dirty)
		return;
	list->dirty = true;
	w->dirty[of][w->dirty_count[of]++] =
		(uint32_t)(list - (of == OF_DOMAIN ? w->domain : w->processes));
}

/* Which of a task's lists leads on in list `index`: a domain may be its first or second. */
static uint32_t link_of(const struct oci_virtual_task *t, uint32_t of, uint32_t index)
{
	if (of == OF_PROCESS)
		return 0;
	return t->domain[0] == index ? 1 : 2;
}

static void enter(struct oci_virtual_world *w, uint32_t rank, uint32_t i)
{
	struct oci_virtual_task *t = &w->ranks[rank].task;
	struct oci_virtual_list *list = list_of(w, t, i);

	if (!list)
		return;
	t->previous[i] = OCI_NOBODY;
	t->next[i] = list->first;
	if (list->first != OCI_NOBODY) {
		struct oci_virtual_task *other = &w->ranks[list->first].task;

		other->previous[link_of(other, i ? OF_DOMAIN : OF_PROCESS,
					i ? t->domain[i - 1] : t->process)] = rank;
	}
	list->first = rank;
	list->count++;
	mark(w, list, i);
	if (!i && list->count > w->result.most_copiers)
		w->result.most_copiers = list->count;
}

static void leave(struct oci_virtual_world *w, uint32_t rank, uint32_t i)
{
	struct oci_virtual_task *t = &w->ranks[rank].task;
	struct oci_virtual_list *list = list_of(w, t, i);
	uint32_t of = i ? OF_DOMAIN : OF_PROCESS, index = i ? t->domain[i - 1] : t->process;

	if (!list)
		return;
	if (t->previous[i] == OCI_NOBODY) {
		list->first = t->next[i];
	} else {
		struct oci_virtual_task *other = &w->ranks[t->previous[i]].task;

		other->next[link_of(other, of, index)] = t->next[i];
	}
	if (t->next[i] != OCI_NOBODY) {
		struct oci_virtual_task *other = &w->ranks[t->next[i]].task;

		other->previous[link_of(other, of, index)] = t->previous[i];
	}
	list->count--;
	mark(w, list, i);
}

/* Time of the whole task at the present number of copiers and users of its domains. */
static double whole(const struct oci_virtual_world *w, const struct oci_virtual_task *t)
{
	double seconds = t->bytes_s;

	for (uint32_t d = 0; d < 2; d++) {
		double least;

		if (t->domain[d] == OCI_NOBODY)
			continue;
		least = (double)t->bytes * t->shared_s * w->domain[t->domain[d]].count;
		if (least > seconds)
			seconds = least;
	}
	if (t->process != OCI_NOBODY)
		seconds += t->lock_s * w->gamma[w->processes[t->process].count];
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

void oci_task_settle(struct oci_virtual_world *w)
{
	for (uint32_t of = 0; of < 2; of++) {
		for (uint32_t i = 0; i < w->dirty_count[of]; i++) {
			uint32_t index = w->dirty[of][i], rank;
			struct oci_virtual_list *list = of == OF_DOMAIN ? &w->domain[index] :
									  &w->processes[index];

			list->dirty = false;
			for (rank = list->first; rank != OCI_NOBODY;) {
				const struct oci_virtual_task *t = &w->ranks[rank].task;

				set_rate(w, rank);
				rank = t->next[link_of(t, of, index)];
			}
		}
		w->dirty_count[of] = 0;
	}
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
	uint32_t there = oci_model_domain(w->model, oci_virtual_core(w, remote));

	t->active = true;
	t->moving = false;
	t->left = 1;
	t->whole_s = 0;
	t->bytes = bytes;
	t->domain[0] = t->domain[1] = OCI_NOBODY;
	t->shared_s = shared_s;
	if (shared_s > 0) {
		t->domain[0] = oci_model_domain(w->model, oci_virtual_core(w, rank));
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
	uint32_t i;

	if (!t->moving) {
		t->moving = true;
		t->start_s = t->since_s = w->now_s;
		for (i = 0; i < 3; i++)
			enter(w, rank, i);
		/* In no list, so that nobody sets its rate later. */
		set_rate(w, rank);
		if (t->whole_s == 0)
			oci_queue_set(w, rank, w->now_s);
		return false;
	}
	for (i = 0; i < 3; i++)
		leave(w, rank, i);
	t->active = false;
	r->now_s = w->now_s;
	w->result.delayed_s += w->now_s - t->start_s - t->bytes_s - t->lock_s;
	return true;
}
