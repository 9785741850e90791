/* SPDX-License-Identifier: BSD-3-Clause */
/* Permissions that are missing or go away, ranks that die, ranks that call different things. */
#include "driver.h"
#include "verdict.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void run_bytes(int ranks, bool denied, const char *mechanism)
{
	struct job job = job_mpi(ranks, NULL);
	struct job_result result;

	job_leave_cma_to_us(&job);
	if (denied) {
		job_add_program(&job, "deny");
		job_add(&job, "process_vm_readv,process_vm_writev", "EPERM");
	} else { /* else large blocks go through slots, too */
		job_set(&job, "ONECOPY_MECHANISM=cma");
	}
	job_add_program(&job, "bytes");
	if (verdict_run(&job, &result, denied ? "bytes failed under the filter" : "bytes failed")) {
		const char *other = denied ? "cma" : "shm";

		verdict_served_all(&result, mechanism);
		if (verdict_served(&result, NULL, NULL, other))
			verdict_fail(&result, "mechanism %s served calls too", other);
	}
	verdict_done("denied: %d ranks, process_vm_readv %s: %ld calls by %s\n", ranks,
		     denied ? "gives EPERM" : "allowed",
		     verdict_served(&result, NULL, NULL, mechanism), mechanism);
	job_free(&result);
}

/* denied RANKS [MECHANISM]: cma without the filter, so that the run with it means something: by
 * shm, or kmod where the kernel module is there. */
SCENARIO(denied)
{
	int ranks = driver_ranks(words[0]);

	driver_need_mechanism("cma");
	run_bytes(ranks, false, "cma");
	run_bytes(ranks, true, words[1] ? words[1] : "shm");
}

SCENARIO(recover)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, "recover");
	struct job_result result;

	driver_need_mechanism("cma");
	job_leave_cma_to_us(&job);
	/* Else the first large copies go through slots, which need no permission. */
	job_set(&job, "ONECOPY_MECHANISM=cma");
	if (verdict_run(&job, &result, "recover failed")) {
		verdict_served_all(&result, "cma");
		if (verdict_recovered(&result, NULL) <= 0)
			verdict_fail(&result, "no transfer was recovered");
	}
	verdict_done(
		"recover: %d ranks, the last one loses the permission: %ld of %ld calls recovered "
		"through shm\n",
		ranks, verdict_recovered(&result, NULL), verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}

/* refused RANKS: the same calls where all teams are refused, and where they are made. */
SCENARIO(refused)
{
	int ranks = driver_ranks(words[0]);
	struct job refused = job_mpi(ranks, "refused"), made = job_mpi(ranks, "refused");
	struct job_result result;
	char line[128] = "";

	if (verdict_run(&refused, &result, "refused failed")) {
		long expected = verdict_expected(&result, "bcast");

		if (!expected || verdict_handed_back(&result, "bcast") < expected)
			verdict_fail(&result, "of %ld Bcasts %ld were handed back", expected,
				     verdict_handed_back(&result, "bcast"));
		if (verdict_served(&result, NULL, NULL, NULL))
			verdict_fail(&result, "calls were served");
	}
	verdict_word(&result, "refused:", line, sizeof(line));
	job_free(&result);
	job_add(&made, "team");
	if (verdict_run(&made, &result, "refused failed with a team"))
		verdict_served_at_least(&result, NULL);
	verdict_done("refused: %d ranks, without a team and with one: %s\n", ranks, line);
	job_free(&result);
}

/* When the last survivor of this job said so, in seconds, and the soonest of those of all jobs. */
static double last_said, soonest = 1e9, latest_s = 1.0;
/* NULL: as it is chosen. */
static const char *killed_by_way;

static void check_survivor(const struct job_result *result, int rank, int victim)
{
	const char *key = job_text("survivor %d:", rank);
	char line[512];
	double after;
	int dead;

	if (!verdict_word(result, key, line, sizeof(line)) ||
	    sscanf(line, "dead rank %d after %lf", &dead, &after) != 2)
		verdict_fail(result, "rank %d did not say that a rank died", rank);
	else if (dead != victim)
		verdict_fail(result, "rank %d named rank %d, but rank %d died", rank, dead, victim);
	else if (after > latest_s)
		verdict_fail(result, "rank %d said so only after %.3f s", rank, after);
	else if (after > last_said)
		last_said = after;
}

/* No file of ours is left in /dev/shm by a process that has ended. */
static void check_shared_files(const struct job_result *result)
{
	DIR *dir = opendir("/dev/shm");
	const struct dirent *entry;
	int pid;

	while (dir && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "onecopy-%d-", &pid) == 1 && kill(pid, 0))
			verdict_fail(result, "/dev/shm/%s is left behind", entry->d_name);
	if (dir)
		closedir(dir);
}

/* Of the survivors' words, in shared memory. */
static const char *board_name(void)
{
	static const char *board;

	if (!board) {
		board = job_text("/onecopy-kill-%d", (int)getpid());
		job_file(job_text("/dev/shm%s", board));
	}
	return board;
}

/* mpirun's status is its own affair then. `what`, `how`: see kill.c. */
static void kill_one(int ranks, int victim, const char *what, const char *how)
{
	int said = verdict_failures;
	const char *board = board_name();
	struct job job = job_mpi(ranks, NULL);
	struct job_result result;

	job.leaves_nothing = true;
	job.yields = false;
	if (killed_by_way)
		job_set(&job, killed_by_way);
	if (job_is_mpich) {
		/* Its mpirun kills all when a process that it has started is killed, whatever it
		 * is told: it has started shells. The victim's outlives the survivors' reports. */
		job_add_shell(&job,
			      job_text("\"$@\" || exec \"$1\" await %d %s", ranks - 1, board));
		job_add(&job, "sh");
	} else {
		job_add(&job, "--enable-recovery");
	}
	job_add_program(&job, "kill");
	job_add(&job, what, job_text("%d", victim), how, board);
	job_run(&job, &result);
	shm_unlink(board);
	if (result.hung)
		verdict_fail(&result, "the job did not end");
	if (result.left_behind)
		verdict_fail(&result, "processes of the job were left behind");
	check_shared_files(&result);
	if (strstr(result.output, "WRONG"))
		verdict_fail(&result, "a survivor complains");
	last_said = 0;
	for (int r = 0; r < ranks && verdict_failures == said; r++)
		if (r != victim)
			check_survivor(&result, r, victim);
	soonest = last_said < soonest ? last_said : soonest;
	job_free(&result);
}

/* kill RANKS COLLECTIVE VICTIM inside|outside|pipes */
SCENARIO(kill)
{
	int ranks = driver_ranks(words[0]), victim = atoi(words[2]);

	kill_one(ranks, victim, words[1], words[3]);
	verdict_done("kill: rank %d of %d killed %s %s: each survivor named it within a second\n",
		     victim, ranks, words[3], words[1]);
}

enum { FINALIZE_TRIES = 5 };

/*
 * Whether the job ends whose survivors have nothing left but MPI_Finalize; NULL or how that of
 * behind.c is. Not *came: no rank came there, or through it if that is to be.
 */
static bool survivors_end(struct job job, int victim, const char *behind, bool *came)
{
	const char *board = board_name();
	struct job_result result;
	bool ended;

	job.silence_s = 3;
	job_add(&job, "-disable-auto-cleanup");
	/* A signal's death in what it has started itself makes it kill all even so. */
	job_add_shell(&job, "\"$@\" || true");
	job_add(&job, "sh");
	if (behind)
		job_add_behind(&job, behind);
	job_add_program(&job, "kill");
	job_add(&job, "allreduce", job_text("%d", victim), "finalize", board);
	job_run(&job, &result);
	shm_unlink(board);
	*came = strstr(result.output, behind && !result.hung ? "finalized" : "finalizes");
	ended = !result.hung;
	job_free(&result);
	return ended;
}

/*
 * kill_finalize RANKS VICTIM: MPICH, told to let the others of a dead rank live. Its mpirun kills
 * them at times all the same, or ends by an assertion of its own, so one job whose survivors wait
 * is enough to know that they may. Then one waits that does so in MPICH; where MPICH does not, they
 * are through all the same.
 */
SCENARIO(kill_finalize)
{
	int ranks = driver_ranks(words[0]), victim = atoi(words[1]);
	bool stock = true, ours = true, came = false, through = false;

	for (int i = 0; i < 3 && stock; i++)
		stock = survivors_end(job_stock(ranks, NULL), victim, NULL, &came);
	if (stock)
		ours = survivors_end(job_mpi(ranks, NULL), victim, NULL, &came);
	for (int i = 0; i < FINALIZE_TRIES && ours && !through; i++)
		ours = survivors_end(job_mpi(ranks, NULL), victim, "returns", &through);
	if (!ours)
		verdict_fail(NULL, "after a death the survivors' MPI_Finalize waits in onecopy");
	else if (!came)
		verdict_fail(NULL, "no rank came to MPI_Finalize");
	else if (!through)
		verdict_fail(NULL, "no rank came through MPI_Finalize in %d jobs", FINALIZE_TRIES);
	verdict_done("kill_finalize: after a death the survivors' MPI_Finalize %s\n",
		     stock ? "ends, with onecopy and without" :
			     "waits in MPICH itself, and in nothing of onecopy's");
}

/*
 * kill_random TIMES SEED [MECHANISM]: 2 to 5 ranks, any of them, with and without the shared heap.
 * In one job at least all survivors say so within 100 ms, as src/team/wait.c promises. By a
 * MECHANISM, as in a guest: without the heap, and within a minute.
 */
SCENARIO(kill_random)
{
	int times = driver_ranks(words[0]), seed = driver_ranks(words[1]);

	if (words[2]) {
		driver_need_mechanism(words[2]);
		killed_by_way = job_text("ONECOPY_MECHANISM=%s", words[2]);
		latest_s = 60;
	}
	for (int i = seed; i < seed + times && !verdict_failures; i++) {
		int ranks = 2 + i % 4;

		job_shares_heaps = i % 2 && !words[2];
		kill_one(ranks, i * 7 % ranks, job_text("%d", i), "random");
	}
	if (!verdict_failures && !words[2] && soonest > 0.1)
		verdict_fail(NULL, "in each job a survivor said so only after %.3f s or more",
			     soonest);
	verdict_done(
		"kill_random: %d ranks killed, seeds from %d: named by each survivor within %.0f "
		"s, in one job within %.0f ms, nothing left behind\n",
		times, seed, latest_s, 1e3 * soonest);
}

SCENARIO(mismatch)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, "mismatch");
	struct job_result result;
	char line[256] = "";

	job.yields = false;
	if (verdict_run(&job, &result, "mismatch failed") && strstr(result.output, "WRONG"))
		verdict_fail(&result, "a sentence is not as it should be");
	verdict_word(&result, "mismatch:", line, sizeof(line));
	verdict_done("mismatch: %s\n", line);
	job_free(&result);
}

/* hang FILE: a job that goes on for ever and has one process elsewhere, as mpirun's ranks are. For
 * `signals`. */
SCENARIO(hang)
{
	struct job job = { 0 };
	struct job_result result;

	job_add_shell(
		&job,
		"setsid sh -c 'echo $$ >\"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 60' \"$0\" "
		">/dev/null 2>&1 & wait");
	job_add(&job, words[0] ? words[0] : "/dev/null");
	job_run(&job, &result);
	verdict_fail(&result, "hang was not ended");
	job_free(&result);
}
