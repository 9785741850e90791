// SPDX-License-Identifier: BSD-3-Clause
/*
 * One cell of onecopy-collectives.
 *
 * One call: every rank prepares its buffers, all meet in our own barrier in shared memory (several
 * nodes by messages), each takes the time of its call and writes it into that memory, all meet
 * again, and only then is anything verified or rewritten, so that no rank's housekeeping disturbs
 * another's call. The value of a call is the slowest rank's time; the result is the median of these
 * over the calls.
 */
#include "mpi_cell.h"

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/harness/clock.h"
#include "lab/harness/stats.h"
#include "limit.h"
#include "mpi_call.h"

enum { MIN_CALLS = 10, CHECKS_PER_CELL = 16, MIN_WARMUP = 3, MAX_WARMUP = 200 };
/* Buffers of less than 1 KiB are more, but go beside the flags: nobody maps them. */
enum { MAX_TURNS = 2000 };
/* Of a cell's time: warming up at most; first calls, which are a given number, if they can. */
#define WARMUP_TIMES 2
#define FIRST_TIMES 10
/* Of OSU's loop. */
enum { BLOCKS_PER_CELL = 40 };

/* Nothing sensible can follow, and the other ranks wait for this one. */
void die(const struct bench *b, const char *what, int err)
{
	fprintf(stderr, "onecopy-collectives: rank %d: %s: %s.\n", b->rank, what, strerror(-err));
	MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
}

void cell_verify(struct bench *b, const struct cell_run *run, const void *recv, int absent)
{
	const struct collective_call *call = &run->call;
	struct collective_error wrong;
	int err;

	/* One rank's sentence is enough. */
	if (shm_barrier_failed(&b->barrier))
		return;
	if (absent >= 0) {
		if (!run->tolerant)
			fprintf(stderr,
				"onecopy-collectives: barrier (0 B, offset 0) is wrong on rank %d: it returned "
				"before rank %d of its node had entered it.\n",
				b->rank, absent);
		shm_barrier_add_failure(&b->barrier);
	}
	err = collective_verify(call, recv, &wrong);
	if (err == -EBADMSG) {
		if (!run->tolerant)
			fprintf(stderr,
				"onecopy-collectives: %s of %zu B is wrong on rank %d at byte offset %zu: 0x%02x "
				"was expected, 0x%02x is there. So the MPI below delivered it; run the same "
				"command on the stock MPI to see which library is at fault.\n",
				oci_collective_name(call->collective), call->bytes, b->rank,
				wrong.offset, wrong.expected, wrong.found);
		shm_barrier_add_failure(&b->barrier);
	} else if (err) {
		die(b, "The received bytes could not be verified", err);
	}
}

/* A rank that does not help with --memcpy has no buffers. */
static void copy(const void *send, void *recv, size_t bytes)
{
	if (bytes)
		memcpy(recv, send, bytes);
}

static void fill(const struct bench *b, const struct cell_run *run, void *send)
{
	if (!b->options.memcpy)
		collective_fill(&run->call, send);
	else if (send)
		memset(send, (int)run->call.seed, run->send.bytes);
}

/* What is timed. */
static void call_once(const struct bench *b, struct cell_run *run, void *send, void *recv)
{
	if (b->options.memcpy)
		copy(send, recv, run->send.bytes);
	else
		mpi_call_run(&run->mpi, send, recv);
}

/* As OSU's benchmarks do it: the next call begins when MPI_Barrier lets go of a rank. */
static void run_osu_call(const struct bench *b, struct cell_run *run, double *time_us)
{
	void *send, *recv;
	double start;

	buffers_get(&run->send, &send);
	buffers_get(&run->recv, &recv);
	start = now_us();
	call_once(b, run, send, recv);
	*time_us = now_us() - start;
	MPI_Barrier(b->comm);
}

/*
 * One call. Its time goes to @time_us, unless NULL. A checked call is always a rewritten one.
 * Returns whether rank 0 had raised the stop flag before it, the same on every rank.
 */
static bool run_call(struct bench *b, struct cell_run *run, bool rewrite, bool check,
		     double *time_us)
{
	struct collective_call *call = &run->call;
	bool mark = check && call->collective == OC_BARRIER;
	void *send, *recv = NULL;
	double start, end;
	int absent = -1, err;
	bool stop;

	err = buffers_get(&run->send, &send);
	if (!err)
		err = buffers_get(&run->recv, &recv);
	if (err)
		die(b, "A buffer could not be allocated; choose smaller sizes or fewer ranks", err);
	if (rewrite) {
		call->seed = ++b->calls;
		fill(b, run, send);
	}
	shm_barrier_align(&b->barrier);
	if (mark)
		shm_barrier_mark(&b->barrier, call->seed);
	start = now_us();
	call_once(b, run, send, recv);
	end = now_us();
	if (mark) {
		/* Before our own barrier, which would hide what this one failed to do. */
		absent = shm_barrier_find_absent(&b->barrier, call->seed);
	}
	if (time_us)
		*time_us = end - start;
	/* Between the waits: rank 0 changes the flag only before the first or after the second. */
	stop = shm_barrier_stop(&b->barrier);
	shm_barrier_wait(&b->barrier);
	if (check)
		cell_verify(b, run, recv, absent);
	buffers_put(&run->send, send);
	buffers_put(&run->recv, recv);
	return stop;
}

/* The times of up to @wanted calls in OSU's loop; returns how many were made. The clock is looked
 * at between blocks, as all ranks have to know. */
static long run_osu_calls(struct bench *b, struct cell_run *run, long wanted, double deadline_us)
{
	long block = wanted / BLOCKS_PER_CELL + 1, i = 0;
	bool stop = false;

	while (i < wanted && !stop) {
		long end = i + block < wanted ? i + block : wanted;

		while (i < end)
			run_osu_call(b, run, &run->times[i++]);
		stop = shm_barrier_tell(&b->barrier, i >= MIN_CALLS && now_us() > deadline_us);
	}
	return i;
}

/* Rank 0 alone looks at the clock; run_call tells the others. */
static void look_at_clock(struct bench *b, bool enough, double deadline_us)
{
	if (b->rank == 0)
		shm_barrier_set_stop(&b->barrier, enough && now_us() > deadline_us);
}

/* The same of calls that begin at one instant. */
static long run_aligned_calls(struct bench *b, struct cell_run *run, long wanted,
			      double deadline_us)
{
	bool rewrite = run->send.mode != BUFFERS_CACHED, stop = false;
	long check_every = wanted / CHECKS_PER_CELL + 1, i;

	for (i = 0; i < wanted && !stop; i++) {
		bool check = run->checked && rewrite && i % check_every == 0;

		look_at_clock(b, i + 1 >= MIN_CALLS, deadline_us);
		stop = run_call(b, run, rewrite, check, &run->times[i]);
	}
	return i;
}

static void warm_up(struct bench *b, struct cell_run *run, long calls)
{
	double deadline_us = now_us() + WARMUP_TIMES * b->options.cell_seconds * 1e6;
	bool stop = false;

	for (long i = 0; i < calls && !stop; i++) {
		look_at_clock(b, i + 1 >= MIN_WARMUP, deadline_us);
		stop = run_call(b, run, true, run->checked && i < MAX_WARMUP, NULL);
	}
}

/* Alike on all ranks. Each buffer has its turn, as the first copy of a page takes longer: ranks may
 * map each other's memory. */
static long warmup_calls(const struct cell_run *run, long wanted)
{
	long calls = wanted / 10 < MIN_WARMUP ? MIN_WARMUP : wanted / 10;
	long turns = (long)buffers_in_turn(run->send.mode, run->call.bytes);

	calls = calls > MAX_WARMUP ? MAX_WARMUP : calls;
	turns = turns > MAX_TURNS ? MAX_TURNS : turns;
	return calls > turns ? calls : turns;
}

/*
 * All calls of a cell; returns how many were timed. The first and last ones warm up and are
 * verified but not timed; in between, where sources are rewritten anyway, some are verified too.
 */
static size_t run_calls(struct bench *b, struct cell_run *run)
{
	long wanted = coll_options_iterations(&b->options, run->way, run->call.bytes), done;
	double deadline_us, seconds = b->options.cell_seconds;

	if (!run->way->first)
		warm_up(b, run, warmup_calls(run, wanted));
	deadline_us = now_us() + (run->way->first ? FIRST_TIMES * seconds : seconds) * 1e6;
	done = run->way->osu ? run_osu_calls(b, run, wanted, deadline_us) :
			       run_aligned_calls(b, run, wanted, deadline_us);
	run_call(b, run, true, run->checked, NULL);
	return (size_t)done;
}

static void add_times(const struct cell_run *run, double *us, const double *theirs, size_t n)
{
	for (size_t i = 0; i < n && run->way->osu; i++)
		us[i] += theirs[i];
	for (size_t i = 0; i < n && !run->way->osu; i++)
		us[i] = theirs[i] > us[i] ? theirs[i] : us[i];
}

/* The times of all ranks in one, on rank 0; called by each node's first rank. */
static void gather_times(struct bench *b, const struct cell_run *run, double *us, size_t n)
{
	memcpy(us, shm_barrier_times(&b->barrier, 0), n * sizeof(*us));
	for (int rank = 1; rank < b->barrier.ranks; rank++)
		add_times(run, us, shm_barrier_times(&b->barrier, rank), n);
	if (b->rank)
		MPI_Send(us, (int)n, MPI_DOUBLE, 0, 0, b->leaders);
	for (int node = 1; node < b->nodes && !b->rank; node++) {
		/* Its own times are in `us`. */
		MPI_Recv(run->times, (int)n, MPI_DOUBLE, node, 0, b->leaders, MPI_STATUS_IGNORE);
		add_times(run, us, run->times, n);
	}
	for (size_t i = 0; i < n && run->way->osu; i++)
		us[i] /= b->ranks;
}

static void print_name(const struct bench *b, const struct cell_run *run,
		       const struct bench_way *way)
{
	bool several = bench_has_several(b->options.ways, BENCH_WAYS);

	printf("= %s%s%s %zu", several ? way->name : "", several ? "-" : "",
	       oci_collective_name(run->call.collective), run->call.bytes);
}

/* Of the first calls, which differ from each other, the mean: what they take together is what a
 * job pays. */
static void print(const struct bench *b, const struct cell_run *run, const struct bench_way *way,
		  double *us, size_t n)
{
	double sum = 0;

	if (way->first && n > (size_t)way->first)
		n = (size_t)way->first;
	for (size_t i = 0; i < n; i++)
		sum += us[i];
	stats_sort(us, n);
	print_name(b, run, way);
	printf(" %.6g %.6g %.6g\n", way->first ? sum / (double)n : stats_quantile(us, n, 0.5),
	       stats_quantile(us, n, 0.1), stats_quantile(us, n, 0.9));
	/* A cell can take a while; a pipe shows it at once too. */
	fflush(stdout);
}

/* The shorter way first, as each is sorted. */
static void print_ways(struct bench *b, const struct cell_run *run, const struct bench_way *shorter,
		       size_t n)
{
	double *us = malloc(n * sizeof(*us));

	if (!us) {
		die(b, "The times could not be collected", -ENOMEM);
		return;
	}
	gather_times(b, run, us, n);
	if (shorter && !b->rank)
		print(b, run, shorter, us, n);
	if (!b->rank)
		print(b, run, run->way, us, n);
	free(us);
}

/* What delivers wrong bytes has no time. */
static void print_wrong(struct bench *b, const struct cell_run *run,
			const struct bench_way *shorter)
{
	if (!run->tolerant)
		return;
	if (shorter) {
		print_name(b, run, shorter);
		puts(" nan");
	}
	print_name(b, run, run->way);
	puts(" nan");
	fflush(stdout);
	shm_barrier_forget_failures(&b->barrier);
}

/* Returns 0 or -ENOMEM. */
static int create_buffers(const struct bench *b, struct cell_run *run)
{
	size_t send = collective_send_bytes(&run->call), recv = collective_recv_bytes(&run->call);
	enum buffer_mode mode = run->way->cached ? BUFFERS_CACHED : b->options.mode;
	int err;

	if (b->options.memcpy)
		send = recv = limit_share(&run->call, b->barrier.cpus);
	err = buffers_create(&run->send, mode, send);
	return err ? err : buffers_create(&run->recv, mode, recv);
}

/* All that a cell has, ready to be called. */
static void begin_cell(struct bench *b, struct cell_run *run, const struct bench_way *way,
		       struct bench_cell cell)
{
	int err;

	*run = (struct cell_run){
		.call = {
			.collective = cell.collective,
			.rank = b->rank,
			.ranks = b->ranks,
			.bytes = cell.bytes,
		},
		.way = way,
		.checked = !b->options.no_check,
		.tolerant = b->options.tolerant[cell.way],
		.times = shm_barrier_times(&b->barrier, b->barrier.rank),
	};
	err = mpi_call_create(&run->mpi, &run->call, way->form, b->comm);
	if (err == -EOVERFLOW) {
		die(b, "MPI's ints cannot say where the last block begins; choose smaller sizes",
		    err);
	}
	/* The graph, too, has a blocking call first; see run_way(). */
	if (!err && run->mpi.own_comm && !way->first)
		MPI_Barrier(run->mpi.comm);
	if (err || create_buffers(b, run)) {
		die(b, "The buffers could not be allocated; choose smaller sizes or fewer ranks",
		    -ENOMEM);
	}
}

static void end_cell(struct bench *b, struct cell_run *run)
{
	buffers_destroy(&run->send);
	buffers_destroy(&run->recv);
	mpi_call_destroy(&run->mpi);
	/* The times may be overwritten from here on; what is tolerated is forgotten. */
	shm_barrier_wait(&b->barrier);
}

void run_cell(struct bench *b, struct bench_cell cell, const struct bench_way *shorter)
{
	struct cell_run run;
	size_t n;

	begin_cell(b, &run, &bench_ways[cell.way], cell);
	n = run_calls(b, &run);
	/* Failures are known to all from here on. */
	shm_barrier_wait(&b->barrier);
	if (b->rank == 0 && shm_barrier_failed(&b->barrier))
		print_wrong(b, &run, shorter);
	else if (b->barrier.rank == 0 && !shm_barrier_failed(&b->barrier) && n > 0)
		print_ways(b, &run, shorter, n);
	end_cell(b, &run);
}

void run_overlap(struct bench *b, enum oc_collective collective, size_t bytes)
{
	static const struct bench_way overlap = { .name = "overlap", .form = FORM_OVERLAP };
	struct cell_run run;

	begin_cell(b, &run, &overlap,
		   (struct bench_cell){ .collective = collective, .bytes = bytes });
	overlap_measure(b, &run);
	end_cell(b, &run);
}
