/* SPDX-License-Identifier: BSD-3-Clause */
/* How jobs end: by a signal, with a status, or as one that hangs and is told of. */
#include "driver.h"
#include "verdict.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver itself: what its job started is gone before the driver is, wherever it was. */
static void check_driver_ends_its_job(void)
{
	static const char *const script =
		"for signal in HUP INT TERM; do rm -f $1; "
		"env --default-signal=$signal $0 hang $1 & driver=$!; "
		"while [ ! -e $1 ]; do sleep 0.05; done; "
		"kill -$signal $driver; wait $driver; echo $signal: $?; "
		"kill -0 $(cat $1) 2>/dev/null && echo left behind; done; rm -f $1";
	struct job job = { 0 };
	struct job_result result;

	job_add_shell(&job, script);
	job_add(&job, job_text("/proc/%d/exe", (int)getpid()),
		job_text("/tmp/onecopy-test-hang-%d", (int)getpid()));
	job_run(&job, &result);
	if (result.hung || !strstr(result.output, "HUP: 129\n") ||
	    !strstr(result.output, "INT: 130\n") || !strstr(result.output, "TERM: 143\n"))
		verdict_fail(&result, "the driver is not ended by a signal as others are");
	if (strstr(result.output, "left behind"))
		verdict_fail(&result, "the driver left its job behind");
	job_free(&result);
}

/* A signal to the command reaches what it runs, and the status says how that ended. */
SCENARIO(signals)
{
	static const char *const script =
		"trap 'echo got it; exit 5' TERM; kill -TERM $PPID; sleep 5 >/dev/null 2>&1 & wait $!; exit 1";
	static const struct {
		const char *script;
		int status;
	} end[] = {
		{ "kill -KILL $$", 137 },
		{ "kill -SEGV $$", 139 },
		{ "trap 'exit 9' USR1; kill -USR1 $PPID; sleep 5 >/dev/null 2>&1 & wait $!", 9 },
		{ "trap 'exit 10' INT; kill -INT $PPID; sleep 5 >/dev/null 2>&1 & wait $!", 10 },
		{ "exit 255", 255 },
	};
	struct job job = { 0 };
	struct job_result result;

	job_add(&job, job_onecopy, "run", "--stats");
	job_add_shell(&job, script);
	job_run(&job, &result);
	if (result.status != 5 || !strstr(result.output, "got it"))
		verdict_fail(&result, "SIGTERM was not forwarded");
	job_free(&result);

	for (size_t i = 0; i < sizeof(end) / sizeof(end[0]); i++) {
		job.word[job.words - 1] = end[i].script;
		job_run(&job, &result);
		if (result.status != end[i].status)
			verdict_fail(&result, "'%s' gives status %d, not %d", end[i].script,
				     result.status, end[i].status);
		job_free(&result);
	}
	check_driver_ends_its_job();
	verdict_done("signals: SIGTERM forwarded, exit status and 128 plus signal passed on; the "
		     "driver ends its job\n");
}

/*
 * lacking RANKS: MPICH's last rank, as on a host without the library. The others wait, by a clock
 * that hurries (behind.c), say why, and end the job.
 */
SCENARIO(lacking)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, NULL);
	struct job_result result;

	job_add_behind(&job, "hurries");
	job_add_shell(&job,
		      job_text("[ $PMI_RANK != %d ] || unset LD_PRELOAD; exec \"$@\"", ranks - 1));
	job_add(&job, "sh");
	job_add_program(&job, "bytes");
	job_run(&job, &result);
	if (verdict_count(&result, "has waited 5 s for processes that have not come") != 1)
		verdict_fail(&result, "why MPI_Init waits was not said once");
	if (result.hung || !result.status ||
	    !strstr(result.output, "MPI_Init ends the job, as processes of it have not come"))
		verdict_fail(&result, "the others have not ended the job, and said why");
	verdict_done(
		"lacking: %d ranks, one without the library: the others say what they wait for, and "
		"end the job\n",
		ranks);
	job_free(&result);
}

/* hung RANKS FILE: a job of which one rank stays out of a collective. For `report`. */
SCENARIO(hung)
{
	struct job job = job_mpi(driver_ranks(words[0]), "hang");
	struct job_result result;

	job.silence_s = 1;
	job_add(&job, words[1] ? words[1] : "/dev/null");
	job_run(&job, &result);
	verdict_fail(&result, "the job hung");
	job_free(&result);
}

/*
 * report RANKS: of a job that hangs every rank's stack and state are told, and nothing is left of
 * it, though mpirun's ranks have sessions of their own.
 */
SCENARIO(report)
{
	const char *file = job_text("/tmp/onecopy-test-hung-%d", (int)getpid());
	int ranks = driver_ranks(words[0]);
	struct job job = { 0 };
	struct job_result result;
	FILE *pids;
	int pid;

	job_add(&job, job_text("/proc/%d/exe", (int)getpid()));
	if (job_is_mpich)
		job_add(&job, "--mpich");
	job_add(&job, "hung", words[0], file);
	job_run(&job, &result);
	if (!strstr(result.output, "FAILED: the job hung"))
		verdict_fail(&result, "a job that hangs was not ended");
	if (verdict_count(&result, "    stays_out (hang.c:") != 1 ||
	    verdict_count(&result, "    comes_alone (hang.c:") != ranks - 1)
		verdict_fail(&result, "the stack of some rank was not told");
	for (int r = 0; r < ranks; r++) {
		if (!strstr(result.output, job_text(", rank %d (", r)) ||
		    !strstr(result.output, job_text("  rank %d of a team of %d, ready", r, ranks)))
			verdict_fail(&result, "the state of rank %d was not told", r);
	}
	if (verdict_count(&result, ": bcast of 64 bytes, root 1,") != ranks - 1)
		verdict_fail(&result, "what the ranks wait for was not told");
	pids = fopen(file, "r");
	for (int r = 0; r < ranks; r++) {
		if (!pids || fscanf(pids, "%d", &pid) != 1)
			verdict_fail(&result, "%s does not name %d processes", file, ranks);
		else if (!kill(pid, 0))
			verdict_fail(&result, "process %d is left behind", pid);
	}
	if (pids)
		fclose(pids);
	unlink(file);
	verdict_done(
		"report: of %d ranks that hang, every stack and state; nothing is left behind\n",
		ranks);
	job_free(&result);
}
