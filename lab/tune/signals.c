/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags, local work, and a barrier of the engine: everything that is not a copy. */
#include "lab/tune/measure.h"

#include "base/atomic.h"
#include "lab/harness/clock.h"
#include "lab/harness/meet.h"
#include "os/os.h"

#include <errno.h>
#include <onecopy/onecopy.h>
#include <string.h>

#define TRIPS 32
#define FURTHER 16
#define CALLS 64
#define SUM_BYTES ((size_t)64 << 10)

enum { LINE_THERE, LINE_BACK, LINE_STOP, LINE_ROW = 8 };

/* There and back, TRIPS times: a way is half of a trip. */
static double trips(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;
	uint64_t value = oci_load_relaxed(&line[LINE_THERE].word);
	double start = now_s();

	for (int i = 0; i < TRIPS; i++) {
		oci_tune_raise(&line[LINE_THERE], ++value);
		oci_tune_await(&line[LINE_BACK], value);
	}
	return now_s() - start;
}

static void time_flags(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;
	uint32_t samples = 0;

	for (oci_tune_begin(me); oci_tune_more(me, samples);)
		me->sample[samples++] = trips(me);
	oci_tune_leave(me, 0, samples, 2 * TRIPS);
	oci_tune_raise(&line[LINE_THERE], UINT64_MAX);
}

static void return_flags(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;

	for (uint64_t value = 1;; value++) {
		oci_tune_await(&line[LINE_THERE], value);
		if (oci_load_relaxed(&line[LINE_THERE].word) == UINT64_MAX)
			return;
		oci_tune_raise(&line[LINE_BACK], value);
	}
}

/* The peer has raised a whole row; each flag of it is looked at in turn, as a wait for many does.
 */
static void time_row(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;
	uint32_t samples = 0;

	for (oci_tune_begin(me); oci_tune_more(me, samples);) {
		uint64_t value = oci_load_relaxed(&line[LINE_STOP].word) + 1;
		double start;

		oci_tune_raise(&line[LINE_STOP], value);
		oci_tune_await(&line[LINE_ROW], value); /* raised last: the others are up */
		start = now_s();
		for (int i = 1; i <= FURTHER; i++)
			oci_tune_await(&line[LINE_ROW + i], value);
		me->sample[samples++] = now_s() - start;
	}
	oci_tune_leave(me, 1, samples, FURTHER);
	oci_tune_raise(&line[LINE_STOP], UINT64_MAX);
}

static void raise_rows(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;

	for (uint64_t value = 1;; value++) {
		oci_tune_await(&line[LINE_STOP], value);
		if (oci_load_relaxed(&line[LINE_STOP].word) == UINT64_MAX)
			return;
		for (int i = FURTHER; i >= 0; i--)
			oci_tune_raise(&line[LINE_ROW + i], value);
	}
}

int oci_measure_flags(struct oci_tune_rank *me)
{
	if (me->rank) {
		return_flags(me);
		raise_rows(me);
	} else {
		time_flags(me);
		time_row(me);
	}
	return 0;
}

/* As the function of an operation that a program or an MPI hands over (struct oc_op): two sources,
 * of which the second one takes the result, and which may be anywhere. */
__attribute__((noinline)) static void add_doubles(const void *in, void *inout, size_t count)
{
	const double *a = in;
	double *b = inout;

	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

int oci_measure_sum(struct oci_tune_rank *me)
{
	static double in[SUM_BYTES / sizeof(double)], inout[SUM_BYTES / sizeof(double)];
	uint32_t samples = 0;

	for (oci_tune_begin(me); oci_tune_more(me, samples);) {
		double start = now_s();

		add_doubles(in, inout, SUM_BYTES / sizeof(double));
		__asm__ __volatile__("" : : "r"(inout) : "memory");
		me->sample[samples++] = now_s() - start;
	}
	oci_tune_leave(me, 0, samples, SUM_BYTES);
	return 0;
}

/* Samples of a batch; of CALLS calls each. */
#define BATCH 64

/* Calls of one, then of the other, in turns. */
static int call_batch(struct oci_tune_rank *me, struct oc_team *team, double *small,
		      uint32_t samples)
{
	static uint64_t mine, all[2];
	const struct oc_call call[2] = {
		{ .collective = OC_BARRIER },
		{ .collective = OC_ALLGATHER, .send = &mine, .recv = all, .bytes = sizeof(mine) }
	};
	int error = 0;

	for (uint32_t s = samples; s < samples + BATCH && !error; s++) {
		for (int which = 0; which < 2; which++) {
			double start = now_s();

			for (int i = 0; i < CALLS && !error; i++)
				error = oc_collective(team, &call[which]);
			(which ? small : me->sample)[s] = now_s() - start;
		}
	}
	return error;
}

_Static_assert(2 * sizeof(struct meet_place) <= OCI_MEASURE_CALL_PAGES * 4096,
	       "two places do not fit in what the ranks share");

int oci_measure_calls(struct oci_tune_rank *me)
{
	static double small[OCI_TUNE_SAMPLES];
	struct meet meet = { .place = (struct meet_place *)me->memory,
			     .rank = me->rank,
			     .ranks = me->ranks };
	struct oc_team *team = NULL;
	uint32_t samples = 0;
	int error = meet_team(&meet, &team);

	if (error)
		return oci_tune_fail(me, error, "a team cannot be created: %s",
				     team ? oc_team_error(team) : strerror(-error));
	error = oc_team_force(team, "barrier", "flat");
	if (!error)
		error = oc_team_force(team, "allgather", "inline");
	if (error)
		return error;
	oci_tune_begin(me);
	for (; !error && oci_tune_another(me, me->ranks, samples); samples += BATCH)
		error = call_batch(me, team, small, samples);
	if (error)
		return oci_tune_fail(me, error < 0 ? error : -EIO, "a call failed: %s",
				     oc_team_error(team));
	oci_tune_leave(me, 0, samples, CALLS);
	memcpy(me->sample, small, sizeof(small));
	oci_tune_leave(me, 1, samples, CALLS);
	oc_team_destroy(team);
	return 0;
}
