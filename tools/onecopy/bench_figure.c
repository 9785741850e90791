/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"
#include "command.h"
#include "lab/harness/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
	if (!memory) {
		command_say("no memory for the results");
		exit(1);
	}
	return memory;
}

struct figure *figure_new(struct bench *bench, const size_t *x, unsigned int x_count)
{
	struct figure *figure;

	if (bench->figure_count == FIGURES_MOST) {
		command_say("more than %d figures", FIGURES_MOST);
		exit(1);
	}
	figure = must(calloc(1, sizeof(*figure)));
	figure->x = x;
	figure->x_count = x_count;
	figure->rounds = bench->options.rounds;
	figure->x_is_bytes = true;
	figure->x_name = "bytes";
	figure->measured = true;
	bench->figures[bench->figure_count++] = figure;
	return figure;
}

void figure_free(struct figure *figure)
{
	for (unsigned int i = 0; i < figure->series_count * figure->x_count; i++)
		free(figure->cells[i].samples);
	for (unsigned int i = 0; i < figure->note_count; i++)
		free(figure->notes[i]);
	free(figure->cells);
	free(figure->series);
	free(figure);
}

unsigned int figure_series(struct figure *figure, const char *name)
{
	unsigned int s = 0, cells = figure->series_count * figure->x_count;

	for (; s < figure->series_count; s++) {
		if (!strcmp(figure->series[s], name))
			return s;
	}
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

void figure_add(struct figure *figure, struct figure_cell *cell, double sample)
{
	if (!cell->samples)
		cell->samples = must(calloc(figure->rounds, sizeof(double)));
	if (cell->count < figure->rounds)
		cell->samples[cell->count++] = sample;
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

void bench_say(struct bench *bench, unsigned int i, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&bench->summary[i], format, arguments) < 0)
		bench->summary[i] = NULL;
	va_end(arguments);
}

/* On a copy: samples stay in the order of their rounds. */
static void finish_cell(struct figure_cell *cell)
{
	double sorted[ROUNDS_MOST];

	memcpy(sorted, cell->samples, cell->count * sizeof(double));
	cell->median = stats_median(sorted, cell->count);
	cell->low = stats_quantile(sorted, cell->count, 0.1);
	cell->high = stats_quantile(sorted, cell->count, 0.9);
}

void figure_finish(struct figure *figure)
{
	for (unsigned int i = 0; i < figure->series_count * figure->x_count; i++) {
		if (figure->cells[i].count)
			finish_cell(&figure->cells[i]);
	}
}

static bool is_before(const struct figure *figure, const struct figure_cell *a,
		      const struct figure_cell *b)
{
	if (!figure->compared)
		return false;
	return figure->more_is_better ? a->median > b->median : a->median < b->median;
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

void figure_x_text(const struct figure *figure, unsigned int x, char *text, size_t n)
{
	if (figure->x_is_bytes)
		predict_bytes_text(figure->x[x], text, n);
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
