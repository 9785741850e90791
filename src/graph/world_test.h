/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of one process, for the tests of graphs: linked by socketpairs or by TCP, each with two
 * buffers, driven in turns. What fails ends the test. */
#ifndef OC_GRAPH_WORLD_TEST_H
#define OC_GRAPH_WORLD_TEST_H

#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <onecopy/graph.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORLD_MOST = 40 };

struct world {
	uint32_t size;
	struct oc_graph_links *links[WORLD_MOST];
	struct oc_graph_run *run[WORLD_MOST];
	struct oc_graph_buffer buffer[WORLD_MOST][2];
};

static uint64_t world_seed = 20261125;

static inline uint64_t draw(uint64_t below)
{
	world_seed ^= world_seed >> 12;
	world_seed ^= world_seed << 25;
	world_seed ^= world_seed >> 27;
	return (world_seed * 0x2545f4914f6cdd1du >> 16) % below;
}

/* Without the module the last one is one of the others. */
static inline enum oc_graph_executor world_executors(void)
{
	return oc_graph_kmod_refusal() ? OC_GRAPH_KMOD : OC_GRAPH_EXECUTORS;
}

/* Two ends of a connection over the loopback device. */
static inline void tcp_pair(int pair[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(pair[0], (struct sockaddr *)&address, length), 0);
	pair[1] = accept(listener, NULL, NULL);
	assert_true(pair[1] >= 0);
	close(listener);
}

static inline void world_sockets(uint32_t size, bool tcp, int sockets[WORLD_MOST][WORLD_MOST])
{
	for (uint32_t a = 0; a < size; a++) {
		sockets[a][a] = -1;
		for (uint32_t b = 0; b < a; b++) {
			int pair[2];

			if (tcp)
				tcp_pair(pair);
			else
				assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
			sockets[a][b] = pair[0];
			sockets[b][a] = pair[1];
		}
	}
}

/* Links of all to all. */
static inline void world_begin(struct world *world, uint32_t size, bool tcp)
{
	static int sockets[WORLD_MOST][WORLD_MOST];

	*world = (struct world){ .size = size };
	world_sockets(size, tcp, sockets);
	for (uint32_t r = 0; r < size; r++)
		assert_int_equal(oc_graph_links_create(&world->links[r], sockets[r], size), 0);
}

/* Buffers of exactly so many bytes, so that sanitizers see what goes beyond. */
static inline void world_buffers(struct world *world, uint32_t rank, size_t first, size_t second)
{
	const size_t bytes[2] = { first, second };

	for (int b = 0; b < 2; b++) {
		free(world->buffer[rank][b].base);
		world->buffer[rank][b].base = malloc(bytes[b] + !bytes[b]);
		world->buffer[rank][b].bytes = bytes[b];
		assert_non_null(world->buffer[rank][b].base);
		memset(world->buffer[rank][b].base, 0xee, bytes[b]);
	}
}

static inline void world_prepare(struct world *world, uint32_t rank, struct oc_graph *graph)
{
	assert_int_equal(oc_graph_prepare(&world->run[rank], graph, world->links[rank],
					  world->buffer[rank], 2, NULL, 0),
			 0);
	oc_graph_free(graph);
}

/* Issues all, in any order, and asks all in turns until they are over: 0 or the first error. Where
 * that takes long, threads or the kernel need the CPU. */
static inline int world_run(struct world *world, enum oc_graph_executor executor)
{
	uint32_t first = (uint32_t)draw(world->size), left = world->size;
	bool over[WORLD_MOST] = { false };
	int err = 0, turns = 0;

	for (uint32_t i = 0; i < world->size; i++) {
		uint32_t r = (first + i) % world->size;

		assert_int_equal(oc_graph_issue(world->run[r], executor), 0);
	}
	while (left) {
		if (turns++ > 1000)
			usleep(100);
		for (uint32_t r = 0; r < world->size; r++) {
			int result = over[r] ? 0 : oc_graph_test(world->run[r]);

			if (!result)
				continue;
			over[r] = true;
			left--;
			err = result < 0 && !err ? result : err;
		}
	}
	return err;
}

static inline void world_forget_runs(struct world *world)
{
	for (uint32_t r = 0; r < world->size; r++) {
		oc_graph_run_free(world->run[r]);
		world->run[r] = NULL;
	}
}

static inline void world_end(struct world *world)
{
	world_forget_runs(world);
	for (uint32_t r = 0; r < world->size; r++) {
		assert_int_equal(oc_graph_links_free(world->links[r]), 0);
		free(world->buffer[r][0].base);
		free(world->buffer[r][1].base);
	}
}

/* Other bytes for each `of`, and in each block of 4 KiB: quick, also under sanitizers. */
static inline void world_fill(void *bytes, size_t count, uint64_t of)
{
	uint8_t block[4096];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)((i * 2654435761u + of * 40503u) >> 3);
	for (size_t at = 0; at < count; at += sizeof(block)) {
		size_t left = count - at;

		memcpy(block, &at, sizeof(at));
		memcpy((uint8_t *)bytes + at, block, left < sizeof(block) ? left : sizeof(block));
	}
}

static inline uint8_t world_byte(uint64_t of, size_t at)
{
	return (uint8_t)((at * 2654435761u + of * 40503u + at / 251) >> 3);
}

#endif
