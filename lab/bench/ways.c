// SPDX-License-Identifier: BSD-3-Clause
#include "ways.h"

#include <stdlib.h>
#include <string.h>

#define SLOWEST "median call of the slowest rank"

const struct bench_way bench_ways[BENCH_WAYS] = {
	{ .name = "aligned", .about = SLOWEST },
	{ .name = "osu",
	  .about = "median call, of the ranks' mean, with MPI_Barrier behind each",
	  .osu = true,
	  .cached = true },
	{ .name = "nonblocking",
	  .about = SLOWEST ", begun and waited for at once",
	  .form = FORM_NONBLOCKING },
	/* A kept request has kept buffers. */
	{ .name = "persistent",
	  .about = SLOWEST ", of a kept request",
	  .form = FORM_PERSISTENT,
	  .cached = true },
	{ .name = "first-10", .about = "mean of the first 10 calls, slowest rank", .first = 10 },
	{ .name = "first-1000",
	  .about = "mean of the first 1000 calls, slowest rank",
	  .first = 1000 },
};

static const char *way_word(unsigned int i)
{
	return i < BENCH_WAYS ? bench_ways[i].name : NULL;
}

static unsigned int way_take(const char *word)
{
	return word_take(word, "a way to measure", way_word, ", or all");
}

/* The next of the words that stand in `text`, which a copy of it is cut into. */
static char *next_word(char **rest, const char *text, char **copy)
{
	if (!*copy) {
		*copy = *rest = strdup(text);
		if (!*copy)
			usage("no memory for '%s'", text);
	}
	return strsep(rest, ",");
}

void bench_take_ways(void *place, const char *text)
{
	bool *chosen = place;
	char *copy = NULL, *rest, *word;

	memset(chosen, 0, BENCH_WAYS * sizeof(*chosen));
	while ((word = next_word(&rest, text, &copy))) {
		bool all = !strcmp(word, "all");
		unsigned int way = all ? 0 : way_take(word);

		for (unsigned int w = 0; w < BENCH_WAYS; w++)
			chosen[w] |= all || w == way;
	}
	free(copy);
}

bool bench_has_several(const bool *chosen, int n)
{
	int count = 0;

	while (n--)
		count += chosen[n];
	return count > 1;
}

static struct bench_cell cell_take(char *word)
{
	const char *way = strsep(&word, "/"), *collective = strsep(&word, "/");
	struct bench_cell cell = { 0 };
	long bytes;

	if (!word || long_parse(word, 0, (long)1 << 40, &bytes))
		usage("--cells takes WAY/COLLECTIVE/BYTES with commas between them, as in "
		      "osu/bcast/1024");
	cell.way = way_take(way);
	cell.collective = collective_take(collective);
	cell.bytes = (size_t)bytes;
	return cell;
}

void bench_take_cells(void *place, const char *text)
{
	struct bench_cells *cells = place;
	char *copy = NULL, *rest, *word;

	while ((word = next_word(&rest, text, &copy))) {
		struct bench_cell *more =
			realloc(cells->at, (cells->count + 1) * sizeof(*cells->at));

		if (!more)
			usage("no memory for --cells");
		cells->at = more;
		cells->at[cells->count++] = cell_take(word);
	}
	free(copy);
}

bool bench_has_cell(const struct bench_cells *cells, struct bench_cell cell)
{
	unsigned int i = 0;

	while (i < cells->count &&
	       (cells->at[i].way != cell.way || cells->at[i].collective != cell.collective ||
		cells->at[i].bytes != cell.bytes))
		i++;
	return i < cells->count || !cells->count;
}
