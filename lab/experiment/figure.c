/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/experiment.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct figure *figure_new(struct results *results, const size_t *x, unsigned int x_count,
			  const char *unit, const char *name, ...)
{
	struct figure *figure = must(calloc(1, sizeof(*figure)));
	va_list arguments;

	va_start(arguments, name);
	vsnprintf(figure->name, sizeof(figure->name), name, arguments);
	va_end(arguments);
	/* It is a part of file names, and may hold a name that somebody has given a machine. */
	for (char *c = figure->name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
			*c = '_';
	figure->title = figure->about = figure->row = "";
	figure->x = x;
	figure->x_count = x_count;
	figure->rounds = results->rounds;
	figure->x_is_bytes = true;
	figure->x_name = "bytes";
	figure->unit = unit;
	figure->measured = true;
	LIST_ADD(results->figures, results->figure_count, figure);
	return figure;
}

struct figure *figure_find(const struct results *results, const char *name)
{
	for (unsigned int f = 0; f < results->figure_count; f++)
		if (!strcmp(results->figures[f]->name, name))
			return results->figures[f];
	return NULL;
}

void figure_free(struct figure *figure)
{
	for (unsigned int i = 0; i < figure->series_count * figure->x_count; i++) {
		free(figure->cells[i].samples);
		free(figure->cells[i].spread);
	}
	for (unsigned int i = 0; i < figure->note_count; i++)
		free(figure->notes[i]);
	free(figure->cells);
	free(figure->series);
	free(figure);
}

static unsigned int find_series(const struct figure *figure, const char *name)
{
	unsigned int s = 0;

	while (s < figure->series_count && strcmp(figure->series[s], name) != 0)
		s++;
	return s;
}

unsigned int figure_series(struct figure *figure, const char *name)
{
	unsigned int s = find_series(figure, name), cells = figure->series_count * figure->x_count;

	if (s < figure->series_count)
		return s;
	figure->series = must(realloc(figure->series, (s + 1) * sizeof(figure->series[0])));
	figure->cells =
		must(realloc(figure->cells, (cells + figure->x_count) * sizeof(figure->cells[0])));
	snprintf(figure->series[s], sizeof(figure->series[s]), "%s", name);
	for (unsigned int i = 0; i < figure->x_count; i++) {
		figure->cells[cells + i] = (struct figure_cell){ .plans = NAN, .closed = NAN };
		snprintf(figure->cells[cells + i].label, sizeof(figure->cells[0].label), "%s",
			 name);
	}
	figure->series_count++;
	return s;
}

struct figure_cell *figure_cell(const struct figure *figure, unsigned int series, unsigned int x)
{
	return &figure->cells[series * figure->x_count + x];
}

struct figure_cell *figure_cell_of(const struct figure *figure, const char *series, unsigned int x)
{
	unsigned int s = series ? find_series(figure, series) : figure->series_count;

	return s < figure->series_count ? figure_cell(figure, s, x) : NULL;
}

void figure_add(struct figure *figure, struct figure_cell *cell, unsigned int round, double sample)
{
	if (!cell->samples) {
		cell->samples = must(malloc(figure->rounds * sizeof(double)));
		for (unsigned int r = 0; r < figure->rounds; r++)
			cell->samples[r] = NAN;
	}
	cell->count += isnan(cell->samples[round]);
	cell->samples[round] = sample;
}

void figure_add_spread(struct figure *figure, struct figure_cell *cell, unsigned int round,
		       const double spread[2])
{
	if (!cell->spread) {
		cell->spread = must(malloc(figure->rounds * sizeof(*cell->spread)));
		for (unsigned int r = 0; r < figure->rounds; r++)
			cell->spread[r][0] = cell->spread[r][1] = NAN;
	}
	memcpy(cell->spread[round], spread, sizeof(*cell->spread));
}

void figure_note(struct figure *figure, const char *format, ...)
{
	va_list arguments;

	if (figure->note_count == NOTES_MOST)
		return;
	va_start(arguments, format);
	if (vasprintf(&figure->notes[figure->note_count], format, arguments) >= 0)
		figure->note_count++;
	va_end(arguments);
}

unsigned int figure_sorted(const struct figure *figure, const struct figure_cell *cell,
			   double *sorted)
{
	unsigned int count = 0;

	for (unsigned int r = 0; cell->samples && r < figure->rounds; r++)
		if (!isnan(cell->samples[r]))
			sorted[count++] = cell->samples[r];
	stats_sort(sorted, count);
	return count;
}

void figure_finish(struct figure *figure)
{
	double *sorted = must(malloc((figure->rounds + 1) * sizeof(*sorted)));

	for (unsigned int i = 0; i < figure->series_count * figure->x_count; i++) {
		struct figure_cell *cell = &figure->cells[i];

		cell->count = figure_sorted(figure, cell, sorted);
		if (cell->count && stats_estimate(sorted, cell->count, &cell->value))
			must(NULL);
	}
	free(sorted);
}

static bool is_before(const struct figure *figure, const struct figure_cell *a,
		      const struct figure_cell *b)
{
	if (!figure->compared)
		return false;
	return figure->more_is_better ? a->value.median > b->value.median :
					a->value.median < b->value.median;
}

unsigned int figure_order(const struct figure *figure, unsigned int x, unsigned int *order)
{
	unsigned int count = 0;

	for (unsigned int s = 0; s < figure->series_count; s++) {
		const struct figure_cell *cell = figure_cell(figure, s, x);
		unsigned int at = count;

		if (!cell->count)
			continue;
		for (; at && is_before(figure, cell, figure_cell(figure, order[at - 1], x)); at--)
			order[at] = order[at - 1];
		order[at] = s;
		count++;
	}
	return count;
}

bool figure_shows(const struct figure *figure, unsigned int x)
{
	return !figure->hidden || !figure->hidden[x];
}

void bytes_text(size_t bytes, char *text, size_t n)
{
	if (bytes && bytes % (1 << 30) == 0)
		snprintf(text, n, "%zuG", bytes >> 30);
	else if (bytes && bytes % (1 << 20) == 0)
		snprintf(text, n, "%zuM", bytes >> 20);
	else if (bytes && bytes % (1 << 10) == 0)
		snprintf(text, n, "%zuK", bytes >> 10);
	else
		snprintf(text, n, "%zu", bytes);
}

void figure_x_text(const struct figure *figure, unsigned int x, char *text, size_t n)
{
	if (figure->x_names)
		snprintf(text, n, "%s", figure->x_names[x]);
	else if (figure->x_is_bytes)
		bytes_text(figure->x[x], text, n);
	else
		snprintf(text, n, "%zu", figure->x[x]);
}

void figure_value_text(double value, char *text, size_t n)
{
	if (isnan(value))
		snprintf(text, n, "-");
	else
		snprintf(text, n, "%.*f",
			 value < 10   ? 3 :
			 value < 100  ? 2 :
			 value < 1000 ? 1 :
					0,
			 value);
}
