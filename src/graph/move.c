/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executors `caller` and `thread`: whoever calls moves what can be moved without waiting. Both
 * are this one loop; they differ in who calls it, and in where that sleeps.
 */
#include "graph/graph.h"

#include <errno.h>
#include <sys/socket.h>

/* One call of the kernel. 1: bytes moved; 0: none can. */
static int move_node(struct oc_graph_run *run, uint32_t i, uint32_t n)
{
	const struct oci_graph_node *node = &run->view.node[n];
	bool sending = node->kind == OCI_GRAPH_SEND;
	int socket = run->links->sockets[node->peer];
	char *bytes = oci_graph_bytes(run, node) + run->lane_moved[i];
	size_t left = node->count - run->lane_moved[i];
	ssize_t moved = sending ? send(socket, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL) :
				  recv(socket, bytes, left, MSG_DONTWAIT);

	if (moved < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (moved <= 0) {
		oci_links_fail_peer(run->links, node->peer, sending, moved ? -errno : 0);
		return 0;
	}
	run->lane_moved[i] += (size_t)moved;
	if (run->lane_moved[i] == node->count)
		oci_run_over(run, n);
	return 1;
}

/* A CALC, and of each lane what the kernel takes at once. Was there anything? */
static bool step(struct oc_graph_run *run)
{
	bool moved = oci_run_calc(run);

	for (uint32_t i = 0; i < run->lane_count && !run->links->error; i++) {
		uint32_t node = oci_run_movable(run, i);

		if (node != OCI_GRAPH_NONE && move_node(run, i, node))
			moved = true;
	}
	return moved;
}

/* Relaxed: oci_links_lock() has why. */
static bool gives_way(struct oc_graph_links *links, bool thread)
{
	return thread && atomic_load_explicit(&links->wanting, memory_order_relaxed);
}

/* True: it has given way. */
static bool move_run(struct oc_graph_run *run, bool thread)
{
	bool moved;

	do {
		moved = run->left && !run->links->error && step(run);
	} while (moved && !gives_way(run->links, thread));
	if (run->links->error)
		oci_run_end(run, run->links->error);
	else if (!run->left)
		oci_run_end(run, OCI_GRAPH_IDLE);
	return moved;
}

bool oci_links_move(struct oc_graph_links *links, bool thread)
{
	struct oc_graph_run *next;
	bool more = false;

	/* In the order of issue, so a lane that one gives up is moved on by the next in this turn.
	 */
	for (struct oc_graph_run *run = links->runs; run; run = next) {
		next = run->next;
		if ((run->executor == OC_GRAPH_THREAD) != thread)
			continue;
		if (run->executor == OC_GRAPH_URING)
			oci_uring_move(run);
		else if (run->executor == OC_GRAPH_KMOD)
			oci_kmod_move(run);
		else
			more |= move_run(run, thread);
	}
	return more;
}

unsigned int oci_links_wanted(struct oc_graph_links *links, bool thread, struct pollfd *wanted,
			      unsigned int most)
{
	unsigned int count = 0;

	wanted[count++] = (struct pollfd){ .fd = thread ? links->thread_wake : links->owner_wake,
					   .events = POLLIN };
	for (struct oc_graph_run *run = links->runs; run; run = run->next) {
		if ((run->executor == OC_GRAPH_THREAD) != thread)
			continue;
		if (run->executor == OC_GRAPH_URING) {
			if (count < most && oci_uring_descriptor(run) >= 0)
				wanted[count++] = (struct pollfd){ .fd = oci_uring_descriptor(run),
								   .events = POLLIN };
			continue;
		}
		/* The module writes to owner_wake. */
		if (run->executor == OC_GRAPH_KMOD)
			continue;
		for (uint32_t i = 0; i < run->lane_count && count < most; i++)
			if (oci_run_movable(run, i) != OCI_GRAPH_NONE)
				wanted[count++] = (struct pollfd){
					.fd = links->sockets[run->lanes[i] / 2],
					.events = run->lanes[i] % 2 ? POLLOUT : POLLIN,
				};
	}
	return count;
}
