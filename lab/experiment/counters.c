/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/counters.h"

#include "lab/experiment/experiment.h"
#include "lab/experiment/json_text.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The numbers of entries are added: of a list by rows, one for entries with the same words. */
struct form {
	const char *words[4], *numbers[8]; /* each up to the first NULL */
};

static const struct form front_form = { { "library" }, { "ranks" } };
static const struct form served_form = { { "collective", "algorithm", "mechanism" },
					 { "calls", "bytes", "recovered" } };
static const struct form levels_form = { { "collective" }, { "calls", "bytes" } };
static const struct form handed_form = { { "collective", "reason" }, { "calls" } };
static const struct form mapped_form = { { NULL }, { "peers", "address_space", "bytes" } };
static const struct form messages_form = {
	{ NULL }, { "copies", "bytes", "shared_copies", "shared_bytes", "pushed_bytes" }
};
static const struct form kernel_form = { { "reason" }, { "copies", "bytes" } };
static const struct form heap_form = { { NULL },
				       { "heaps", "bytes_in_use", "most_bytes_in_use",
					 "bytes_given_back", "bytes_in_large_pages" } };

static const struct form kmod_form = {
	{ NULL }, { "bytes", "missed_copies", "regions", "reused", "refused", "gone", "replaced" }
};

/* "recovered" is left out by a process that never had to. */
static bool is_list(const json_t *list, const struct form *form)
{
	size_t i;
	json_t *entry;

	if (!json_is_array(list))
		return false;
	json_array_foreach(list, i, entry)
	{
		for (const char *const *word = form->words; *word; word++)
			if (!json_is_string(json_object_get(entry, *word)))
				return false;
		for (const char *const *number = form->numbers; *number; number++) {
			const json_t *value = json_object_get(entry, *number);

			if (value ? !json_is_integer(value) : strcmp(*number, "recovered") != 0)
				return false;
		}
	}
	return true;
}

static bool is_ours(const json_t *file)
{
	return json_is_string(json_object_get(file, "onecopy")) &&
	       is_list(json_object_get(file, "collectives"), &served_form) &&
	       is_list(json_object_get(file, "handed_back"), &handed_form);
}

/* What a process of an older version has not written is 0. */
static void add_numbers(json_t *sums, const json_t *entry, const struct form *form)
{
	for (const char *const *number = form->numbers; *number; number++)
		json_object_set_new(sums, *number,
				    json_integer(json_number_at(sums, *number) +
						 json_number_at(entry, *number)));
}

static int compare_words(const json_t *a, const json_t *b, const struct form *form)
{
	int difference = 0;

	for (const char *const *word = form->words; *word && !difference; word++)
		difference = strcmp(json_text_at(a, *word), json_text_at(b, *word));
	return difference;
}

/* Rows are in the order of their words, as that of the directory is none. */
static void add_entries(json_t *rows, const json_t *entries, const struct form *form)
{
	size_t i;
	json_t *entry;

	json_array_foreach(entries, i, entry)
	{
		size_t at = 0, count = json_array_size(rows);
		int difference = 1;
		json_t *row;

		while (at < count &&
		       (difference = compare_words(json_array_get(rows, at), entry, form)) < 0)
			at++;
		if (at == count || difference) {
			row = json_object();
			for (const char *const *word = form->words; *word; word++)
				json_object_set(row, *word, json_object_get(entry, *word));
			json_array_insert_new(rows, at, row);
		}
		add_numbers(json_array_get(rows, at), entry, form);
	}
}

/* What went by mapped memory, and what by the kernel. */
static void add_copies(json_t *sum, const json_t *file, const char *name, const struct form *form)
{
	const json_t *part = json_object_get(file, name),
		     *by_kernel = json_object_get(part, "by_kernel");
	json_t *part_sum = json_object_get(sum, name);

	add_numbers(part_sum, part, form);
	if (is_list(by_kernel, &kernel_form))
		add_entries(json_object_get(part_sum, "by_kernel"), by_kernel, &kernel_form);
}

/* A process's file says which library served it; a library's row counts its processes. */
static void add_file(json_t *sum, const json_t *file)
{
	const char *library = json_text_at(file, "library");
	json_t *front = json_pack("[{s:s, s:i}]", "library", *library ? library : "?", "ranks", 1);

	json_object_set_new(sum, "ranks", json_integer(json_number_at(sum, "ranks") + 1));
	if (json_number_at(file, "job_ranks") > json_number_at(sum, "job_ranks"))
		json_object_set(sum, "job_ranks", json_object_get(file, "job_ranks"));
	add_entries(json_object_get(sum, "front_ends"), front, &front_form);
	add_entries(json_object_get(sum, "collectives"), json_object_get(file, "collectives"),
		    &served_form);
	if (is_list(json_object_get(file, "two_levels"), &levels_form))
		add_entries(json_object_get(sum, "two_levels"), json_object_get(file, "two_levels"),
			    &levels_form);
	add_entries(json_object_get(sum, "handed_back"), json_object_get(file, "handed_back"),
		    &handed_form);
	add_copies(sum, file, "mapped", &mapped_form);
	add_copies(sum, file, "messages", &messages_form);
	add_numbers(json_object_get(sum, "heap"), json_object_get(file, "heap"), &heap_form);
	add_numbers(json_object_get(sum, "kmod"), json_object_get(file, "kmod"), &kmod_form);
	json_decref(front);
}

static bool is_json_name(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && !strcmp(name + length - 5, ".json");
}

json_t *counters_collect(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	json_t *sum;

	if (!stream) {
		say("the statistics in %s cannot be read: %s", dir, strerror(errno));
		return NULL;
	}
	sum = json_pack("{s:s, s:i, s:i, s:[], s:[], s:[], s:[], s:{}, s:{}, s:{}, s:{}}",
			"onecopy", OC_VERSION, "ranks", 0, "job_ranks", 0, "front_ends",
			"collectives", "two_levels", "handed_back", "mapped", "messages", "heap",
			"kmod");
	/* Nothing yet: names the numbers, in this order. */
	add_numbers(json_object_get(sum, "mapped"), NULL, &mapped_form);
	add_numbers(json_object_get(sum, "messages"), NULL, &messages_form);
	add_numbers(json_object_get(sum, "heap"), NULL, &heap_form);
	add_numbers(json_object_get(sum, "kmod"), NULL, &kmod_form);
	json_object_set_new(json_object_get(sum, "mapped"), "by_kernel", json_array());
	json_object_set_new(json_object_get(sum, "messages"), "by_kernel", json_array());
	while ((entry = readdir(stream))) {
		char path[4096];
		json_error_t error;
		json_t *file;

		if (!is_json_name(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		file = json_load_file(path, 0, &error);
		if (!file)
			say("%s:%d: left out of the statistics: %s", path, error.line, error.text);
		else if (!is_ours(file))
			say("%s: left out of the statistics: not a file of onecopy's "
			    "counters",
			    path);
		else
			add_file(sum, file);
		json_decref(file);
	}
	closedir(stream);
	return sum;
}

void counters_remove(const char *dir)
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
