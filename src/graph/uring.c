/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor `uring`: the kernel runs a graph, as KACC's module does, by chains of linked
 * io_uring requests. A request of a chain begins when the one before is complete; the kernel does
 * that in an interrupt of the process that issued it, wherever that computes. Completions lie in
 * memory of the process: to look costs no system call.
 *
 * No order is added: requests that follow each other in a chain are nodes with an edge between
 * them, or neighbours of a lane. So graphs whose nodes are independent cannot block each other here
 * if they do not elsewhere. All other edges between two chains are tokens: a byte that one chain
 * writes into a pipe and the other reads (chains.c).
 *
 * A CALC ends what the kernel can do: what comes behind it is handed over when the program's calls
 * have computed it (oci_uring_move).
 *
 * IORING_SETUP_COOP_TASKRUN and its kin must stay off: with them a chain goes on only when the
 * process enters the kernel by itself.
 */
#include "graph/uring.h"

#include "base/options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t oci_uring_bytes = (uint64_t)1 << 30;

/* ---- is there one? ----------------------------------------------------------------------------
 */

static char refusal[256];

/* Filters may forbid io_uring_enter() alone. 0 or -errno. */
static int try_request(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	int submitted;

	io_uring_prep_nop(sqe);
	submitted = io_uring_submit(ring);
	return submitted < 0 ? submitted : 0;
}

/* False: there are no descriptors or memory for one now, which says nothing of later. Else the
 * refusal is for ever. */
static bool try_ring(void)
{
	struct io_uring ring;
	struct io_uring_probe *probe;
	int err = io_uring_queue_init(4, &ring, 0);

	if (!err) {
		err = try_request(&ring);
		if (err)
			io_uring_queue_exit(&ring);
	}
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EAGAIN)
		return false;
	if (err == -ENOSYS) {
		snprintf(
			refusal, sizeof(refusal), "%s",
			"io_uring is not in this kernel, or hidden by a container's seccomp filter "
			"(allow io_uring_setup, io_uring_enter and io_uring_register in it)");
	} else if (err == -EPERM || err == -EACCES) {
		snprintf(
			refusal, sizeof(refusal), "%s",
			"io_uring is forbidden: by kernel.io_uring_disabled (sysctl; 0 allows it), or "
			"by a container's seccomp filter or a security module");
	} else if (err) {
		snprintf(refusal, sizeof(refusal), "no io_uring can be made: %s", strerror(-err));
	} else {
		/* Of Linux 6.0. Whole messages by MSG_WAITALL, and cancelling all at once, are
		 * of 5.19. */
		probe = io_uring_get_probe_ring(&ring);
		if (!probe || !io_uring_opcode_supported(probe, IORING_OP_SEND_ZC))
			snprintf(
				refusal, sizeof(refusal), "%s",
				"io_uring of this kernel is too old (Linux 6.0 is needed), or a filter "
				"forbids io_uring_register");
		io_uring_free_probe(probe);
		io_uring_queue_exit(&ring);
	}
	if (*refusal)
		oci_log(oci_options()->async == OCI_ASYNC_URING ? oci_option_warning_level() :
								  OCI_LOG_INFO,
			"graph: %s; a thread runs graphs instead", refusal);
	return true;
}

const char *oc_graph_uring_refusal(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool known;
	const char *why;

	pthread_mutex_lock(&lock);
	known = known || try_ring();
	why = !known   ? "no descriptor or memory is left for an io_uring; raise ulimit -n" :
	      *refusal ? refusal :
			 NULL;
	pthread_mutex_unlock(&lock);
	return why;
}

int oci_uring_prepare(struct oc_graph_run *run)
{
	struct oci_uring *uring;
	/* Each node, and a token written and read for each edge and each lane. */
	uint64_t wanted = 3 * (uint64_t)run->view.nodes + 2 * (uint64_t)run->view.edge_count +
			  run->lane_count + 1;
	uint32_t entries = 4;
	int err;

	if (run->uring) {
		run->uring->chains.over = 0;
		return 0;
	}
	while (entries < run->lane_count || (entries < wanted && entries < OCI_URING_MOST))
		entries *= 2;
	uring = calloc(1, sizeof(*uring));
	if (!uring)
		return -ENOMEM;
	err = oci_chains_create(&uring->chains, run, entries);
	if (err)
		goto discard;
	/* The completions' ring is twice as long: there is always room in it. */
	uring->entries = entries;
	err = io_uring_queue_init(entries, &uring->ring, 0);
	if (err) {
		oci_chains_destroy(&uring->chains);
		goto discard;
	}
	run->uring = uring;
	return 0;
discard:
	free(uring);
	return err;
}

void oci_uring_free(struct oc_graph_run *run)
{
	if (!run->uring)
		return;
	io_uring_queue_exit(&run->uring->ring);
	oci_chains_destroy(&run->uring->chains);
	free(run->uring);
	run->uring = NULL;
}

/* ---- what is complete -------------------------------------------------------------------------
 */

/* A chain broke although its link goes on: the rest is handed over anew, once all have come back.
 */
static void retry(struct oci_uring *uring)
{
	uring->broken = true;
}

static void take_node(struct oc_graph_run *run, uint32_t n, int result)
{
	const struct oci_graph_node *node = &run->view.node[n];
	uint32_t i = run->lane_of[n];
	bool sending = node->kind == OCI_GRAPH_SEND;
	uint64_t left = node->count - (run->lane_at[i] == n ? run->lane_moved[i] : 0);
	uint64_t asked = left < oci_uring_bytes ? left : oci_uring_bytes;

	run->state[n] = OCI_GRAPH_WAITING;
	if (result > 0 && (uint64_t)result == left) {
		oci_run_over(run, n);
		return;
	}
	if (result > 0)
		run->lane_moved[i] += (uint64_t)result;
	if (result == -ECANCELED || result == -EINTR || result == -EAGAIN ||
	    (result > 0 && (uint64_t)result <= asked))
		retry(run->uring);
	else
		oci_links_fail_peer(run->links, node->peer, sending, result);
}

/*
 * A request that has been woken 128 times goes to a thread of the kernel's, which blocks. Where a
 * limit lets a process have fewer of those than it has requests, one may hold the thread that the
 * one needs that it waits for. Cancelled and handed over anew they are the kernel's to wake again.
 */
static void tick(struct oci_uring *uring, int result)
{
	uring->ticking = uring->tick_put = false;
	if (result != -ETIME || !uring->flying || uring->moved)
		return;
	retry(uring);
	/* Once more, if it was done: a request may have begun just then. */
	uring->cancelled = false;
}

/* NULL: all places hold what the kernel has refused so far; asked for once more. */
static struct io_uring_sqe *find_place(struct oci_uring *uring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);

	if (!sqe)
		io_uring_submit(&uring->ring);
	return sqe;
}

/* Has the kernel taken all that was put, now or with what was put behind it? */
static bool has_taken_all(struct oci_uring *uring)
{
	io_uring_submit(&uring->ring);
	return !io_uring_sq_ready(&uring->ring);
}

static void ask_for_tick(struct oci_uring *uring)
{
	static struct __kernel_timespec second = { .tv_sec = 1 };

	if (uring->ticking || !uring->flying)
		return;
	/* One that the kernel has refused is in the ring yet. */
	if (!uring->tick_put) {
		struct io_uring_sqe *sqe = find_place(uring);

		if (!sqe)
			return;
		io_uring_prep_timeout(sqe, &second, 0, 0);
		io_uring_sqe_set_data64(sqe, OCI_URING_TICK);
		uring->tick_put = true;
		uring->moved = false;
	}
	uring->ticking = has_taken_all(uring);
}

/* Was there one? */
static bool take_completions(struct oc_graph_run *run)
{
	struct oci_uring *uring = run->uring;
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;

	io_uring_for_each_cqe(&uring->ring, head, cqe)
	{
		count++;
		if (cqe->user_data == OCI_URING_CANCEL) {
			uring->cancel_put = false;
			continue;
		}
		if (cqe->user_data == OCI_URING_NOTHING)
			continue;
		if (cqe->user_data == OCI_URING_TICK) {
			tick(uring, cqe->res);
			continue;
		}
		uring->moved = true;
		uring->flying--;
		if (cqe->user_data < OCI_URING_TOKEN)
			take_node(run, (uint32_t)cqe->user_data, cqe->res);
		else if (cqe->res != 1)
			retry(uring);
	}
	io_uring_cq_advance(&uring->ring, count);
	return count;
}

static void cancel_all(struct oci_uring *uring)
{
	struct io_uring_sqe *sqe = uring->cancel_put ? NULL : find_place(uring);

	if (!sqe && !uring->cancel_put)
		return; /* tried again at the next look */
	if (sqe) {
		io_uring_prep_cancel64(sqe, 0, IORING_ASYNC_CANCEL_ALL | IORING_ASYNC_CANCEL_ANY);
		io_uring_sqe_set_data64(sqe, OCI_URING_CANCEL);
		uring->cancel_put = true;
	}
	uring->cancelled = has_taken_all(uring);
}

void oci_uring_move(struct oc_graph_run *run)
{
	struct oci_uring *uring = run->uring;
	struct oc_graph_links *links = run->links;
	int err;

	do {
		uint32_t left = run->left;

		take_completions(run);
		while (!links->error && oci_run_calc(run))
			;
		if (run->left != left)
			run->stale = true;
		if (links->error || uring->broken) {
			if (uring->flying) {
				if (!uring->cancelled)
					cancel_all(uring);
				break;
			}
			uring->broken = uring->cancelled = false;
			run->stale = true;
			if (links->error)
				break;
			oci_chains_reset(&uring->chains);
		}
		if (!run->stale || !run->left)
			break;
		run->stale = false;
		err = oci_chains_submit(run);
		if (err)
			oci_links_fail(links, err, "the kernel takes no requests of io_uring: %s",
				       strerror(-err));
		/* What could be done at once is complete already. */
	} while (io_uring_cq_ready(&uring->ring) || links->error);
	ask_for_tick(uring);
	if (uring->flying)
		return;
	/* Descriptors are the program's. */
	if (links->error || !run->left)
		oci_chains_reset(&uring->chains);
	if (links->error)
		oci_run_end(run, links->error);
	else if (!run->left)
		oci_run_end(run, OCI_GRAPH_IDLE);
}

void oci_uring_sleep(struct oc_graph_run *run)
{
	/* So many at a time, or what has come in 2 ms: of a chain that breaks not all come. One,
	 * where more is to be handed over behind it, or where nothing came: it ends a long sleep.
	 */
	struct oci_uring *uring = run->uring;
	bool one = run->left > uring->flying || uring->still;
	struct __kernel_timespec bound = { .tv_nsec = one ? 100000000 : 2000000 };
	struct io_uring_cqe *cqe;

	io_uring_wait_cqes(&uring->ring, &cqe, one ? 1 : uring->flying, &bound, NULL);
	uring->still = !io_uring_cq_ready(&uring->ring);
}

bool oci_uring_asks(const struct oc_graph_run *run)
{
	const struct oci_uring *uring = run->uring;
	bool ends = run->links->error || uring->broken;

	return uring->flying && (!uring->ticking || (ends && !uring->cancelled));
}

const uint32_t *oci_uring_word(const struct oc_graph_run *run, uint32_t *seen)
{
	const struct io_uring_cq *cq = &run->uring->ring.cq;

	*seen = *cq->khead; /* which we alone write */
	return cq->ktail;
}

int oci_uring_descriptor(const struct oc_graph_run *run)
{
	return run->uring->flying ? run->uring->ring.ring_fd : -1;
}
