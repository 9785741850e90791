/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/counters.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/table.h"

#include <stdbool.h>
#include <string.h>

/* A number of an entry; those whose name says that they are bytes, or address space, as a size. */
static void number_text(const json_t *entry, const char *name, char *text, size_t room)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	json_int_t number = json_number_at(entry, name);
	double value = (double)number;
	int i = 0;

	for (; value >= 1024.0 && i < 5; i++)
		value /= 1024.0;
	if (!strstr(name, "bytes") && strcmp(name, "address_space") != 0)
		snprintf(text, room, "%lld", (long long)number);
	else
		snprintf(text, room, "%.*f %s", i ? 1 : 0, value, unit[i]);
}

/* "through the Open MPI component", or each with its number of ranks where there are several. */
static void print_front_ends(const json_t *rows, FILE *stream)
{
	static const struct {
		const char *library, *name;
	} known[] = {
		{ "mca_coll_onecopy.so", "the component for Open MPI" },
		{ "libonecopy-pmpi.so", "the library for MPICH" },
	};
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		const char *name = json_text_at(row, "library");

		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(name, known[k].library))
				name = known[k].name;
		fprintf(stream, "%s%s", i ? ", " : "onecopy: through ", name);
		if (json_array_size(rows) > 1)
			fprintf(stream, " on %lld rank%s", (long long)json_number_at(row, "ranks"),
				json_number_at(row, "ranks") == 1 ? "" : "s");
	}
	if (json_array_size(rows))
		fputc('\n', stream);
}

/* A table of what each row has under the words of the head: texts, numbers, sizes where it is
 * bytes. */
static void print_rows(const json_t *rows, const char *head, FILE *stream)
{
	char align[TABLE_COLUMNS] = "";
	struct table table = { .align = align };
	size_t i;
	json_t *row;

	table_add(&table, "%s", head);
	json_array_foreach(rows, i, row)
	{
		json_int_t recovered = json_number_at(row, "recovered");
		char keys[128], line[1024], *rest = keys, *key;
		size_t used = 0, column = 0;

		snprintf(keys, sizeof(keys), "%s", head);
		while ((key = strsep(&rest, "\t")) && used < sizeof(line)) {
			const char *text = json_string_value(json_object_get(row, key));
			char number[32];

			align[column] = text ? 'l' : 'r';
			number_text(row, key, number, sizeof(number));
			used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s",
						 column++ ? "\t" : "", text ? text : number);
		}
		align[column] = 'l';
		if (recovered)
			table_add(&table, "%s\t(%lld recovered through shm)", line,
				  (long long)recovered);
		else
			table_add(&table, "%s", line);
	}
	table_print(&table, stream, 2);
}

/* A sentence, in which names in braces stand for the part's numbers. */
static void print_numbers(const json_t *part, const char *sentence, FILE *stream)
{
	char copy[512], number[32], *rest = copy, *text;

	snprintf(copy, sizeof(copy), "%s", sentence);
	for (bool is_name = false; (text = strsep(&rest, "{}")); is_name = !is_name) {
		if (is_name)
			number_text(part, text, number, sizeof(number));
		fputs(is_name ? number : text, stream);
	}
}

/* What did not go by mapped memory, though there was a shared heap. */
static void print_by_kernel(const json_t *part, const char *what, FILE *stream)
{
	const json_t *rows = json_object_get(part, "by_kernel");

	if (!json_array_size(rows))
		return;
	fprintf(stream, "onecopy: %s by the kernel in spite of shared heaps\n", what);
	print_rows(rows, "copies\tbytes\treason", stream);
}

/* Shared heaps, the kernel module, and the MPI's large messages. */
static void print_parts(const json_t *stats, FILE *stream)
{
	const json_t *heap = json_object_get(stats, "heap"), *kmod = json_object_get(stats, "kmod");
	const json_t *mapped = json_object_get(stats, "mapped");
	const json_t *messages = json_object_get(stats, "messages");

	if (json_number_at(heap, "heaps"))
		print_numbers(
			heap,
			"onecopy: shared heaps: {heaps} with {bytes_in_use} in use at the end, "
			"{most_bytes_in_use} at most, {bytes_given_back} given back, "
			"{bytes_in_large_pages} allocated in large pages\n",
			stream);
	if (json_number_at(mapped, "peers"))
		print_numbers(
			mapped,
			"onecopy: shared heaps: {peers} mapped ({address_space} of address space "
			"at the end), {bytes} read or written there\n",
			stream);
	print_by_kernel(mapped, "copied", stream);
	if (json_number_at(kmod, "bytes") || json_number_at(kmod, "missed_copies"))
		print_numbers(
			kmod,
			"onecopy: kernel module: {bytes} copied, {missed_copies} copies found no "
			"region; {regions} regions made, used again {reused} times, {refused} refused, "
			"{gone} gone with their memory, {replaced} replaced\n",
			stream);
	if (json_number_at(messages, "shared_copies"))
		print_numbers(
			messages,
			"onecopy: messages of the MPI: {shared_copies} of {shared_bytes} copied by both "
			"ends, {pushed_bytes} of these by the senders\n",
			stream);
	if (json_number_at(messages, "copies"))
		print_numbers(
			messages,
			"onecopy: messages of the MPI: {copies} copies of {bytes} by mapped memory\n",
			stream);
	print_by_kernel(messages, "messages of the MPI copied", stream);
}

void counters_print(const json_t *stats, FILE *stream, const char *why_none)
{
	const json_t *served = json_object_get(stats, "collectives");
	const json_t *handed = json_object_get(stats, "handed_back");
	const json_t *levels = json_object_get(stats, "two_levels");
	long long ranks = json_number_at(stats, "ranks"), job = json_number_at(stats, "job_ranks");

	if (!ranks) {
		fprintf(stream, "onecopy: nothing was served: %s\n", why_none);
		return;
	}
	print_front_ends(json_object_get(stats, "front_ends"), stream);
	if (job == 1 && ranks > 1)
		fprintf(stream,
			"onecopy: each of %lld processes was a job of its own: the launcher may be another "
			"MPI's than the program's\n",
			ranks);
	if (json_array_size(served)) {
		char of[32] = "";

		if (ranks < job)
			snprintf(of, sizeof(of), " of %lld", job);
		fprintf(stream, "onecopy: served, summed over %lld%s rank%s\n", ranks, of,
			ranks == 1 && !*of ? "" : "s");
		print_rows(served, "collective\talgorithm\tmechanism\tcalls\tbytes", stream);
	} else {
		fprintf(stream, "onecopy: no collective was served%s\n",
			json_array_size(handed) ? " (why is below)" :
						  ": no rank called a collective, or all left "
						  "them to the MPI (ONECOPY_LOG=info says why)");
	}
	/* Of ranks on several nodes; what is in them of the nodes' teams is among the served. */
	if (json_array_size(levels)) {
		fprintf(stream, "onecopy: in two levels, on each node (above) and by the MPI "
				"between nodes\n");
		print_rows(levels, "collective\tcalls\tbytes", stream);
	}
	print_parts(stats, stream);
	if (json_array_size(handed)) {
		fprintf(stream, "onecopy: handed back to the MPI\n");
		print_rows(handed, "collective\tcalls\treason", stream);
	}
	if (ranks < job)
		fprintf(stream,
			"onecopy: %lld rank%s left no statistics: onecopy is off or not installed "
			"there, they ended without MPI_Finalize, or are on nodes that do not share TMPDIR with this one, or to which Open MPI's "
			"mpirun takes ONECOPY_STATS_DIR with -x alone\n",
			job - ranks, job - ranks == 1 ? "" : "s");
}
