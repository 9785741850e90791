/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table RANKS MECHANISM: every algorithm, by info key, through every layout and form; and programs
 * whose calls are not all of one kind.
 */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "forced bcast=knomial:2 CALLS" in the output. */
static long calls_of(const struct job_result *result, int collective, const char *algorithm)
{
	char word[64];
	const char *key = job_text("forced %s=%s", collective_names[collective], algorithm);

	return verdict_word(result, key, word, sizeof(word)) ? atol(word) : -1;
}

/* All words of one algorithm are one row in the statistics: "knomial" and "knomial:2". */
static long check_algorithm(const struct job_result *result, int c, int from, const char *mechanism)
{
	const char *const *words = algorithm_words[c];
	const char *name = job_text("%.*s", (int)strcspn(words[from], ":"), words[from]);
	const char *by = algorithm_mechanism(c, name, mechanism);
	long expected = 0, served = verdict_served(result, collective_names[c], name, by);

	for (int i = 0; words[i]; i++) {
		long calls;

		if (strcspn(words[i], ":") != strlen(name) || strncmp(words[i], name, strlen(name)))
			continue;
		calls = calls_of(result, c, words[i]);
		if (calls < 0)
			verdict_fail(result, "%s=%s was left out", collective_names[c], words[i]);
		else
			expected += calls;
	}
	/* Where blocks go different ways, the large ones go by the mechanism, and none by another.
	 */
	if (!by && (!verdict_served(result, collective_names[c], name, mechanism) ||
		    verdict_served(result, collective_names[c], name,
				   strcmp(mechanism, "cma") ? "cma" : "shm")))
		verdict_fail(result, "%s: large blocks did not go by %s", collective_names[c],
			     mechanism);
	if (served < expected || verdict_recovered(result, collective_names[c]))
		verdict_fail(result, "%s: %ld calls were meant for %s by %s, it served %ld",
			     collective_names[c], expected, name, by ? by : "any", served);
	return expected;
}

static void check_collective(const struct job_result *result, int c, const char *mechanism)
{
	const char *name = collective_names[c];
	long expected = 0, all = verdict_served(result, name, NULL, NULL);

	for (int i = 0; algorithm_words[c][i]; i++)
		if (!strchr(algorithm_words[c][i], ':'))
			expected += check_algorithm(result, c, i, mechanism);
	/* Each communicator's first call is a Barrier, and the MPI has its own, too. */
	if (!expected || (all != expected && strcmp(name, "barrier")))
		verdict_fail(result, "%s: %ld calls were meant for us, %ld were served", name,
			     expected, all);
	if (verdict_handed_back(result, name))
		verdict_fail(result, "%s: %ld calls were handed back", name,
			     verdict_handed_back(result, name));
}

/* A process alone has nobody to share with: all is the MPI's, and not worth a word. */
static void check_alone(const struct job_result *result)
{
	char line[64] = "";

	if (!verdict_word(result, "table:", line, sizeof(line)) || atol(line) < 1000)
		verdict_fail(result, "the program made few calls: %s", line);
	if (verdict_served(result, NULL, NULL, NULL))
		verdict_fail(result, "calls of one rank were served");
	for (int c = 0; c < COLLECTIVES; c++)
		if (verdict_handed_back(result, collective_names[c]))
			verdict_fail(result, "%s of one rank counts as handed back",
				     collective_names[c]);
}

void table_scenario(char **words)
{
	int ranks = driver_ranks(words[0]);
	const char *mechanism = words[0] && words[1] ? words[1] : "cma";
	struct job_result result;
	struct job job;

	driver_need_mechanism(mechanism);
	job_shares_heaps = !strcmp(mechanism, "map");
	job = job_mpi(ranks);
	algorithms_load(ranks);
	job_set(&job, job_text("ONECOPY_MECHANISM=%s", mechanism));
	job_add_program(&job, "table");
	for (int c = 0; c < COLLECTIVES; c++) {
		for (int i = 0; algorithm_words[c][i]; i++) {
			const char *word = algorithm_words[c][i];
			long most = algorithm_most_bytes(c, word, ranks);

			job_add(&job,
				most ? job_text("%s=%s@%ld", collective_names[c], word, most) :
				       job_text("%s=%s", collective_names[c], word));
		}
	}
	job_run(&job, &result);
	if (verdict_ended_well(&result, "table failed")) {
		if (ranks == 1)
			check_alone(&result);
		for (int c = 0; c < COLLECTIVES && ranks > 1; c++)
			check_collective(&result, c, mechanism);
	}
	verdict_done("table: %d ranks, mechanism %s: %ld calls served by the algorithm forced\n",
		     ranks, mechanism, verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}

/*
 * soak RANKS SECONDS [SEED [map]]: without a seed, another in every run; it is printed. With map,
 * the ranks have shared heaps.
 */
void soak_scenario(char **words)
{
	int ranks = driver_ranks(words[0]);
	const char *seconds = words[0] && words[1] ? words[1] : "20";
	const char *seed = words[0] && words[1] && words[2] ? words[2] :
							      job_text("%ld", (long)time(NULL));
	struct job_result result;
	struct job job;

	job_shares_heaps = words[0] && words[1] && words[2] && words[3];
	job = job_mpi(ranks);
	job_add_program(&job, "soak");
	job_add(&job, seed);
	job_add(&job, seconds);
	printf("soak: seed %s\n", seed);
	job_run(&job, &result);
	if (verdict_ended_well(&result, "soak failed")) {
		long served = verdict_served(&result, NULL, NULL, NULL), expected = 0;

		/* A new communicator's first calls may be nonblocking ones. */
		verdict_handed_back_only(&result, "team");
		for (int c = 0; c < COLLECTIVES; c++) {
			const char *name = collective_names[c];

			expected += verdict_expected(&result, name);
			if (ranks > 1 && !verdict_served(&result, name, NULL, NULL))
				verdict_fail(&result, "no %s was served", name);
		}
		if (ranks > 1 && served < expected * 9 / 10)
			verdict_fail(&result, "of %ld calls only %ld were served", expected,
				     served);
	}
	verdict_done("soak: seed %s, %d ranks, %s s: %ld calls served, every byte right\n", seed,
		     ranks, seconds, verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}

/* Ends the test where the MPI by itself cannot do it. */
static void need_foreign(int ranks, const char *program, const char *word)
{
	struct job plain = job_stock(ranks);
	struct job_result result;

	job_add_program(&plain, program);
	job_add(&plain, word);
	job_run(&plain, &result);
	if (result.status || result.hung) {
		printf("skipped: this %s by itself fails in MPI_Comm_%s\n",
		       job_is_mpich ? "MPICH" : "Open MPI", word);
		exit(TEST_SKIPPED);
	}
	job_free(&result);
}

/* beside RANKS: nonblocking collectives beside blocking calls with a spawned job. */
void beside_scenario(char **words)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks);
	struct job_result result;
	char line[128] = "";

	need_foreign(ranks, "beside", "spawn");
	job_add_program(&job, "beside");
	job_run(&job, &result);
	if (verdict_ended_well(&result, "beside failed") &&
	    verdict_served(&result, NULL, NULL, NULL) <= 0)
		verdict_fail(&result, "no collective of the job was served");
	verdict_word(&result, "beside:", line, sizeof(line));
	verdict_done("beside: %d ranks: %s\n", ranks, line);
	job_free(&result);
}

/* foreign RANKS KIND */
void foreign_scenario(char **words)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks);
	struct job_result result;

	need_foreign(ranks, "foreign", words[1]);
	job_add_program(&job, "foreign");
	job_add(&job, words[1]);
	job_run(&job, &result);
	if (verdict_ended_well(&result, "foreign failed")) {
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
void both_scenario(char **words)
{
	struct job job = { .wants_stats = true };
	struct job_result result;

	(void)words;
	job_add(&job, job_onecopy);
	job_add(&job, "run");
	job_add(&job, "--quiet");
	job_add(&job, "--stats-json");
	job_add(&job, NULL); /* job_run() names the file */
	job_add(&job, "sh");
	job_add(&job, "-c");
	job_add(&job, job_text("mpirun --oversubscribe -n 2 %s/oc_mpi_bytes --only bcast && "
			       "mpirun.mpich -n 3 %s/oc_mpich_bytes --only scan && "
			       "mpirun --oversubscribe -n 2 %s/oc_mpi_bytes --only gather && "
			       "echo all four && mpirun.mpich -n 2 %s/oc_mpich_bytes --only reduce",
			       job_programs, job_programs, job_programs, job_programs));
	job_run(&job, &result);
	if (verdict_ended_well(&result, "the script failed")) {
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
