/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes RANKS MECHANISM: every algorithm of every collective, forced by the info key of a
 * communicator: every size, root and operation.
 * table RANKS MECHANISM: the same through every layout and form.
 *
 * MECHANISM kmod: by cma only what had a region that has ended with its memory; kmod+cma: the
 * kernel module refuses some, which then go by cma.
 */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a payload beside a flag and what a slot holds, as in src/base/limits.h. */
enum { INLINE_BYTES = 496, SLOT_BYTES = 65536 };

/* As `onecopy info` lists them, "knomial", "knomial:2"; each list ends with NULL. */
enum { MOST_ALGORITHMS = 32 };
static const char *words_of[COLLECTIVES][MOST_ALGORITHMS];

/* A second value for its parameter. */
static int other_parameter(const char *name, json_int_t least, json_int_t usual, int ranks)
{
	/* A step that leads through all ranks. */
	if (strstr(name, "ring-neighbor"))
		return ranks > 2 ? ranks - 1 : 3;
	return (int)(least == usual ? least + 1 : least);
}

static void add_words(int collective, const json_t *algorithm, int ranks)
{
	const json_t *parameter = json_object_get(algorithm, "parameter");
	const char *name = json_string_value(json_object_get(algorithm, "name"));
	int count = 0;

	while (words_of[collective][count])
		count++;
	if (count + 3 > MOST_ALGORITHMS) {
		fprintf(stderr, "%s has more algorithms than MOST_ALGORITHMS\n",
			collective_names[collective]);
		exit(2);
	}
	words_of[collective][count++] = job_text("%s", name);
	if (parameter) {
		json_int_t least = json_integer_value(json_object_get(parameter, "min"));
		json_int_t usual = json_integer_value(json_object_get(parameter, "default"));

		words_of[collective][count++] =
			job_text("%s:%d", name, other_parameter(name, least, usual, ranks));
	}
}

/* The lists come from the command, so that a new algorithm is tested from its first day. */
static void load(int ranks)
{
	struct job job = { 0 };
	struct job_result result;
	json_t *json, *list, *algorithm;
	size_t i;

	job_add(&job, job_onecopy, "info", "--algorithms", "--json");
	job_run(&job, &result);
	json = json_loads(result.output, 0, NULL);
	for (int c = 0; c < COLLECTIVES; c++) {
		int count = 0;

		list = json_object_get(json_object_get(json, "algorithms"), collective_names[c]);
		json_array_foreach(list, i, algorithm) add_words(c, algorithm, ranks);
		while (words_of[c][count])
			count++;
		if (count < 1)
			verdict_fail(&result, "%s has no algorithm", collective_names[c]);
	}
	json_decref(json);
	job_free(&result);
}

static int begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/*
 * The largest buffer that the algorithm serves; beyond it the engine rightly takes another one.
 * Scatter and Alltoall keep the blocks of all other ranks in one place, the others one block.
 */
static long most_bytes(int collective, const char *algorithm, int ranks)
{
	const char *name = collective_names[collective];
	long place = begins(algorithm, "inline") ? INLINE_BYTES :
		     begins(algorithm, "cico")	 ? SLOT_BYTES :
						   0;

	if (begins(name, "allgather") || begins(name, "gather"))
		return place * ranks;
	if (begins(name, "scatter") || begins(name, "alltoall"))
		return ranks > 1 ? place / (ranks - 1) * ranks : place;
	return place;
}

static int name_ends_in_v(const char *name)
{
	return name[strlen(name) - 1] == 'v';
}

static bool is_mixed(const char *mechanism)
{
	return !strcmp(mechanism, "kmod+cma");
}

/* Only algorithms that copy singly have a mechanism to choose. */
static const char *mechanism_of(int collective, const char *algorithm, const char *mechanism)
{
	if (!strcmp(collective_names[collective], "barrier"))
		return "flags";
	/* Those with counts decide for each block. */
	if (name_ends_in_v(collective_names[collective]))
		return NULL;
	if (begins(algorithm, "inline"))
		return "inline";
	if (begins(algorithm, "cico") || begins(algorithm, "shm"))
		return "slot";
	/* Each copy goes by it only if it has a region: check_all() looks at them. */
	return begins(mechanism, "kmod") ? NULL : mechanism;
}

/* Calls that an algorithm was to serve, and those that it may have served on top. */
struct meant {
	long calls, besides;
};

/* Adds those of "forced bcast=knomial:2 CALLS BESIDES" in the output. */
static void add_meant(const struct job_result *result, int collective, const char *algorithm,
		      struct meant *meant)
{
	const char *key = job_text("forced %s=%s", collective_names[collective], algorithm);
	char word[64];
	long calls, besides;

	if (!verdict_word(result, key, word, sizeof(word)) ||
	    sscanf(word, "%ld %ld", &calls, &besides) != 2) {
		verdict_fail(result, "%s=%s was left out", collective_names[collective], algorithm);
		return;
	}
	meant->calls += calls;
	meant->besides += besides;
}

/* All words of one algorithm are one row in the statistics: "knomial" and "knomial:2". */
static void check_algorithm(const struct job_result *result, int c, int from, const char *mechanism,
			    struct meant *all)
{
	const char *const *words = words_of[c];
	const char *name = job_text("%.*s", (int)strcspn(words[from], ":"), words[from]);
	const char *by = mechanism_of(c, name, mechanism);
	long served = verdict_served(result, collective_names[c], name, by);
	struct meant meant = { 0 };

	for (int i = 0; words[i]; i++)
		if (strcspn(words[i], ":") == strlen(name) &&
		    !strncmp(words[i], name, strlen(name)))
			add_meant(result, c, words[i], &meant);
	/* Where blocks go different ways, the large ones go by the mechanism, and none by another.
	 */
	if (!by && !is_mixed(mechanism) &&
	    (!verdict_served(result, collective_names[c], name, mechanism) ||
	     verdict_served(result, collective_names[c], name,
			    strcmp(mechanism, "cma") && strcmp(mechanism, "kmod") ? "cma" : "shm")))
		verdict_fail(result, "%s: large blocks did not go by %s", collective_names[c],
			     mechanism);
	if (served < meant.calls || verdict_recovered(result, collective_names[c]))
		verdict_fail(result, "%s: %ld calls were meant for %s by %s, it served %ld",
			     collective_names[c], meant.calls, name, by ? by : "any", served);
	all->calls += meant.calls;
	all->besides += meant.besides;
}

static void check_collective(const struct job_result *result, int c, const char *mechanism)
{
	const char *name = collective_names[c];
	long all = verdict_served(result, name, NULL, NULL);
	struct meant meant = { 0 };

	for (int i = 0; words_of[c][i]; i++)
		if (!strchr(words_of[c][i], ':'))
			check_algorithm(result, c, i, mechanism, &meant);
	/* Each communicator's first call is a Barrier, and the MPI has its own, too. */
	if (!meant.calls ||
	    ((all < meant.calls || all > meant.calls + meant.besides) && strcmp(name, "barrier")))
		verdict_fail(result, "%s: %ld to %ld calls were meant for us, %ld were served",
			     name, meant.calls, meant.calls + meant.besides, all);
	if (verdict_handed_back(result, name))
		verdict_fail(result, "%s: %ld calls were handed back", name,
			     verdict_handed_back(result, name));
}

/* A process alone has nobody to share with: all is the MPI's, and not worth a word. */
static void check_alone(const struct job_result *result, const char *program)
{
	char line[64] = "";

	if (!verdict_word(result, job_text("%s:", program), line, sizeof(line)) ||
	    atol(line) < 1000)
		verdict_fail(result, "the program made few calls: %s", line);
	if (verdict_served(result, NULL, NULL, NULL))
		verdict_fail(result, "calls of one rank were served");
	for (int c = 0; c < COLLECTIVES; c++)
		if (verdict_handed_back(result, collective_names[c]))
			verdict_fail(result, "%s of one rank counts as handed back",
				     collective_names[c]);
}

/* What no algorithm is asked for alone. */
static void check_all(const struct job_result *result, const char *mechanism)
{
	long by_kmod = verdict_served(result, NULL, NULL, "kmod");
	long by_cma = verdict_served(result, NULL, NULL, "cma");
	long ended =
		verdict_number(result, "kmod", "gone") + verdict_number(result, "kmod", "replaced");

	/* A region may end in the middle of an operation: as the heap around it is trimmed, or as
	 * those that are outstanding need more regions than there may be. */
	if (!strcmp(mechanism, "kmod") && by_cma && (!ended || by_cma > by_kmod / 200))
		verdict_fail(result, "%ld calls went by cma, %ld by kmod", by_cma, by_kmod);
	if (is_mixed(mechanism) && (!by_kmod || !by_cma))
		verdict_fail(result, "%ld calls went by kmod, and %ld by cma", by_kmod, by_cma);
}

static void run(const char *program, char **words)
{
	int ranks = driver_ranks(words[0]);
	const char *mechanism = words[0] && words[1] ? words[1] : "cma";
	struct job_result result;
	struct job job;

	/* What is refused at random is refused to that one, too. */
	if (!is_mixed(mechanism))
		driver_need_mechanism(mechanism);
	job_shares_heaps = !strcmp(mechanism, "map");
	job = job_mpi(ranks, program);
	load(ranks);
	job_set(&job, job_text("ONECOPY_MECHANISM=%s", is_mixed(mechanism) ? "kmod" : mechanism));
	for (int c = 0; c < COLLECTIVES; c++) {
		for (int i = 0; words_of[c][i]; i++) {
			const char *word = words_of[c][i];
			long most = most_bytes(c, word, ranks);

			job_add(&job,
				most ? job_text("%s=%s@%ld", collective_names[c], word, most) :
				       job_text("%s=%s", collective_names[c], word));
		}
	}
	if (verdict_run(&job, &result, job_text("%s failed", program))) {
		if (ranks == 1)
			check_alone(&result, program);
		for (int c = 0; c < COLLECTIVES && ranks > 1; c++)
			check_collective(&result, c, mechanism);
		if (ranks > 1)
			check_all(&result, mechanism);
	}
	verdict_done("%s: %d ranks, mechanism %s: %ld calls served by the algorithm forced\n",
		     program, ranks, mechanism, verdict_served(&result, NULL, NULL, NULL));
	job_free(&result);
}

SCENARIO(bytes)
{
	run("bytes", words);
}

SCENARIO(table)
{
	run("table", words);
}
