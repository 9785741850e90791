/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions by graphs against the same computed one after the other: every operation of every
 * type over every tree, by each executor. */
#include "graph/packed.h"
#include "graph/world_test.h"

#include <stdatomic.h>

enum { COUNT = 53, SEGMENT = 88 };

/* Numbers whose sums and products of five are exact in any order: small multiples of a quarter, and
 * powers of two. Integers may be any, as they wrap. */
static void fill(void *bytes, enum oc_graph_type type, unsigned int op)
{
	for (int i = 0; i < COUNT; i++) {
		double number = op == OC_GRAPH_PROD ?
					(double)(1 << draw(4)) / (double)(1 << draw(4)) :
					(double)draw(4000) / 4 - 500;
		uint64_t bits = draw(UINT64_MAX);

		number = draw(2) ? number : -number;
		switch (type) {
		case OC_GRAPH_FLOAT:
			((float *)bytes)[i] = (float)number;
			break;
		case OC_GRAPH_DOUBLE:
			((double *)bytes)[i] = number;
			break;
		default:
			memcpy((char *)bytes + (size_t)i * oci_graph_type_bytes(type), &bits,
			       oci_graph_type_bytes(type));
		}
	}
}

/* By itself, without the code that is tested: integers as 64 bits with or without a sign. */
static uint64_t combine_integers(unsigned int op, bool has_sign, uint64_t a, uint64_t b)
{
	bool less = has_sign ? (int64_t)a < (int64_t)b : a < b;

	switch (op) {
	case OC_GRAPH_SUM:
		return a + b;
	case OC_GRAPH_PROD:
		return a * b;
	case OC_GRAPH_MIN:
		return less ? a : b;
	case OC_GRAPH_MAX:
		return less ? b : a;
	case OC_GRAPH_AND:
		return a & b;
	case OC_GRAPH_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static double combine_numbers(unsigned int op, double a, double b)
{
	switch (op) {
	case OC_GRAPH_SUM:
		return a + b;
	case OC_GRAPH_PROD:
		return a * b;
	case OC_GRAPH_MIN:
		return a < b ? a : b;
	default:
		return a > b ? a : b;
	}
}

static uint64_t integer_at(const void *bytes, size_t element, bool has_sign, int i)
{
	uint64_t value = 0, sign = (uint64_t)1 << (8 * element - 1);

	memcpy(&value, (const char *)bytes + (size_t)i * element, element);
	return has_sign && value & sign ? value | ~(sign | (sign - 1)) : value;
}

static void combine(void *to, const void *from, enum oc_graph_type type, unsigned int op)
{
	size_t element = oci_graph_type_bytes(type);
	bool has_sign = type % 2 == 0; /* of the integers */

	for (int i = 0; i < COUNT; i++) {
		if (type == OC_GRAPH_FLOAT) {
			((float *)to)[i] = (float)combine_numbers(op, ((const float *)from)[i],
								  ((float *)to)[i]);
		} else if (type == OC_GRAPH_DOUBLE) {
			((double *)to)[i] =
				combine_numbers(op, ((const double *)from)[i], ((double *)to)[i]);
		} else {
			uint64_t value = combine_integers(op, has_sign,
							  integer_at(from, element, has_sign, i),
							  integer_at(to, element, has_sign, i));

			memcpy((char *)to + (size_t)i * element, &value, element);
		}
	}
}

/* Root: that of a Reduce; -1: an Allreduce. */
static void reduce(struct world *world, enum oc_graph_executor executor, enum oc_graph_tree tree,
		   int root, enum oc_graph_type type, unsigned int op)
{
	size_t bytes = COUNT * oci_graph_type_bytes(type);
	uint64_t expected[COUNT];

	for (uint32_t r = 0; r < world->size; r++) {
		uint32_t of = root < 0 ? 0 : (uint32_t)root;
		struct oc_graph *graph;

		assert_int_equal(root < 0 ? oc_graph_allreduce(&graph, tree, r, world->size, COUNT,
							       type, op, SEGMENT) :
					    oc_graph_reduce(&graph, tree, r, world->size, of, COUNT,
							    type, op, SEGMENT),
				 0);
		world_buffers(world, r, bytes, oc_graph_scratch(tree, r, world->size, of, bytes));
		fill(world->buffer[r][0].base, type, op);
		if (r)
			combine(expected, world->buffer[r][0].base, type, op);
		else
			memcpy(expected, world->buffer[r][0].base, bytes);
		world_prepare(world, r, graph);
	}
	assert_int_equal(world_run(world, executor), 0);
	for (uint32_t r = 0; r < world->size; r++)
		if (root < 0 || r == (uint32_t)root)
			assert_memory_equal(world->buffer[r][0].base, expected, bytes);
	world_forget_runs(world);
}

TEST(every_operation_of_every_type_is_that_of_one_after_the_other)
{
	enum { SIZE = 5 };
	struct world world;
	int done = 0;

	for (int tcp = 0; tcp < 2; tcp++) {
		world_begin(&world, SIZE, tcp);
		for (unsigned int type = 0; type < OC_GRAPH_TYPES; type++)
			for (unsigned int op = OC_GRAPH_SUM; op < OC_GRAPH_USER; op++)
				for (int tree = 0; tree < OC_GRAPH_TREES; tree++) {
					enum oc_graph_executor executor =
						(enum oc_graph_executor)draw(OC_GRAPH_EXECUTORS);

					if (!oci_graph_has_op(op, type))
						continue;
					reduce(&world, executor, tree, -1, type, op);
					reduce(&world, executor, tree, (int)draw(SIZE), type, op);
					done++;
				}
		world_end(&world);
	}
	/* 8 types have 7 operations, 2 have 4. */
	assert_int_equal(done, 2 * OC_GRAPH_TREES * (8 * 7 + 2 * 4));
}

TEST(an_allreduce_larger_than_all_buffers_of_the_sockets_ends_by_every_executor)
{
	enum { INTS = 3000000 };
	struct world world;

	for (enum oc_graph_executor e = OC_GRAPH_AUTO; e < world_executors(); e++)
		for (int tree = 0; tree < OC_GRAPH_TREES; tree++) {
			world_begin(&world, 4, tree % 2);
			for (uint32_t r = 0; r < 4; r++) {
				struct oc_graph *graph;

				assert_int_equal(oc_graph_allreduce(&graph, tree, r, 4, INTS,
								    OC_GRAPH_INT32, OC_GRAPH_SUM,
								    65536),
						 0);
				world_buffers(&world, r, INTS * 4,
					      oc_graph_scratch(tree, r, 4, 0, INTS * 4));
				for (int i = 0; i < INTS; i++)
					((int32_t *)world.buffer[r][0].base)[i] = i * ((int)r + 1);
				world_prepare(&world, r, graph);
			}
			assert_int_equal(world_run(&world, e), 0);
			for (uint32_t r = 0; r < 4; r++)
				for (int i = 0; i < INTS; i += 7)
					assert_int_equal(((int32_t *)world.buffer[r][0].base)[i],
							 (int32_t)((uint32_t)i * 10));
			world_end(&world);
		}
}

/* The larger of two pairs by their first numbers: not one of ours. */
static void larger(void *context, const void *in, void *inout, size_t count)
{
	const int32_t *a = in;
	int32_t *b = inout;

	++*(int *)context;
	for (size_t i = 0; i < 2 * count; i += 2)
		if (a[i] > b[i])
			memcpy(b + i, a + i, 2 * sizeof(*b));
}

TEST(an_allreduce_by_an_operation_of_the_program_is_right_by_every_executor)
{
	enum { SIZE = 6, PAIRS = 1000, BYTES = PAIRS * 8 };
	struct world world;

	for (enum oc_graph_executor e = OC_GRAPH_AUTO; e < world_executors(); e++)
		for (int tree = 0; tree < OC_GRAPH_TREES; tree++) {
			int calls = 0;
			struct oc_op op = { .apply = larger,
					    .context = &calls,
					    .bytes = 8,
					    .commutative = 1 };

			world_begin(&world, SIZE, tree % 2);
			for (uint32_t r = 0; r < SIZE; r++) {
				struct oc_graph *graph;
				int32_t *pair;

				assert_int_equal(oc_graph_allreduce(&graph, tree, r, SIZE, PAIRS,
								    OC_GRAPH_UINT64, OC_GRAPH_USER,
								    500),
						 0);
				world_buffers(&world, r, BYTES,
					      oc_graph_scratch(tree, r, SIZE, 0, BYTES));
				pair = world.buffer[r][0].base;
				for (int i = 0; i < PAIRS; i++) {
					pair[2 * i] = (int)(r * 7 + (uint32_t)i) % SIZE;
					pair[2 * i + 1] = (int)r;
				}
				assert_int_equal(oc_graph_prepare(&world.run[r], graph,
								  world.links[r], world.buffer[r],
								  2, &op, 1),
						 0);
				oc_graph_free(graph);
			}
			assert_int_equal(world_run(&world, e), 0);
			assert_true(calls > 0);
			for (uint32_t r = 0; r < SIZE; r++) {
				const int32_t *pair = world.buffer[r][0].base;

				for (int i = 0; i < PAIRS; i++) {
					assert_int_equal(pair[2 * i], SIZE - 1);
					assert_int_equal((pair[2 * i + 1] * 7 + i) % SIZE,
							 SIZE - 1);
				}
			}
			world_end(&world);
		}
}

struct slow {
	_Atomic int calls;
	_Atomic bool hurry;
};

static void take_long(void *context, const void *in, void *inout, size_t count)
{
	struct slow *slow = context;

	(void)in;
	(void)inout;
	(void)count;
	if (!atomic_load(&slow->hurry))
		usleep(500);
	atomic_fetch_add(&slow->calls, 1);
}

/* Of two seconds in which the thread always has more to do. */
TEST(a_call_waits_for_one_step_of_the_thread_at_most)
{
	enum { MANY = 4000 };
	static const struct oc_graph_calc calc = { .op = OC_GRAPH_USER,
						   .type = OC_GRAPH_UINT64,
						   .to = 1,
						   .count = 1 };
	struct slow slow = { 0 };
	struct oc_op op = { .apply = take_long, .context = &slow, .bytes = 8, .any_thread = 1 };
	struct oc_graph *graph;
	struct oc_graph_run *send;
	struct world world;
	int before;

	world_begin(&world, 2, true);
	world_buffers(&world, 0, 8, 8);
	assert_int_equal(oc_graph_create(&graph), 0);
	for (int n = 0; n < MANY; n++)
		assert_int_equal(oc_graph_calc(graph, &calc), n);
	assert_int_equal(
		oc_graph_prepare(&world.run[0], graph, world.links[0], world.buffer[0], 2, &op, 1),
		0);
	oc_graph_free(graph);
	assert_int_equal(oc_graph_create(&graph), 0);
	assert_int_equal(oc_graph_send(graph, 1, 0, 0, 8), 0);
	assert_int_equal(
		oc_graph_prepare(&send, graph, world.links[0], world.buffer[0], 2, NULL, 0), 0);
	oc_graph_free(graph);
	assert_int_equal(oc_graph_issue(world.run[0], OC_GRAPH_THREAD), 0);
	while (!atomic_load(&slow.calls))
		usleep(100);
	before = atomic_load(&slow.calls);
	assert_int_equal(oc_graph_issue(send, OC_GRAPH_CALLER), 0);
	assert_int_equal(oc_graph_wait(send), 0);
	/* This thread may have lacked a CPU, too. */
	assert_true(atomic_load(&slow.calls) - before < MANY / 4);
	atomic_store(&slow.hurry, true);
	assert_int_equal(oc_graph_wait(world.run[0]), 0);
	assert_int_equal(atomic_load(&slow.calls), MANY);
	oc_graph_run_free(send);
	world_end(&world);
}

TEST(what_is_no_reduction_is_refused)
{
	struct oc_graph *graph = NULL;

	assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_TREES, 0, 2, 1, OC_GRAPH_INT32,
					    OC_GRAPH_SUM, 0),
			 -EINVAL);
	assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_CHAIN, 2, 2, 1, OC_GRAPH_INT32,
					    OC_GRAPH_SUM, 0),
			 -EINVAL);
	assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_CHAIN, 0, 2, 1, OC_GRAPH_FLOAT,
					    OC_GRAPH_XOR, 0),
			 -EINVAL);
	assert_int_equal(oc_graph_allreduce(&graph, OC_GRAPH_CHAIN, 0, 2, SIZE_MAX / 2,
					    OC_GRAPH_INT32, OC_GRAPH_SUM, 0),
			 -EINVAL);
	assert_null(graph);
}
