/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags, local work, and a barrier of the engine: everything that is not a copy. */
#include "tune/measure.h"

#include "base/atomic.h"
#include "os/os.h"

#include <errno.h>
#include <onecopy/onecopy.h>
#include <string.h>

#define TRIPS 32
#define FURTHER 16
#define BARRIERS 64
#define SUM_BYTES ((size_t)64 << 10)
#define TOUCH_PAGES 256

enum { LINE_THERE, LINE_BACK, LINE_STOP, LINE_ROW = 8 };

/* There and back, TRIPS times: a way is half of a trip. */
static void time_flags(struct oci_tune_rank *me)
{
	struct oci_tune_line *line = me->shared->line;
	double begun = oci_tune_now_s(), start = begun;
	uint32_t samples = 0;
	uint64_t value = 0;

	while (!oci_tune_reached(begun, start, me->seconds, samples)) {
		start = oci_tune_now_s();
		for (int i = 0; i < TRIPS; i++) {
			oci_tune_raise(&line[LINE_THERE], ++value);
			oci_tune_await(&line[LINE_BACK], value);
		}
		me->sample[samples++] = oci_tune_now_s() - start;
	}
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
	double begun = oci_tune_now_s(), start = begun;
	uint32_t samples = 0;

	for (uint64_t value = 1; !oci_tune_reached(begun, start, me->seconds, samples); value++) {
		oci_tune_raise(&line[LINE_STOP], value);
		oci_tune_await(&line[LINE_ROW], value); /* raised last: the others are up */
		start = oci_tune_now_s();
		for (int i = 1; i <= FURTHER; i++)
			oci_tune_await(&line[LINE_ROW + i], value);
		me->sample[samples++] = oci_tune_now_s() - start;
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

static int flag_body(struct oci_tune_rank *me)
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

int oci_measure_flags(struct oci_tune_world *world, struct oci_tune_point *flag,
		      struct oci_tune_point *more, char *why, size_t n)
{
	int error = oci_tune_run(world, 2, 0, flag_body, NULL, why, n);

	if (error)
		return error;
	*flag = world->shared->rank[0].point[0];
	*more = world->shared->rank[0].point[1];
	return 0;
}

static void time_sum(struct oci_tune_rank *me)
{
	static double in[SUM_BYTES / sizeof(double)], inout[SUM_BYTES / sizeof(double)];
	double begun = oci_tune_now_s(), start = begun;
	uint32_t samples = 0;

	while (!oci_tune_reached(begun, start, me->seconds, samples)) {
		start = oci_tune_now_s();
		for (size_t i = 0; i < SUM_BYTES / sizeof(double); i++)
			inout[i] += in[i];
		__asm__ __volatile__("" : : "r"(inout) : "memory");
		me->sample[samples++] = oci_tune_now_s() - start;
	}
	oci_tune_leave(me, 0, samples, SUM_BYTES);
}

/*
 * The memory is there, but a forked process has no entries for shared memory in its page table: the
 * first touch of a page enters it, as that of a peer's mapped buffer does.
 */
static void time_touches(struct oci_tune_rank *me, size_t pages)
{
	const size_t page = oci_os_page_bytes();
	uint32_t samples = 0;

	for (size_t first = 0; first + TOUCH_PAGES <= pages; first += TOUCH_PAGES) {
		double start = oci_tune_now_s();

		for (size_t i = first; i < first + TOUCH_PAGES; i++)
			(void)*(volatile uint8_t *)(me->memory + i * page);
		me->sample[samples++] = oci_tune_now_s() - start;
	}
	oci_tune_leave(me, 1, samples, TOUCH_PAGES);
}

static int local_body(struct oci_tune_rank *me)
{
	time_touches(me, *(const size_t *)me->arg);
	time_sum(me);
	return 0;
}

int oci_measure_local(struct oci_tune_world *world, struct oci_tune_point *reduce,
		      struct oci_tune_point *touch, char *why, size_t n)
{
	const size_t pages = (size_t)16 * TOUCH_PAGES;
	int error = oci_tune_run(world, 1, pages * oci_os_page_bytes(), local_body, &pages, why, n);

	if (error)
		return error;
	*reduce = world->shared->rank[0].point[0];
	*touch = world->shared->rank[0].point[1];
	return 0;
}

/* The bootstrap of the team: contributions in the shared memory, a line to count them. */
struct gathering {
	struct oci_tune_rank *me;
	size_t bytes;
	void *recv;
	uint64_t round;
};

#define MOST_CONTRIBUTION ((size_t)16 << 10)

static uint8_t *contribution(const struct gathering *g, uint32_t rank)
{
	/* Two rounds' room: a rank writes round n + 2 only when all have read round n. */
	return g->me->memory + (rank + g->round % 2 * g->me->ranks) * MOST_CONTRIBUTION;
}

static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct gathering *g = context;

	if (bytes > MOST_CONTRIBUTION)
		return -EMSGSIZE;
	g->round++;
	g->bytes = bytes;
	g->recv = recv;
	memcpy(contribution(g, g->me->rank), send, bytes);
	oci_tune_raise(&g->me->shared->line[g->me->rank], g->round);
	return 0;
}

static int gather_test(void *context)
{
	struct gathering *g = context;

	/* Acquire: pairs with the release of the member's raise, which follows its bytes. */
	for (uint32_t r = 0; r < g->me->ranks; r++)
		if (oci_load_acquire(&g->me->shared->line[r].word) < g->round)
			return 0;
	for (uint32_t r = 0; r < g->me->ranks; r++)
		memcpy((uint8_t *)g->recv + r * g->bytes, contribution(g, r), g->bytes);
	return 1;
}

static int create_team(struct oci_tune_rank *me, struct gathering *g, struct oc_team **team)
{
	struct oc_bootstrap bootstrap = { .rank = me->rank,
					  .size = me->ranks,
					  .context = g,
					  .allgather_start = gather_start,
					  .allgather_test = gather_test };
	int error = oc_team_create(team, &bootstrap), state = 0;

	if (error)
		return oci_tune_fail(me, error, "a team cannot be created: %s", strerror(-error));
	while (!state)
		state = oc_team_progress(*team);
	return state > 0 ? 0 :
			   oci_tune_fail(me, state, "a team is refused: %s", oc_team_error(*team));
}

static int barrier_body(struct oci_tune_rank *me)
{
	struct gathering g = { .me = me };
	struct oc_call call = { .collective = OC_BARRIER };
	struct oc_team *team;
	uint32_t samples = 0;
	int error = create_team(me, &g, &team);

	/* As many on both sides: by number, not by time. 4096 samples of some 20 us each. */
	for (; !error && samples < 4096; samples++) {
		double start = oci_tune_now_s();

		for (int i = 0; i < BARRIERS && !error; i++)
			error = oc_collective(team, &call);
		me->sample[samples] = oci_tune_now_s() - start;
	}
	if (error)
		return oci_tune_fail(me, error < 0 ? error : -EIO, "a barrier failed: %s",
				     oc_team_error(team));
	oci_tune_leave(me, 0, samples, BARRIERS);
	oc_team_destroy(team);
	return 0;
}

int oci_measure_barrier(struct oci_tune_world *world, struct oci_tune_point *barrier, char *why,
			size_t n)
{
	int error = oci_tune_run(world, 2, 4 * MOST_CONTRIBUTION, barrier_body, NULL, why, n);

	if (!error)
		*barrier = world->shared->rank[0].point[0];
	return error;
}
