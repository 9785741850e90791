/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms by hierarchy on real processes, which bind themselves to one of this machine's first
 * two CPUs or to none. Every root; right bytes; and the ranks did see a hierarchy.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "support/fork_team.h"
#include "support/test.h"

#define MOST_INTS 50000

/* Of the next child: its rank, as ranks are forked in order. */
static unsigned int next_rank;

static void before_fork(void)
{
	next_rank++;
}

/* Ranks 0, 1, 3, 4 of six are bound to CPUs 0, 1, 1, 0; the others to none. */
static void bind_child(void)
{
	static const int cpus[] = { 0, 1, -1, 1, 0, -1 };
	int cpu = cpus[(next_rank - 1) % 6];
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void compose(void *context, const void *in, void *inout, size_t count)
{
	const uint32_t *left = in;
	uint32_t *right = inout;

	/* Affine maps x -> a x + b in 16 bits each: associative, not commutative. */
	for (size_t i = 0; i < count; i++) {
		uint32_t a = left[i] & 0xffff, b = left[i] >> 16;
		uint32_t c = right[i] & 0xffff, d = right[i] >> 16;

		right[i] = (a * c & 0xffff) | (a * d + b) << 16;
	}
	(void)context;
}

static void add(void *context, const void *in, void *inout, size_t count)
{
	const uint32_t *more = in;
	uint32_t *sum = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		sum[i] += more[i];
}

static uint32_t operand(unsigned int n, uint32_t rank, size_t i)
{
	return n * 77731 + rank * 40503 + (uint32_t)i * 2654435761u;
}

static void expect(const struct oc_op *op, unsigned int n, uint32_t ranks, size_t i, uint32_t *want)
{
	*want = operand(n, ranks - 1, i);
	for (uint32_t rank = ranks - 1; rank-- > 0;) {
		uint32_t left = operand(n, rank, i);

		op->apply(NULL, &left, want, 1);
	}
}

struct buffers {
	uint32_t send[MOST_INTS], recv[MOST_INTS];
};

static bool is_right(const struct oc_call *call, unsigned int n, uint32_t rank, uint32_t ranks,
		     const uint32_t *got)
{
	for (size_t i = 0; i < call->bytes / 4; i++) {
		uint32_t want = operand(n, call->root, i);

		if (call->op)
			expect(call->op, n, ranks, i, &want);
		if (got[i] == want)
			continue;
		fprintf(stderr, "rank %u: call %u of %zu bytes, root %u: element %zu is wrong\n",
			rank, n, call->bytes, call->root, i);
		return false;
	}
	return true;
}

static int one_call(struct oc_team *team, struct buffers *b, struct oc_call *call, unsigned int n)
{
	uint32_t rank = oc_team_rank(team), ranks = oc_team_size(team);
	bool has_result = call->collective != OC_REDUCE || rank == call->root;
	bool in_place = n % 2 && call->op && has_result;
	const uint32_t *result = call->collective == OC_BCAST ? b->send : b->recv;

	for (size_t i = 0; i < call->bytes / 4; i++) {
		b->send[i] = operand(n, rank, i);
		b->recv[i] = in_place ? b->send[i] : ~0u;
	}
	call->send = in_place ? OC_IN_PLACE : b->send;
	call->recv = call->op && has_result ? b->recv : NULL;
	if (oc_collective(team, call)) {
		fprintf(stderr, "rank %u: call %u: %s\n", rank, n, oc_team_error(team));
		return 1;
	}
	return !has_result || call->collective == OC_BARRIER ||
			       is_right(call, n, rank, ranks, result) ?
		       0 :
		       1;
}

static int every_root(struct oc_team *team, void *arg)
{
	static const enum oc_collective all[] = { OC_BARRIER, OC_BCAST, OC_REDUCE, OC_ALLREDUCE };
	static const struct oc_op ops[] = {
		{ .apply = add, .bytes = 4, .commutative = 1, .id = 1 },
		{ .apply = compose, .bytes = 4, .id = 2 },
	};
	static const size_t sizes[] = { 4, 0, 4 * 3000, 4 * MOST_INTS };
	struct buffers *b = malloc(sizeof(*b));
	int failed = b ? 0 : 1;
	unsigned int n = 0;

	(void)arg;
	for (unsigned int c = 0; c < sizeof(all) / sizeof(all[0]) && !failed; c++) {
		unsigned int kinds = oci_is_reduction(all[c]) ? 2 : 1;

		failed = oc_team_force(team, oci_collective_name(all[c]),
				       all[c] == OC_BARRIER ? "tree" : "hierarchical:4096") ?
				 3 :
				 0;
		for (unsigned int i = 0; i < 4 * 2 * kinds * oc_team_size(team) && !failed; i++) {
			struct oc_call call = {
				.collective = all[c],
				.bytes = all[c] == OC_BARRIER ? 0 : sizes[i % 4],
				.op = kinds == 2 ? &ops[i / 8 % 2] : NULL,
				.root = i / 8 / kinds % oc_team_size(team),
			};

			if (all[c] != OC_BCAST && all[c] != OC_REDUCE)
				call.root = 0;
			failed = one_call(team, b, &call, n++);
		}
	}
	/* Is it what the test is about? */
	if (!failed && (!team->team.hierarchy || team->team.hierarchy->in_order))
		failed = 2;
	free(b);
	return failed;
}

static void run(const char *mechanism)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		skip(); /* bindings that this test is about are not possible here */
	setenv("ONECOPY_MECHANISM", mechanism, 1);
	for (uint32_t ranks = 4; ranks <= 7; ranks++) {
		next_rank = 0;
		assert_int_equal(oct_fork_team(ranks, -1, every_root, NULL), 0);
	}
}

TEST(ranks_of_two_cpus_by_single_copies)
{
	run("auto");
}

TEST(ranks_of_two_cpus_through_shared_memory)
{
	run("shm");
}

int main(void)
{
	pthread_atfork(before_fork, NULL, bind_child);
	return oct_test_run(NULL, NULL);
}
