/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include "command.h"

#include <onecopy/onecopy.h>

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Entries with the same words are one row; their numbers are added. */
static const char *const served_words[] = { "collective", "algorithm", "mechanism", NULL };
static const char *const served_numbers[] = { "calls", "bytes", "recovered", NULL };
static const char *const front_words[] = { "library", NULL };
static const char *const front_numbers[] = { "ranks", NULL };
static const char *const mapped_numbers[] = { "peers", "address_space", "bytes", NULL };
static const char *const kernel_words[] = { "reason", NULL };
static const char *const kernel_numbers[] = { "copies", "bytes", NULL };
static const char *const heap_numbers[] = {
	"heaps", "bytes_in_use", "most_bytes_in_use", "bytes_given_back", "bytes_in_large_pages",
	NULL
};
static const char *const handed_words[] = { "collective", "reason", NULL };
static const char *const handed_numbers[] = { "calls", NULL };

/* "recovered" is left out by a process that never had to. */
static int is_entry(const json_t *entry, const char *const *words, const char *const *numbers)
{
	for (; *words; words++)
		if (!json_is_string(json_object_get(entry, *words)))
			return 0;
	for (; *numbers; numbers++) {
		const json_t *number = json_object_get(entry, *numbers);

		if (number ? !json_is_integer(number) : !!strcmp(*numbers, "recovered"))
			return 0;
	}
	return 1;
}

static int is_list(const json_t *list, const char *const *words, const char *const *numbers)
{
	size_t i;
	json_t *entry;

	if (!json_is_array(list))
		return 0;
	json_array_foreach(list, i, entry) if (!is_entry(entry, words, numbers)) return 0;
	return 1;
}

static int is_ours(const json_t *file)
{
	return json_is_string(json_object_get(file, "onecopy")) &&
	       is_list(json_object_get(file, "collectives"), served_words, served_numbers) &&
	       is_list(json_object_get(file, "handed_back"), handed_words, handed_numbers);
}

static json_t *find_row(const json_t *rows, const json_t *entry, const char *const *words)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		const char *const *word = words;

		while (*word &&
		       json_equal(json_object_get(row, *word), json_object_get(entry, *word)))
			word++;
		if (!*word)
			return row;
	}
	return NULL;
}

static void add_entries(json_t *rows, const json_t *entries, const char *const *words,
			const char *const *numbers)
{
	size_t i;
	json_t *entry;

	json_array_foreach(entries, i, entry)
	{
		json_t *row = find_row(rows, entry, words);

		if (!row) {
			row = json_object();
			for (const char *const *word = words; *word; word++)
				json_object_set(row, *word, json_object_get(entry, *word));
			json_array_append_new(rows, row);
		}
		for (const char *const *number = numbers; *number; number++) {
			json_int_t sum = json_integer_value(json_object_get(row, *number)) +
					 json_integer_value(json_object_get(entry, *number));

			json_object_set_new(row, *number, json_integer(sum));
		}
	}
}

/* Directory order is no order; that of MPI's own list of collectives is not worth a table. */
static int by_words(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	static const char *const order[] = { "library", "collective", "algorithm", "mechanism",
					     "reason" };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		const char *l = json_string_value(json_object_get(left, order[i]));
		const char *r = json_string_value(json_object_get(right, order[i]));
		int difference = l && r ? strcmp(l, r) : 0;

		if (difference)
			return difference;
	}
	return 0;
}

static json_t *sorted(json_t *rows)
{
	size_t count = json_array_size(rows);
	json_t **row = malloc((count + 1) * sizeof(json_t *));
	json_t *result = json_array();

	if (!row) {
		json_decref(result);
		return rows;
	}
	for (size_t i = 0; i < count; i++)
		row[i] = json_array_get(rows, i);
	qsort(row, count, sizeof(json_t *), by_words);
	for (size_t i = 0; i < count; i++)
		json_array_append(result, row[i]);
	free(row);
	json_decref(rows);
	return result;
}

/* What a process of an older version has not written is 0. */
static void add_numbers(json_t *sums, const json_t *entry, const char *const *numbers)
{
	for (; *numbers; numbers++)
		json_object_set_new(
			sums, *numbers,
			json_integer(json_integer_value(json_object_get(sums, *numbers)) +
				     json_integer_value(json_object_get(entry, *numbers))));
}

static void add_mapped(json_t *sums, json_t *by_kernel, const json_t *file)
{
	const json_t *mapped = json_object_get(file, "mapped");
	const json_t *other = json_object_get(mapped, "by_kernel");

	add_numbers(sums, mapped, mapped_numbers);
	if (is_list(other, kernel_words, kernel_numbers))
		add_entries(by_kernel, other, kernel_words, kernel_numbers);
}

static int is_json_name(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && !strcmp(name + length - 5, ".json");
}

/* A process's file says which library served it; a library's row counts its processes. */
static void add_front_end(json_t *rows, const json_t *file)
{
	const char *library = json_string_value(json_object_get(file, "library"));
	json_t *entries = json_pack("[{s:s, s:i}]", "library", library ? library : "?", "ranks", 1);

	add_entries(rows, entries, front_words, front_numbers);
	json_decref(entries);
}

json_t *stats_collect(const char *dir)
{
	json_t *served = json_array(), *handed = json_array(), *fronts = json_array();
	json_t *mapped = json_object(), *by_kernel = json_array(), *heap = json_object();
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int ranks = 0;

	if (!stream) {
		command_say("the statistics in %s cannot be read: %s", dir, strerror(errno));
		json_decref(served);
		json_decref(handed);
		json_decref(fronts);
		json_decref(mapped);
		json_decref(by_kernel);
		json_decref(heap);
		return NULL;
	}
	while ((entry = readdir(stream))) {
		char path[4096];
		json_error_t error;
		json_t *file;

		if (!is_json_name(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		file = json_load_file(path, 0, &error);
		if (!file)
			command_say("%s:%d: left out of the statistics: %s", path, error.line,
				    error.text);
		else if (!is_ours(file))
			command_say("%s: left out of the statistics: not a file of onecopy's "
				    "counters",
				    path);
		else {
			ranks++;
			add_front_end(fronts, file);
			add_mapped(mapped, by_kernel, file);
			add_numbers(heap, json_object_get(file, "heap"), heap_numbers);
			add_entries(served, json_object_get(file, "collectives"), served_words,
				    served_numbers);
			add_entries(handed, json_object_get(file, "handed_back"), handed_words,
				    handed_numbers);
		}
		json_decref(file);
	}
	closedir(stream);
	json_object_set_new(mapped, "by_kernel", sorted(by_kernel));
	return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "onecopy", oc_version(), "ranks",
			 ranks, "front_ends", sorted(fronts), "collectives", sorted(served),
			 "handed_back", sorted(handed), "mapped", mapped, "heap", heap);
}

void stats_remove(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;

	if (!stream)
		return;
	while ((entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(stream), entry->d_name, 0);
	closedir(stream);
	rmdir(dir);
}
