/* SPDX-License-Identifier: BSD-3-Clause */
/* The ready-made graphs of 1 to 33 ranks and random ones, proven, then (few ranks) run; and faults,
 * each found by its own sentence. */
#include "graph/world_test.h"
#include "lab/check/graph.h"

static char sentence[256];

struct proof {
	uint32_t size;
	struct oci_graph_rank ranks[WORLD_MOST];
	struct oc_graph *graphs[WORLD_MOST];
	struct oc_graph_buffer buffers[WORLD_MOST][2];
};

static void give(struct proof *proof, uint32_t rank, struct oc_graph *graph, size_t first,
		 size_t second)
{
	struct oci_graph_rank *r = &proof->ranks[rank];

	proof->graphs[rank] = graph;
	proof->buffers[rank][0] = (struct oc_graph_buffer){ calloc(1, first + 1), first };
	proof->buffers[rank][1] = (struct oc_graph_buffer){ calloc(1, second + 1), second };
	r->packed = oc_graph_pack(graph, &r->bytes);
	r->buffers = proof->buffers[rank];
	r->buffer_count = 2;
}

static int prove(struct proof *proof, size_t room)
{
	*sentence = 0;
	return oci_graph_prove(proof->ranks, proof->size, room, draw(UINT32_MAX), sentence,
			       sizeof(sentence));
}

static void forget(struct proof *proof)
{
	for (uint32_t r = 0; r < proof->size; r++) {
		oc_graph_free(proof->graphs[r]);
		free(proof->buffers[r][0].base);
		free(proof->buffers[r][1].base);
	}
}

TEST(every_broadcast_of_1_to_33_ranks_is_right)
{
	static const size_t bytes[] = { 0, 1, 7, 1000 }, rooms[] = { 0, 1, 64, 5000 };

	for (uint32_t size = 1; size <= 33; size++)
		for (int tree = 0; tree < OC_GRAPH_TREES; tree++)
			for (int i = 0; i < 4; i++) {
				struct proof proof = { .size = size };
				uint32_t root = (uint32_t)draw(size);

				for (uint32_t r = 0; r < size; r++) {
					struct oc_graph *graph;

					assert_int_equal(oc_graph_bcast(&graph,
									(enum oc_graph_tree)tree, r,
									size, root, bytes[i],
									i % 2 ? 0 : 33),
							 0);
					give(&proof, r, graph, bytes[i], 0);
				}
				for (size_t at = 0; at < bytes[i]; at++)
					((uint8_t *)proof.buffers[root][0].base)[at] =
						world_byte(size, at);
				if (prove(&proof, rooms[(size + (uint32_t)i) % 4]))
					fail_msg("%s", sentence);
				for (uint32_t r = 0; r < size; r++)
					for (size_t at = 0; at < bytes[i]; at++)
						assert_int_equal(
							((uint8_t *)proof.buffers[r][0].base)[at],
							world_byte(size, at));
				forget(&proof);
			}
}

/* In segments of these bytes; to a root, or to all. */
static void prove_reduction(uint32_t size, enum oc_graph_tree tree, bool all, size_t segment,
			    size_t room)
{
	const size_t count = 50, bytes = count * 8;
	struct proof proof = { .size = size };
	uint32_t root = all ? 0 : (uint32_t)draw(size);

	for (uint32_t r = 0; r < size; r++) {
		struct oc_graph *graph;

		assert_int_equal(all ? oc_graph_allreduce(&graph, tree, r, size, count,
							  OC_GRAPH_UINT64, OC_GRAPH_SUM, segment) :
				       oc_graph_reduce(&graph, tree, r, size, root, count,
						       OC_GRAPH_UINT64, OC_GRAPH_SUM, segment),
				 0);
		give(&proof, r, graph, bytes, oc_graph_scratch(tree, r, size, root, bytes));
		for (size_t i = 0; i < count; i++)
			((uint64_t *)proof.buffers[r][0].base)[i] = i + ((uint64_t)1 << r);
	}
	if (prove(&proof, room))
		fail_msg("%s", sentence);
	for (uint32_t r = 0; r < size; r++)
		for (size_t i = 0; i < count && (all || r == root); i++)
			assert_int_equal(((uint64_t *)proof.buffers[r][0].base)[i],
					 i * size + ((uint64_t)1 << size) - 1);
	forget(&proof);
}

TEST(every_reduction_of_1_to_33_ranks_is_right)
{
	static const size_t rooms[] = { 0, 3, 5000 }, segments[] = { 0, 1, 100, 399 };

	for (uint32_t size = 1; size <= 33; size++)
		for (int tree = 0; tree < OC_GRAPH_TREES; tree++)
			for (int all = 0; all < 2; all++)
				prove_reduction(size, (enum oc_graph_tree)tree, all,
						segments[draw(4)], rooms[draw(3)]);
}

/* ---- random graphs -----------------------------------------------------------------------------
 */

enum { RANKS = 5, MESSAGES = 120, PARTS = 1 + 2 * MESSAGES, PART = 3000, HALF = PARTS * PART };

/*
 * Messages between random ranks, one after the other: so there is an order in which all can go, and
 * no executor may need another one. What is received lies in new bytes, which are sent on, or
 * computed with, by nodes with an edge to it. `want` is computed meanwhile.
 */
static void make_random(struct oc_graph *graphs[RANKS], uint8_t *want[RANKS])
{
	size_t used[RANKS];
	int *made_by[RANKS]; /* the node that writes a part; -1: none */

	for (int r = 0; r < RANKS; r++) {
		assert_int_equal(oc_graph_create(&graphs[r]), 0);
		made_by[r] = malloc(PARTS * sizeof(int));
		made_by[r][0] = -1;
		used[r] = 1;
		for (size_t i = 0; i < PART; i++)
			want[r][i] = world_byte((uint64_t)r, i);
	}
	for (int m = 0; m < MESSAGES; m++) {
		uint32_t from = (uint32_t)draw(RANKS),
			 to = (uint32_t)((from + 1 + draw(RANKS - 1)) % RANKS);
		size_t bytes = 1 + draw(PART), part = draw(used[from]), into = used[to]++;
		int sent = oc_graph_send(graphs[from], to, 0, part * PART, bytes);
		int received = oc_graph_recv(graphs[to], from, 0, into * PART, bytes);

		assert_true(sent >= 0 && received >= 0);
		if (made_by[from][part] >= 0)
			assert_int_equal(oc_graph_connect(graphs[from], made_by[from][part], sent),
					 0);
		made_by[to][into] = received;
		memset(want[to] + into * PART, 0, PART);
		memcpy(want[to] + into * PART, want[from] + part * PART, bytes);
		if (!draw(3)) {
			/* A new part of two. */
			size_t a = draw(used[to]), sum = used[to]++;
			struct oc_graph_calc calc = { .op = OC_GRAPH_SUM,
						      .type = OC_GRAPH_UINT8,
						      .to_offset = sum * PART,
						      .count = PART };
			const size_t parts[2] = { a, into };
			int last = -1;

			memset(want[to] + sum * PART, 0, PART);
			for (int i = 0; i < 2; i++) {
				int node;

				calc.from_offset = parts[i] * PART;
				node = oc_graph_calc(graphs[to], &calc);
				assert_true(node >= 0);
				if (made_by[to][parts[i]] >= 0)
					assert_int_equal(oc_graph_connect(graphs[to],
									  made_by[to][parts[i]],
									  node),
							 0);
				if (last >= 0)
					assert_int_equal(oc_graph_connect(graphs[to], last, node),
							 0);
				last = node;
				for (size_t b = 0; b < PART; b++)
					want[to][sum * PART + b] =
						(uint8_t)(want[to][sum * PART + b] +
							  want[to][parts[i] * PART + b]);
			}
			made_by[to][sum] = last;
		}
	}
	for (int r = 0; r < RANKS; r++) {
		memset(want[r] + used[r] * PART, 0, HALF - used[r] * PART);
		free(made_by[r]);
	}
}

TEST(random_graphs_are_proven_and_give_the_same_bytes_by_every_executor)
{
	uint8_t *want[RANKS];

	for (int r = 0; r < RANKS; r++)
		want[r] = malloc(HALF);
	for (int times = 0; times < 12; times++) {
		struct proof proof = { .size = RANKS };
		struct world world;
		struct oc_graph *graphs[RANKS];

		make_random(graphs, want);
		for (uint32_t r = 0; r < RANKS; r++) {
			give(&proof, r, graphs[r], HALF, 0);
			memcpy(proof.buffers[r][0].base, want[r], PART);
		}
		if (prove(&proof, times % 2 ? 0 : 700))
			fail_msg("%s", sentence);
		for (uint32_t r = 0; r < RANKS; r++)
			assert_memory_equal(proof.buffers[r][0].base, want[r], HALF);
		world_begin(&world, RANKS, times % 2);
		for (enum oc_graph_executor e = OC_GRAPH_AUTO; e < world_executors(); e++) {
			for (uint32_t r = 0; r < RANKS; r++) {
				struct oc_graph *again;

				world_buffers(&world, r, HALF, 0);
				memset(world.buffer[r][0].base, 0, HALF);
				memcpy(world.buffer[r][0].base, want[r], PART);
				assert_int_equal(oc_graph_unpack(&again, proof.ranks[r].packed,
								 proof.ranks[r].bytes),
						 0);
				world_prepare(&world, r, again);
			}
			assert_int_equal(world_run(&world, e), 0);
			for (uint32_t r = 0; r < RANKS; r++)
				assert_memory_equal(world.buffer[r][0].base, want[r], HALF);
			world_forget_runs(&world);
		}
		world_end(&world);
		forget(&proof);
	}
	for (int r = 0; r < RANKS; r++)
		free(want[r]);
}

/* ---- faults -----------------------------------------------------------------------------------
 */

/* Two ranks with a SEND and a RECV each, of so many bytes; edges as told. */
static int two(size_t sent, size_t received, bool send_first, bool receive_first, size_t room)
{
	struct proof proof = { .size = 2 };
	int err;

	for (uint32_t r = 0; r < 2; r++) {
		struct oc_graph *graph;

		assert_int_equal(oc_graph_create(&graph), 0);
		if (receive_first)
			assert_int_equal(oc_graph_recv(graph, !r, 1, 0, received), 0);
		assert_true(oc_graph_send(graph, !r, 0, 0, sent) >= 0);
		if (!receive_first)
			assert_int_equal(oc_graph_recv(graph, !r, 1, 0, received), 1);
		if (send_first || receive_first)
			assert_int_equal(oc_graph_connect(graph, 0, 1), 0);
		give(&proof, r, graph, 100, 100);
	}
	err = prove(&proof, room);
	forget(&proof);
	return err;
}

TEST(ranks_that_wait_for_each_other_are_found)
{
	assert_int_equal(two(50, 50, false, false, 0), 0);
	/* Each sends before it receives: that needs room on the link. */
	assert_int_equal(two(50, 50, true, false, 0), -EINVAL);
	assert_non_null(strstr(sentence, "rank 0 waits for ever in node 0, a SEND"));
	assert_int_equal(two(50, 50, true, false, 50), 0);
	assert_int_equal(two(50, 50, false, true, 50), -EINVAL);
	assert_non_null(strstr(sentence, "a RECV"));
}

TEST(bytes_that_nobody_receives_or_sends_are_found)
{
	assert_int_equal(two(51, 50, false, false, 60), -EINVAL);
	assert_non_null(strstr(sentence, "never receives"));
	assert_int_equal(two(50, 51, false, false, 60), -EINVAL);
	assert_non_null(strstr(sentence, "50 bytes were sent and 50 received"));
	assert_int_equal(two(101, 50, false, false, 0), -EINVAL);
	assert_non_null(strstr(sentence, "no graph"));
}

TEST(nodes_that_touch_the_same_bytes_without_an_edge_are_found)
{
	for (int connected = 0; connected < 2; connected++) {
		struct proof proof = { .size = 2 };
		struct oc_graph *graph;

		assert_int_equal(oc_graph_bcast(&graph, OC_GRAPH_CHAIN, 0, 2, 0, 10, 0), 0);
		give(&proof, 0, graph, 10, 0);
		assert_int_equal(oc_graph_create(&graph), 0);
		assert_int_equal(oc_graph_recv(graph, 0, 0, 0, 10), 0);
		assert_int_equal(
			oc_graph_calc(graph, &(struct oc_graph_calc){ .from = 0,
								      .to = 0,
								      .from_offset = 5,
								      .to_offset = 10,
								      .type = OC_GRAPH_INT8,
								      .count = 5 }),
			1);
		if (connected)
			assert_int_equal(oc_graph_connect(graph, 0, 1), 0);
		give(&proof, 1, graph, 20, 0);
		assert_int_equal(prove(&proof, 0), connected ? 0 : -EINVAL);
		if (!connected)
			assert_string_equal(
				sentence, "rank 1: nodes 0 and 1 touch the same bytes, and neither "
					  "waits for the other");
		forget(&proof);
	}
}
