// SPDX-License-Identifier: BSD-3-Clause
/*
 * One cell of onecopy-collectives.
 *
 * One call: every rank prepares its buffers, all meet in our own barrier in shared memory, each
 * takes the time of its call and writes it into that memory, all meet again, and only then is
 * anything verified or rewritten, so that no rank's housekeeping disturbs another's call. The value
 * of a call is the slowest rank's time; the result is the median of these over the calls.
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
/* Of OSU's loop. */
enum { BLOCKS_PER_CELL = 40 };

/* Nothing sensible can follow, and the other ranks wait for this one. */
void die(const struct bench *b, const char *what, int err)
{
	fprintf(stderr, "onecopy-collectives: rank %d: %s: %s.\n", b->rank, what, strerror(-err));
	MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
}

void cell_verify(struct bench *b, const struct collective_call *call, const void *recv, int absent)
{
	struct collective_error wrong;
	int err;

	/* One rank's sentence is enough; the next cells will not run. */
	if (shm_barrier_failed(&b->barrier))
		return;
	if (absent >= 0) {
		fprintf(stderr,
			"onecopy-collectives: barrier (0 B, offset 0) is wrong on rank %d: it returned "
			"before rank %d had entered it.\n",
			b->rank, absent);
		shm_barrier_add_failure(&b->barrier);
	}
	err = collective_verify(call, recv, &wrong);
	if (err == -EBADMSG) {
		fprintf(stderr,
			"onecopy-collectives: %s of %zu B is wrong on rank %d at byte offset %zu: 0x%02x "
			"was expected, 0x%02x is there. So the MPI below delivered it; run the same "
			"command on the stock MPI to see which library is at fault.\n",
			oci_collective_name(call->collective), call->bytes, b->rank, wrong.offset,
			wrong.expected, wrong.found);
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
	MPI_Barrier(MPI_COMM_WORLD);
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
		cell_verify(b, call, recv, absent);
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

/* The same of calls that begin at one instant. */
static long run_aligned_calls(struct bench *b, struct cell_run *run, long wanted,
			      double deadline_us)
{
	const struct coll_options *o = &b->options;
	bool rewrite = o->mode != BUFFERS_CACHED, stop = false;
	long check_every = wanted / CHECKS_PER_CELL + 1, i;

	for (i = 0; i < wanted && !stop; i++) {
		bool check = !o->no_check && rewrite && i % check_every == 0;

		/* Rank 0 alone looks at the clock; run_call tells the others. */
		if (b->rank == 0)
			shm_barrier_set_stop(&b->barrier,
					     i + 1 >= MIN_CALLS && now_us() > deadline_us);
		stop = run_call(b, run, rewrite, check, &run->times[i]);
	}
	return i;
}

/*
 * All calls of a cell; returns how many were timed. The first and last ones warm up and are
 * verified but not timed; in between, where sources are rewritten anyway, some are verified too.
 */
static size_t run_calls(struct bench *b, struct cell_run *run)
{
	const struct coll_options *o = &b->options;
	long wanted = coll_options_iterations(o, run->call.bytes), done;
	long warmup = wanted / 10 < MIN_WARMUP ? MIN_WARMUP : wanted / 10;
	double deadline_us;

	warmup = warmup > MAX_WARMUP ? MAX_WARMUP : warmup;
	for (long i = 0; i < warmup && !o->first; i++)
		run_call(b, run, true, !o->no_check, NULL);
	deadline_us = now_us() + o->cell_seconds * 1e6;
	done = o->osu ? run_osu_calls(b, run, wanted, deadline_us) :
			run_aligned_calls(b, run, wanted, deadline_us);
	run_call(b, run, true, !o->no_check, NULL);
	return (size_t)done;
}

/* On rank 0: each call's slowest rank, from the times that all ranks left in the segment. */
static void print(struct bench *b, struct cell_run *run, size_t n)
{
	double *us = malloc(n * sizeof(*us)), sum = 0;
	size_t i;
	int rank;

	if (!us) {
		die(b, "The times could not be collected", -ENOMEM);
		return;
	}
	memcpy(us, shm_barrier_times(&b->barrier, 0), n * sizeof(*us));
	for (rank = 1; rank < b->ranks; rank++) {
		const double *theirs = shm_barrier_times(&b->barrier, rank);

		for (i = 0; i < n && b->options.osu; i++)
			us[i] += theirs[i];
		for (i = 0; i < n && !b->options.osu; i++)
			us[i] = theirs[i] > us[i] ? theirs[i] : us[i];
	}
	for (i = 0; i < n; i++) {
		us[i] /= b->options.osu ? b->ranks : 1;
		sum += us[i];
	}
	stats_sort(us, n);
	/* The first calls differ from each other: what they take together is what a job pays. */
	printf("= %s %zu %.6g %.6g %.6g\n", oci_collective_name(run->call.collective),
	       run->call.bytes, b->options.first ? sum / (double)n : stats_quantile(us, n, 0.5),
	       stats_quantile(us, n, 0.1), stats_quantile(us, n, 0.9));
	/* A cell can take a while; a pipe shows it at once too. */
	fflush(stdout);
	free(us);
}

/* Returns 0 or -ENOMEM. */
static int create_buffers(const struct bench *b, struct cell_run *run)
{
	size_t send = collective_send_bytes(&run->call), recv = collective_recv_bytes(&run->call);
	int err;

	if (b->options.memcpy)
		send = recv = limit_share(&run->call, b->barrier.cpus);
	err = buffers_create(&run->send, b->options.mode, send);
	return err ? err : buffers_create(&run->recv, b->options.mode, recv);
}

void run_cell(struct bench *b, enum oc_collective collective, size_t bytes)
{
	struct cell_run run = {
		.call = {
			.collective = collective,
			.rank = b->rank,
			.ranks = b->ranks,
			.root = (int)b->options.root,
			.bytes = bytes,
		},
		.times = shm_barrier_times(&b->barrier, b->rank),
	};
	size_t n;
	int err = mpi_call_create(&run.mpi, &run.call, (enum mpi_form)b->options.form);

	if (err == -EOVERFLOW) {
		die(b, "MPI's ints cannot say where the last block begins; choose smaller sizes",
		    err);
	}
	if (err || create_buffers(b, &run)) {
		die(b, "The buffers could not be allocated; choose smaller sizes or fewer ranks",
		    -ENOMEM);
	}
	if (b->options.form == FORM_OVERLAP) {
		overlap_measure(b, &run);
	} else {
		n = run_calls(b, &run);
		if (b->rank == 0 && n > 0 && !shm_barrier_failed(&b->barrier))
			print(b, &run, n);
	}
	buffers_destroy(&run.send);
	buffers_destroy(&run.recv);
	mpi_call_destroy(&run.mpi);
	/* The times may be overwritten from here on, and failures are known to all. */
	shm_barrier_wait(&b->barrier);
}
