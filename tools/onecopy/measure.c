/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are forked, meet in shared memory and call collectives of the C API.
 *
 * Each call begins at a barrier of our own and counts from there to the end of the slowest rank.
 * Buffers rotate, two at least, through more than the private caches hold, each side of a call by
 * itself, the source is written before each call, by its owner alone, and what came is read behind
 * it: as `onecopy tune` measures the model's terms.
 */
#include "measure.h"

#include "command.h"
#include "lab/harness/clock.h"
#include "lab/harness/meet.h"
#include "lab/harness/stats.h"
#include "lab/tune/tune.h"
#include "lab/tune/world.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CALLS_MOST = 101, CALLS_LEAST = 7, WARM_UP = 3, TURN = 4 };
/* An algorithm is called for about so long, within the numbers above, unless told otherwise. */
#define SPAN_S 0.2
/* More than the private caches of today's cores, twice. */
#define POOL_BYTES ((size_t)8 << 20)
#define PAGE_BYTES ((size_t)4096)

/* Of one algorithm. */
struct timing {
	double median, s[CALLS_MOST];
	unsigned int count;
};

/* One side of a call on one rank: a pool of `places` buffers of `stride` bytes, `bytes` used. */
struct side {
	uint8_t *pool;
	size_t bytes, stride, places;
};

struct rank {
	const struct measure *m;
	double *s; /* [ranks], shared: each rank's time of a call */
	struct meet meet;
	struct side send, recv;
	uint64_t turn;
};

/* What a call reads, and what it writes, on rank 0, which is the root, or on another rank. */
static size_t side_sent(const struct measure *m, bool root)
{
	return oci_send_blocks(m->collective, m->ranks, root) * m->bytes;
}

static size_t side_received(const struct measure *m, bool root)
{
	return oci_recv_blocks(m->collective, m->ranks, root) * m->bytes;
}

/* Two buffers at least: with one, each call would find what the last one left in the cache. */
static struct side side_plan(size_t bytes)
{
	struct side side = { .bytes = bytes, .stride = PAGE_BYTES, .places = 1 };

	if (!bytes)
		return side; /* an address, as calls have one */
	side.stride = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	side.places = (POOL_BYTES + side.stride - 1) / side.stride;
	if (side.places < 2)
		side.places = 2;
	return side;
}

/* Makes the pool, in memory that peers map if it is to be (-ENOTSUP: there is none); touched, so
 * that no call pays for a page's first use. 0 or -errno. */
static int side_fill(struct side *side, bool mapped)
{
	size_t bytes = side->places * side->stride;

	side->pool = mapped ? oc_alloc(bytes + PAGE_BYTES) : aligned_alloc(PAGE_BYTES, bytes);
	if (!side->pool)
		return -ENOMEM;
	if (mapped && !oc_is_shared(side->pool))
		return -ENOTSUP;
	side->pool += -(uintptr_t)side->pool % PAGE_BYTES;
	memset(side->pool, 1, bytes);
	return 0;
}

static uint8_t *side_next(const struct side *side, uint64_t turn)
{
	return side->pool + turn % side->places * side->stride;
}

static double total(size_t bytes)
{
	struct side side = side_plan(bytes);

	return (double)side.places * (double)side.stride;
}

void measure_no_room(double needed, double left, uint32_t ranks, char *error, size_t n)
{
	snprintf(error, n, "its buffers on %u ranks take %.1f GiB and %.1f GiB of memory are left",
		 ranks, needed / (1 << 30), left / (1 << 30));
}

int measure_fits(const struct measure *m, char *error, size_t n)
{
	double root = total(side_sent(m, true)) + total(side_received(m, true));
	double other = total(side_sent(m, false)) + total(side_received(m, false));
	double needed = root + (m->ranks - 1) * other, left = (double)oci_tune_memory_left();

	if (needed <= left)
		return 0;
	measure_no_room(needed, left, m->ranks, error, n);
	return -ENOMEM;
}

static void add_doubles(void *context, const void *in, void *inout, size_t count)
{
	const double *a = in;
	double *b = inout;

	(void)context;
	for (size_t i = 0; i < count; i++)
		b[i] += a[i];
}

static const struct oc_op sum = { .apply = add_doubles, .bytes = 8, .commutative = 1, .id = 1 };

/* What the call brought is read, as a program does. */
static void use_result(const struct rank *r, const uint8_t *send)
{
	bool bcast = r->m->collective == OC_BCAST;
	const uint8_t *result = bcast ? send : side_next(&r->recv, r->turn);
	size_t bytes = !bcast ? r->recv.bytes : r->meet.rank ? r->send.bytes : 0;
	uint64_t word, sum = 0;

	for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, result + i, sizeof(word));
		sum += word;
	}
	__asm__ __volatile__("" : : "r"(sum));
}

/* The slowest rank's time of one call, on every rank. Negative: it failed. */
static double call_once(struct rank *r, struct oc_team *team)
{
	uint8_t *send = side_next(&r->send, ++r->turn);
	struct oc_call call = { .collective = r->m->collective,
				.send = send,
				.recv = side_next(&r->recv, r->turn),
				.bytes = r->m->bytes,
				.op = &sum };
	double begin, slowest = 0;
	int failed;

	/* Those who receive into it would bring it to their cache. */
	if (!r->meet.rank || r->m->collective != OC_BCAST)
		memset(send, (int)r->turn & 15, r->send.bytes);
	meet_barrier(&r->meet);
	begin = now_s();
	failed = oc_collective(team, &call);
	r->s[r->meet.rank] = failed ? -1 : now_s() - begin;
	meet_barrier(&r->meet);
	for (uint32_t i = 0; i < r->m->ranks; i++)
		if (r->s[i] < 0)
			slowest = -1;
		else if (slowest >= 0 && r->s[i] > slowest)
			slowest = r->s[i];
	use_result(r, send);
	return slowest;
}

static bool force(struct rank *r, struct oc_team *team, unsigned int algorithm)
{
	return !oc_team_force(team, oci_collective_name(r->m->collective),
			      r->m->algorithms[algorithm]);
}

/* A few calls of each, one after the other: how many take the call before one refuses it. */
static unsigned int warm_up(struct rank *r, struct oc_team *team, struct timing *timings)
{
	for (unsigned int a = 0; a < r->m->count; a++) {
		double s = force(r, team, a) ? 0 : -1;

		for (unsigned int i = 0; i < WARM_UP && s >= 0; i++)
			s = call_once(r, team);
		if (s < 0)
			return a;
		timings[a].median = s;
	}
	return r->m->count;
}

/* The same on all ranks, as the times are. */
static unsigned int calls_of_each(const struct rank *r, const struct timing *timings,
				  unsigned int count)
{
	double span_s = r->m->span_s > 0 ? r->m->span_s : SPAN_S, once_s = 0;

	for (unsigned int a = 0; a < count; a++)
		once_s += timings[a].median / count;
	if (once_s * CALLS_MOST < span_s)
		return CALLS_MOST;
	return once_s * CALLS_LEAST > span_s ? CALLS_LEAST : (unsigned int)(span_s / once_s);
}

/* A turn of one algorithm. The first call of a turn is not counted: it finds what another
 * algorithm left. False: a call failed. */
static bool take_turn(struct rank *r, struct oc_team *team, struct timing *timing, unsigned int a,
		      unsigned int most)
{
	if (!force(r, team, a) || call_once(r, team) < 0)
		return false;
	for (unsigned int i = 0; i < TURN && timing->count < most; i++) {
		double s = call_once(r, team);

		if (s < 0)
			return false;
		timing->s[timing->count++] = s;
	}
	return true;
}

/*
 * They take turns every few calls, so that whatever the machine does meets all of them alike.
 * False: a call failed.
 */
static bool measure_turns(struct rank *r, struct oc_team *team, struct timing *timings,
			  unsigned int count)
{
	unsigned int calls = calls_of_each(r, timings, count), missing = count;

	for (unsigned int a = 0; missing; a = (a + 1) % count) {
		if (timings[a].count == calls)
			continue;
		if (!take_turn(r, team, &timings[a], a, calls))
			return false;
		missing -= timings[a].count == calls;
	}
	for (unsigned int a = 0; a < count; a++) {
		stats_sort(timings[a].s, calls);
		timings[a].median = timings[a].s[calls / 2];
	}
	return true;
}

/* 0 or -ENOMEM. */
static int measure_all(struct rank *r, struct oc_team *team, double *seconds)
{
	struct timing *timings = calloc(r->m->count + 1, sizeof(*timings));
	unsigned int count;

	if (!timings)
		return -ENOMEM;
	count = warm_up(r, team, timings);
	if (count && !measure_turns(r, team, timings, count))
		count = 0; /* the team is of no use any more */
	for (unsigned int a = 0; a < count && !r->meet.rank; a++)
		seconds[a] = timings[a].median;
	free(timings);
	return 0;
}

/* What all ranks share. */
struct job {
	const struct measure *m;
	struct meet_place *board; /* [ranks] */
	double *times, *seconds;
};

/* One rank's whole life. */
static int run_rank(struct oci_tune_rank *me)
{
	const struct job *job = me->arg;
	struct rank r = { .m = job->m,
			  .s = job->times,
			  .meet = { .place = job->board, .rank = me->rank, .ranks = me->ranks } };
	struct oc_team *team;
	int failed;

	r.send = side_plan(side_sent(r.m, !me->rank));
	r.recv = side_plan(side_received(r.m, !me->rank));
	failed = side_fill(&r.send, r.m->mapped);
	if (!failed)
		failed = side_fill(&r.recv, r.m->mapped);
	if (!failed)
		failed = meet_team(&r.meet, &team);
	if (!failed)
		failed = measure_all(&r, team, job->seconds);
	if (failed == -ENOTSUP)
		return oci_tune_fail(
			me, failed,
			"rank %u has no memory that others can map; onecopy info says why",
			me->rank);
	if (failed)
		return oci_tune_fail(me, failed, "rank %u: %s", me->rank, strerror(-failed));
	meet_barrier(&r.meet);
	oc_team_destroy(team);
	return 0;
}

int measure_can(enum oc_collective collective)
{
	return !oci_has_counts(collective);
}

void measure_check_sizes(enum oc_collective collective, const struct size_list *sizes,
			 size_t number_bytes)
{
	if (collective == OC_BARRIER)
		return; /* it has none */
	for (unsigned int s = 0; s < sizes->count; s++) {
		if (!sizes->at[s])
			usage("--bytes 0: there is nothing to move; valid: 1 and more");
		if (oci_is_reduction(collective) && sizes->at[s] % number_bytes)
			usage("--bytes %zu: %s sums numbers of %zu bytes; valid: multiples of %zu",
			      sizes->at[s], oci_collective_name(collective), number_bytes,
			      number_bytes);
	}
}

int measure_run(struct measure *m, char *error, size_t n)
{
	size_t board_bytes = m->ranks * sizeof(struct meet_place);
	size_t bytes = board_bytes + (m->ranks + m->count) * sizeof(double);
	struct job job = { .m = m };
	struct oci_tune_world world;
	const unsigned int *cpus;
	uint32_t cpu_count = oci_tune_cpus(&cpus);
	int failed;

	for (unsigned int i = 0; i < m->count; i++)
		m->seconds[i] = -1;
	failed = measure_fits(m, error, n);
	if (failed)
		return failed;
	job.board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job.board == MAP_FAILED ||
	    oci_tune_world_create(&world, cpus, cpu_count < m->ranks ? 0 : cpu_count, 0,
				  m->ranks)) {
		if (job.board != MAP_FAILED)
			munmap(job.board, bytes);
		snprintf(error, n, "no memory for %u ranks", m->ranks);
		return -ENOMEM;
	}
	world.limit_s = INFINITY;
	job.times = (double *)(job.board + m->ranks);
	job.seconds = memcpy(job.times + m->ranks, m->seconds, m->count * sizeof(double));
	failed = oci_tune_run(&world, m->ranks, 0, run_rank, &job, error, n);
	memcpy(m->seconds, job.seconds, m->count * sizeof(double));
	munmap(job.board, bytes);
	oci_tune_world_destroy(&world);
	return failed;
}
