/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/counters.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/table.h"

#include <string.h>

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
			if (!strcmp(key, "bytes"))
				size_text(json_number_at(row, key), number, sizeof(number));
			else
				snprintf(number, sizeof(number), "%lld",
					 (long long)json_number_at(row, key));
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

/* What did not go by mapped memory, though there was a shared heap. */
static void print_by_kernel(const json_t *part, const char *what, FILE *stream)
{
	const json_t *rows = json_object_get(part, "by_kernel");

	if (!json_array_size(rows))
		return;
	fprintf(stream, "onecopy: %s by the kernel in spite of shared heaps\n", what);
	print_rows(rows, "copies\tbytes\treason", stream);
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

/* Regions of the kernel module. */
static void print_kmod(const json_t *kmod, FILE *stream)
{
	char bytes[32];

	if (!json_number_at(kmod, "bytes") && !json_number_at(kmod, "missed_copies"))
		return;
	size_text(json_number_at(kmod, "bytes"), bytes, sizeof(bytes));
	fprintf(stream,
		"onecopy: kernel module: %s copied, %lld copies found no region; %lld regions made, "
		"used again %lld times, %lld refused, %lld gone with their memory, %lld replaced\n",
		bytes, (long long)json_number_at(kmod, "missed_copies"),
		(long long)json_number_at(kmod, "regions"),
		(long long)json_number_at(kmod, "reused"),
		(long long)json_number_at(kmod, "refused"), (long long)json_number_at(kmod, "gone"),
		(long long)json_number_at(kmod, "replaced"));
}

/* Large messages, which the MPI copies. */
static void print_messages(const json_t *messages, FILE *stream)
{
	char bytes[32], pushed[32];

	if (json_number_at(messages, "shared_copies")) {
		size_text(json_number_at(messages, "shared_bytes"), bytes, sizeof(bytes));
		size_text(json_number_at(messages, "pushed_bytes"), pushed, sizeof(pushed));
		fprintf(stream,
			"onecopy: messages of the MPI: %lld of %s copied by both ends, %s of these "
			"by the senders\n",
			(long long)json_number_at(messages, "shared_copies"), bytes, pushed);
	}
	if (json_number_at(messages, "copies")) {
		size_text(json_number_at(messages, "bytes"), bytes, sizeof(bytes));
		fprintf(stream,
			"onecopy: messages of the MPI: %lld copies of %s by mapped memory\n",
			(long long)json_number_at(messages, "copies"), bytes);
	}
	print_by_kernel(messages, "messages of the MPI copied", stream);
}

void counters_print(const json_t *stats, FILE *stream, const char *why_none)
{
	const json_t *served = json_object_get(stats, "collectives");
	const json_t *handed = json_object_get(stats, "handed_back");
	const json_t *levels = json_object_get(stats, "two_levels");
	const json_t *mapped = json_object_get(stats, "mapped");
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
	print_heaps(json_object_get(stats, "heap"), stream);
	print_mapped(mapped, stream);
	print_by_kernel(mapped, "copied", stream);
	print_kmod(json_object_get(stats, "kmod"), stream);
	print_messages(json_object_get(stats, "messages"), stream);
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
