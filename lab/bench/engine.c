/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_bench_engine [--quick]
 *
 * Micro-benchmark of the engine without an MPI: what our own instructions cost at 4 bytes.
 *
 * Both ranks of a team are in one thread, so that every line is in the cache and nobody ever waits:
 * the time per rank and call is our instructions and nothing else. Where the ranks wait for each
 * other, rank 0 runs until it blocks, rank 1 runs to its end, rank 0 runs on to its own; the
 * instructions are those of oc_collective(), whose parts are called, and one look in vain and one
 * entry more for rank 0. The application's reduction operation is subtracted: it is not ours. What
 * a call takes between two processes is `onecopy bench algorithms`.
 *
 * Times are medians over batches, in ns.
 */
#include <onecopy/onecopy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "lab/harness/clock.h"
#include "lab/harness/stats.h"
#include "support/fork_team.h"

#define BATCHES 31

/* Calls of a batch; --quick, for the tests, which only see that it runs. */
static unsigned int calls = 20000;

static void add_int(void *context, const void *in, void *inout, size_t count)
{
	const int *a = in;
	int *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

static const struct oc_op sum = { .apply = add_int, .bytes = 4, .commutative = 1, .id = 1 };

struct form {
	const char *name;
	enum oc_collective collective;
	int root_first; /* who calls first; -1: the ranks wait for each other */
	double applied; /* how often a rank applies the operation, on average */
};

static const struct form forms[] = {
	{ "barrier", OC_BARRIER, -1, 0 },     { "bcast", OC_BCAST, 1, 0 },
	{ "scatter", OC_SCATTER, 1, 0 },      { "gather", OC_GATHER, 0, 0 },
	{ "allgather", OC_ALLGATHER, -1, 0 }, { "alltoall", OC_ALLTOALL, -1, 0 },
	{ "reduce", OC_REDUCE, 0, 0.5 },      { "allreduce", OC_ALLREDUCE, -1, 1 },
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

static struct oc_call call_of(const struct form *form, int *send, int *recv)
{
	return (struct oc_call){ .collective = form->collective,
				 .send = send,
				 .recv = recv,
				 .bytes = form->collective == OC_BARRIER ? 0 : 4,
				 .op = &sum };
}

/* The benchmark's own part of a call: filling the arguments and calling a function. */
__attribute__((noinline)) static int no_call(struct oc_team *team, const struct oc_call *call)
{
	__asm__ __volatile__("" : : "r"(team), "r"(call) : "memory");
	return 0;
}

/* Ranks that need not wait for each other, in this order: whole calls. */
static void whole_calls(struct oc_team **teams, const struct form *form,
			int (*function)(struct oc_team *, const struct oc_call *))
{
	static int send[2][2], recv[2][2];

	for (unsigned int i = 0; i < calls; i++) {
		for (unsigned int turn = 0; turn < 2; turn++) {
			unsigned int rank = turn ^ !form->root_first;
			struct oc_call call = call_of(form, send[rank], recv[rank]);

			if (function(teams[rank], &call))
				exit(1);
		}
	}
}

/* Ranks that wait for each other: oc_collective() of rank 1 where that of rank 0 would wait. */
static void stepped_calls(struct oc_team **teams, const struct form *form)
{
	static int send[2][2], recv[2][2];

	for (unsigned int i = 0; i < calls; i++) {
		struct oc_call call[2] = { call_of(form, send[0], recv[0]),
					   call_of(form, send[1], recv[1]) };
		struct oci_operation o;

		if (oci_operation_begin(teams[0], &call[0], &o))
			exit(1);
		o.x.polls = 1; /* it would look in vain until rank 1 has a turn */
		if (oci_exec_run(&o.x) != 0 || oc_collective(teams[1], &call[1]) != 0 ||
		    oci_exec_run(&o.x) != 1)
			exit(1);
		oci_operation_end(teams[0], &o, 1);
	}
}

/* ns a rank; function NULL: the ranks' own, in whatever way they can be called. Not inlined, as
 * callgrind counts from one call of it to the next (docs/results/instructions.csv). */
__attribute__((noinline)) static double alone(int (*function)(struct oc_team *,
							      const struct oc_call *),
					      struct oc_team **teams, const struct form *form)
{
	double samples[BATCHES];

	for (unsigned int b = 0; b < BATCHES; b++) {
		double start = now_s();

		if (function)
			whole_calls(teams, form, function);
		else if (form->root_first < 0)
			stepped_calls(teams, form);
		else
			whole_calls(teams, form, oc_collective);
		samples[b] = 1e9 * (now_s() - start) / calls / 2;
	}
	return stats_median(samples, BATCHES);
}

/* ns of one application of the operation to one element, called as the engine calls it. */
static double bare_apply(void)
{
	static int in, inout;
	double samples[BATCHES];

	for (unsigned int b = 0; b < BATCHES; b++) {
		double start = now_s();

		for (unsigned int i = 0; i < calls; i++) {
			const struct oc_op *op = &sum;

			/* Nothing is known of it, as in the engine: no inlining, no hoisting. */
			__asm__ __volatile__("" : "+r"(op) : : "memory");
			op->apply(op->context, &in, &inout, 1);
		}
		samples[b] = 1e9 * (now_s() - start) / calls;
	}
	return stats_median(samples, BATCHES);
}

static void print(struct oc_team **teams)
{
	double empty = alone(no_call, teams, &forms[1]), apply = bare_apply();

	printf("ns per call of 4 B, 2 ranks in one thread, medians of %d batches of %u calls: our own\n"
	       "instructions, per rank, less the benchmark's own %.1f and the %.1f of each application\n"
	       "of the operation; * these wait for each other: rank 1 runs where rank 0 would wait, and\n"
	       "one look in vain and one entry more of rank 0 are in the figure\n\n",
	       BATCHES, calls, empty, apply);
	for (unsigned int f = 0; f < FORMS; f++) {
		double ns = alone(NULL, teams, &forms[f]) - empty - forms[f].applied * apply;

		printf("%-10s %7.1f%s\n", forms[f].name, ns, forms[f].root_first < 0 ? "*" : "");
	}
}

int main(int argc, char **argv)
{
	struct oc_team *teams[2];

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--quick"))) {
		fprintf(stderr, "oc_bench_engine: there is no option '%s'; --quick is all\n",
			argv[argc - 1]);
		return 2;
	}
	if (argc == 2)
		calls = 200;
	if (oct_local_teams(2, teams))
		return 1;
	print(teams);
	return 0;
}
