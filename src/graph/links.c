/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: the sockets to the peers, and what all graphs on them share. */
#include "base/log.h"
#include "graph/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* 0: it is a connected stream socket that blocks. */
static int check_socket(int fd, uint32_t peer, bool *tcp)
{
	int type = 0, one = 1, flags = fcntl(fd, F_GETFL);
	socklen_t length = sizeof(type);
	struct sockaddr_storage address;
	const char *what = NULL;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) || type != SOCK_STREAM)
		what = "no stream socket (make a TCP connection, or a socketpair(AF_UNIX, "
		       "SOCK_STREAM))";
	else if (length = sizeof(address), getpeername(fd, (struct sockaddr *)&address, &length))
		what = "not connected";
	else if (flags & O_NONBLOCK)
		what = "not a blocking one (take O_NONBLOCK away; no call here waits for it)";
	if (what) {
		oci_warn("graph: the descriptor %d of peer %u is %s", fd, peer, what);
		return -EINVAL;
	}
	/* Segments are handed on when they are there, not when there are more of them. */
	*tcp = address.ss_family == AF_INET || address.ss_family == AF_INET6;
	if (*tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

int oc_graph_links_create(struct oc_graph_links **out, const int *sockets, uint32_t count)
{
	struct oc_graph_links *links;
	bool *tcp = calloc((size_t)count + 1, sizeof(*tcp));
	int err;

	if (!tcp)
		return -ENOMEM;
	for (uint32_t p = 0; p < count; p++)
		if (sockets[p] >= 0 && check_socket(sockets[p], p, &tcp[p])) {
			free(tcp);
			return -EINVAL;
		}
	links = calloc(1, sizeof(*links));
	if (!links) {
		free(tcp);
		return -ENOMEM;
	}
	links->tcp = tcp;
	links->peers = count;
	links->last = &links->runs;
	links->sockets = malloc((count + !count) * sizeof(*links->sockets));
	links->owner = calloc(2 * (size_t)count + 1, sizeof(struct oc_graph_run *));
	links->thread_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	links->owner_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = !links->sockets || !links->owner ? -ENOMEM : 0;
	if (!err && (links->thread_wake < 0 || links->owner_wake < 0))
		err = -EMFILE;
	if (!err)
		err = -pthread_mutex_init(&links->lock, NULL);
	if (err)
		goto discard;
	err = -pthread_mutex_init(&links->turn, NULL);
	if (err) {
		pthread_mutex_destroy(&links->lock);
		goto discard;
	}
	for (uint32_t p = 0; p < count; p++)
		links->sockets[p] = sockets[p];
	*out = links;
	return 0;
discard:
	if (links->thread_wake >= 0)
		close(links->thread_wake);
	if (links->owner_wake >= 0)
		close(links->owner_wake);
	free(links->owner);
	free(links->sockets);
	free(links->tcp);
	free(links);
	return err;
}

int oc_graph_links_free(struct oc_graph_links *links)
{
	if (!links)
		return 0;
	if (links->prepared)
		return -EBUSY;
	oci_thread_stop(links);
	for (uint32_t p = 0; p < links->peers; p++)
		if (links->sockets[p] >= 0)
			close(links->sockets[p]);
	close(links->thread_wake);
	close(links->owner_wake);
	pthread_mutex_destroy(&links->lock);
	pthread_mutex_destroy(&links->turn);
	free(links->owner);
	free(links->sockets);
	free(links->tcp);
	free(links);
	return 0;
}

void oci_links_relock(struct oc_graph_links *links)
{
	pthread_mutex_lock(&links->turn);
	pthread_mutex_lock(&links->lock);
	pthread_mutex_unlock(&links->turn);
}

void oci_links_lock(struct oc_graph_links *links)
{
	/* Relaxed: it only tells the thread that it is time to give the lock away. */
	atomic_fetch_add_explicit(&links->wanting, 1, memory_order_relaxed);
	oci_links_relock(links);
	atomic_fetch_sub_explicit(&links->wanting, 1, memory_order_relaxed);
}

const char *oc_graph_links_error(const struct oc_graph_links *links)
{
	struct oc_graph_links *changed = (struct oc_graph_links *)links;
	const char *sentence;

	/* It is written once, with the lock: whole, or not at all. */
	oci_links_lock(changed);
	sentence = links->error ? links->sentence : "";
	pthread_mutex_unlock(&changed->lock);
	return sentence;
}
