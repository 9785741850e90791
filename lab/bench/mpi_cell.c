// SPDX-License-Identifier: BSD-3-Clause
/*
 * One cell of onecopy-collectives.
 *
 * One call: every rank prepares its buffers, all meet in our own barrier in shared memory, each
 * takes the time of its call and writes it into that memory, all meet again, and only then is
 * anything verified or rewritten, so that no rank's housekeeping disturbs another's call. The value
 * of a call is the slowest rank's time; the result is the median of these over the calls.
 *
 * Calls come in blocks, with a token sent round the ranks before and after each: it tells how far
 * apart their CPUs are, which the host of a virtual machine may change at any time. With --token-ns
 * only blocks between two tokens of that range count.
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
/* With --token-ns: how much longer a cell may take, and when to give up. */
enum { TOKEN_PATIENCE = 10, TOKEN_GIVE_UP_S = 120 };

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

/* A token goes round; rank 0 gets its time. */
static double send_token(struct bench *b, struct cell_run *run)
{
	struct range *seen = &run->seen_ns;
	double ns = shm_barrier_token_ns(&b->barrier);

	seen->low = seen->high == 0 || ns < seen->low ? ns : seen->low;
	seen->high = ns > seen->high ? ns : seen->high;
	return ns;
}

/* On rank 0: whether the calls between two tokens count; their tokens are kept with them. */
static bool block_counts(const struct bench *b, struct cell_run *run, double before_ns,
			 double after_ns)
{
	const struct range *range = &b->options.token_ns;

	if (range->high > 0 && (before_ns < range->low || before_ns > range->high ||
				after_ns < range->low || after_ns > range->high))
		return false;
	run->tokens_ns[run->tokens++] = before_ns;
	run->tokens_ns[run->tokens++] = after_ns;
	return true;
}

/* The times of @n calls from @first on. Returns how many were made: fewer at the cell's deadline.
 */
static long run_block(struct bench *b, struct cell_run *run, long first, long n, double deadline)
{
	const struct coll_options *o = &b->options;
	long check_every = coll_options_iterations(o, run->call.bytes) / CHECKS_PER_CELL + 1, i;
	bool rewrite = o->mode != BUFFERS_CACHED;

	for (i = first; i < first + n && o->osu; i++)
		run_osu_call(b, run, &run->times[i]);
	for (i = first; i < first + n && !o->osu; i++) {
		bool check = !o->no_check && rewrite && i % check_every == 0;

		/* Rank 0 alone looks at the clock; run_call tells the others. */
		if (b->rank == 0) {
			shm_barrier_set_stop(&b->barrier,
					     i + 1 >= MIN_CALLS && now_us() > deadline);
		}
		if (run_call(b, run, rewrite, check, &run->times[i]))
			return i + 1 - first;
	}
	return n;
}

/* On rank 0, when no end of this cell can be seen. */
static void give_up(struct bench *b, const struct cell_run *run)
{
	const struct range *range = &b->options.token_ns;

	fprintf(stderr,
		"onecopy-collectives: in %d s fewer than %d calls of %s (%zu B) were made while a token took "
		"%g to %g ns from rank to rank (--token-ns). It took %.0f to %.0f ns: give a range "
		"that this machine has more often.\n",
		TOKEN_GIVE_UP_S, MIN_CALLS, oci_collective_name(run->call.collective),
		run->call.bytes, range->low, range->high, run->seen_ns.low, run->seen_ns.high);
	shm_barrier_add_failure(&b->barrier);
}

/* On rank 0, after a block: whether the cell ends with so many calls that count. */
static bool cell_ends(struct bench *b, const struct cell_run *run, long calls, double start_us,
		      double deadline_us)
{
	double now = now_us();

	if (calls >= MIN_CALLS)
		return now > deadline_us;
	if (b->options.token_ns.high > 0 && now > start_us + TOKEN_GIVE_UP_S * 1e6) {
		give_up(b, run);
		return true;
	}
	return false;
}

/*
 * All calls of a cell; returns how many were timed. The first and last ones warm up and are
 * verified but not timed; in between, where sources are rewritten anyway, some are verified too.
 */
static size_t run_calls(struct bench *b, struct cell_run *run)
{
	const struct coll_options *o = &b->options;
	long wanted = coll_options_iterations(o, run->call.bytes), done, i;
	long warmup = wanted / 10 < MIN_WARMUP ? MIN_WARMUP : wanted / 10;
	long block = wanted / BLOCKS_PER_CELL + 1;
	double start, deadline, before_ns, after_ns;
	bool stop = false, counts = false;

	warmup = warmup > MAX_WARMUP ? MAX_WARMUP : warmup;
	for (i = 0; i < warmup && !o->first; i++)
		run_call(b, run, true, !o->no_check, NULL);
	start = now_us();
	deadline = start + o->cell_seconds * 1e6 * (o->token_ns.high > 0 ? TOKEN_PATIENCE : 1);
	before_ns = send_token(b, run);
	for (i = 0; i < wanted && !stop; before_ns = after_ns) {
		done = run_block(b, run, i, block < wanted - i ? block : wanted - i, deadline);
		after_ns = send_token(b, run);
		if (b->rank == 0) {
			counts = block_counts(b, run, before_ns, after_ns);
			stop = cell_ends(b, run, i + (counts ? done : 0), start, deadline);
		}
		i += shm_barrier_tell(&b->barrier, counts) ? done : 0;
		stop = shm_barrier_tell(&b->barrier, stop);
	}
	run_call(b, run, true, !o->no_check, NULL);
	return (size_t)i;
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
	b->tokens_ns[b->cells++] = stats_median(run->tokens_ns, run->tokens);
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
