/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that mix collectives with other things; no algorithm is forced, except in `forced`.
 * More than 500 lines, as it is a list of scenarios. */
#include "driver.h"
#include "verdict.h"

#include "lab/harness/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A program, with a word or none, that reports what it expects; all of it must have been served, of
 * a rank alone nothing. `back`: but for calls that are handed back for a reason with this word.
 */
static void run_program(const char *name, const char *word, int ranks, const char *mechanism,
			const char *back)
{
	struct job_result result;
	char line[512] = "";
	struct job job;

	job_shares_heaps = mechanism && !strcmp(mechanism, "map");
	job = job_mpi(ranks, name);
	if (job_shares_heaps)
		driver_need_mechanism("map");
	else if (mechanism)
		job_set(&job, job_text("ONECOPY_MECHANISM=%s", mechanism));
	if (word)
		job_add(&job, word);
	/* `memory` provokes errors: how many of its calls are served is not known beforehand. */
	if (verdict_run(&job, &result, name) && strcmp(name, "memory")) {
		if (ranks == 1) {
			if (verdict_served(&result, NULL, NULL, NULL))
				verdict_fail(&result, "calls of a rank alone were served");
		} else if (back) {
			verdict_served_at_least(&result, NULL);
			verdict_handed_back_only(&result, back);
		} else {
			verdict_served_all(&result, NULL);
		}
		if (mechanism && !strcmp(mechanism, "kmod") &&
		    !verdict_served(&result, NULL, NULL, mechanism))
			verdict_fail(&result, "nothing was served by kmod");
	} else if (!strcmp(name, "memory") && verdict_served(&result, NULL, NULL, NULL) <= 0) {
		verdict_fail(&result, "no call of %s was served", name);
	}
	verdict_word(&result, job_text("%s:", name), line, sizeof(line));
	verdict_done("%s: %ld calls served%s%s: %s\n", name,
		     verdict_served(&result, NULL, NULL, NULL), mechanism ? ", mechanism " : "",
		     mechanism ? mechanism : "", line);
	job_free(&result);
}

/* program NAME RANKS [MECHANISM]; with map the ranks have shared heaps, and all mechanisms. */
SCENARIO(program)
{
	int ranks = driver_ranks(words[0] ? words[1] : NULL);

	/* On communicators without a team yet, too; on some that are forced to be the MPI's. */
	run_program(words[0], NULL, ranks, words[2],
		    !strcmp(words[0], "progress")  ? "team" :
		    !strcmp(words[0], "neighbors") ? "leaves it to the MPI" :
						     NULL);
}

/* alloc RANKS: memory of MPI_Alloc_mem is mapped by the others, and by nobody where that is
 * forbidden. */
SCENARIO(alloc)
{
	static const char *const mechanisms[] = { "map", "shm" };
	int ranks = driver_ranks(words[0]);

	driver_need_mechanism("map");
	for (int i = 0; i < 2; i++) {
		struct job job = job_mpi(ranks, "alloc");
		struct job_result result;

		if (i)
			job_set(&job, "ONECOPY_MECHANISM=shm");
		if (verdict_run(&job, &result, "alloc failed")) {
			verdict_served_exactly(&result, "bcast", NULL, mechanisms[i]);
			verdict_served_exactly(&result, "alltoall", NULL, mechanisms[i]);
		}
		job_free(&result);
	}
	verdict_done(
		"alloc: %d ranks: Bcast and Alltoall by map, and by shm where it is asked for\n",
		ranks);
}

/* What the program did: each of 2 ranks had 64 MiB and gave them back; rank 1 read 5 Bcasts of 1
 * MiB by mapped memory and 3, of static memory, by the kernel. */
static void check_heaps(const struct job_result *result)
{
	const long mib = 1 << 20;
	const json_t *row = json_array_get(
		json_object_get(json_object_get(result->stats, "mapped"), "by_kernel"), 0);
	const char *reason = json_string_value(json_object_get(row, "reason"));
	long use = verdict_number(result, "heap", "bytes_in_use");

	if (verdict_number(result, "heap", "heaps") != 2 || use <= 0 || use > 64 * mib)
		verdict_fail(result, "2 heaps with less than 64 MiB in use were expected");
	if (verdict_number(result, "heap", "most_bytes_in_use") < 128 * mib ||
	    verdict_number(result, "heap", "bytes_given_back") < 128 * mib)
		verdict_fail(result, "64 MiB of 2 ranks, given back, were expected");
	if (verdict_number(result, "heap", "bytes_in_large_pages") > 160 * mib)
		verdict_fail(result, "more large pages than there were large blocks");
	if (verdict_number(result, "mapped", "bytes") != 5 * mib)
		verdict_fail(result, "5 MiB through mapped memory were expected");
	if (!reason || !strstr(reason, "not memory of malloc") ||
	    json_integer_value(json_object_get(row, "bytes")) != 3 * mib)
		verdict_fail(result, "3 MiB by the kernel, as they are static, were expected");
}

/* large RANKS: once more where all calls are the MPI's. */
SCENARIO(large)
{
	int ranks = driver_ranks(words[0]);
	struct job job = job_mpi(ranks, "large");
	struct job_result result;

	run_program("large", NULL, ranks, NULL, NULL);
	job_add(&job, "mpi");
	if (verdict_run(&job, &result, "large failed with algorithms that are the MPI's") &&
	    verdict_handed_back(&result, "bcast") <= 0)
		verdict_fail(&result, "no Bcast was handed back");
	verdict_done("large: %d ranks, %ld Bcasts handed back\n", ranks,
		     verdict_handed_back(&result, "bcast"));
	job_free(&result);
}

/* first_uses RANKS: threads that use a communicator at once for a first time. For each one is made
 * what is kept for it; MPICH says why it does not serve it. */
SCENARIO(first_uses)
{
	int ranks = driver_ranks(words[0]), said;
	struct job job = job_mpi(ranks, NULL);
	struct job_result result;
	char made[16] = "0";

	job_set(&job, "ONECOPY_LOG=info");
	if (job_is_mpich)
		job_add_behind(&job, "slow");
	job_add_program(&job, "first_uses");
	if (verdict_run(&job, &result, "first_uses failed")) {
		verdict_word(&result, "communicators", made, sizeof(made));
		said = verdict_count(&result, "communicator alone stays with the MPI");
		if (job_is_mpich && said != atoi(made))
			verdict_fail(&result, "of %s communicators %d were looked at", made, said);
	}
	verdict_done("first_uses: %s communicators, by 4 threads at once\n", made);
	job_free(&result);
}

/* newer RANKS: functions that are newer than MPI 4.0 drive what is outstanding. */
SCENARIO(newer)
{
	struct job job = job_mpi(driver_ranks(words[0]), NULL);
	struct job_result result;

	job_add_behind(&job, "newer");
	job_add_program(&job, "newer");
	if (verdict_run(&job, &result, "newer failed"))
		verdict_served_all(&result, NULL);
	verdict_done("newer: functions of MPI 4.1 drive what is outstanding\n");
	job_free(&result);
}

/* lists RANKS: MPICH is asked what a datatype is made of once, not in each call that packs it. */
SCENARIO(lists)
{
	struct job job = job_mpi(driver_ranks(words[0]), NULL);
	struct job_result result;
	char asked[16] = "0";

	job_add_behind(&job, "counts");
	job_add_program(&job, "datatypes");
	if (verdict_run(&job, &result, "datatypes failed")) {
		verdict_word(&result, "contents", asked, sizeof(asked));
		if (!atoi(asked))
			verdict_fail(&result, "it was not counted how often types were looked at");
	}
	verdict_done("lists: datatypes were asked for their contents %s times\n", asked);
	job_free(&result);
}

/* heap: what the statistics say of shared heaps. */
SCENARIO(heap)
{
	struct job job;
	struct job_result result;

	driver_need_mechanism("map");
	driver_need_mechanism("cma");
	job_shares_heaps = true;
	job = job_mpi(2, "heap");
	job_set(&job, "ONECOPY_BCAST=direct-read");
	if (verdict_run(&job, &result, "heap failed")) {
		verdict_served_at_least(&result, NULL);
		check_heaps(&result);
	}
	job_free(&result);
	verdict_done("heap: in use, at most, given back, mapped and by the kernel as was done\n");
}

enum { ASKED_LEAST = 2, ASKED_ROUNDS = 15, ASKED_MOST = 300 };
static const double asked_limit = 1.2;

/* What rank 0 asked for while the others waited. */
struct asked {
	char name[64];
	bool usual; /* the median of all collectives, or all of it, not of one */
	bool late;  /* in the rounds of the first time */
	double took[2], ratio[ASKED_ROUNDS];
	size_t rounds;
};

static struct asked asked[ASKED_MOST];
static int asked_count;

static struct asked *asked_named(const char *name)
{
	for (int k = 0; k < asked_count; k++)
		if (!strcmp(asked[k].name, name))
			return &asked[k];
	if (asked_count == ASKED_MOST)
		return NULL;
	snprintf(asked[asked_count].name, sizeof(asked[0].name), "%s", name);
	return &asked[asked_count++];
}

/* One run with onecopy or without, of what is named, or all; how many times it printed. */
static int run_asked(int ranks, bool ours, const char *const *names)
{
	struct job job = ours ? job_mpi(ranks, "asked") : job_stock(ranks, "asked");
	struct job_result result;
	char word[16], name[64];
	double seconds;
	int count = 0;

	job.yields = false;
	job_add_words(&job, names);
	job_run(&job, &result);
	if (!verdict_ended_well(&result, ours ? "asked failed" : "asked failed without onecopy"))
		return 0;
	if (ours)
		verdict_served_all(&result, NULL);
	for (const char *line = result.output; line; line = strchr(line, '\n')) {
		struct asked *a;

		line += *line == '\n';
		if (sscanf(line, "%15s %63s %lf", word, name, &seconds) != 3 || seconds <= 0 ||
		    (strcmp(word, "asked") && strcmp(word, "usually")) || !(a = asked_named(name)))
			continue;
		a->usual = !strcmp(word, "usually");
		a->took[ours] = seconds;
		count++;
	}
	job_free(&result);
	return count;
}

/* In each round so far it took longer than the limit. */
static bool is_always_above(const struct asked *a, size_t rounds)
{
	for (size_t r = 0; r < rounds; r++)
		if (a->ratio[r] <= asked_limit)
			return false;
	return true;
}

static struct stats_estimate median_of(const struct asked *a, size_t rounds)
{
	struct stats_estimate estimate;

	if (stats_estimate(a->ratio, rounds, &estimate)) {
		fputs("oc_mpi_driver: no memory\n", stderr);
		exit(1);
	}
	return estimate;
}

static bool is_late(const struct asked *a, size_t rounds)
{
	return a->usual ? median_of(a, rounds).low > asked_limit : is_always_above(a, rounds);
}

/* Would the last round find it too late if from now on each round did? */
static bool is_in_doubt(struct asked *a)
{
	if (!a->rounds)
		return false;
	for (size_t r = a->rounds; r < ASKED_ROUNDS; r++)
		a->ratio[r] = HUGE_VAL;
	return is_late(a, ASKED_ROUNDS) &&
	       (!a->usual || median_of(a, a->rounds).median > asked_limit);
}

/* "atomics-blocking-bcast" is one of "atomics-blocking". */
static bool is_of(const struct asked *one, const struct asked *kind)
{
	size_t length = strlen(kind->name);

	return kind->usual && !one->usual && !strncmp(one->name, kind->name, length) &&
	       one->name[length] == '-';
}

/* Adds what of the kind is in doubt: its collectives, or where it is itself, or most of them are,
 * all of it. How many there are then. */
static int add_doubts(const char *names[], int count, struct asked *kind)
{
	int before = count;

	for (int k = 0; k < asked_count; k++)
		if (is_of(&asked[k], kind) && is_in_doubt(&asked[k]))
			names[count++] = asked[k].name;
	if (is_in_doubt(kind) || count - before > COLLECTIVES / 2) {
		count = before;
		names[count++] = kind->name;
	}
	return count;
}

/* What is in doubt; no name where all of it is, or too much to name. False: nothing is. */
static bool find_doubts(const char *names[])
{
	bool all = is_in_doubt(asked_named("all"));
	int count = 0;

	for (int k = 0; k < asked_count; k++)
		if (asked[k].usual)
			count = add_doubts(names, count, &asked[k]);
	names[all || count > JOB_WORDS / 2 ? 0 : count] = NULL;
	return count > 0;
}

/* What the last round found too late, to be asked anew; no name where all of it is, or too much to
 * name. False: nothing is. */
static bool find_late(const char *names[])
{
	int count = 0;
	bool all = false;

	for (int k = 0; k < asked_count; k++)
		if (asked[k].rounds == ASKED_ROUNDS && is_late(&asked[k], ASKED_ROUNDS)) {
			all |= !strcmp(asked[k].name, "all");
			names[count++] = asked[k].name;
			asked[k].late = true;
			asked[k].rounds = 0;
		}
	names[all || count > JOB_WORDS / 2 ? 0 : count] = NULL;
	return count > 0;
}

/* Rounds of what is named, or of all, until nothing is in doubt. How many; 0: it has failed. */
static size_t ask(int ranks, const char *doubts[])
{
	size_t rounds = 0;
	int count[2];

	do {
		for (int k = 0; k < asked_count; k++)
			asked[k].took[0] = asked[k].took[1] = 0;
		/* Each goes first in every other round. */
		for (size_t i = 0; i < 2; i++)
			count[(i + rounds) % 2] = run_asked(ranks, (i + rounds) % 2, doubts);
		if (!count[0] || count[0] != count[1]) {
			verdict_fail(NULL, "%d times with onecopy and %d without", count[1],
				     count[0]);
			return 0;
		}
		for (int k = 0; k < asked_count; k++)
			if (asked[k].took[0] > 0 && asked[k].rounds < ASKED_ROUNDS)
				asked[k].ratio[asked[k].rounds++] =
					asked[k].took[1] / asked[k].took[0];
		rounds++;
	} while (rounds < ASKED_LEAST || (find_doubts(doubts) && rounds < ASKED_ROUNDS));
	return rounds;
}

/*
 * asked RANKS [map]: what others ask of ranks that wait in our collectives takes at most a fifth
 * longer than where they wait in the MPI's, in rounds, in each of which both run one after the
 * other. There are more rounds of a kind of question, or of one of its collectives, until it does,
 * as whatever else is busy hits both, or until none to come could let it fail. After the last, it
 * is late where the whole interval of the rounds' median lies above, for a kind or all of them, and
 * where one collective was above in every round. It fails where it is late twice, in rounds of
 * their own: one of 20 intervals misses its median, here those of twenty kinds, of which some take
 * as long as the limit (MPICH on a Xeon guest, 2026-12-01: one run of 30 was late).
 */
SCENARIO(asked)
{
	const char *doubts[ASKED_MOST + 1] = { NULL };
	int ranks = driver_ranks(words[0]);
	struct stats_estimate ratio, latest = { 0 };
	const struct asked *most = NULL;
	size_t rounds, again;

	job_shares_heaps = words[0] && words[1] && !strcmp(words[1], "map");
	rounds = ask(ranks, doubts);
	if (rounds && find_late(doubts)) {
		again = ask(ranks, doubts);
		rounds = again ? rounds + again : 0;
	}
	if (!rounds)
		return;
	for (int k = 0; k < asked_count; k++) {
		ratio = median_of(&asked[k], asked[k].rounds);
		if (asked[k].usual && ratio.median > latest.median) {
			most = &asked[k];
			latest = ratio;
		}
		if (asked[k].late && asked[k].rounds == ASKED_ROUNDS &&
		    is_late(&asked[k], ASKED_ROUNDS))
			verdict_fail(
				NULL,
				"%s of a rank that waits took %.2f [%.2f, %.2f] times as long "
				"as without onecopy, in the median of %d rounds, and before that "
				"in as many",
				asked[k].name, ratio.median, ratio.low, ratio.high, ASKED_ROUNDS);
	}
	verdict_done(
		"asked: %d ranks%s, %zu rounds: at most %.2f [%.2f, %.2f] times the MPI's time "
		"(%s)\n",
		ranks, job_shares_heaps ? " with heaps" : "", rounds, latest.median, latest.low,
		latest.high, most->name);
}

/* reproducible RANKS: one algorithm adds in one order, whatever carries the bytes. */
SCENARIO(reproducible)
{
	static const char *const mechanisms[] = { "shm", "cma", "cma" };
	int ranks = driver_ranks(words[0]);
	char checksum[3][64] = { "none", "none", "none" };

	driver_need_mechanism("cma");
	for (int i = 0; i < 3; i++) {
		struct job job = job_mpi(ranks, "reproducible");
		struct job_result result;

		job_set(&job, job_text("ONECOPY_MECHANISM=%s", mechanisms[i]),
			"ONECOPY_ALLREDUCE=sliced", "ONECOPY_REDUCE=sliced",
			"ONECOPY_REDUCE_SCATTER_BLOCK=sliced", "ONECOPY_REDUCE_SCATTER=sliced",
			"ONECOPY_SCAN=chain", "ONECOPY_EXSCAN=chain");
		if (verdict_run(&job, &result, "reproducible failed")) {
			verdict_served_all(&result, mechanisms[i]);
			verdict_word(&result, "checksum", checksum[i], sizeof(checksum[i]));
			if (strcmp(checksum[i], checksum[0]) || !strcmp(checksum[i], "none"))
				verdict_fail(&result, "checksum %s by %s, %s by shm", checksum[i],
					     mechanisms[i], checksum[0]);
		}
		job_free(&result);
	}
	verdict_done("reproducible: %d ranks, three runs, by shm and by cma: checksum %s\n", ranks,
		     checksum[0]);
}

/* Three ranks, of which one alone has the variable: by a shell, as the mpirun of Open MPI 5.0.7
 * ends by SIGSEGV where a ':' parts two programs (`mpirun -n 1 true : -n 1 true`). */
static struct job one_of_three(const char *program, const char *name_is_value)
{
	struct job job = job_mpi(3, NULL);

	job_add_shell(&job, job_text("test \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" != 2 || "
				     "export '%s'; exec \"$0\" \"$@\"",
				     name_is_value));
	job_add_program(&job, program);
	return job;
}

/* Results are right, nothing was served; and `sentence`, where there is one, was said. */
static void expect_none_served(const struct job *job, const char *what, const char *sentence)
{
	struct job_result result;

	if (verdict_run(job, &result, what) && verdict_served(&result, NULL, NULL, NULL))
		verdict_fail(&result, "%s: calls were served", what);
	else if (sentence && !strstr(result.output, sentence))
		verdict_fail(&result, "%s: nothing says '%s'", what, sentence);
	job_free(&result);
}

/* switched_off HOW: for one rank of three only; none may be served, none may wait. */
SCENARIO(switched_off)
{
	struct job job = one_of_three("threads", words[0]);

	job_add(&job, "4");
	expect_none_served(&job, words[0], NULL);
	verdict_done("switched_off: %s for one rank of three: nothing served\n", words[0]);
}

/* device SENTENCE: the MPI of one rank, or of all, says that it moves device memory (device.c), or
 * that it goes on without failed processes. The sentence says how to tell it otherwise. */
SCENARIO(device)
{
	static const char device[] = "OC_TEST_DEVICE=1";
	struct job one = one_of_three("device", device), all = job_mpi(3, "device"),
		   told = job_mpi(3, "device"), survives;
	struct job_result result;

	job_set(&one, "ONECOPY_LOG=info");
	expect_none_served(&one, "one rank", "moves device memory");
	job_set(&all, device, "ONECOPY_LOG=info");
	expect_none_served(&all, "all ranks", words[0]);
	/* A parameter of Open MPI 4, which decides; others are asked by what the program has in
	 * their place. */
	if (strstr(words[0], "opal_cuda_support")) {
		job_set(&told, device, "OMPI_MCA_opal_cuda_support=0");
		if (verdict_run(&told, &result, "opal_cuda_support=0"))
			verdict_served_all(&result, NULL);
		job_free(&result);
		survives = one_of_three("device", "OC_TEST_FT=1");
		job_set(&survives, "ONECOPY_LOG=info");
		expect_none_served(&survives, "one rank with ULFM", "ULFM");
	}
	verdict_done("device: nothing served where an MPI moves device memory, of one rank or "
		     "all\n");
}

/* communicators RANKS [CYCLES] */
SCENARIO(communicators)
{
	int ranks = driver_ranks(words[0]);

	run_program("communicators", words[1], ranks, NULL, NULL);
}

/* By the environment, for all communicators. */
static void force_by_environment(int ranks)
{
	static const char *const forced[][3] = {
		{ "bcast", "ONECOPY_BCAST=knomial:3", "knomial" },
		{ "allreduce", "ONECOPY_ALLREDUCE=sliced", "sliced" },
		{ "gather", "ONECOPY_GATHER=throttled-write:2", "throttled-write" },
	};
	enum { FORCED = sizeof(forced) / sizeof(forced[0]) };
	struct job job = job_mpi(ranks, "bytes");
	struct job_result result;

	for (int i = 0; i < FORCED; i++)
		job_set(&job, forced[i][1]);
	for (int i = 0; i < FORCED; i++)
		job_add(&job, forced[i][0]);
	if (verdict_run(&job, &result, "bytes failed"))
		for (int i = 0; i < FORCED; i++)
			verdict_served_exactly(&result, forced[i][0], forced[i][2], NULL);
	job_free(&result);
}

/* forced RANKS: by the environment, and by the info key of a communicator; the last is not valid.
 */
SCENARIO(forced)
{
	int ranks = driver_ranks(words[0]);
	static const char *const forced[] = { "bcast=knomial:3", "bcast=cooperative",
					      "allreduce=sliced", "gather=throttled-write:2" };
	enum { FORCED = sizeof(forced) / sizeof(forced[0]), CALLS = 10 };
	struct job job = job_mpi(ranks, "forced");
	struct job_result result;

	for (int i = 0; i < FORCED; i++)
		job_add(&job, forced[i]);
	job_add(&job, "scatter=nonsense");
	if (verdict_run(&job, &result, "forced failed")) {
		for (int i = 0; i < FORCED; i++) {
			char collective[32], algorithm[64];

			sscanf(forced[i], "%31[^=]=%63[^:]", collective, algorithm);
			if (verdict_served(&result, collective, algorithm, NULL) !=
			    (long)CALLS * ranks)
				verdict_fail(&result, "%s did not serve %d calls", forced[i],
					     CALLS * ranks);
		}
		if (!strstr(result.output, "nonsense"))
			verdict_fail(&result, "no warning of scatter=nonsense");
		verdict_served_all(&result, NULL);
	}
	job_free(&result);
	force_by_environment(ranks);
	verdict_done(
		"forced: %d ranks, %d algorithms by info key, %d calls each; 3 by environment\n",
		ranks, FORCED, CALLS * ranks);
}
