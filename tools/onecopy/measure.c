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
#include "lab/harness/meet.h"
#include "lab/harness/stats.h"
#include "measure_sides.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS_MOST = 101, CALLS_LEAST = 7, WARM_UP = 3, TURN = 4 };
/* An algorithm is called for about so long, within the numbers above, unless told otherwise. */
#define SPAN_S 0.2

/* Of one algorithm. */
struct timing {
	double median, s[CALLS_MOST];
	unsigned int count;
};

struct rank {
	const struct measure *m;
	double *s; /* [ranks], shared: each rank's time of a call */
	struct meet meet;
	struct side send, recv;
	uint64_t turn;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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
	for (uint32_t i = 0; i < r->m->ranks; i++) {
		if (r->s[i] < 0)
			slowest = -1;
		else if (slowest >= 0 && r->s[i] > slowest)
			slowest = r->s[i];
	}
	use_result(r, send);
	return slowest;
}

static bool force(struct rank *r, struct oc_team *team, unsigned int algorithm)
{
	return !oc_team_force(team, oc_collective_name(r->m->collective),
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

/* 0, or the exit status of a rank that cannot measure. */
static int measure_all(struct rank *r, struct oc_team *team, double *seconds)
{
	struct timing *timings = calloc(r->m->count + 1, sizeof(*timings));
	unsigned int count;

	if (!timings)
		return ENOMEM;
	count = warm_up(r, team, timings);
	if (count && !measure_turns(r, team, timings, count))
		count = 0; /* the team is of no use any more */
	for (unsigned int a = 0; a < count && !r->meet.rank; a++)
		seconds[a] = timings[a].median;
	free(timings);
	return 0;
}

static void bind_to_cpu(uint32_t rank, uint32_t ranks)
{
	cpu_set_t allowed, mine;
	uint32_t seen = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) ||
	    (uint32_t)CPU_COUNT(&allowed) < ranks)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || seen++ != rank)
			continue;
		CPU_ZERO(&mine);
		CPU_SET(cpu, &mine);
		sched_setaffinity(0, sizeof(mine), &mine);
		return;
	}
}

/* One rank's whole life; its exit status. */
static int run_rank(struct rank *r, double *seconds)
{
	struct oc_team *team;
	int failed;

	bind_to_cpu(r->meet.rank, r->m->ranks);
	r->send = side_plan(side_sent(r->m, !r->meet.rank));
	r->recv = side_plan(side_received(r->m, !r->meet.rank));
	failed = r->m->mapped ? side_fill_mapped(&r->send) : side_fill(&r->send);
	if (!failed)
		failed = r->m->mapped ? side_fill_mapped(&r->recv) : side_fill(&r->recv);
	if (failed)
		return -failed;
	failed = meet_team(&r->meet, &team);
	if (failed)
		return -failed;
	failed = measure_all(r, team, seconds);
	if (failed)
		return failed;
	meet_barrier(&r->meet);
	oc_team_destroy(team);
	return 0;
}

/* The first failure ends the others, who would wait for it. */
static int reap(pid_t *pids, uint32_t ranks, char *error, size_t n)
{
	int failed = 0;

	for (uint32_t left = ranks; left; left--) {
		int status;
		pid_t pid = waitpid(-1, &status, 0);

		for (uint32_t r = 0; r < ranks && pid > 0; r++) {
			if (pids[r] != pid)
				continue;
			pids[r] = 0;
			if (!status || failed)
				continue;
			failed = WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
			if (failed == -ENOTSUP)
				snprintf(error, n,
					 "rank %u has no memory that others can map; onecopy info "
					 "says why",
					 r);
			else if (WIFEXITED(status))
				snprintf(error, n, "rank %u: %s", r, strerror(-failed));
			else
				snprintf(error, n, "rank %u was ended by signal %d", r,
					 WTERMSIG(status));
			for (uint32_t other = 0; other < ranks; other++) {
				if (pids[other] > 0)
					kill(pids[other], SIGKILL);
			}
		}
	}
	return failed;
}

int measure_can(enum oc_collective collective)
{
	return !oci_has_counts(collective);
}

void measure_check_sizes(enum oc_collective collective, const struct size_list *sizes)
{
	if (collective == OC_BARRIER)
		return; /* it has none */
	for (unsigned int s = 0; s < sizes->count; s++) {
		if (!sizes->at[s])
			command_usage("--bytes 0: there is nothing to move; valid: 1 and more");
		if (oci_is_reduction(collective) && sizes->at[s] % sum.bytes)
			command_usage("--bytes %zu is no number of doubles, which %s sums; "
				      "valid: multiples of 8",
				      sizes->at[s], oc_collective_name(collective));
	}
}

/* Forks them; 0 or -errno, with `*forked` to be reaped. */
static int fork_ranks(const struct measure *m, struct meet_place *board, double *times, pid_t *pids,
		      uint32_t *forked)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (*forked = 0; *forked < m->ranks; ++*forked) {
		struct rank rank = {
			.m = m,
			.s = times,
			.meet = { .place = board, .rank = *forked, .ranks = m->ranks }
		};
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid) {
			/* Who waits for us is gone: so are we. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(getppid() == parent ? run_rank(&rank, times + m->ranks) : EINTR);
		}
		pids[*forked] = pid;
	}
	return 0;
}

int measure_run(struct measure *m, char *error, size_t n)
{
	size_t board_bytes = m->ranks * sizeof(struct meet_place);
	size_t bytes = board_bytes + (m->ranks + m->count) * sizeof(double);
	struct meet_place *board =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double *times, *seconds;
	pid_t *pids = calloc(m->ranks, sizeof(*pids));
	uint32_t forked = 0;
	int failed = -ENOMEM, ended;

	for (unsigned int i = 0; i < m->count; i++)
		m->seconds[i] = -1;
	if (measure_fits(m, error, n)) {
		if (board != MAP_FAILED)
			munmap(board, bytes);
		free(pids);
		return -ENOMEM;
	}
	if (board == MAP_FAILED || !pids) {
		free(pids);
		snprintf(error, n, "no memory for %u ranks", m->ranks);
		return -ENOMEM;
	}
	times = (double *)(board + m->ranks);
	seconds = times + m->ranks;
	for (unsigned int i = 0; i < m->count; i++)
		seconds[i] = -1;
	failed = fork_ranks(m, board, times, pids, &forked);
	for (uint32_t r = 0; failed && r < forked; r++)
		kill(pids[r], SIGKILL);
	ended = reap(pids, forked, error, n);
	if (failed)
		snprintf(error, n, "rank %u cannot be started: %s", forked, strerror(-failed));
	else
		failed = ended;
	memcpy(m->seconds, seconds, m->count * sizeof(*seconds));
	munmap(board, bytes);
	free(pids);
	return failed;
}
