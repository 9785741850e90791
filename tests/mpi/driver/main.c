/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_mpi_driver [--mpich] SCENARIO [WORD...]: one test of tests/mpi, as ctest runs it. */
#include "driver.h"
#include "verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct scenario {
	const char *name;
	void (*run)(char **words);
} scenarios[] = {
	{ "bytes", bytes_scenario },
	{ "random", random_scenario },
	{ "program", program_scenario },
	{ "alloc", alloc_scenario },
	{ "heap", heap_scenario },
	{ "asked", asked_scenario },
	{ "reproducible", reproducible_scenario },
	{ "switched-off", switched_off_scenario },
	{ "device", device_scenario },
	{ "forced", forced_scenario },
	{ "communicators", communicators_scenario },
	{ "denied", denied_scenario },
	{ "recover", recover_scenario },
	{ "refused", refused_scenario },
	{ "kill", kill_scenario },
	{ "kill-random", kill_random_scenario },
	{ "kill-finalize", kill_finalize_scenario },
	{ "mismatch", mismatch_scenario },
	{ "surroundings", surroundings_scenario },
	{ "refused-calls", refused_calls_scenario },
	{ "memory-group", memory_group_scenario },
	{ "files", files_scenario },
	{ "table", table_scenario },
	{ "soak", soak_scenario },
	{ "large", large_scenario },
	{ "beside", beside_scenario },
	{ "foreign", foreign_scenario },
	{ "both", both_scenario },
	{ "command", command_scenario },
	{ "environment", environment_scenario },
	{ "manual", manual_scenario },
	{ "stock", stock_scenario },
	{ "hung", hung_scenario },
	{ "report", report_scenario },
	{ "signals", signals_scenario },
	{ "hang", hang_scenario },
	{ "foreign-stats", foreign_stats_scenario },
};

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

	job_add(&job, job_onecopy);
	job_add(&job, "info");
	job_add(&job, "--json");
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
	for (size_t i = 0; argc > 1 && i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(argv[1], scenarios[i].name))
			continue;
		scenarios[i].run(argv + 2);
		return verdict_failures != 0;
	}
	fprintf(stderr, "usage: oc_mpi_driver [--mpich] SCENARIO [WORD...]; scenarios:");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		fprintf(stderr, " %s", scenarios[i].name);
	fputc('\n', stderr);
	return 2;
}
