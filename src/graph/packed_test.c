/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packed graphs, valid and hostile. What is refused is refused with -EINVAL; what is taken can be
 * bound to buffers of any size and run, and touches nothing else. The same mutations in each run.
 */
#include "graph/packed.h"
#include "graph/world_test.h"

enum { MUTATIONS = 30000 };

static void user_op(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *from = in;
	uint8_t *to = inout;

	*(size_t *)context += count;
	for (size_t i = 0; i < 24 * count; i++)
		to[i] ^= from[i];
}

static struct oc_graph *some_graph(void)
{
	struct oc_graph *graph;

	if (draw(2)) {
		assert_int_equal(oc_graph_reduce(&graph, (enum oc_graph_tree)draw(OC_GRAPH_TREES),
						 1, 6, 0, 40, OC_GRAPH_INT32, OC_GRAPH_MAX, 64),
				 0);
	} else {
		assert_int_equal(oc_graph_bcast(&graph, (enum oc_graph_tree)draw(OC_GRAPH_TREES), 1,
						6, 0, 900, 200),
				 0);
	}
	if (draw(2)) {
		struct oc_graph_calc calc = { .op = OC_GRAPH_USER, .from = 1, .count = 2 };

		assert_true(oc_graph_calc(graph, &calc) >= 0);
	}
	return graph;
}

TEST(a_graph_comes_back_from_its_packed_form)
{
	for (int i = 0; i < 100; i++) {
		struct oc_graph *graph = some_graph(), *again;
		size_t bytes, again_bytes;
		const void *packed = oc_graph_pack(graph, &bytes);
		void *moved = malloc(bytes + 1); /* wherever it lies, aligned or not */
		const void *packed_again;

		assert_non_null(packed);
		memcpy((char *)moved + 1, packed, bytes);
		assert_int_equal(oc_graph_unpack(&again, (char *)moved + 1, bytes), 0);
		packed_again = oc_graph_pack(again, &again_bytes);
		assert_int_equal(bytes, again_bytes);
		assert_memory_equal(packed, packed_again, bytes);
		free(moved);
		oc_graph_free(graph);
		oc_graph_free(again);
	}
}

TEST(a_hostile_graph_is_refused_or_stays_within_its_buffers)
{
	unsigned int taken = 0, refused = 0;

	for (int i = 0; i < MUTATIONS; i++) {
		struct oc_graph *graph = some_graph(), *again;
		size_t bytes, calls = 0, sizes[2] = { draw(1200), draw(1200) };
		const void *packed = oc_graph_pack(graph, &bytes);
		uint8_t *copy = malloc(bytes);
		struct oc_op op = { .apply = user_op,
				    .context = &calls,
				    .bytes = 24,
				    .commutative = 1 };
		struct oc_graph_buffer buffers[2];
		struct oc_graph_links *links;
		struct oc_graph_run *run;
		int pair[2], sockets[6] = { -1, -1, -1, -1, -1, -1 }, err;

		memcpy(copy, packed, bytes);
		for (uint64_t m = draw(4) + 1; m; m--) {
			size_t at = draw(bytes);

			switch (draw(3)) {
			case 0:
				copy[at] = (uint8_t)draw(256);
				break;
			case 1:
				copy[at] ^= (uint8_t)(1u << draw(8));
				break;
			default:
				/* Whole words, of which those at a border are the worst. */
				at -= at % 4;
				memcpy(copy + at, (uint32_t[]){ (uint32_t)(draw(4) - 2) }, 4);
			}
		}
		bytes -= draw(50) ? 0 : draw(bytes);
		err = oc_graph_unpack(&again, copy, bytes);
		free(copy);
		oc_graph_free(graph);
		if (err) {
			assert_int_equal(err, -EINVAL);
			refused++;
			continue;
		}
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		sockets[draw(6)] = pair[0];
		assert_int_equal(oc_graph_links_create(&links, sockets, 6), 0);
		for (int b = 0; b < 2; b++)
			buffers[b] = (struct oc_graph_buffer){ calloc(1, sizes[b] + 1), sizes[b] };
		err = oc_graph_prepare(&run, again, links, buffers, 2, &op, 1);
		oc_graph_free(again);
		if (!err) {
			taken++;
			/* Its peer sends nothing, so it may not end. */
			assert_int_equal(oc_graph_issue(run, (enum oc_graph_executor)draw(
								     world_executors())),
					 0);
			close(pair[1]);
			for (int turn = 0; turn < 3; turn++)
				if (oc_graph_test(run))
					break;
			oc_graph_run_free(run);
		} else {
			assert_int_equal(err, -EINVAL);
			refused++;
			close(pair[1]);
		}
		assert_int_equal(oc_graph_links_free(links), 0);
		free(buffers[0].base);
		free(buffers[1].base);
	}
	assert_true(taken > 10 && refused > MUTATIONS / 2);
}

TEST(what_a_node_may_not_be_is_refused)
{
	struct oc_graph_calc calc = { .op = OC_GRAPH_AND, .type = OC_GRAPH_DOUBLE, .count = 1 };
	struct oc_graph *graph;
	int first, second;

	assert_int_equal(oc_graph_create(&graph), 0);
	assert_int_equal(oc_graph_send(graph, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(oc_graph_recv(graph, 0, 0, SIZE_MAX, 1), -EINVAL);
	assert_int_equal(oc_graph_recv(graph, 0, 0, 1, SIZE_MAX / 2), -EINVAL);
	assert_int_equal(oc_graph_calc(graph, &calc), -EINVAL);
	calc.op = OC_GRAPH_USER + OC_GRAPH_USERS_MOST;
	assert_int_equal(oc_graph_calc(graph, &calc), -EINVAL);
	calc.op = OC_GRAPH_SUM;
	calc.type = OC_GRAPH_TYPES;
	assert_int_equal(oc_graph_calc(graph, &calc), -EINVAL);
	calc.type = OC_GRAPH_DOUBLE;
	calc.count = SIZE_MAX / 16 + 1;
	calc.from_offset = SIZE_MAX / 4;
	assert_int_equal(oc_graph_calc(graph, &calc), -EINVAL);
	first = oc_graph_send(graph, 0, 0, 0, 1);
	second = oc_graph_recv(graph, 0, 0, 0, 1);
	assert_int_equal(first, 0);
	assert_int_equal(second, 1);
	assert_int_equal(oc_graph_connect(graph, second, first), -EINVAL);
	assert_int_equal(oc_graph_connect(graph, first, first), -EINVAL);
	assert_int_equal(oc_graph_connect(graph, -1, first), -EINVAL);
	assert_int_equal(oc_graph_connect(graph, first, 2), -EINVAL);
	assert_int_equal(oc_graph_connect(graph, first, second), 0);
	oc_graph_free(graph);
}

/* Each type and operation against one computed in the other direction. */
TEST(a_calc_computes_what_its_name_says)
{
	const int8_t a8 = -7, b8 = 100;
	const double ad = 1.5, bd = -2;
	int8_t r8;
	uint64_t a64 = UINT64_MAX, r64 = 5;
	double rd;

	for (unsigned int op = OC_GRAPH_COPY; op < OC_GRAPH_USER; op++) {
		static const int8_t want8[] = { -7, 93, 68, -7, 100, 96, -3, -99 };
		static const double wantd[] = { 1.5, -0.5, -3, -2, 1.5 };
		struct oci_graph_node node = { .kind = OCI_GRAPH_CALC,
					       .op = (uint8_t)op,
					       .count = 1 };

		node.from = 1;
		r8 = b8;
		oci_graph_calc(&node, (struct oc_graph_buffer[]){ { &r8, 1 }, { (void *)&a8, 1 } },
			       NULL);
		assert_int_equal(r8, want8[op]);
		if (!oci_graph_has_op(op, OC_GRAPH_DOUBLE))
			continue;
		node.type = OC_GRAPH_DOUBLE;
		rd = bd;
		oci_graph_calc(&node, (struct oc_graph_buffer[]){ { &rd, 8 }, { (void *)&ad, 8 } },
			       NULL);
		assert_true(rd == wantd[op]);
		node.type = OC_GRAPH_UINT64;
		r64 = 5;
		oci_graph_calc(&node, (struct oc_graph_buffer[]){ { &r64, 8 }, { &a64, 8 } }, NULL);
		if (op == OC_GRAPH_SUM)
			assert_int_equal(r64, 4);
		if (op == OC_GRAPH_MAX)
			assert_int_equal(r64, UINT64_MAX);
	}
}
