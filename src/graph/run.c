/* SPDX-License-Identifier: BSD-3-Clause */
/* A graph bound to links and buffers: prepared, issued, asked, waited for. More than 500 lines: the
 * life of one object. */
#include "base/options.h"
#include "graph/graph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/*
 * From so many bytes over TCP on a thread is `auto`: what is less fits the sockets' buffers, so the
 * caller sends it at once and receives it in one call. Beside matrices of 4 x 4 the caller lost
 * least to 125 kB, the others from 1.25 MB on (docs/results/graph-codelet.csv); this lies between
 * them. A thread does as well as io_uring, whose completions interrupt system calls of the program:
 * that has to be asked for. Inside a node the caller's total time was the least of all executors'
 * at all sizes: each byte takes a CPU that computes, whoever moves it.
 */
enum { AUTO_THREAD_BYTES = 400000 };

/* ---- what is over, what can begin -------------------------------------------------------------
 */

/* Who drives a run: the links' thread, or the program's calls. */
static int driver_wake(const struct oc_graph_run *run)
{
	return run->executor == OC_GRAPH_THREAD ? run->links->thread_wake : run->links->owner_wake;
}

static void set_seen(struct oc_graph_run *run, uint32_t seen)
{
	/* Relaxed: what the look finds, it finds with the lock. */
	__atomic_store_n(&run->watch.seen, seen, __ATOMIC_RELAXED);
}

/* The next oc_graph_test() looks. Also by the links' thread. */
static void look_again(struct oc_graph_run *run)
{
	if (run->executor != OC_GRAPH_THREAD)
		set_seen(run, __atomic_load_n(run->watch.word, __ATOMIC_RELAXED) - 1);
}

/* Each oc_graph_test() looks. */
static void watch_always(struct oc_graph_run *run)
{
	static const uint32_t always;

	run->watch.word = &always;
	set_seen(run, 1);
}

/*
 * By the program's calls, when they have looked. Nothing is to be done for a run of the thread's
 * until it is over, if none is the program's to drive, which may have its lane; and for one of the
 * kernel's until something comes back, if no other run is the program's to drive, and all that can
 * go on has been handed over. If the thread fails the links, the sockets are shut down, and
 * something comes back.
 */
static void watch(struct oc_graph_run *run)
{
	uint32_t seen = 1;

	watch_always(run);
	if (run->executor == OC_GRAPH_THREAD && !run->links->driven) {
		run->watch.word = (const uint32_t *)(const void *)&run->status;
		seen = OCI_GRAPH_ACTIVE;
	} else if (run->executor == OC_GRAPH_URING && run->links->driven == 1 && !run->stale &&
		   !oci_uring_asks(run) && oci_uring_descriptor(run) >= 0) {
		run->watch.word = oci_uring_word(run, &seen);
	} else if (run->executor == OC_GRAPH_KMOD && run->links->runs == run && !run->next &&
		   oci_kmod_word(run)) {
		/* It says nothing of lanes that others may wait for. */
		run->watch.word = oci_kmod_word(run);
	}
	set_seen(run, seen);
}

/* A lane that nobody needs any more goes to the next run that has nodes there. */
static void pass_lane(struct oc_graph_run *run, uint32_t lane)
{
	struct oc_graph_links *links = run->links;

	links->owner[lane] = NULL;
	for (struct oc_graph_run *r = run->next; r; r = r->next)
		for (uint32_t i = 0; i < r->lane_count; i++)
			if (r->lanes[i] == lane) {
				links->owner[lane] = r;
				r->stale = true;
				look_again(r);
				if (driver_wake(r) != driver_wake(run))
					oci_wake(driver_wake(r));
				return;
			}
}

void oci_run_over(struct oc_graph_run *run, uint32_t node)
{
	uint32_t i = run->lane_of[node];

	run->state[node] = OCI_GRAPH_OVER;
	run->left--;
	for (uint32_t e = run->next_begin[node]; e < run->next_begin[node + 1]; e++) {
		uint32_t behind = run->next_of[e];

		if (!--run->waits[behind] && run->lane_of[behind] == OCI_GRAPH_NONE)
			run->ready[run->ready_count++] = behind;
	}
	if (i == OCI_GRAPH_NONE || run->lane_at[i] != node)
		return;
	while (run->lane_at[i] != OCI_GRAPH_NONE && run->state[run->lane_at[i]] == OCI_GRAPH_OVER)
		run->lane_at[i] = run->lane_next[run->lane_at[i]];
	run->lane_moved[i] = 0;
	if (run->lane_at[i] == OCI_GRAPH_NONE)
		pass_lane(run, run->lanes[i]);
}

void oci_run_lane_over(struct oc_graph_run *run, uint32_t i)
{
	run->lane_at[i] = OCI_GRAPH_NONE;
	pass_lane(run, run->lanes[i]);
}

bool oci_run_calc(struct oc_graph_run *run)
{
	uint32_t node;

	if (!run->ready_count)
		return false;
	node = run->ready[--run->ready_count];
	oci_graph_calc(&run->view.node[node], run->buffers, run->ops);
	oci_run_over(run, node);
	return true;
}

uint32_t oci_run_movable(const struct oc_graph_run *run, uint32_t i)
{
	uint32_t node = run->lane_at[i];

	if (node == OCI_GRAPH_NONE || run->waits[node] || run->state[node] != OCI_GRAPH_WAITING ||
	    run->links->owner[run->lanes[i]] != run)
		return OCI_GRAPH_NONE;
	return node;
}

void oci_run_end(struct oc_graph_run *run, int status)
{
	struct oc_graph_links *links = run->links;
	struct oc_graph_run **at = &links->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	if (links->last == &run->next)
		links->last = at;
	run->next = NULL;
	for (uint32_t i = 0; i < run->lane_count; i++)
		if (links->owner[run->lanes[i]] == run)
			links->owner[run->lanes[i]] = NULL;
	/* With the acquire in oc_graph_test(): the bytes are there before their end is seen. */
	atomic_store_explicit(&run->status, status, memory_order_release);
	if (run->executor == OC_GRAPH_THREAD)
		oci_wake(links->owner_wake);
	else
		links->driven--;
}

void oci_links_fail(struct oc_graph_links *links, int error, const char *format, ...)
{
	va_list arguments;

	if (links->error)
		return;
	links->error = error;
	va_start(arguments, format);
	vsnprintf(links->sentence, sizeof(links->sentence), format, arguments);
	va_end(arguments);
	oci_info("graph: %s", links->sentence);
	for (uint32_t p = 0; p < links->peers; p++)
		if (links->sockets[p] >= 0)
			shutdown(links->sockets[p], SHUT_RDWR);
	oci_wake(links->thread_wake);
	oci_wake(links->owner_wake);
}

void oci_links_fail_peer(struct oc_graph_links *links, uint32_t peer, bool sending, int error)
{
	if (!error || error == -EPIPE || error == -ECONNRESET)
		oci_links_fail(
			links, -ECONNRESET,
			"peer %u has closed its link: it has ended, or it failed before; its own "
			"output says why",
			peer);
	else
		oci_links_fail(links, error, "the link to peer %u fails when %s: %s", peer,
			       sending ? "sending to it" : "receiving from it", strerror(-error));
}

/* ---- prepared ---------------------------------------------------------------------------------
 */

static void *take(size_t count, size_t bytes, bool *lacking)
{
	void *memory = calloc(count + !count, bytes);

	*lacking |= !memory;
	return memory;
}

static void discard(struct oc_graph_run *run)
{
	free(run->packed);
	free(run->buffers);
	free(run->ops);
	free(run->state);
	free(run->waits);
	free(run->next_of);
	free(run->next_begin);
	free(run->lane_next);
	free(run->ready);
	free(run->lanes);
	free(run->lane_first);
	free(run->lane_at);
	free(run->lane_moved);
	free(run->lane_of);
	free(run);
}

/* Which nodes are behind which: the edges, sorted by their first node by counting. */
static void sort_edges(struct oc_graph_run *run)
{
	const struct oci_graph_view *view = &run->view;
	uint32_t sum = 0;

	for (uint32_t e = 0; e < view->edge_count; e++)
		run->next_begin[view->edges[e]]++;
	for (uint32_t n = 0; n <= view->nodes; n++) {
		uint32_t count = run->next_begin[n];

		run->next_begin[n] = sum;
		sum += count;
	}
	for (uint32_t n = 0; n < view->nodes; n++)
		for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
			run->next_of[run->next_begin[view->edges[e]]++] = n;
	/* Each has moved on to where its nodes end, which is where those of the next one begin. */
	for (uint32_t n = view->nodes; n; n--)
		run->next_begin[n] = run->next_begin[n - 1];
	run->next_begin[0] = 0;
}

static int sort_lanes(struct oc_graph_run *run)
{
	uint32_t *index, *tail;
	bool lacking = false;

	index = take(2 * (size_t)run->links->peers, sizeof(*index), &lacking); /* + 1; 0: unused */
	tail = take(2 * (size_t)run->links->peers, sizeof(*tail), &lacking);
	for (uint32_t n = 0; !lacking && n < run->view.nodes; n++) {
		const struct oci_graph_node *node = &run->view.node[n];
		uint32_t lane = oci_graph_lane(node), i;

		run->lane_next[n] = run->lane_of[n] = OCI_GRAPH_NONE;
		if (node->kind == OCI_GRAPH_CALC)
			continue;
		if (!index[lane]) {
			i = run->lane_count++;
			index[lane] = i + 1;
			run->lanes[i] = lane;
			run->lane_first[i] = n;
		} else {
			i = index[lane] - 1;
			run->lane_next[tail[i]] = n;
		}
		tail[i] = n;
		run->lane_of[n] = i;
		if (run->links->tcp[node->peer])
			run->tcp_bytes += node->count;
	}
	free(index);
	free(tail);
	return lacking ? -ENOMEM : 0;
}

int oc_graph_prepare(struct oc_graph_run **out, const struct oc_graph *graph,
		     struct oc_graph_links *links, const struct oc_graph_buffer *buffers,
		     uint32_t buffer_count, const struct oc_op *ops, uint32_t op_count)
{
	bool lacking = false;
	struct oc_graph_run *run = take(1, sizeof(*run), &lacking);
	size_t nodes, lanes;
	int err = -ENOMEM;

	if (!run)
		return -ENOMEM;
	run->links = links;
	watch(run);
	run->packed = oci_graph_pack(graph, &run->packed_bytes);
	if (!run->packed)
		goto discard;
	err = oci_graph_check(run->packed, run->packed_bytes, &run->view);
	for (uint32_t i = 0; !err && i < op_count; i++)
		if (!ops[i].apply || !ops[i].bytes || ops[i].bytes > OC_OP_MAX_BYTES)
			err = -EINVAL;
	if (!err)
		err = oci_graph_bounds(&run->view, links->sockets, links->peers, buffers,
				       buffer_count, ops, op_count);
	if (err)
		goto discard;
	nodes = run->view.nodes;
	lanes = 2 * (size_t)links->peers;
	run->buffers = take(buffer_count, sizeof(*buffers), &lacking);
	run->ops = take(op_count, sizeof(*ops), &lacking);
	run->state = take(nodes, sizeof(*run->state), &lacking);
	run->waits = take(nodes, sizeof(*run->waits), &lacking);
	run->next_of = take(run->view.edge_count, sizeof(*run->next_of), &lacking);
	run->next_begin = take(nodes + 1, sizeof(*run->next_begin), &lacking);
	run->lane_next = take(nodes, sizeof(*run->lane_next), &lacking);
	run->ready = take(nodes, sizeof(*run->ready), &lacking);
	run->lanes = take(lanes, sizeof(*run->lanes), &lacking);
	run->lane_first = take(lanes, sizeof(*run->lane_first), &lacking);
	run->lane_at = take(lanes, sizeof(*run->lane_at), &lacking);
	run->lane_moved = take(lanes, sizeof(*run->lane_moved), &lacking);
	run->lane_of = take(nodes, sizeof(*run->lane_of), &lacking);
	err = lacking ? -ENOMEM : sort_lanes(run);
	if (err)
		goto discard;
	if (buffer_count)
		memcpy(run->buffers, buffers, buffer_count * sizeof(*buffers));
	if (op_count)
		memcpy(run->ops, ops, op_count * sizeof(*ops));
	run->buffer_count = buffer_count;
	run->op_count = op_count;
	sort_edges(run);
	oci_links_lock(links);
	links->prepared++;
	pthread_mutex_unlock(&links->lock);
	*out = run;
	return 0;
discard:
	discard(run);
	return err;
}

/* ---- issued -----------------------------------------------------------------------------------
 */

static bool has_thread(struct oc_graph_run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++)
		if (!run->ops[i].any_thread)
			return false;
	return !oci_thread_start(run->links);
}

/* With the links' lock; what it says has all that it needs. */
static enum oc_graph_executor choose(struct oc_graph_run *run, enum oc_graph_executor wanted)
{
	static const enum oc_graph_executor asked[] = {
		[OCI_ASYNC_AUTO] = OC_GRAPH_AUTO,     [OCI_ASYNC_CALLER] = OC_GRAPH_CALLER,
		[OCI_ASYNC_THREAD] = OC_GRAPH_THREAD, [OCI_ASYNC_URING] = OC_GRAPH_URING,
		[OCI_ASYNC_KMOD] = OC_GRAPH_KMOD,
	};

	if (wanted == OC_GRAPH_AUTO)
		wanted = asked[oci_options()->async];
	if (wanted == OC_GRAPH_AUTO)
		wanted = run->tcp_bytes < AUTO_THREAD_BYTES ? OC_GRAPH_CALLER : OC_GRAPH_THREAD;
	if (wanted == OC_GRAPH_KMOD && (oc_graph_kmod_refusal() || oci_kmod_prepare(run)))
		wanted = OC_GRAPH_URING;
	if (wanted == OC_GRAPH_URING && (oc_graph_uring_refusal() || oci_uring_prepare(run)))
		wanted = OC_GRAPH_THREAD;
	return wanted == OC_GRAPH_THREAD && !has_thread(run) ? OC_GRAPH_CALLER : wanted;
}

/* As at its beginning: nothing is over. */
static void rewind_run(struct oc_graph_run *run)
{
	const struct oci_graph_view *view = &run->view;

	run->left = view->nodes;
	run->stale = true;
	run->ready_count = 0;
	memset(run->state, OCI_GRAPH_WAITING, view->nodes);
	for (uint32_t n = 0; n < view->nodes; n++) {
		run->waits[n] = view->node[n].edges_end - oci_graph_edges_begin(view, n);
		if (!run->waits[n] && view->node[n].kind == OCI_GRAPH_CALC)
			run->ready[run->ready_count++] = n;
	}
	for (uint32_t i = 0; i < run->lane_count; i++) {
		run->lane_at[i] = run->lane_first[i];
		run->lane_moved[i] = 0;
	}
}

int oc_graph_issue(struct oc_graph_run *run, enum oc_graph_executor executor)
{
	struct oc_graph_links *links = run->links;
	int err = 0;

	if ((unsigned int)executor >= OC_GRAPH_EXECUTORS)
		return -EINVAL;
	if (atomic_load_explicit(&run->status, memory_order_acquire) == OCI_GRAPH_ACTIVE)
		return -EBUSY;
	oci_links_lock(links);
	err = links->error;
	if (err)
		goto unlock;
	/* What it watched may go when it is prepared anew; others that pass it a lane look there.
	 */
	watch_always(run);
	run->executor = executor = choose(run, executor);
	rewind_run(run);
	/* Relaxed: the thread sees the run under the lock, and the caller is this thread. */
	atomic_store_explicit(&run->status, OCI_GRAPH_ACTIVE, memory_order_relaxed);
	*links->last = run;
	links->last = &run->next;
	for (uint32_t i = 0; i < run->lane_count; i++)
		if (!links->owner[run->lanes[i]])
			links->owner[run->lanes[i]] = run;
	if (executor == OC_GRAPH_THREAD) {
		oci_wake(links->thread_wake);
	} else {
		links->driven++;
		oci_links_move(links, false);
	}
	/* One run more may be one too many for those that watched. */
	watch(run);
	for (struct oc_graph_run *r = links->runs; r; r = r->next)
		watch(r);
unlock:
	pthread_mutex_unlock(&links->lock);
	return err;
}

enum oc_graph_executor oc_graph_executor(const struct oc_graph_run *run)
{
	return run->executor;
}

/* ---- asked and waited for ----------------------------------------------------------------------
 */

/* 1: over; 0: not yet; -errno. */
static int result(struct oc_graph_run *run)
{
	/* With the release in oci_run_end(). */
	int status = atomic_load_explicit(&run->status, memory_order_acquire);

	return status == OCI_GRAPH_ACTIVE ? 0 : status == OCI_GRAPH_IDLE ? 1 : status;
}

int oc_graph_look(struct oc_graph_run *run)
{
	int over = result(run);

	/* What is driven is this thread's to change. */
	if (over || (run->executor == OC_GRAPH_THREAD && !run->links->driven))
		return over;
	oci_links_lock(run->links);
	oci_links_move(run->links, false);
	watch(run);
	pthread_mutex_unlock(&run->links->lock);
	return result(run);
}

/* One sleep; what is waited for may be anybody's, as a lane may be another run's. */
static void sleep_once(struct oc_graph_run *run)
{
	enum { MOST = 256, BOUND_MS = 100 };
	struct oc_graph_links *links = run->links;
	struct pollfd wanted[MOST];
	unsigned int count;
	bool alone;

	oci_links_lock(links);
	alone = links->runs == run && !run->next && run->executor == OC_GRAPH_URING &&
		oci_uring_descriptor(run) >= 0;
	count = alone ? 0 : oci_links_wanted(links, false, wanted, MOST);
	pthread_mutex_unlock(&links->lock);
	if (alone)
		oci_uring_sleep(run);
	else /* Bounded, so that nothing that was missed here holds up anything for long. */
		poll(wanted, count, count == MOST ? 1 : BOUND_MS);
	/* Before the next look, so that what is told during it wakes again. */
	oci_forget_wake(links->owner_wake);
}

int oc_graph_wait(struct oc_graph_run *run)
{
	int over;

	for (over = oc_graph_test(run); !over; over = oc_graph_test(run))
		sleep_once(run);
	return over < 0 ? over : 0;
}

void oc_graph_run_free(struct oc_graph_run *run)
{
	struct oc_graph_links *links;

	if (!run)
		return;
	links = run->links;
	if (!result(run)) {
		oci_links_lock(links);
		oci_links_fail(links, -ECANCELED, "a graph was freed before it was over");
		pthread_mutex_unlock(&links->lock);
		oc_graph_wait(run);
	}
	oci_uring_free(run);
	oci_kmod_free(run);
	oci_links_lock(links);
	links->prepared--;
	pthread_mutex_unlock(&links->lock);
	discard(run);
}
