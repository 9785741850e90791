/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict.h"
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME(X, ID, name, ...) #name,
const char *const collective_names[COLLECTIVES] = { OC_COLLECTIVE_ROWS(NAME, ) };
int verdict_failures;

/* Enough to see the cause; a job that fails in a loop can say a lot. */
enum { OUTPUT_SHOWN = 6000 };

void verdict_fail(const struct job_result *result, const char *format, ...)
{
	static const char *shown; /* one job may fail several expectations */
	va_list arguments;

	verdict_failures++;
	printf("FAILED: ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	if (!result || result->output == shown)
		return;
	shown = result->output;
	printf("---- status %d after %.1f s%s; its output:\n%.*s\n----\n", result->status,
	       result->seconds, result->hung ? ", as it hung and was ended" : "", OUTPUT_SHOWN,
	       result->output);
	if (result->stats) {
		char *text = json_dumps(result->stats, JSON_COMPACT);

		printf("statistics: %s\n", text);
		free(text);
	}
}

void verdict_done(const char *format, ...)
{
	va_list arguments;

	if (verdict_failures)
		return;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

void verdict_skip(const struct job_result *result)
{
	const char *why = strstr(result->output, "skipped: ");

	if (result->status != TEST_SKIPPED || !why || verdict_failures)
		return;
	printf("%.*s\n", (int)strcspn(why, "\n"), why);
	exit(TEST_SKIPPED);
}

bool verdict_ended_well(const struct job_result *result, const char *what)
{
	if (!result->hung && result->status == 0)
		return true;
	verdict_fail(result, "%s", what);
	return false;
}

bool verdict_run(const struct job *job, struct job_result *result, const char *what)
{
	job_run(job, result);
	verdict_skip(result);
	return verdict_ended_well(result, what);
}

bool verdict_word(const struct job_result *result, const char *key, char *word, size_t bytes)
{
	size_t length = strlen(key);

	for (const char *line = result->output; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) || line[length] != ' ')
			continue;
		snprintf(word, bytes, "%.*s", (int)strcspn(line + length + 1, "\n"),
			 line + length + 1);
		return true;
	}
	return false;
}

static long said(const struct job_result *result, const char *what, const char *collective)
{
	char key[64], word[64];

	snprintf(key, sizeof(key), "%s %s", what, collective);
	return verdict_word(result, key, word, sizeof(word)) ? atol(word) : 0;
}

int verdict_count(const struct job_result *result, const char *word)
{
	int count = 0;

	for (const char *at = result->output; (at = strstr(at, word)); at += strlen(word))
		count++;
	return count;
}

long verdict_expected(const struct job_result *result, const char *collective)
{
	return said(result, "expect", collective);
}

/* "besides COLLECTIVE CALLS": those that the MPI may have ended by itself, or not. */
static long besides(const struct job_result *result, const char *collective)
{
	return said(result, "besides", collective);
}

static const char *text(const json_t *row, const char *key)
{
	const char *value = json_string_value(json_object_get(row, key));

	return value ? value : "";
}

/* What the MPI itself calls within MPI_Comm_dup() and the like is no call of the program's. */
static bool is_mpis_own(const json_t *row)
{
	return strstr(text(row, "reason"), "MPI's own call") ||
	       strstr(text(row, "reason"), "Open MPI itself ends");
}

static bool is_algorithm(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);

	return !strncmp(name, wanted, length) && (!name[length] || name[length] == ':');
}

/* Whether `wanted` is one of the words of "cma+shm". */
static bool is_mechanism(const char *words, const char *wanted)
{
	size_t length = strlen(wanted);

	for (; *words; words += *words == '+') {
		size_t next = strcspn(words, "+");

		if (next == length && !memcmp(words, wanted, length))
			return true;
		words += next;
	}
	return false;
}

static bool is_word(const char *word, const char *wanted)
{
	return !strcmp(word, wanted);
}

/* The sum of `number` over the rows of the collective, algorithm and mechanism (NULL: any). */
static long sum(const struct job_result *result, const char *number, const char *collective,
		const char *algorithm, const char *mechanism,
		bool (*matches)(const char *words, const char *wanted))
{
	long total = 0;
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(result->stats, "collectives"), i, row)
	{
		if (collective && strcasecmp(text(row, "collective"), collective))
			continue;
		if (algorithm && !is_algorithm(text(row, "algorithm"), algorithm))
			continue;
		if (mechanism && !matches(text(row, "mechanism"), mechanism))
			continue;
		total += (long)json_integer_value(json_object_get(row, number));
	}
	return total;
}

long verdict_number(const struct job_result *result, const char *part, const char *name)
{
	return (long)json_integer_value(
		json_object_get(json_object_get(result->stats, part), name));
}

long verdict_served(const struct job_result *result, const char *collective, const char *algorithm,
		    const char *mechanism)
{
	return sum(result, "calls", collective, algorithm, mechanism, is_mechanism);
}

long verdict_recovered(const struct job_result *result, const char *collective)
{
	return sum(result, "recovered", collective, NULL, NULL, is_mechanism);
}

/* Of all collectives for NULL, and for a reason with these words in it. */
static long handed_back(const struct job_result *result, const char *collective, const char *words)
{
	long calls = 0;
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(result->stats, "handed_back"), i, row)
	{
		if ((!collective || !strcasecmp(text(row, "collective"), collective)) &&
		    strstr(text(row, "reason"), words) && !is_mpis_own(row))
			calls += (long)json_integer_value(json_object_get(row, "calls"));
	}
	return calls;
}

long verdict_handed_back(const struct job_result *result, const char *collective)
{
	return handed_back(result, collective, "");
}

long verdict_left_to_mpi(const struct job_result *result)
{
	return handed_back(result, NULL, "leaves it to the MPI");
}

long verdict_without_teams(const struct job_result *result)
{
	return handed_back(result, NULL, "could not form a team");
}

void verdict_handed_back_only(const struct job_result *result, const char *words)
{
	size_t i;
	json_t *row;

	json_array_foreach(json_object_get(result->stats, "handed_back"), i, row)
	{
		if (!is_mpis_own(row) && !strstr(text(row, "reason"), words))
			verdict_fail(result, "%s was handed back: %s", text(row, "collective"),
				     text(row, "reason"));
	}
}

void verdict_served_exactly(const struct job_result *result, const char *collective,
			    const char *algorithm, const char *mechanism)
{
	long expected = verdict_expected(result, collective);
	/* Half of the bytes through shared memory is not this mechanism: "cma+shm", or recovered.
	 */
	long served = sum(result, "calls", collective, algorithm, mechanism, is_word);
	long all = verdict_served(result, collective, NULL, NULL);
	long handed = verdict_handed_back(result, collective);
	long recovered = verdict_recovered(result, collective);
	long most = expected + besides(result, collective);

	if (most && served >= expected && served <= most && all == served &&
	    (!handed || !expected) && !recovered)
		return;
	verdict_fail(
		result,
		"%s: %ld calls were meant for algorithm %s, mechanism %s; it served %ld, others "
		"served %ld, %ld were handed back, %ld recovered",
		collective, expected, algorithm ? algorithm : "any", mechanism ? mechanism : "any",
		served, all - served, handed, recovered);
}

void verdict_served_all(const struct job_result *result, const char *mechanism)
{
	verdict_served_at_least(result, mechanism);
	for (int i = 0; i < COLLECTIVES; i++) {
		const char *name = collective_names[i];
		long handed = verdict_handed_back(result, name);

		if (handed && verdict_expected(result, name))
			verdict_fail(result, "%s: %ld calls were handed back", name, handed);
	}
}

void verdict_served_at_least(const struct job_result *result, const char *mechanism)
{
	long sum = 0;

	for (int i = 0; i < COLLECTIVES; i++) {
		const char *name = collective_names[i];
		long expected = verdict_expected(result, name);
		long served = verdict_served(result, name, NULL, NULL);

		sum += expected;
		if (served < expected)
			verdict_fail(result, "%s: of %ld calls %ld were served", name, expected,
				     served);
	}
	if (!sum)
		verdict_fail(result, "the program expected nothing to be served");
	if (mechanism && !verdict_served(result, NULL, NULL, mechanism))
		verdict_fail(result, "mechanism %s served nothing", mechanism);
}
