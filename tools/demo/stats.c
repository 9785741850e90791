// SPDX-License-Identifier: BSD-3-Clause
/*
 * The statistics that "onecopy run --stats-json FILE" writes:
 *   {"onecopy": "version", "ranks": N, "front_ends": [{"library", "ranks"}...],
 *    "collectives": [{"collective", "algorithm", "mechanism", "calls", "bytes"}...],
 *    "handed_back": [{"collective", "reason", "calls"}...]}
 * with calls and bytes summed over the ranks.
 */
#include "demo.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(json_t *entry, const char *key)
{
	return json_string_value(json_object_get(entry, key));
}

static double number_of(json_t *entry, const char *key)
{
	return json_number_value(json_object_get(entry, key));
}

static bool is_number(json_t *entry, const char *key)
{
	return json_is_number(json_object_get(entry, key));
}

/* What is wrong with the document; NULL if nothing is. */
static const char *complaint(json_t *stats)
{
	json_t *served = json_object_get(stats, "collectives");
	json_t *handed = json_object_get(stats, "handed_back");
	json_t *entry;
	size_t i;

	if (!json_is_array(served))
		return "an array \"collectives\" was expected";
	if (!json_is_array(handed))
		return "an array \"handed_back\" was expected";
	json_array_foreach(served, i, entry)
	{
		if (!text_of(entry, "collective") || !text_of(entry, "algorithm"))
			return "\"collectives\" has an entry without collective or algorithm";
		if (!text_of(entry, "mechanism"))
			return "\"collectives\" has an entry without mechanism";
		if (!is_number(entry, "calls") || !is_number(entry, "bytes"))
			return "\"collectives\" has an entry without calls or bytes";
	}
	json_array_foreach(handed, i, entry)
	{
		if (!text_of(entry, "collective") || !text_of(entry, "reason"))
			return "\"handed_back\" has an entry without collective or reason";
		if (!is_number(entry, "calls"))
			return "\"handed_back\" has an entry without calls";
	}
	return NULL;
}

int demo_stats_read(const struct demo *demo, struct demo_result *result)
{
	json_error_t error;
	json_t *stats = json_load_file(demo->files.stats, 0, &error);
	const char *wrong;
	json_t *entry;
	double calls = 0.0;
	size_t i;

	if (!stats) {
		fprintf(stderr, "\nonecopy-demo: no statistics from onecopy: %s: %s\n",
			demo->files.stats, error.text);
		return -1;
	}
	wrong = complaint(stats);
	json_array_foreach(json_object_get(stats, "collectives"), i, entry)
	{
		calls += number_of(entry, "calls");
	}

	/* A run that onecopy did not take part in is no run with onecopy. One rank alone has
	 * nothing to share.
	 */
	if (!wrong && calls <= 0.0 && demo->opt.ranks > 1)
		wrong = "onecopy served no call at all, so this was not a run with onecopy";
	if (wrong) {
		fprintf(stderr, "\nonecopy-demo: %s: %s\n", demo->files.stats, wrong);
		json_decref(stats);
		return -1;
	}
	result->stats = stats;
	return 0;
}

static void print_bytes(double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t unit = 0;

	while (bytes >= 1024.0 && unit < 4) {
		bytes /= 1024.0;
		unit++;
	}
	printf("%8.*f %s", unit ? 1 : 0, bytes, units[unit]);
}

static void widen(int *width, const char *text)
{
	int len = (int)strlen(text);

	*width = len > *width ? len : *width;
}

void demo_stats_print(const struct demo_case *one, json_t *stats)
{
	const char *program = one->program->name, *mpi = demo_mpis[one->mpi].name;
	json_t *served = json_object_get(stats, "collectives");
	json_t *handed = json_object_get(stats, "handed_back");
	int collective = 0, algorithm = 0, mechanism = 0;
	json_t *entry;
	size_t i;

	json_array_foreach(served, i, entry)
	{
		widen(&collective, text_of(entry, "collective"));
		widen(&algorithm, text_of(entry, "algorithm"));
		widen(&mechanism, text_of(entry, "mechanism"));
	}
	json_array_foreach(handed, i, entry) widen(&collective, text_of(entry, "collective"));

	printf("\n%s, %s: served by onecopy\n", program, mpi);
	json_array_foreach(served, i, entry)
	{
		printf("  %-*s  %-*s  %-*s  %9.0f calls  ", collective,
		       text_of(entry, "collective"), algorithm, text_of(entry, "algorithm"),
		       mechanism, text_of(entry, "mechanism"), number_of(entry, "calls"));
		print_bytes(number_of(entry, "bytes"));
		putchar('\n');
	}
	if (json_array_size(served) == 0)
		printf("  nothing\n");

	printf("%s, %s: handed back to the MPI\n", program, mpi);
	json_array_foreach(handed, i, entry)
		printf("  %-*s  %9.0f calls: %s\n", collective, text_of(entry, "collective"),
		       number_of(entry, "calls"), text_of(entry, "reason"));
	if (json_array_size(handed) == 0)
		printf("  nothing\n");
}
