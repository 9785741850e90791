/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP among all ranks: each listens at its own address, connects to the ranks below it and accepts
 * those above it. Who connects says its rank and the job's key first.
 */
#include "base/clock.h"
#include "base/log.h"
#include "graph/graph.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct hello {
	uint64_t key;
	uint32_t rank, size;
};

struct meeting {
	uint32_t rank, size;
	uint64_t key;
	uint64_t end_ns;
	int *sockets;
};

/* "10.77.0.1:7000" */
static int parse_address(const char *text, struct sockaddr_in *address)
{
	char host[INET_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	char *end;
	long port;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = 0;
	port = strtol(colon + 1, &end, 10);
	if (*end || end == colon + 1 || port < 1 || port > UINT16_MAX)
		return -EINVAL;
	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	return inet_pton(AF_INET, host, &address->sin_addr) == 1 ? 0 : -EINVAL;
}

/* Who connects says who it is at once: somebody who does not is no rank. */
#define HELLO_NS 1000000000u

static int left_ms(const struct meeting *meeting)
{
	uint64_t now = oci_clock_ns();

	return now >= meeting->end_ns ? 0 : (int)((meeting->end_ns - now) / 1000000 + 1);
}

/* All of it, in HELLO_NS of the time that is left. */
static int take_hello(const struct meeting *all, int fd, struct hello *hello)
{
	struct meeting soon = *all, *meeting = &soon;
	size_t taken = 0;

	if (soon.end_ns > oci_clock_ns() + HELLO_NS)
		soon.end_ns = oci_clock_ns() + HELLO_NS;

	while (taken < sizeof(*hello)) {
		struct pollfd wanted = { .fd = fd, .events = POLLIN };
		int ready = poll(&wanted, 1, left_ms(meeting));
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		n = recv(fd, (char *)hello + taken, sizeof(*hello) - taken, MSG_DONTWAIT);
		if (n <= 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR)))
			return -ECONNRESET;
		taken += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int listen_at(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* While nobody listens at an address of this host, a socket can be given its port, and connect to
 * itself. */
static bool is_itself(int fd, const struct sockaddr_in *address)
{
	struct sockaddr_in own = { 0 };
	socklen_t bytes = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &bytes) || own.sin_port != address->sin_port ||
	    own.sin_addr.s_addr != address->sin_addr.s_addr)
		return false;
	errno = ECONNREFUSED;
	return true;
}

/* Again and again until the peer listens. */
static int connect_to(const struct meeting *meeting, const struct sockaddr_in *address)
{
	struct hello hello = { .key = meeting->key, .rank = meeting->rank, .size = meeting->size };

	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
		struct timeval limit = { .tv_sec = left_ms(meeting) / 1000,
					 .tv_usec = left_ms(meeting) % 1000 * 1000 + 1 };
		struct timeval none = { 0 };

		if (fd < 0)
			return -errno;
		/* Also of connect(2). */
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		    !is_itself(fd, address) &&
		    send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello)) {
			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
			return fd;
		}
		err = -errno;
		close(fd);
		if (!left_ms(meeting))
			return err == -ECONNREFUSED || err == -EINPROGRESS || err == -EAGAIN ?
				       -ETIMEDOUT :
				       err;
		if (err != -ECONNREFUSED && err != -EINPROGRESS && err != -EAGAIN &&
		    err != -EINTR && err != -EHOSTUNREACH && err != -ENETUNREACH &&
		    err != -ETIMEDOUT && err != -ECONNRESET)
			return err;
		poll(NULL, 0, 5);
	}
}

static int accept_all(const struct meeting *meeting, int listener)
{
	uint32_t missing = meeting->size - meeting->rank - 1;

	while (missing) {
		struct pollfd wanted = { .fd = listener, .events = POLLIN };
		int ready = poll(&wanted, 1, left_ms(meeting)), fd;
		struct hello hello;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return ready ? -errno : -ETIMEDOUT;
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return -errno;
		if (take_hello(meeting, fd, &hello) || hello.key != meeting->key ||
		    hello.size != meeting->size || hello.rank <= meeting->rank ||
		    hello.rank >= meeting->size || meeting->sockets[hello.rank] >= 0) {
			oci_warn(
				"graph: someone who is no rank of this job has connected; it is not "
				"let in");
			close(fd);
			continue;
		}
		meeting->sockets[hello.rank] = fd;
		missing--;
	}
	return 0;
}

/*
 * A peer whose host has gone says nothing: a link on which nothing is under way fails after 15 s.
 * With bytes under way the system decides (net.ipv4.tcp_retries2, some 15 minutes): a shorter
 * TCP_USER_TIMEOUT would end links to peers that compute, whose windows are full.
 */
static void watch_peer(int fd)
{
	int on = 1, seconds = 5, times = 2;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static int meet(const struct meeting *meeting, const char *const *addresses)
{
	struct sockaddr_in address;
	int listener, err = parse_address(addresses[meeting->rank], &address);

	if (err)
		return err;
	listener = listen_at(&address);
	if (listener < 0)
		return listener;
	for (uint32_t peer = 0; !err && peer < meeting->rank; peer++) {
		err = parse_address(addresses[peer], &address);
		if (err)
			break;
		meeting->sockets[peer] = connect_to(meeting, &address);
		if (meeting->sockets[peer] < 0)
			err = meeting->sockets[peer];
	}
	if (!err)
		err = accept_all(meeting, listener);
	close(listener);
	return err;
}

int oc_graph_links_connect(struct oc_graph_links **links, uint32_t rank, uint32_t size,
			   const char *const *addresses, uint64_t key, int timeout_ms)
{
	struct meeting meeting = { .rank = rank, .size = size, .key = key };
	int err;

	if (rank >= size || timeout_ms < 0)
		return -EINVAL;
	meeting.end_ns = oci_clock_ns() + (uint64_t)timeout_ms * 1000000;
	meeting.sockets = malloc(size * sizeof(*meeting.sockets));
	if (!meeting.sockets)
		return -ENOMEM;
	for (uint32_t p = 0; p < size; p++)
		meeting.sockets[p] = -1;
	err = meet(&meeting, addresses);
	for (uint32_t p = 0; !err && p < size; p++)
		if (meeting.sockets[p] >= 0)
			watch_peer(meeting.sockets[p]);
	if (!err)
		err = oc_graph_links_create(links, meeting.sockets, size);
	for (uint32_t p = 0; err && p < size; p++)
		if (meeting.sockets[p] >= 0)
			close(meeting.sockets[p]);
	free(meeting.sockets);
	return err;
}
