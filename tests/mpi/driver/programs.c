/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs whose calls are not all of one kind. */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * soak RANKS LENGTH [SEED [map|kmod|stock]]: for so many seconds, or steps, "20000x". Without a
 * seed, another in every run; it is printed. With map, the ranks have shared heaps; with kmod they
 * copy by the kernel module; with stock there is no onecopy: what the programs take for right is
 * what the MPI by itself does.
 */
SCENARIO(soak)
{
	int ranks = driver_ranks(words[0]);
	const char *length = words[0] && words[1] ? words[1] : "20";
	const char *seed = words[0] && words[1] && words[2] ? words[2] :
							      job_text("%ld", (long)time(NULL));
	const char *with = words[0] && words[1] && words[2] && words[3] ? words[3] : "";
	bool stock = !strcmp(with, "stock"), kmod = !strcmp(with, "kmod");
	struct job_result result;
	struct job job;

	job_shares_heaps = !strcmp(with, "map");
	job = stock ? job_stock(ranks, "soak") : job_mpi(ranks, "soak");
	if (stock)
		job_set(&job, "OC_TEST_STOCK=1");
	if (kmod)
		job_set(&job, "ONECOPY_MECHANISM=kmod");
	job_add(&job, seed, length);
	printf("soak: seed %s\n", seed);
	if (verdict_run(&job, &result, "soak failed") && !stock) {
		long served = verdict_served(&result, NULL, NULL, NULL), expected = 0;

		/* A new communicator's first calls may be nonblocking ones. */
		verdict_handed_back_only(&result, "team");
		for (int c = 0; c < COLLECTIVES; c++) {
			const char *name = collective_names[c];

			expected += verdict_expected(&result, name);
			if (ranks > 1 && !verdict_served(&result, name, NULL, NULL))
				verdict_fail(&result, "no %s was served", name);
		}
		if (kmod && !verdict_served(&result, NULL, NULL, "kmod"))
			verdict_fail(&result, "nothing was served by kmod");
		if (ranks > 1 && served < expected * 9 / 10)
			verdict_fail(&result, "of %ld calls only %ld were served", expected,
				     served);
	}
	verdict_done("soak: seed %s, %d ranks, %s%s: %ld calls served, every byte right\n", seed,
		     ranks, length, strchr(length, 'x') ? "" : " s",
		     verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}

/*
 * left RANKS: each collective in each form under a tuning file that leaves lengths of all of them
 * to the MPI, not the others: a call goes there on all ranks, or is served on all.
 */
SCENARIO(left)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, "growth");
	struct job_result result;
	const char *cells = "";

	for (int c = 0; c < COLLECTIVES; c++)
		cells = job_text("%s%s{\"collective\": \"%s\", \"bytes\": [\"256\", \"1M\"], "
				 "\"algorithm\": \"mpi\"}",
				 cells, c ? ", " : "", collective_names[c]);
	job_set(&job, job_text("ONECOPY_TUNING=%s", job_tuning(cells)), "OC_TEST_STOCK=1");
	job_add(&job, "left");
	if (verdict_run(&job, &result, "a file leaves calls to the MPI")) {
		if (!verdict_left_to_mpi(&result))
			verdict_fail(&result, "nothing was left to the MPI by the file");
		if (!verdict_served(&result, NULL, NULL, NULL))
			verdict_fail(&result, "nothing was served");
	}
	verdict_done("left: %d ranks: %ld calls served and %ld left to the MPI by a file, every "
		     "byte right\n",
		     ranks, verdict_served(&result, NULL, NULL, NULL),
		     verdict_left_to_mpi(&result));
	job_free(&result);
}

/* Ends the test where the MPI by itself cannot do it. */
static void need_foreign(int ranks, const char *program, const char *word)
{
	struct job plain = job_stock(ranks, program);
	struct job_result result;

	job_add(&plain, word);
	job_run(&plain, &result);
	if (result.status || result.hung) {
		printf("skipped: this %s by itself fails in MPI_Comm_%s\n",
		       job_is_mpich ? "MPICH" : "Open MPI", word);
		exit(TEST_SKIPPED);
	}
	job_free(&result);
}

/* Two jobs that meet; of MPICH the second one's ranks are the last two of one. */
static struct job two_jobs(int ranks)
{
	struct job job = job_mpi(job_is_mpich ? ranks + 2 : ranks, NULL);

	if (job_is_mpich) {
		/* Where UCX watches mappings, Debian's MPICH by itself loses what MPI_Put writes.
		 */
		job_set(&job, "UCX_MEM_EVENTS=n");
		job_add_behind(&job, "apart");
	}
	job_add_program(&job, "beside");
	if (job_is_mpich)
		job_add(&job, "apart");
	return job;
}

/* beside RANKS: nonblocking collectives beside blocking calls with another job. */
SCENARIO(beside)
{
	int ranks = driver_ranks(words[0]);
	struct job job = two_jobs(ranks);
	struct job_result result;
	char line[128] = "";

	/* The first ends where processes that were spawned cannot be reached, the other would wait
	 * (Open MPI 5.0.7 without a network). */
	if (!job_is_mpich) {
		need_foreign(ranks, "foreign", "spawn");
		need_foreign(ranks, "beside", "spawn");
	}
	if (verdict_run(&job, &result, "beside failed") &&
	    verdict_served(&result, NULL, NULL, NULL) <= 0)
		verdict_fail(&result, "no collective of the job was served");
	verdict_word(&result, "beside:", line, sizeof(line));
	verdict_done("beside: %d ranks: %s\n", ranks, line);
	job_free(&result);
}

/* foreign RANKS KIND */
SCENARIO(foreign)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, "foreign");
	struct job_result result;

	need_foreign(ranks, "foreign", words[1]);
	job_add(&job, words[1]);
	if (verdict_run(&job, &result, "foreign failed")) {
		long expected = verdict_expected(&result, "alltoall");
		long served = verdict_served(&result, "alltoall", NULL, NULL);

		bool spawns = !strcmp(words[1], "spawn");

		/* On spawned processes' own world, too: they do not report. */
		if (spawns)
			expected += verdict_expected(&result, "alltoall") / ranks * 2;
		/* Groups of one world that are merged are node-mates, and may be served. */
		if (!expected || served < expected || (spawns && served != expected))
			verdict_fail(&result,
				     "%ld calls of Alltoall are among ranks of one job, %ld were "
				     "served",
				     expected, served);
	}
	verdict_done("foreign: %s: %ld calls of one job served, all others handed back and right\n",
		     words[1], verdict_served(&result, "alltoall", NULL, NULL));
	job_free(&result);
}

/* both: one script under `onecopy run` that starts an Open MPI and an MPICH program. */
SCENARIO(both)
{
	struct job job = job_under_onecopy();
	struct job_result result;

	job_add_shell(&job, job_text("mpirun --oversubscribe -n 2 %s/oc_mpi_bytes bcast && "
				     "mpirun.mpich -n 3 %s/oc_mpich_bytes scan && "
				     "mpirun --oversubscribe -n 2 %s/oc_mpi_bytes gather && "
				     "echo all four && mpirun.mpich -n 2 %s/oc_mpich_bytes reduce",
				     job_programs, job_programs, job_programs, job_programs));
	if (verdict_run(&job, &result, "the script failed")) {
		static const char *const served[] = { "bcast", "scan", "gather", "reduce" };

		for (int i = 0; i < 4; i++)
			if (verdict_served(&result, served[i], NULL, NULL) < 40 ||
			    verdict_handed_back(&result, served[i]))
				verdict_fail(&result, "%s was not served", served[i]);
	}
	verdict_done("both: one script, programs of both MPIs: %ld calls served\n",
		     verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}
