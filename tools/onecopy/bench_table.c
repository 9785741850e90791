/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a bench as tables for people, and as JSON for programs. */
#include "bench.h"
#include "command.h"
#include "json_text.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_row(struct table *table, const struct figure *figure,
		    const struct figure_cell *cell, const char *at, double best)
{
	char median[32], low[32], high[32], more[128] = "", plans[32], closed[32];

	figure_value_text(cell->median, median, sizeof(median));
	figure_value_text(cell->low, low, sizeof(low));
	figure_value_text(cell->high, high, sizeof(high));
	if (figure->compared)
		snprintf(more, sizeof(more), "\t%.2f", cell->median / best);
	if (figure->predicted) {
		figure_value_text(cell->plans, plans, sizeof(plans));
		figure_value_text(cell->closed, closed, sizeof(closed));
		snprintf(more + strlen(more), sizeof(more) - strlen(more), "\t%s\t%s", plans,
			 closed);
	}
	table_add(table, "%s\t%s%s\t%s\t%s\t%s%s", at, cell->chosen ? "* " : "", cell->label,
		  median, low, high, more);
}

static void print_figure(const struct figure *figure, FILE *out)
{
	struct table table = { .align = "rlrrrrrr" };
	unsigned int *order = calloc(figure->series_count + 1, sizeof(*order));

	fprintf(out, "\n%s\n%s\n\n", figure->title, figure->about);
	table_add(&table, "%s\t\t%s\t10 %%\t90 %%%s%s", figure->x_name, figure->unit,
		  figure->compared ? "\tbest=1" : "", figure->predicted ? "\tplans\tclosed" : "");
	for (unsigned int x = 0; order && x < figure->x_count; x++) {
		unsigned int count = figure_order(figure, x, order);

		for (unsigned int i = 0; i < count; i++) {
			char at[32];

			figure_x_text(figure, x, at, sizeof(at));
			add_row(&table, figure, figure_cell(figure, order[i], x), i ? "" : at,
				figure_cell(figure, order[0], x)->median);
		}
	}
	table_print(&table, out, 2);
	for (unsigned int i = 0; i < figure->note_count; i++)
		fprintf(out, "%s\n", figure->notes[i]);
	free(order);
}

void bench_print(const struct bench *bench, FILE *out)
{
	const struct oci_machine *machine = &bench->machine;

	fprintf(out, "%s\n%s, %s, %u CPUs (%u to be used), Linux %s, %s, onecopy %s\n",
		bench->command, machine->host, machine->cpu, machine->cpus, bench->cpus,
		machine->kernel, bench->date, oc_version());
	fprintf(out,
		"Medians and quantiles over %u rounds, in which everything takes turns. '*': what "
		"jobs take.\n",
		bench->options.rounds);
	if (bench->model[0])
		fprintf(out, "Model: %s.\n", bench->model);
	for (unsigned int f = 0; f < bench->figure_count; f++)
		print_figure(bench->figures[f], out);
	for (size_t i = 0; i < sizeof(bench->summary) / sizeof(bench->summary[0]); i++) {
		if (bench->summary[i])
			fprintf(out, "%s%s\n", i ? "" : "\n", bench->summary[i]);
	}
}

static void put_places(const struct figure *figure, FILE *out)
{
	fprintf(out, "| %s, by %s |", figure->unit, figure->x_name);
	for (unsigned int x = 0; x < figure->x_count; x++) {
		char at[32];

		figure_x_text(figure, x, at, sizeof(at));
		fprintf(out, " %s |", at);
	}
	fputs("\n| --- |", out);
	for (unsigned int x = 0; x < figure->x_count; x++)
		fputs(" ---: |", out);
	fputc('\n', out);
}

/* The parameter behind the median, where it differs from place to place: "12.3 (:4)". */
static void put_median(const struct figure_cell *cell, const char *series, double value, FILE *out)
{
	const char *parameter = strchr(cell->label, ':');
	char text[32];

	if (!cell->count) {
		fputs("  |", out);
		return;
	}
	figure_value_text(value, text, sizeof(text));
	fprintf(out, " %s%s%s", cell->chosen ? "**" : "", text, cell->chosen ? "**" : "");
	if (parameter && strcmp(cell->label, series) != 0)
		fprintf(out, " (%s)", parameter);
	fputs(" |", out);
}

static void put_series(const struct figure *figure, unsigned int s, bool plans, FILE *out)
{
	fprintf(out, "| %s%s |", figure->series[s], plans ? ", by plans" : "");
	for (unsigned int x = 0; x < figure->x_count; x++) {
		const struct figure_cell *cell = figure_cell(figure, s, x);

		put_median(cell, figure->series[s], plans ? cell->plans : cell->median, out);
	}
	fputc('\n', out);
}

int bench_write_markdown(const struct bench *bench, const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out) {
		command_say("%s cannot be written: %s", path, strerror(errno));
		return 1;
	}
	fprintf(out, "`%s`, %s, %s, Linux %s, medians of %u rounds.\n", bench->command, bench->date,
		bench->machine.cpu, bench->machine.kernel, bench->options.rounds);
	for (unsigned int f = 0; f < bench->figure_count; f++) {
		const struct figure *figure = bench->figures[f];

		fprintf(out, "\n%s:\n\n", figure->title);
		put_places(figure, out);
		for (unsigned int s = 0; s < figure->series_count; s++) {
			put_series(figure, s, false, out);
			if (figure->predicted)
				put_series(figure, s, true, out);
		}
	}
	for (size_t i = 0; i < sizeof(bench->summary) / sizeof(bench->summary[0]); i++) {
		if (bench->summary[i])
			fprintf(out, "\n%s\n", bench->summary[i]);
	}
	if (!fclose(out))
		return 0;
	command_say("%s cannot be written: %s", path, strerror(errno));
	return 1;
}

static json_t *cell_json(const struct figure *figure, unsigned int series, unsigned int x)
{
	const struct figure_cell *cell = figure_cell(figure, series, x);
	json_t *samples = json_array();
	json_t *json = json_pack("{s:I, s:s, s:s, s:f, s:f, s:f, s:b, s:o}", figure->x_name,
				 (json_int_t)figure->x[x], "series", figure->series[series],
				 "label", cell->label, "median", cell->median, "low", cell->low,
				 "high", cell->high, "chosen", cell->chosen, "samples", samples);

	for (unsigned int i = 0; i < cell->count; i++)
		json_array_append_new(samples, json_real(cell->samples[i]));
	if (!isnan(cell->plans))
		json_object_set_new(json, "plans", json_real(cell->plans));
	if (!isnan(cell->closed))
		json_object_set_new(json, "closed_form", json_real(cell->closed));
	return json;
}

static json_t *figure_json(const struct figure *figure)
{
	json_t *cells = json_array(), *notes = json_array();

	for (unsigned int x = 0; x < figure->x_count; x++) {
		for (unsigned int s = 0; s < figure->series_count; s++) {
			if (figure_cell(figure, s, x)->count)
				json_array_append_new(cells, cell_json(figure, s, x));
		}
	}
	for (unsigned int i = 0; i < figure->note_count; i++)
		json_array_append_new(notes, json_text(figure->notes[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name", figure->name, "title",
			 figure->title, "method", figure->about, "unit", figure->unit, "cells",
			 cells, "notes", notes);
}

int bench_write_json(const struct bench *bench, const char *path)
{
	const struct oci_machine *m = &bench->machine;
	json_t *figures = json_array(), *summary = json_array(), *json;
	int failed;

	for (unsigned int f = 0; f < bench->figure_count; f++)
		json_array_append_new(figures, figure_json(bench->figures[f]));
	for (size_t i = 0; i < sizeof(bench->summary) / sizeof(bench->summary[0]); i++) {
		if (bench->summary[i])
			json_array_append_new(summary, json_text(bench->summary[i]));
	}
	json = json_pack("{s:o, s:s, s:s, s:{s:o, s:o, s:o, s:i, s:i}, s:o, s:i, s:i, s:o, s:o}",
			 "command", json_text(bench->command), "date", bench->date, "onecopy",
			 oc_version(), "machine", "host", json_text(m->host), "cpu",
			 json_text(m->cpu), "kernel", json_text(m->kernel), "cpus", (int)m->cpus,
			 "cpus_allowed", (int)bench->cpus, "model", json_text(bench->model),
			 "ranks", (int)bench->options.ranks, "rounds", (int)bench->options.rounds,
			 "figures", figures, "summary", summary);
	if (!strcmp(path, "-"))
		return json_text_print(json, 1);
	errno = 0;
	failed = !json || json_dump_file(json, path, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	json_decref(json);
	if (failed)
		command_say("%s cannot be written: %s", path,
			    errno ? strerror(errno) : "no memory");
	return failed ? 1 : 0;
}
