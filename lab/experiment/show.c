/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as tables for people, and as JSON for programs. */
#include "lab/experiment/experiment.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

/* A sentence, or lines of them. */
static void put_text(const char *text, FILE *out)
{
	if (*text)
		fprintf(out, "%s\n", text);
}

static void put_table(struct table *table, FILE *out)
{
	fputc('\n', out);
	table_print(table, out, 2);
}

static void add_row(struct table *table, const struct figure *figure,
		    const struct figure_cell *cell, const char *at, double best)
{
	char median[32], low[32], high[32], more[128] = "", plans[32], closed[32];

	figure_value_text(cell->value.median, median, sizeof(median));
	figure_value_text(cell->value.low, low, sizeof(low));
	figure_value_text(cell->value.high, high, sizeof(high));
	if (figure->compared)
		snprintf(more, sizeof(more), "\t%.2f", cell->value.median / best);
	if (figure->predicted) {
		figure_value_text(cell->plans, plans, sizeof(plans));
		figure_value_text(cell->closed, closed, sizeof(closed));
		snprintf(more + strlen(more), sizeof(more) - strlen(more), "\t%s\t%s", plans,
			 closed);
	}
	table_add(table, "%s\t%s%s\t%s\t%s\t%s%s", at, cell->chosen ? "* " : "", cell->label,
		  median, low, high, more);
}

static void put_notes(const struct figure *figure, FILE *out)
{
	for (unsigned int i = 0; i < figure->note_count; i++)
		put_text(figure->notes[i], out);
}

static void figure_print(const struct figure *figure, FILE *out)
{
	struct table table = { .align = figure->compared && figure->predicted ? "rlrrrrrr" :
					figure->predicted		      ? "rlrrrrr" :
					figure->compared		      ? "rlrrrr" :
										"rlrrr" };
	unsigned int *order = must(calloc(figure->series_count + 1, sizeof(*order)));

	table_add(&table, "%s\t\t%s\tlow\thigh%s%s", figure->x_name, figure->unit,
		  figure->compared ? "\tbest=1" : "", figure->predicted ? "\tplans\tclosed" : "");
	for (unsigned int x = 0; x < figure->x_count; x++) {
		unsigned int count = figure_shows(figure, x) ? figure_order(figure, x, order) : 0;

		for (unsigned int i = 0; i < count; i++) {
			char at[32];

			figure_x_text(figure, x, at, sizeof(at));
			add_row(&table, figure, figure_cell(figure, order[i], x), i ? "" : at,
				figure_cell(figure, order[0], x)->value.median);
		}
	}
	put_table(&table, out);
	put_notes(figure, out);
	free(order);
}

/* NaN where all of its bytes were wrong. */
static double median_of(const struct figure_cell *cell)
{
	return cell->count ? cell->value.median : NAN;
}

static void interval_text(const struct stats_estimate *e, char text[40])
{
	if (isnan(e->median))
		snprintf(text, 40, "\t");
	else
		snprintf(text, 40, "%.2f\t[%.2f, %.2f]", e->median, e->low, e->high);
}

static void compared_text(const struct compared *cell, char text[64])
{
	if (!cell->limit)
		snprintf(text, 64, "\t");
	else
		snprintf(text, 64, "%.2f\t%.0f", cell->limit->value.median,
			 100 * cell->limit->value.median / median_of(cell->subject));
}

static void add_compared(struct table *table, const struct comparison *comparison,
			 const struct compared *cell)
{
	static const char *const verdicts[VERDICTS] = { "", "won", "LOST", "wrong bytes" };
	char at[32] = "-", stock[32], subject[32], ratio[40], control[40], limit[64] = "";

	if (!cell->stock || !cell->subject)
		return;
	if (cell->figure->x[cell->x])
		figure_x_text(cell->figure, cell->x, at, sizeof(at));
	figure_value_text(median_of(cell->stock), stock, sizeof(stock));
	figure_value_text(median_of(cell->subject), subject, sizeof(subject));
	interval_text(&cell->ratio, ratio);
	interval_text(&cell->control, control);
	if (comparison->limit)
		compared_text(cell, limit);
	table_add(table, "%s\t%s\t%s%s\t%s\t%s%s%s%s%s\t%s", cell->figure->row, at, stock,
		  cell->other ? "*" : "", subject, ratio, comparison->control ? "\t" : "",
		  comparison->control ? control : "", comparison->limit ? "\t" : "", limit,
		  verdicts[cell->verdict]);
}

static void put_groups(const struct comparison *comparison, FILE *out)
{
	struct table table = { .align = "lrrlrl" };

	table_add(&table, "geometric mean over\tcells\tratio\t\tcontrol\t");
	for (unsigned int g = 0; g < comparison->group_count; g++) {
		const struct group *group = &comparison->groups[g];
		char ratio[40], control[40];

		if (!group->cells)
			continue;
		interval_text(&group->ratio, ratio);
		interval_text(&group->control, control);
		table_add(&table, "%s\t%u\t%s\t%s", group->name, group->cells, ratio, control);
	}
	if (comparison->group_count)
		put_table(&table, out);
}

static void put_lost(const struct results *results, const struct comparison *comparison, FILE *out)
{
	const char *separator = ": ";

	if (results->complete >= STATS_MIN_RUNS || results->settled)
		fprintf(out, "Cells lost (the whole interval below %.2f and the control's): %u",
			comparison->floor, comparison->lost);
	else
		fprintf(out,
			"Of %u round%s no interval holds the median with 95 %%, so nothing is "
			"judged: those shown are ranges",
			results->complete, results->complete == 1 ? "" : "s");
	for (unsigned int i = 0; i < comparison->cell_count; i++) {
		const struct compared *cell = &comparison->cells[i];
		char at[32];

		if (cell->verdict != VERDICT_LOST)
			continue;
		figure_x_text(cell->figure, cell->x, at, sizeof(at));
		fprintf(out, "%s%s %s", separator, cell->figure->row, at);
		separator = ", ";
	}
	fputs(".\n", out);
}

static void comparison_print(const struct results *results, const struct comparison *comparison,
			     FILE *out)
{
	const char *const control = comparison->control ? "\tcontrol\t[interval]" : "";
	struct table table = { .align = comparison->limit   ? "lrrrrlrlrrl" :
					comparison->control ? "lrrrrlrll" :
							      "lrrrrll" };

	table_add(&table, "\t%s\t%s\t%s\tratio\t[interval]%s%s\t",
		  comparison->cells[0].figure->x_name, comparison->stock, comparison->subject,
		  control, comparison->limit ? "\tmemcpy\t%" : "");
	for (unsigned int i = 0; i < comparison->cell_count; i++)
		add_compared(&table, comparison, &comparison->cells[i]);
	put_table(&table, out);
	put_groups(comparison, out);
	if (comparison->floor > 0)
		put_lost(results, comparison, out);
	put_text(comparison->note, out);
}

static void print_head(const struct results *results, FILE *out)
{
	const struct host *host = &results->host;

	put_text(results->command, out);
	fprintf(out, "%s, %s, %d CPUs (%d cores), Linux %s, %s, onecopy %s (%.12s%s).\n",
		host->name, host->cpu, host->cpus, host->cores, host->kernel, host->date,
		OC_VERSION, host->commit, host->dirty ? " with changes" : "");
	fprintf(out,
		"Medians of %u round%s, in which everything takes turns; low and high, or []: %s. "
		"%s\n",
		results->complete, results->complete == 1 ? "" : "s",
		results->complete >= STATS_MIN_RUNS ? "the 95 % interval of the median" :
						      "the least and the most",
		results->about);
	if (results->model[0])
		fprintf(out, "Model: %s.\n", results->model);
}

void results_print(const struct results *results, FILE *out)
{
	print_head(results, out);
	if (results->print)
		results->print(results, out);
	for (unsigned int c = 0; c < results->comparison_count && !results->print; c++) {
		const struct comparison *comparison = results->comparisons[c];

		if (!comparison->cell_count)
			continue;
		fprintf(out, "\n%s\n", comparison->title);
		put_text(comparison->about, out);
		comparison_print(results, comparison, out);
	}
	for (unsigned int f = 0; f < results->figure_count; f++) {
		const struct figure *figure = results->figures[f];

		if (figure->folded ? !figure->note_count :
				     !figure->series_count && !figure->note_count)
			continue;
		fprintf(out, "\n%s\n", figure->title);
		if (figure->folded) {
			put_notes(figure, out);
			continue;
		}
		put_text(figure->about, out);
		figure_print(figure, out);
	}
	for (unsigned int i = 0; i < results->summary_count; i++)
		fprintf(out, "%s%s\n", i ? "" : "\n", results->summary[i]);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static json_t *estimate_json(const struct stats_estimate *e)
{
	return json_pack("{s:o, s:o, s:o, s:f}", "median", real(e->median), "low", real(e->low),
			 "high", real(e->high), "coverage", e->coverage);
}

static json_t *place_json(const struct figure *figure, unsigned int x)
{
	return figure->x_names ? json_string(figure->x_names[x]) :
				 json_integer((json_int_t)figure->x[x]);
}

static json_t *cell_json(const struct figure *figure, unsigned int series, unsigned int x)
{
	const struct figure_cell *cell = figure_cell(figure, series, x);
	json_t *samples = json_array(), *spread = json_array();
	json_t *json = json_pack("{s:o, s:s, s:s, s:f, s:f, s:f, s:b, s:o}", figure->x_name,
				 place_json(figure, x), "series", figure->series[series], "label",
				 cell->label, "median", cell->value.median, "low", cell->value.low,
				 "high", cell->value.high, "chosen", cell->chosen, "samples",
				 samples);

	for (unsigned int r = 0; r < figure->rounds; r++) {
		json_array_append_new(samples, real(cell->samples[r]));
		if (cell->spread)
			json_array_append_new(spread, json_pack("[o, o]", real(cell->spread[r][0]),
								real(cell->spread[r][1])));
	}
	if (cell->spread)
		json_object_set(json, "spread", spread);
	json_decref(spread);
	if (cell->wrong)
		json_object_set_new(json, "wrong_bytes", json_true());
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
		for (unsigned int s = 0; s < figure->series_count; s++)
			if (figure_shows(figure, x) && figure_cell(figure, s, x)->count)
				json_array_append_new(cells, cell_json(figure, s, x));
	}
	for (unsigned int i = 0; i < figure->note_count; i++)
		json_array_append_new(notes, json_text(figure->notes[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "name", figure->name, "title",
			 figure->title, "method", figure->about, "unit", figure->unit, "cells",
			 cells, "notes", notes);
}

static json_t *comparison_json(const struct comparison *comparison)
{
	static const char *const verdicts[VERDICTS] = { "no difference", "won", "lost",
							"wrong bytes" };
	json_t *cells = json_array(), *groups = json_array();

	for (unsigned int i = 0; i < comparison->cell_count; i++) {
		const struct compared *cell = &comparison->cells[i];
		const struct figure *f = cell->figure;

		if (!cell->stock || !cell->subject)
			continue;
		json_array_append_new(
			cells, json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:s}", "figure",
					 f->name, f->x_name, place_json(f, cell->x), "against",
					 cell->other ? comparison->other : comparison->stock,
					 "stock", real(median_of(cell->stock)), "median",
					 real(median_of(cell->subject)), "ratio",
					 estimate_json(&cell->ratio), "control",
					 estimate_json(&cell->control), "verdict",
					 verdicts[cell->verdict]));
	}
	for (unsigned int g = 0; g < comparison->group_count; g++) {
		const struct group *group = &comparison->groups[g];

		if (group->cells)
			json_array_append_new(groups,
					      json_pack("{s:s, s:i, s:o, s:o}", "name", group->name,
							"cells", (int)group->cells, "ratio",
							estimate_json(&group->ratio), "control",
							estimate_json(&group->control)));
	}
	return json_pack("{s:s, s:s, s:s, s:f, s:i, s:o, s:o}", "title", comparison->title, "stock",
			 comparison->stock, "subject", comparison->subject, "floor",
			 comparison->floor, "lost", (int)comparison->lost, "geometric_means",
			 groups, "cells", cells);
}

static json_t *results_json(const struct results *results)
{
	const struct host *host = &results->host;
	json_t *figures = json_array(), *comparisons = json_array(), *summary = json_array();

	for (unsigned int f = 0; f < results->figure_count; f++)
		json_array_append_new(figures, figure_json(results->figures[f]));
	for (unsigned int c = 0; c < results->comparison_count; c++)
		json_array_append_new(comparisons, comparison_json(results->comparisons[c]));
	for (unsigned int i = 0; i < results->summary_count; i++)
		json_array_append_new(summary, json_text(results->summary[i]));
	return json_pack(
		"{s:o, s:s, s:s, s:s, s:b, s:{s:o, s:o, s:o, s:i, s:i, s:s}, s:o, s:O*, s:i, "
		"s:o, s:o, s:o}",
		"command", json_text(results->command), "date", host->date, "onecopy", OC_VERSION,
		"commit", host->commit, "dirty", host->dirty, "machine", "host",
		json_text(host->name), "cpu", json_text(host->cpu), "kernel",
		json_text(host->kernel), "cpus", host->cpus, "cores", host->cores,
		"transparent_hugepage", host->huge_pages, "model", json_text(results->model),
		"settings", results->settings, "rounds", (int)results->complete, "figures", figures,
		"comparisons", comparisons, "summary", summary);
}

int results_write_json(const struct results *results, const char *path)
{
	bool printed = !strcmp(path, "-");
	json_t *json = must(results_json(results));
	FILE *out = printed ? stdout : fopen(path, "w");
	bool failed = !out || json_dumpf(json, out, JSON_INDENT(1) | JSON_PRESERVE_ORDER) ||
		      fputc('\n', out) < 0;

	json_decref(json);
	if (out && !printed)
		failed |= fclose(out) != 0;
	/* Of standard output who prints there speaks at its end. */
	if (failed && !printed)
		say("%s cannot be written: %s", path, strerror(errno));
	return failed ? 1 : 0;
}
