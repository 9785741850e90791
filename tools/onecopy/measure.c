/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are forked, meet in shared memory and call collectives of the C API.
 *
 * Each call begins at a barrier of our own and counts from there to the end of the slowest rank.
 * Buffers rotate, two at least, through more than the private caches hold, each side of a call by
 * itself, and the source is written before each call, by its owner alone: as bench/ does it, and as
 * `onecopy tune` measures the model's terms.
 */
#include "measure.h"

#include "command.h"
#include "meet.h"

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

enum { CALLS_MOST = 101, CALLS_LEAST = 7, WARM_UP = 3 };
/* An algorithm is called for about so long, within the numbers above, unless told otherwise. */
#define SPAN_S 0.2
/* More than the private caches of today's cores, twice. */
#define POOL_BYTES ((size_t)8 << 20)
#define PAGE_BYTES ((size_t)4096)

/* Shared; behind the places a time for each rank. */
struct board {
	unsigned int calls; /* of the algorithm under way; by rank 0, between two barriers */
	struct meet_place place[];
};

/* One side of a call on one rank: a pool of `places` buffers of `stride` bytes, `bytes` used. */
struct side {
	uint8_t *pool;
	size_t bytes, stride, places;
};

struct rank {
	const struct measure *m;
	struct board *board;
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint8_t *next_buffer(const struct side *side, uint64_t turn)
{
	return side->pool + turn % side->places * side->stride;
}

/* The slowest rank's time of one call; on rank 0, else 0. Negative: -errno. */
static double call_once(struct rank *r, struct oc_team *team)
{
	uint8_t *send = next_buffer(&r->send, ++r->turn);
	struct oc_call call = { .collective = r->m->collective,
				.send = send,
				.recv = next_buffer(&r->recv, r->turn),
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
	return slowest;
}

static double measure_one(struct rank *r, struct oc_team *team, const char *algorithm)
{
	double s[CALLS_MOST], last = 0, span_s = r->m->span_s > 0 ? r->m->span_s : SPAN_S;
	unsigned int calls;

	if (oc_team_force(team, oc_collective_name(r->m->collective), algorithm))
		return -1;
	for (unsigned int i = 0; i < WARM_UP && last >= 0; i++)
		last = call_once(r, team);
	if (last < 0)
		return -1;
	if (!r->meet.rank)
		r->board->calls = last * CALLS_MOST < span_s  ? CALLS_MOST :
				  last * CALLS_LEAST > span_s ? CALLS_LEAST :
								(unsigned int)(span_s / last);
	meet_barrier(&r->meet);
	calls = r->board->calls;
	for (unsigned int i = 0; i < calls; i++) {
		s[i] = call_once(r, team);
		if (s[i] < 0)
			return -1;
	}
	qsort(s, calls, sizeof(s[0]), by_value);
	return s[calls / 2];
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

/* What a call reads, and what it writes, on rank 0, which is the root, or on another rank. */
static size_t send_bytes(const struct measure *m, bool root)
{
	switch (m->collective) {
	case OC_BARRIER:
		return 0;
	case OC_SCATTER:
		return root ? m->ranks * m->bytes : 0;
	case OC_ALLTOALL:
	case OC_REDUCE_SCATTER_BLOCK:
		return m->ranks * m->bytes;
	default:
		return m->bytes; /* of a Bcast the buffer, on all ranks */
	}
}

static size_t recv_bytes(const struct measure *m, bool root)
{
	switch (m->collective) {
	case OC_BARRIER:
	case OC_BCAST:
		return 0;
	case OC_GATHER:
		return root ? m->ranks * m->bytes : 0;
	case OC_REDUCE:
		return root ? m->bytes : 0;
	case OC_ALLGATHER:
	case OC_ALLTOALL:
		return m->ranks * m->bytes;
	default:
		return m->bytes;
	}
}

/* Two buffers at least: with one, each call would find what the last one left in the cache. */
static struct side plan_side(size_t bytes)
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

/* Touched, so that no call pays for a page's first use. */
static int fill_side(struct side *side)
{
	side->pool = aligned_alloc(PAGE_BYTES, side->places * side->stride);
	if (side->pool)
		memset(side->pool, 1, side->places * side->stride);
	return side->pool ? 0 : -ENOMEM;
}

static double side_total(size_t bytes)
{
	struct side side = plan_side(bytes);

	return (double)side.places * (double)side.stride;
}

/* Bytes that can be had without swapping, by the kernel's estimate; negative: it does not say. */
static double memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	double kib = -1;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "MemAvailable: %lf", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib < 0 ? -1 : kib * 1024;
}

int measure_fits(const struct measure *m, char *error, size_t n)
{
	double root = side_total(send_bytes(m, true)) + side_total(recv_bytes(m, true));
	double other = side_total(send_bytes(m, false)) + side_total(recv_bytes(m, false));
	double needed = root + (m->ranks - 1) * other, available = memory_available();

	if (available < 0 || needed <= available)
		return 0;
	snprintf(error, n, "its buffers on %u ranks take %.1f GiB and %.1f GiB of memory are left",
		 m->ranks, needed / (1 << 30), available / (1 << 30));
	return -ENOMEM;
}

/* One rank's whole life; its exit status. */
static int run_rank(struct rank *r, double *seconds)
{
	struct oc_team *team;
	int failed;

	bind_to_cpu(r->meet.rank, r->m->ranks);
	r->send = plan_side(send_bytes(r->m, !r->meet.rank));
	r->recv = plan_side(recv_bytes(r->m, !r->meet.rank));
	if (fill_side(&r->send) || fill_side(&r->recv))
		return ENOMEM;
	failed = meet_team(&r->meet, &team);
	if (failed)
		return -failed;
	for (unsigned int i = 0; i < r->m->count; i++) {
		double s = measure_one(r, team, r->m->algorithms[i]);

		if (!r->meet.rank)
			seconds[i] = s;
		if (s < 0)
			break; /* the team may be of no use any more */
	}
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
			if (WIFEXITED(status))
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
	return collective != OC_SCATTERV && collective != OC_GATHERV &&
	       collective != OC_ALLGATHERV && collective != OC_ALLTOALLV &&
	       collective != OC_REDUCE_SCATTER;
}

static int is_reduction(enum oc_collective collective)
{
	return collective == OC_REDUCE || collective == OC_ALLREDUCE || collective == OC_SCAN ||
	       collective == OC_EXSCAN || collective == OC_REDUCE_SCATTER_BLOCK;
}

void measure_check_sizes(enum oc_collective collective, const struct size_list *sizes)
{
	if (collective == OC_BARRIER)
		return; /* it has none */
	for (unsigned int s = 0; s < sizes->count; s++) {
		if (!sizes->at[s])
			command_usage("--bytes 0: there is nothing to move; valid: 1 and more");
		if (is_reduction(collective) && sizes->at[s] % sum.bytes)
			command_usage("--bytes %zu is no number of doubles, which %s sums; "
				      "valid: multiples of 8",
				      sizes->at[s], oc_collective_name(collective));
	}
}

/* Forks them; 0 or -errno, with `*forked` to be reaped. */
static int fork_ranks(const struct measure *m, struct board *board, double *times, double *seconds,
		      pid_t *pids, uint32_t *forked)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (*forked = 0; *forked < m->ranks; ++*forked) {
		struct rank rank = {
			.m = m,
			.board = board,
			.s = times,
			.meet = { .place = board->place, .rank = *forked, .ranks = m->ranks }
		};
		pid_t pid = fork();

		if (pid < 0)
			return -errno;
		if (!pid) {
			/* Who waits for us is gone: so are we. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(getppid() == parent ? run_rank(&rank, seconds) : EINTR);
		}
		pids[*forked] = pid;
	}
	return 0;
}

int measure_run(const struct measure *m, char *error, size_t n)
{
	size_t board_bytes = sizeof(struct board) + m->ranks * sizeof(struct meet_place);
	size_t bytes = board_bytes + (m->ranks + m->count) * sizeof(double) + 64;
	struct board *board =
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
	times = (double *)((char *)board + (board_bytes + 63) / 64 * 64);
	seconds = times + m->ranks;
	for (unsigned int i = 0; i < m->count; i++)
		seconds[i] = -1;
	failed = fork_ranks(m, board, times, seconds, pids, &forked);
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
