/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs by the kernel module, where it is loaded (kernel/guest/mpi.sh loads it); who runs them
 * where it is not, or does not take them. */
#include "graph/world_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { BYTES = 200000 };

static enum oc_graph_executor without_module(void)
{
	return oc_graph_uring_refusal() ? OC_GRAPH_THREAD : OC_GRAPH_URING;
}

/* Prepared for all; the buffers hold what is given back. */
static void sums(struct world *world, enum oc_graph_type type)
{
	const size_t element = type == OC_GRAPH_INT64 ? 8 : sizeof(float), count = BYTES / element;

	for (uint32_t r = 0; r < world->size; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_BINARY, r, world->size, count,
						    type, OC_GRAPH_SUM, 16384),
				 0);
		world_buffers(world, r, BYTES,
			      oc_graph_scratch(OC_GRAPH_BINARY, r, world->size, 0, BYTES));
		for (size_t i = 0; i < count; i++) {
			int64_t *integers = world->buffer[r][0].base;
			float *floats = world->buffer[r][0].base;

			if (type == OC_GRAPH_INT64)
				integers[i] = (int64_t)(i * (r + 1));
			else
				floats[i] = (float)(i % 100 * (r + 1));
		}
		world_prepare(world, r, graph);
	}
}

TEST(the_module_runs_graphs_of_integers_over_tcp_and_others_go_on_without_it)
{
	static const struct {
		bool tcp;
		enum oc_graph_type type;
	} rows[] = { { true, OC_GRAPH_INT64 },
		     { true, OC_GRAPH_FLOAT },
		     { false, OC_GRAPH_INT64 } };

	for (int i = 0; i < 3; i++) {
		struct world world;

		world_begin(&world, 3, rows[i].tcp);
		sums(&world, rows[i].type);
		for (int again = 0; again < 3; again++) {
			assert_int_equal(world_run(&world, OC_GRAPH_KMOD), 0);
			for (uint32_t r = 0; r < 3; r++) {
				/* Rank 0 alone has CALCs. */
				bool taken = !oc_graph_kmod_refusal() && rows[i].tcp &&
					     (r || rows[i].type == OC_GRAPH_INT64);

				assert_int_equal(oc_graph_executor(world.run[r]),
						 taken ? OC_GRAPH_KMOD : without_module());
			}
		}
		/* The sum of three, then three times that, and that again. */
		for (uint32_t r = 0; r < 3; r++)
			if (rows[i].type == OC_GRAPH_INT64)
				assert_int_equal(((int64_t *)world.buffer[r][0].base)[1000],
						 6 * 9 * 1000);
			else
				assert_true(((float *)world.buffer[r][0].base)[1010] == 6 * 9 * 10);
		world_end(&world);
	}
}

TEST(what_is_refused_is_a_sentence_with_its_remedy)
{
	const char *refusal = oc_graph_kmod_refusal();

	if (access("/dev/onecopy", F_OK))
		assert_non_null(strstr(refusal, "modprobe onecopy"));
	else
		assert_null(refusal);
}

/* Its lanes were another's, and become another's again, whoever that is. */
TEST(graphs_of_the_module_keep_their_order_with_those_of_others)
{
	enum { GRAPHS = 12, LENGTH = 30000 };
	static uint8_t bytes[2][GRAPHS][LENGTH];
	struct oc_graph_run *run[2][GRAPHS];
	struct world world;

	for (int times = 0; times < 10; times++) {
		world_begin(&world, 2, true);
		for (uint32_t r = 0; r < 2; r++)
			for (int g = 0; g < GRAPHS; g++) {
				struct oc_graph_buffer buffer = { bytes[r][g], LENGTH };
				uint32_t root = (uint32_t)g % 2;
				struct oc_graph *graph;

				if (r == root)
					world_fill(bytes[r][g], LENGTH, (uint64_t)(times + g));
				assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_CHAIN, r, 2, root,
								LENGTH, 7000),
						 0);
				assert_int_equal(oc_graph_prepare(&run[r][g], graph, world.links[r],
								  &buffer, 1, NULL, 0),
						 0);
				oc_graph_free(graph);
				assert_int_equal(oc_graph_issue(run[r][g],
								draw(2) ? OC_GRAPH_KMOD :
									  draw(OC_GRAPH_EXECUTORS)),
						 0);
			}
		for (int g = 0; g < GRAPHS; g++)
			for (uint32_t r = 0; r < 2; r++)
				while (!oc_graph_test(run[r][g]))
					assert_true(oc_graph_test(run[!r][g]) >= 0);
		for (int g = 0; g < GRAPHS; g++) {
			for (uint32_t r = 0; r < 2; r++) {
				assert_int_equal(oc_graph_test(run[r][g]), 1);
				oc_graph_run_free(run[r][g]);
			}
			assert_memory_equal(bytes[0][g], bytes[1][g], LENGTH);
		}
		world_end(&world);
	}
}

/* Rank 1 makes no call until the others have the sum. */
static void sum_with_a_rank_that_computes(atomic_int *there, uint32_t r, int *sockets)
{
	struct world world = { .size = 3 };
	struct oc_graph *graph;
	int64_t *sum;

	assert_int_equal(oc_graph_links_create(&world.links[r], sockets, 3), 0);
	assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_CHAIN, r, 3, BYTES / 8, OC_GRAPH_INT64,
					    OC_GRAPH_SUM, 16384),
			 0);
	world_buffers(&world, r, BYTES, oc_graph_scratch(OC_GRAPH_CHAIN, r, 3, 0, BYTES));
	world_prepare(&world, r, graph);
	sum = world.buffer[r][0].base;
	for (int64_t i = 0; i < BYTES / 8; i++)
		sum[i] = i * (r + 1);
	assert_int_equal(oc_graph_issue(world.run[r], OC_GRAPH_KMOD), 0);
	while (r == 1 && atomic_load(there) < 2)
		;
	assert_int_equal(oc_graph_wait(world.run[r]), 0);
	for (int64_t i = 0; i < BYTES / 8; i++)
		assert_int_equal(sum[i], 6 * i);
	atomic_fetch_add(there, 1);
	/* Its end would end those who still send through it. */
	while (atomic_load(there) < 3)
		sched_yield();
}

TEST(the_module_computes_for_a_rank_that_makes_no_call)
{
	static int sockets[WORLD_MOST][WORLD_MOST];
	atomic_int *there =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child[3];

	assert_true(there != MAP_FAILED);
	if (oc_graph_kmod_refusal())
		return; /* said by the tests above */
	world_sockets(3, true, sockets);
	fflush(stdout);
	for (uint32_t r = 0; r < 3; r++) {
		child[r] = fork();
		if (child[r])
			continue;
		for (uint32_t o = 0; o < 3; o++)
			for (uint32_t p = 0; p < 3; p++)
				if (o != r && o != p)
					close(sockets[o][p]);
		sum_with_a_rank_that_computes(there, r, sockets[r]);
		_exit(0);
	}
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t p = 0; p < 3; p++)
			close(sockets[r][p]);
	for (uint32_t r = 0; r < 3; r++) {
		int status;

		assert_int_equal(waitpid(child[r], &status, 0), child[r]);
		assert_int_equal(status, 0);
	}
	munmap(there, 4096);
}
