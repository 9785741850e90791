/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes RANKS MECHANISM: every algorithm of every collective, forced through the environment.
 *
 * A launch costs more than its calls, so one launch forces one algorithm of each collective: as
 * many launches as the collective with the most algorithms has.
 */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a payload beside a flag and what a slot holds, as in src/base/limits.h. */
enum { INLINE_BYTES = 496, SLOT_BYTES = 65536 };

const char *algorithm_words[COLLECTIVES][MOST_ALGORITHMS]; /* "knomial", "knomial:2" */

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

	while (algorithm_words[collective][count])
		count++;
	if (count + 3 > MOST_ALGORITHMS) {
		fprintf(stderr, "%s has more algorithms than MOST_ALGORITHMS\n",
			collective_names[collective]);
		exit(2);
	}
	algorithm_words[collective][count++] = job_text("%s", name);
	if (parameter) {
		json_int_t least = json_integer_value(json_object_get(parameter, "min"));
		json_int_t usual = json_integer_value(json_object_get(parameter, "default"));

		algorithm_words[collective][count++] =
			job_text("%s:%d", name, other_parameter(name, least, usual, ranks));
	}
}

/* The lists come from the command, so that a new algorithm is tested from its first day. */
int algorithms_load(int ranks)
{
	struct job job = { 0 };
	struct job_result result;
	json_t *json, *list, *algorithm;
	int rounds = 0;
	size_t i;

	job_add(&job, job_onecopy);
	job_add(&job, "info");
	job_add(&job, "--algorithms");
	job_add(&job, "--json");
	job_run(&job, &result);
	json = json_loads(result.output, 0, NULL);
	for (int c = 0; c < COLLECTIVES; c++) {
		int count = 0;

		list = json_object_get(json_object_get(json, "algorithms"), collective_names[c]);
		json_array_foreach(list, i, algorithm) add_words(c, algorithm, ranks);
		while (algorithm_words[c][count])
			count++;
		if (count < 1)
			verdict_fail(&result, "%s has no algorithm", collective_names[c]);
		rounds = count > rounds ? count : rounds;
	}
	json_decref(json);
	job_free(&result);
	return rounds;
}

static int begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/*
 * The largest buffer that the algorithm serves; beyond it the engine rightly takes another one.
 * Scatter and Alltoall keep the blocks of all other ranks in one place, the others one block.
 */
long algorithm_most_bytes(int collective, const char *algorithm, int ranks)
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

static const char *variable_of(int collective, const char *value)
{
	char *text = strdup(job_text("ONECOPY_%s=", collective_names[collective]));

	for (char *c = text; *c; c++)
		*c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
	return job_text("%s%s", text, value);
}

static void add_collective(struct job *job, int collective, const char *algorithm, int ranks)
{
	long most = algorithm_most_bytes(collective, algorithm, ranks);

	job_set(job, variable_of(collective, algorithm));
	job_add(job, "--only");
	job_add(job, collective_names[collective]);
	if (most) {
		job_add(job, "--max");
		job_add(job, job_text("%s=%ld", collective_names[collective], most));
	}
}

static int name_ends_in_v(const char *name)
{
	return name[strlen(name) - 1] == 'v';
}

/* Only algorithms that copy singly have a mechanism to choose. */
const char *algorithm_mechanism(int collective, const char *algorithm, const char *mechanism)
{
	if (!strcmp(collective_names[collective], "barrier"))
		return "flags";
	/* Those with counts decide for each block. */
	if (name_ends_in_v(collective_names[collective]))
		return NULL;
	if (begins(algorithm, "inline"))
		return "inline";
	return begins(algorithm, "cico") || begins(algorithm, "shm") ? "slot" : mechanism;
}

static long run_round(int number, int ranks, const char *mechanism)
{
	struct job job = job_mpi(ranks);
	struct job_result result;
	long calls = 0;

	job_set(&job, job_text("ONECOPY_MECHANISM=%s", mechanism));
	job_add_program(&job, "bytes");
	for (int c = 0; c < COLLECTIVES; c++)
		if (algorithm_words[c][number])
			add_collective(&job, c, algorithm_words[c][number], ranks);
	job_run(&job, &result);
	if (verdict_ended_well(&result, "bytes failed")) {
		for (int c = 0; c < COLLECTIVES; c++) {
			const char *algorithm = algorithm_words[c][number];

			if (!algorithm)
				continue;
			verdict_served_exactly(&result, collective_names[c], algorithm,
					       algorithm_mechanism(c, algorithm, mechanism));
			calls += verdict_served(&result, collective_names[c], NULL, NULL);
		}
	}
	job_free(&result);
	return calls;
}

void bytes_scenario(char **word)
{
	int ranks = driver_ranks(word[0]), rounds;
	const char *mechanism = word[0] && word[1] ? word[1] : "cma";
	long calls = 0;

	driver_need_mechanism(mechanism);
	rounds = algorithms_load(ranks);
	if (!rounds)
		return;
	if (ranks == 1)
		rounds = 1; /* no algorithm is asked: the MPI does it alone */
	for (int i = 0; i < rounds; i++)
		calls += run_round(i, ranks, mechanism);
	verdict_done(
		"bytes: %d ranks, mechanism %s: %ld calls in %d jobs served by the algorithm forced\n",
		ranks, mechanism, calls, rounds);
	if (ranks > 1 && !calls)
		verdict_fail(NULL, "nothing was served");
}
