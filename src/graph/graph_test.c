/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs by every executor, over socketpairs and TCP: right bytes, whatever is outstanding. For
 * ThreadSanitizer, too: the links of the executor thread call pthread_create(). */
#include "graph/uring.h"
#include "graph/world_test.h"

#include <fcntl.h>

#define EACH_EXECUTOR(e) for (enum oc_graph_executor e = OC_GRAPH_AUTO; e < world_executors(); e++)

static void bcast(struct world *world, enum oc_graph_executor executor, enum oc_graph_tree tree,
		  uint32_t root, size_t bytes, size_t segment)
{
	static unsigned int times;
	uint8_t *expected = malloc(bytes);

	for (uint32_t r = 0; r < world->size; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_bcast(&graph, tree, r, world->size, root, bytes, segment),
				 0);
		world_buffers(world, r, bytes, 0);
		world_prepare(world, r, graph);
	}
	/* Again, unless it is so long that to compare it would be most of the time. */
	for (int again = 0; again < (bytes < 1000000 ? 3 : 1); again++) {
		times++;
		world_fill(expected, bytes, times);
		memcpy(world->buffer[root][0].base, expected, bytes);
		assert_int_equal(world_run(world, executor), 0);
		for (uint32_t r = 0; r < world->size; r++)
			assert_memory_equal(world->buffer[r][0].base, expected, bytes);
	}
	free(expected);
	world_forget_runs(world);
}

TEST(a_bcast_brings_the_bytes_of_any_root_to_all_by_every_executor)
{
	static const uint32_t sizes[] = { 1, 2, 3, 5, 8, 13 };
	struct world world;

	EACH_EXECUTOR(executor)
	for (int tcp = 0; tcp < 2; tcp++)
		for (unsigned int s = 0; s < 6; s++) {
			world_begin(&world, sizes[s], tcp);
			for (int tree = 0; tree < OC_GRAPH_TREES; tree++) {
				uint32_t root = (uint32_t)draw(sizes[s]);

				bcast(&world, executor, tree, root, 1, 0);
				bcast(&world, executor, tree, root, 5000, 999);
				bcast(&world, executor, tree, root, 300000, 65536);
			}
			world_end(&world);
		}
}

TEST(a_message_larger_than_all_buffers_of_the_sockets_arrives)
{
	struct world world;

	EACH_EXECUTOR(executor)
	for (int tcp = 0; tcp < 2; tcp++) {
		world_begin(&world, 4, tcp);
		bcast(&world, executor, OC_GRAPH_CHAIN, 1, 12000001, 0);
		bcast(&world, executor, OC_GRAPH_BINARY, 2, 12000001, 65536);
		world_end(&world);
	}
}

TEST(a_reduction_combines_what_all_ranks_have)
{
	struct world world;

	EACH_EXECUTOR(executor)
	for (uint32_t size = 1; size <= 9; size += size < 4 ? 1 : 5)
		for (int tree = 0; tree < OC_GRAPH_TREES; tree++) {
			const size_t count = 3001, bytes = count * sizeof(int64_t);
			uint32_t root = size / 2;

			world_begin(&world, size, size % 2);
			for (uint32_t r = 0; r < size; r++) {
				struct oc_graph *graph;

				assert_int_equal(oc_graph_reduce(&graph, tree, r, size, root, count,
								 OC_GRAPH_INT64, OC_GRAPH_SUM,
								 4099),
						 0);
				world_buffers(&world, r, bytes,
					      oc_graph_scratch(tree, r, size, root, bytes));
				for (size_t i = 0; i < count; i++)
					((int64_t *)world.buffer[r][0].base)[i] =
						(int64_t)(i * (r + 1));
				world_prepare(&world, r, graph);
			}
			assert_int_equal(world_run(&world, executor), 0);
			for (size_t i = 0; i < count; i++)
				assert_int_equal(((int64_t *)world.buffer[root][0].base)[i],
						 i * size * (size + 1) / 2);
			world_end(&world);
		}
}

/* ---- many at once -----------------------------------------------------------------------------
 */

TEST(a_hundred_graphs_on_the_same_links_keep_their_order_under_mixed_executors)
{
	enum { SIZE = 3, GRAPHS = 100, BYTES = 3000 };
	static struct oc_graph_run *run[SIZE][GRAPHS];
	static uint8_t bytes[SIZE][GRAPHS][BYTES];
	struct world world;

	for (int tcp = 0; tcp < 2; tcp++) {
		int left = SIZE * GRAPHS;

		world_begin(&world, SIZE, tcp);
		memset(bytes, 0, sizeof(bytes));
		for (uint32_t r = 0; r < SIZE; r++)
			for (int g = 0; g < GRAPHS; g++) {
				struct oc_graph_buffer buffer = { bytes[r][g], BYTES };
				struct oc_graph *graph;
				uint32_t root = (uint32_t)g % SIZE;

				assert_int_equal(oc_graph_bcast(&graph, g % OC_GRAPH_TREES, r, SIZE,
								root, BYTES, 700),
						 0);
				if (r == root)
					for (size_t i = 0; i < BYTES; i++)
						bytes[r][g][i] = world_byte((uint64_t)g, i);
				assert_int_equal(oc_graph_prepare(&run[r][g], graph, world.links[r],
								  &buffer, 1, NULL, 0),
						 0);
				oc_graph_free(graph);
				assert_int_equal(
					oc_graph_issue(run[r][g], draw(OC_GRAPH_EXECUTORS)), 0);
			}
		while (left)
			for (uint32_t r = 0; r < SIZE; r++) {
				/* Any of them, also one that others come before. */
				int g = (int)draw(GRAPHS);
				int result = run[r][g] ? oc_graph_test(run[r][g]) : 0;

				assert_true(result >= 0);
				if (!result)
					continue;
				oc_graph_run_free(run[r][g]);
				run[r][g] = NULL;
				left--;
			}
		for (uint32_t r = 0; r < SIZE; r++)
			for (int g = 0; g < GRAPHS; g++)
				for (size_t i = 0; i < BYTES; i++)
					assert_int_equal(bytes[r][g][i],
							 world_byte((uint64_t)g, i));
		world_end(&world);
	}
}

/* Both directions of a link at once, each larger than its buffers: serialised they would block. */
TEST(messages_that_cross_do_not_wait_for_each_other)
{
	enum { BYTES = 8 << 20 };
	struct world world;

	EACH_EXECUTOR(executor)
	{
		world_begin(&world, 2, false);
		for (uint32_t r = 0; r < 2; r++) {
			struct oc_graph *graph;

			world_buffers(&world, r, BYTES, BYTES);
			memset(world.buffer[r][0].base, (int)r + 1, BYTES);
			assert_int_equal(oc_graph_create(&graph), 0);
			for (size_t at = 0; at < BYTES; at += BYTES / 4) {
				assert_true(oc_graph_send(graph, !r, 0, at, BYTES / 4) >= 0);
				assert_true(oc_graph_recv(graph, !r, 1, at, BYTES / 4) >= 0);
			}
			world_prepare(&world, r, graph);
		}
		assert_int_equal(world_run(&world, executor), 0);
		for (uint32_t r = 0; r < 2; r++)
			for (size_t i = 0; i < BYTES; i += 4093)
				assert_int_equal(((uint8_t *)world.buffer[r][1].base)[i], 2 - r);
		world_end(&world);
	}
}

TEST(a_run_is_refused_while_it_is_under_way_and_links_while_a_run_is_left)
{
	struct oc_graph *graph;
	struct world world;

	world_begin(&world, 2, false);
	for (uint32_t r = 0; r < 2; r++) {
		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_CHAIN, r, 2, 0, 100, 0), 0);
		world_buffers(&world, r, 100, 0);
		world_prepare(&world, r, graph);
	}
	assert_int_equal(oc_graph_issue(world.run[1], OC_GRAPH_URING), 0);
	assert_int_equal(oc_graph_issue(world.run[1], OC_GRAPH_URING), -EBUSY);
	assert_int_equal(oc_graph_test(world.run[1]), 0);
	assert_int_equal(oc_graph_links_free(world.links[1]), -EBUSY);
	assert_int_equal(oc_graph_issue(world.run[0], OC_GRAPH_CALLER), 0);
	assert_int_equal(oc_graph_wait(world.run[0]), 0);
	assert_int_equal(oc_graph_wait(world.run[1]), 0);
	world_end(&world);
}

TEST(a_graph_of_nothing_is_over_at_once)
{
	struct oc_graph *graph;
	struct world world;

	EACH_EXECUTOR(executor)
	{
		world_begin(&world, 1, false);
		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_BINARY, 0, 1, 0, 100, 10), 0);
		world_buffers(&world, 0, 100, 0);
		world_prepare(&world, 0, graph);
		assert_int_equal(oc_graph_issue(world.run[0], executor), 0);
		assert_int_equal(oc_graph_wait(world.run[0]), 0);
		world_end(&world);
	}
}

/* ---- what the kernel is handed -----------------------------------------------------------------
 */

static struct oc_graph *new_graph(void)
{
	struct oc_graph *graph;

	assert_int_equal(oc_graph_create(&graph), 0);
	return graph;
}

enum { FEW = 10000 };

/* Two ranks with a byte for each node; of rank 0's few, no two near each other are alike. */
static void pair_begin(struct world *world, size_t bytes)
{
	world_begin(world, 2, draw(2));
	for (uint32_t r = 0; r < 2; r++)
		world_buffers(world, r, bytes, 1);
	if (bytes > FEW)
		world_fill(world->buffer[0][0].base, bytes, 7);
	for (size_t i = 0; i < bytes && bytes <= FEW; i++)
		((uint8_t *)world->buffer[0][0].base)[i] = world_byte(7, i);
}

static void same_bytes(const struct world *world, size_t bytes)
{
	assert_memory_equal(world->buffer[0][0].base, world->buffer[1][0].base, bytes);
}

TEST(nothing_overtakes_a_node_of_several_requests)
{
	enum { FIRST = 250000, SECOND = 3000 };
	uint64_t usual = oci_uring_bytes;
	struct world world;

	oci_uring_bytes = 1000;
	EACH_EXECUTOR(executor)
	for (int times = 0; times < 5; times++) {
		struct oc_graph *to = new_graph(), *from = new_graph();
		uint8_t *back;

		pair_begin(&world, FIRST + SECOND);
		assert_int_equal(oc_graph_send(to, 1, 0, 0, FIRST), 0);
		assert_int_equal(oc_graph_send(to, 1, 0, FIRST, SECOND), 1);
		assert_int_equal(oc_graph_recv(to, 1, 1, 0, 1), 2);
		assert_int_equal(oc_graph_recv(from, 0, 0, 0, FIRST), 0);
		assert_int_equal(oc_graph_recv(from, 0, 0, FIRST, SECOND), 1);
		/* The last byte of the first. */
		assert_int_equal(oc_graph_send(from, 0, 0, FIRST - 1, 1), 2);
		assert_int_equal(oc_graph_connect(from, 0, 2), 0);
		world_prepare(&world, 0, to);
		world_prepare(&world, 1, from);
		assert_int_equal(world_run(&world, executor), 0);
		same_bytes(&world, FIRST + SECOND);
		back = world.buffer[0][1].base;
		assert_int_equal(*back, ((uint8_t *)world.buffer[0][0].base)[FIRST - 1]);
		world_end(&world);
	}
	oci_uring_bytes = usual;
}

TEST(a_node_may_wait_for_thousands)
{
	enum { MANY = 4200 };
	struct world world;

	EACH_EXECUTOR(executor)
	{
		struct oc_graph *to = new_graph(), *from = new_graph();

		pair_begin(&world, MANY);
		for (int n = 0; n < MANY; n++) {
			assert_int_equal(oc_graph_send(to, 1, 0, (size_t)n, 1), n);
			assert_int_equal(oc_graph_recv(from, 0, 0, (size_t)n, 1), n);
		}
		assert_int_equal(oc_graph_recv(to, 1, 1, 0, 1), MANY);
		assert_int_equal(oc_graph_send(from, 0, 0, MANY - 1, 1), MANY);
		for (int n = 0; n < MANY; n++)
			assert_int_equal(oc_graph_connect(from, n, MANY), 0);
		world_prepare(&world, 0, to);
		world_prepare(&world, 1, from);
		assert_int_equal(world_run(&world, executor), 0);
		same_bytes(&world, MANY);
		world_end(&world);
	}
}

TEST(what_can_move_is_not_held_up_by_thousands_that_cannot)
{
	enum { MANY = 9000 };
	struct world world;

	EACH_EXECUTOR(executor)
	{
		struct oc_graph *to = new_graph(), *from = new_graph();

		pair_begin(&world, MANY);
		assert_int_equal(oc_graph_recv(to, 1, 1, 0, 1), 0);
		for (int n = 0; n < MANY; n++) {
			assert_int_equal(oc_graph_send(to, 1, 0, (size_t)n, 1), n + 1);
			assert_int_equal(oc_graph_connect(to, 0, n + 1), 0);
			assert_int_equal(oc_graph_recv(from, 0, 0, (size_t)n, 1), n);
		}
		assert_int_equal(oc_graph_send(from, 0, 1, 0, 1), MANY);
		world_prepare(&world, 0, to);
		world_prepare(&world, 1, from);
		assert_int_equal(world_run(&world, executor), 0);
		same_bytes(&world, MANY);
		world_end(&world);
	}
}

/* Which the program's calls drive: whichever run of these links they ask. */
TEST(a_run_of_the_threads_gets_its_lane_while_it_alone_is_asked)
{
	struct oc_graph *first = new_graph(), *second = new_graph(), *other = new_graph();
	struct oc_graph_run *run;
	struct world world;
	int over = 0;

	pair_begin(&world, 2);
	assert_int_equal(oc_graph_recv(first, 1, 0, 0, 1), 0);
	assert_int_equal(oc_graph_recv(second, 1, 0, 1, 1), 0);
	assert_int_equal(oc_graph_send(other, 0, 0, 0, 2), 0);
	assert_int_equal(oc_graph_prepare(&run, first, world.links[0], world.buffer[0], 2, NULL, 0),
			 0);
	oc_graph_free(first);
	world_prepare(&world, 0, second);
	world_prepare(&world, 1, other);
	assert_int_equal(oc_graph_issue(run, OC_GRAPH_CALLER), 0);
	assert_int_equal(oc_graph_issue(world.run[0], OC_GRAPH_THREAD), 0);
	assert_int_equal(oc_graph_issue(world.run[1], OC_GRAPH_CALLER), 0);
	assert_int_equal(oc_graph_wait(world.run[1]), 0);
	while (!over)
		over = oc_graph_test(world.run[0]);
	assert_int_equal(over, 1);
	assert_int_equal(oc_graph_wait(run), 0);
	oc_graph_run_free(run);
	world_end(&world);
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* But for the ring. */
TEST(a_graph_that_is_over_has_no_pipes)
{
	struct oc_graph *to = new_graph(), *from = new_graph();
	struct world world;
	int before;

	if (oc_graph_uring_refusal())
		oct_skip("io_uring is forbidden here");
	world_begin(&world, 4, false);
	for (uint32_t r = 0; r < 4; r++)
		world_buffers(&world, r, 9000, 0);
	/* Each send waits for what another lane brings. */
	assert_int_equal(oc_graph_recv(to, 1, 0, 0, 9000), 0);
	assert_int_equal(oc_graph_send(to, 2, 0, 0, 9000), 1);
	assert_int_equal(oc_graph_send(to, 3, 0, 0, 9000), 2);
	assert_int_equal(oc_graph_connect(to, 0, 1), 0);
	assert_int_equal(oc_graph_connect(to, 0, 2), 0);
	world_prepare(&world, 0, to);
	assert_int_equal(oc_graph_send(from, 0, 0, 0, 9000), 0);
	world_prepare(&world, 1, from);
	for (uint32_t r = 2; r < 4; r++) {
		struct oc_graph *graph = new_graph();

		assert_int_equal(oc_graph_recv(graph, 0, 0, 0, 9000), 0);
		world_prepare(&world, r, graph);
	}
	before = descriptors();
	assert_int_equal(oc_graph_issue(world.run[0], OC_GRAPH_URING), 0);
	assert_true(descriptors() > before + 1);
	for (uint32_t r = 1; r < 4; r++)
		assert_int_equal(oc_graph_issue(world.run[r], OC_GRAPH_CALLER), 0);
	for (uint32_t r = 0; r < 4; r++)
		assert_int_equal(oc_graph_wait(world.run[r]), 0);
	assert_int_equal(descriptors(), before + 1);
	world_end(&world);
}

/* The kernel has a part of the second graph in hand when the thread is done with the first. */
TEST(a_graph_that_gets_a_lane_from_the_thread_goes_on)
{
	enum { BYTES = 4000000 };
	struct world world;

	for (int times = 0; times < 20; times++) {
		struct oc_graph *first = new_graph(), *second = new_graph(), *other = new_graph();
		struct oc_graph_run *run;

		pair_begin(&world, BYTES);
		assert_int_equal(oc_graph_send(first, 1, 0, 0, BYTES), 0);
		assert_int_equal(oc_graph_recv(second, 1, 1, 0, 1), 0);
		assert_int_equal(oc_graph_send(second, 1, 0, 9, 1), 1);
		assert_int_equal(oc_graph_recv(other, 0, 0, 0, BYTES), 0);
		assert_int_equal(oc_graph_recv(other, 0, 1, 0, 1), 1);
		assert_int_equal(oc_graph_send(other, 0, 1, 0, 1), 2);
		assert_int_equal(oc_graph_connect(other, 1, 2), 0);
		assert_int_equal(
			oc_graph_prepare(&run, first, world.links[0], world.buffer[0], 2, NULL, 0),
			0);
		oc_graph_free(first);
		world_prepare(&world, 0, second);
		world_prepare(&world, 1, other);
		assert_int_equal(oc_graph_issue(run, OC_GRAPH_THREAD), 0);
		assert_int_equal(oc_graph_issue(world.run[0], OC_GRAPH_URING), 0);
		assert_int_equal(oc_graph_issue(world.run[1], OC_GRAPH_THREAD), 0);
		assert_int_equal(oc_graph_wait(world.run[0]), 0);
		assert_int_equal(oc_graph_wait(world.run[1]), 0);
		assert_int_equal(oc_graph_wait(run), 0);
		same_bytes(&world, BYTES);
		assert_int_equal(*(uint8_t *)world.buffer[0][1].base,
				 ((uint8_t *)world.buffer[0][0].base)[9]);
		oc_graph_run_free(run);
		world_end(&world);
	}
}
