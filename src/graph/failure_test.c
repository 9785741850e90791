/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs that cannot go on: peers that die, runs that are freed early, io_uring that is forbidden.
 * And what the kernel does while nobody calls. */
#include "graph/world_test.h"

#include <dlfcn.h>
#include <liburing.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define EACH_EXECUTOR(e) for (enum oc_graph_executor e = OC_GRAPH_AUTO; e < world_executors(); e++)

enum { BYTES = 4 << 20 };

static void prepare_bcast(struct world *world, enum oc_graph_tree tree, uint32_t root)
{
	for (uint32_t r = 0; r < world->size; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_bcast(&graph, tree, r, world->size, root, BYTES, 65536),
				 0);
		world_buffers(world, r, BYTES, 0);
		world_prepare(world, r, graph);
	}
}

/* In the middle of a broadcast one rank's sockets close, as the kernel closes those of a process
 * that is killed. */
TEST(a_peer_that_is_killed_is_an_error_and_no_hang)
{
	/* More than the buffers of sockets hold: else the root may be done before its peer dies. */
	enum { MANY = 64 << 20 };

	EACH_EXECUTOR(executor)
	for (int tcp = 0; tcp < 2; tcp++) {
		static int sockets[WORLD_MOST][WORLD_MOST];
		struct world world = { .size = 3 };
		int status;
		pid_t child;

		world_sockets(3, tcp, sockets);
		child = fork();
		if (!child) {
			/* Rank 1, the relay. It receives a part and is gone. */
			char some[100000];

			for (int r = 0; r < 3; r++)
				close(sockets[0][r]), close(sockets[2][r]);
			recv(sockets[1][0], some, sizeof(some), MSG_WAITALL);
			kill(getpid(), SIGKILL);
		}
		for (int r = 0; r < 3; r++)
			if (r != 1)
				close(sockets[1][r]);
		for (uint32_t r = 0; r < 3; r += 2)
			assert_int_equal(oc_graph_links_create(&world.links[r], sockets[r], 3), 0);
		for (uint32_t r = 0; r < 3; r += 2) {
			struct oc_graph *graph;

			assert_int_equal(
				oc_graph_bcast(&graph, OC_GRAPH_CHAIN, r, 3, 0, MANY, 65536), 0);
			world_buffers(&world, r, MANY, 0);
			world_prepare(&world, r, graph);
			assert_int_equal(oc_graph_issue(world.run[r], executor), 0);
		}
		assert_int_equal(oc_graph_wait(world.run[0]), -ECONNRESET);
		assert_int_equal(oc_graph_wait(world.run[2]), -ECONNRESET);
		assert_non_null(strstr(oc_graph_links_error(world.links[0]), "peer 1"));
		assert_int_equal(oc_graph_issue(world.run[0], executor), -ECONNRESET);
		assert_int_equal(waitpid(child, &status, 0), child);
		for (uint32_t r = 0; r < 3; r += 2) {
			oc_graph_run_free(world.run[r]);
			assert_int_equal(oc_graph_links_free(world.links[r]), 0);
			free(world.buffer[r][0].base);
			free(world.buffer[r][1].base);
		}
	}
}

TEST(a_run_that_is_freed_early_ends_its_peers_with_an_error_and_touches_no_byte_more)
{
	EACH_EXECUTOR(executor)
	for (int tcp = 0; tcp < 2; tcp++) {
		struct world world;

		world_begin(&world, 3, tcp);
		prepare_bcast(&world, OC_GRAPH_CHAIN, 0);
		/* Under way, but rank 1 has nobody to receive from. */
		assert_int_equal(oc_graph_issue(world.run[1], executor), 0);
		assert_int_equal(oc_graph_issue(world.run[2], executor), 0);
		oc_graph_run_free(world.run[1]);
		world.run[1] = NULL;
		free(world.buffer[1][0].base); /* sanitizers see who writes to it */
		world.buffer[1][0].base = NULL;
		assert_int_equal(oc_graph_wait(world.run[2]), -ECONNRESET);
		if (!oc_graph_issue(world.run[0], executor))
			assert_int_equal(oc_graph_wait(world.run[0]), -ECONNRESET);
		assert_non_null(strstr(oc_graph_links_error(world.links[1]), "freed"));
		world_end(&world);
	}
}

TEST(all_graphs_of_links_that_fail_end_with_the_error)
{
	enum { RUNS = 5 };
	struct oc_graph_run *run[RUNS];
	uint8_t bytes[RUNS][1000];
	struct world world;

	world_begin(&world, 2, false);
	for (int i = 0; i < RUNS; i++) {
		struct oc_graph_buffer buffer = { bytes[i], sizeof(bytes[i]) };
		struct oc_graph *graph;

		assert_int_equal(oc_graph_create(&graph), 0);
		assert_int_equal(oc_graph_recv(graph, 0, 0, 0, sizeof(bytes[i])), 0);
		assert_int_equal(
			oc_graph_prepare(&run[i], graph, world.links[1], &buffer, 1, NULL, 0), 0);
		oc_graph_free(graph);
		assert_int_equal(
			oc_graph_issue(run[i], (enum oc_graph_executor)(i % OC_GRAPH_EXECUTORS)),
			0);
	}
	assert_int_equal(oc_graph_links_free(world.links[0]), 0);
	world.links[0] = NULL;
	for (int i = RUNS - 1; i >= 0; i--) {
		assert_int_equal(oc_graph_wait(run[i]), -ECONNRESET);
		oc_graph_run_free(run[i]);
	}
	world_end(&world);
}

/* Leaves at once those who have no io_uring, where there is nothing to see. */
TEST(the_kernel_hands_on_a_broadcast_through_a_rank_that_makes_no_call)
{
	static int sockets[WORLD_MOST][WORLD_MOST];
	atomic_int *there =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(there != MAP_FAILED);
	if (oc_graph_uring_refusal())
		oct_skip("%s", oc_graph_uring_refusal());
	for (int tree = 0; tree < OC_GRAPH_TREES; tree++)
		for (int tcp = 0; tcp < 2; tcp++) {
			const uint32_t size = 4, relay = tree == OC_GRAPH_BINOMIAL ? 2 : 1;
			const enum oc_graph_tree of = (enum oc_graph_tree)tree;
			pid_t child[4];
			int status;

			world_sockets(size, tcp, sockets);
			atomic_store(there, 0);
			fflush(stdout);
			for (uint32_t r = 0; r < size; r++) {
				struct world world = { .size = size };
				struct oc_graph *graph;

				child[r] = fork();
				if (child[r])
					continue;
				for (uint32_t o = 0; o < size; o++)
					for (uint32_t p = 0; p < size && o != r; p++)
						close(sockets[o][p]);
				assert_int_equal(
					oc_graph_links_create(&world.links[r], sockets[r], size),
					0);
				assert_int_equal(
					oc_graph_bcast(&graph, of, r, size, 0, BYTES, 65536), 0);
				world_buffers(&world, r, BYTES, 0);
				if (!r)
					memset(world.buffer[r][0].base, 77, BYTES);
				world_prepare(&world, r, graph);
				assert_int_equal(oc_graph_issue(world.run[r], OC_GRAPH_URING), 0);
				assert_int_equal(oc_graph_executor(world.run[r]), OC_GRAPH_URING);
				/* The relay computes until all others have the bytes. */
				while (r == relay && atomic_load(there) < (int)size - 1)
					;
				assert_int_equal(oc_graph_wait(world.run[r]), 0);
				for (size_t i = 0; i < BYTES; i++)
					assert_int_equal(((uint8_t *)world.buffer[r][0].base)[i],
							 77);
				atomic_fetch_add(there, 1);
				/* Its end would end those who still send through it. */
				while (atomic_load(there) < (int)size)
					sched_yield();
				_exit(0);
			}
			for (uint32_t r = 0; r < size; r++)
				for (uint32_t p = 0; p < size; p++)
					close(sockets[r][p]);
			for (uint32_t r = 0; r < size; r++) {
				assert_int_equal(waitpid(child[r], &status, 0), child[r]);
				assert_int_equal(status, 0);
			}
		}
	munmap(there, 4096);
}

TEST(what_is_no_stream_socket_is_refused)
{
	int pair[2], sockets[2];
	struct oc_graph_links *links;

	assert_int_equal(pipe(pair), 0);
	sockets[0] = -1;
	sockets[1] = pair[0];
	assert_int_equal(oc_graph_links_create(&links, sockets, 2), -EINVAL);
	close(pair[0]);
	close(pair[1]);
	sockets[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(oc_graph_links_create(&links, sockets, 2), -EINVAL);
	close(sockets[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	sockets[1] = pair[0];
	assert_int_equal(oc_graph_links_create(&links, sockets, 2), -EINVAL);
	close(pair[0]);
	close(pair[1]);
	sockets[1] = 12345;
	assert_int_equal(oc_graph_links_create(&links, sockets, 2), -EINVAL);
}

/* ---- requests that the kernel does not take ---------------------------------------------------
 */

static int refused_in;	 /* calls from now on; 0: none */
static int refused_more; /* behind that one */

int io_uring_submit(struct io_uring *ring)
{
	static int (*next)(struct io_uring * ring);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "io_uring_submit");
	if (!refused_in && refused_more) {
		refused_more--;
		return -EAGAIN;
	}
	return refused_in && !--refused_in ? -EAGAIN : next(ring);
}

/* Peer 0 sends nothing, and what is behind it keeps requests under way when others are refused. */
static int wait_for_refused(int at, int more, bool *refused)
{
	static int32_t memory[1000];
	const struct oc_graph_buffer buffer = { memory, sizeof(memory) };
	const struct oc_graph_calc sum = { .op = OC_GRAPH_SUM,
					   .type = OC_GRAPH_INT32,
					   .from_offset = 400,
					   .to_offset = 800,
					   .count = 100 };
	int pair[3][2], socket[3], first, second, calc, result;
	struct oc_graph_links *links;
	struct oc_graph_run *run;
	struct oc_graph *graph;

	for (int p = 0; p < 3; p++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair[p]), 0);
		socket[p] = pair[p][0];
	}
	assert_int_equal(oc_graph_links_create(&links, socket, 3), 0);
	assert_int_equal(oc_graph_create(&graph), 0);
	first = oc_graph_recv(graph, 0, 0, 0, 40);
	oc_graph_recv(graph, 0, 0, 40, 40);
	oc_graph_recv(graph, 1, 0, 80, 40);
	second = oc_graph_recv(graph, 1, 0, 120, 40);
	oc_graph_connect(graph, first, second);
	first = oc_graph_recv(graph, 2, 0, 400, 400);
	calc = oc_graph_calc(graph, &sum);
	oc_graph_connect(graph, first, calc);
	for (uint64_t i = 0; i < 5; i++) {
		second = oc_graph_send(graph, 2, 0, 800 + i * 40, 40);
		assert_int_equal(oc_graph_connect(graph, calc, second), 0);
	}
	assert_int_equal(oc_graph_prepare(&run, graph, links, &buffer, 1, NULL, 0), 0);
	oc_graph_free(graph);
	refused_in = at;
	refused_more = more;
	result = oc_graph_issue(run, OC_GRAPH_URING);
	if (!result) {
		/* They may be shut by now. */
		send(pair[1][1], memory, 40, MSG_NOSIGNAL);
		usleep(10000);
		oc_graph_test(run);
		send(pair[2][1], memory, 400, MSG_NOSIGNAL);
		usleep(10000);
		oc_graph_test(run);
		/* Where only a tick was refused nothing else ends it. */
		shutdown(pair[0][1], SHUT_RDWR);
		result = oc_graph_wait(run);
	}
	*refused = !refused_in;
	refused_in = refused_more = 0;
	oc_graph_run_free(run);
	oc_graph_links_free(links);
	for (int p = 0; p < 3; p++)
		close(pair[p][1]);
	return result;
}

TEST(what_the_kernel_does_not_take_is_an_error_and_no_hang)
{
	if (oc_graph_uring_refusal())
		oct_skip("%s", oc_graph_uring_refusal());
	/* One, and more than the ring has places. */
	for (int more = 0; more <= 300; more += 300) {
		bool refused = true;
		int at = 0;

		while (refused && at < 8)
			assert_int_not_equal(wait_for_refused(++at, more, &refused), 0);
		assert_in_range(at, 4, 8);
	}
}
