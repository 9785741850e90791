/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"

#include "command.h"
#include "json_text.h"
#include "parts.h"
#include "table.h"

#include <onecopy/onecopy.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* The numbers of entries are added: of a list by rows, one for entries with the same words. */
struct form {
	const char *words[4], *numbers[6]; /* each up to the first NULL */
};

static const struct form front_form = { { "library" }, { "ranks" } };
static const struct form served_form = { { "collective", "algorithm", "mechanism" },
					 { "calls", "bytes", "recovered" } };
static const struct form handed_form = { { "collective", "reason" }, { "calls" } };
static const struct form mapped_form = { { NULL }, { "peers", "address_space", "bytes" } };
static const struct form kernel_form = { { "reason" }, { "copies", "bytes" } };
static const struct form heap_form = { { NULL },
				       { "heaps", "bytes_in_use", "most_bytes_in_use",
					 "bytes_given_back", "bytes_in_large_pages" } };

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

/* A process's file says which library served it; a library's row counts its processes. */
static void add_file(json_t *sum, const json_t *file)
{
	const json_t *mapped = json_object_get(file, "mapped"),
		     *by_kernel = json_object_get(mapped, "by_kernel");
	const char *library = json_text_at(file, "library");
	json_t *front = json_pack("[{s:s, s:i}]", "library", *library ? library : "?", "ranks", 1);
	json_t *mapped_sum = json_object_get(sum, "mapped");

	json_object_set_new(sum, "ranks", json_integer(json_number_at(sum, "ranks") + 1));
	add_entries(json_object_get(sum, "front_ends"), front, &front_form);
	add_entries(json_object_get(sum, "collectives"), json_object_get(file, "collectives"),
		    &served_form);
	add_entries(json_object_get(sum, "handed_back"), json_object_get(file, "handed_back"),
		    &handed_form);
	add_numbers(mapped_sum, mapped, &mapped_form);
	if (is_list(by_kernel, &kernel_form))
		add_entries(json_object_get(mapped_sum, "by_kernel"), by_kernel, &kernel_form);
	add_numbers(json_object_get(sum, "heap"), json_object_get(file, "heap"), &heap_form);
	json_decref(front);
}

static bool is_json_name(const char *name)
{
	size_t length = strlen(name);

	return length > 5 && !strcmp(name + length - 5, ".json");
}

json_t *stats_collect(const char *dir)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	json_t *sum;

	if (!stream) {
		command_say("the statistics in %s cannot be read: %s", dir, strerror(errno));
		return NULL;
	}
	sum = json_pack("{s:s, s:i, s:[], s:[], s:[], s:{}, s:{}}", "onecopy", oc_version(),
			"ranks", 0, "front_ends", "collectives", "handed_back", "mapped", "heap");
	/* Nothing yet: names the numbers, in this order. */
	add_numbers(json_object_get(sum, "mapped"), NULL, &mapped_form);
	add_numbers(json_object_get(sum, "heap"), NULL, &heap_form);
	json_object_set_new(json_object_get(sum, "mapped"), "by_kernel", json_array());
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
		else
			add_file(sum, file);
		json_decref(file);
	}
	closedir(stream);
	return sum;
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

static void size_text(json_int_t bytes, char *text, size_t room)
{
	static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	int i = -1;

	while (value >= 1024.0 && i < 4) {
		value /= 1024.0;
		i++;
	}
	if (i < 0)
		snprintf(text, room, "%lld B", (long long)bytes);
	else
		snprintf(text, room, "%.1f %s", value, unit[i]);
}

/* "through the Open MPI component", or each with its number of ranks where there are several. */
static void print_front_ends(const json_t *rows, FILE *stream)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		long long ranks = json_number_at(row, "ranks");
		const char *name = json_text_at(row, "library"), *the = "";

		for (int kind = 0; kind < PARTS; kind++) {
			struct part part;

			part_find((enum part_kind)kind, &part);
			if (strcmp(name, part.file))
				continue;
			name = part.name;
			the = "the ";
		}
		fprintf(stream, "%s%s%s", i ? ", " : "onecopy: through ", the, name);
		if (json_array_size(rows) > 1)
			fprintf(stream, " on %lld rank%s", ranks, ranks == 1 ? "" : "s");
	}
	if (json_array_size(rows))
		fputc('\n', stream);
}

static void print_served(const json_t *rows, FILE *stream)
{
	struct table table = { .align = "lllrrl" };
	size_t i;
	json_t *row;

	table_add(&table, "collective\talgorithm\tmechanism\tcalls\tbytes");
	json_array_foreach(rows, i, row)
	{
		json_int_t recovered = json_number_at(row, "recovered");
		char size[32], note[80] = "";

		size_text(json_number_at(row, "bytes"), size, sizeof(size));
		if (recovered)
			snprintf(note, sizeof(note), "\t(%lld recovered through shm)",
				 (long long)recovered);
		table_add(&table, "%s\t%s\t%s\t%lld\t%s%s", json_text_at(row, "collective"),
			  json_text_at(row, "algorithm"), json_text_at(row, "mechanism"),
			  (long long)json_number_at(row, "calls"), size, note);
	}
	table_print(&table, stream, 2);
}

static void print_handed_back(const json_t *rows, FILE *stream)
{
	struct table table = { .align = "lrl" };
	size_t i;
	json_t *row;

	table_add(&table, "collective\tcalls\treason");
	json_array_foreach(rows, i, row)
		table_add(&table, "%s\t%lld\t%s", json_text_at(row, "collective"),
			  (long long)json_number_at(row, "calls"), json_text_at(row, "reason"));
	table_print(&table, stream, 2);
}

/* What their heaps hold. */
static void print_heaps(const json_t *heap, FILE *stream)
{
	char now[32], most[32], back[32], large[32];

	if (!json_number_at(heap, "heaps"))
		return;
	size_text(json_number_at(heap, "bytes_in_use"), now, sizeof(now));
	size_text(json_number_at(heap, "most_bytes_in_use"), most, sizeof(most));
	size_text(json_number_at(heap, "bytes_given_back"), back, sizeof(back));
	size_text(json_number_at(heap, "bytes_in_large_pages"), large, sizeof(large));
	fprintf(stream,
		"onecopy: shared heaps: %lld with %s in use at the end, %s at most, %s given back, "
		"%s allocated in large pages\n",
		(long long)json_number_at(heap, "heaps"), now, most, back, large);
}

/* And what did not, though there was a shared heap. */
static void print_by_kernel(const json_t *rows, FILE *stream)
{
	struct table table = { .align = "rrl" };
	size_t i;
	json_t *row;

	if (!json_array_size(rows))
		return;
	fprintf(stream, "onecopy: copied by the kernel in spite of shared heaps\n");
	table_add(&table, "copies\tbytes\treason");
	json_array_foreach(rows, i, row)
	{
		char size[32];

		size_text(json_number_at(row, "bytes"), size, sizeof(size));
		table_add(&table, "%lld\t%s\t%s", (long long)json_number_at(row, "copies"), size,
			  json_text_at(row, "reason"));
	}
	table_print(&table, stream, 2);
}

/* How much of it went by mapped memory. */
static void print_mapped(const json_t *mapped, FILE *stream)
{
	char space[32], bytes[32];

	if (!json_number_at(mapped, "peers"))
		return;
	size_text(json_number_at(mapped, "address_space"), space, sizeof(space));
	size_text(json_number_at(mapped, "bytes"), bytes, sizeof(bytes));
	fprintf(stream,
		"onecopy: shared heaps: %lld mapped (%s of address space at the end), %s "
		"read or written there\n",
		(long long)json_number_at(mapped, "peers"), space, bytes);
}

void stats_print(const json_t *stats, FILE *stream, const char *why_none)
{
	const json_t *served = json_object_get(stats, "collectives");
	const json_t *handed = json_object_get(stats, "handed_back");
	const json_t *mapped = json_object_get(stats, "mapped");
	long long ranks = json_number_at(stats, "ranks");

	if (!ranks) {
		fprintf(stream, "onecopy: nothing was served: %s\n", why_none);
		return;
	}
	print_front_ends(json_object_get(stats, "front_ends"), stream);
	if (json_array_size(served)) {
		fprintf(stream, "onecopy: served, summed over %lld rank%s\n", ranks,
			ranks == 1 ? "" : "s");
		print_served(served, stream);
		print_heaps(json_object_get(stats, "heap"), stream);
		print_mapped(mapped, stream);
		print_by_kernel(json_object_get(mapped, "by_kernel"), stream);
	} else {
		fprintf(stream, "onecopy: nothing was served%s\n",
			json_array_size(handed) ? " (why is below)" :
						  ": no rank called a collective, or all left "
						  "them to the MPI (ONECOPY_LOG=info says why)");
	}
	if (json_array_size(handed)) {
		fprintf(stream, "onecopy: handed back to the MPI\n");
		print_handed_back(handed, stream);
	}
}
