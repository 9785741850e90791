/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_mpi_driver [--mpich] SCENARIO [WORD...]: one test of tests/mpi, as ctest runs it. */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scenario *scenarios;

void driver_add(struct scenario *scenario)
{
	scenario->next = scenarios;
	scenarios = scenario;
}

int driver_ranks(const char *word)
{
	int ranks = word ? atoi(word) : 0;

	if (ranks >= 1)
		return ranks;
	fprintf(stderr, "driver: a number of ranks was expected\n");
	exit(2);
}

void driver_need_mechanism(const char *name)
{
	struct job job = { 0 };
	struct job_result result;
	const char *sentence = "it is not in 'onecopy info'";
	int works = 0;
	size_t i;
	json_t *json, *row;

	job_add(&job, job_onecopy, "info", "--json");
	job_run(&job, &result);
	json = json_loads(result.output, 0, NULL);
	json_array_foreach(json_object_get(json, "mechanisms"), i, row)
	{
		if (strcmp(json_string_value(json_object_get(row, "name")), name))
			continue;
		works = json_is_true(json_object_get(row, "works"));
		sentence = json_string_value(json_object_get(row, "sentence"));
	}
	if (!json)
		verdict_fail(&result, "onecopy info --json gave no JSON");
	else if (!works) {
		printf("skipped: mechanism %s does not work here: %s\n", name, sentence);
		exit(TEST_SKIPPED);
	}
	json_decref(json);
	job_free(&result);
}

#ifdef __SANITIZE_ADDRESS__
/* The words of a job are kept until the process ends: they are no leak. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "--mpich")) {
		job_is_mpich = true;
		argc--;
		argv++;
	}
	for (const struct scenario *s = scenarios; argc > 1 && s; s = s->next) {
		if (strcmp(argv[1], s->name))
			continue;
		s->run(argv + 2);
		return verdict_failures != 0;
	}
	fprintf(stderr, "usage: oc_mpi_driver [--mpich] SCENARIO [WORD...]; scenarios:");
	for (const struct scenario *s = scenarios; s; s = s->next)
		fprintf(stderr, " %s", s->name);
	fputc('\n', stderr);
	return 2;
}
