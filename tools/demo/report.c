// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <stdio.h>
#include <string.h>

#include "lab/experiment/table.h"

/* Cells of a comparison are in the order of the figures, and in each in that of the places. */
static const struct compared *cell_of(const struct demo *demo, const struct comparison *comparison,
				      int metric, unsigned int x)
{
	return &comparison->cells[(unsigned int)metric *
					  demo->figures[comparison->group][0]->x_count +
				  x];
}

static const char *verdict(const struct compared *cell)
{
	static const char *const words[] = { "no difference", "faster", "slower" };

	return cell->ratio.coverage < 0.95 ? "not judged" : words[cell->verdict];
}

static void add_row(const struct demo *demo, int mpi, int metric, unsigned int x,
		    struct table *table)
{
	struct figure *const *figures = demo->figures[mpi];
	const struct figure_cell *stock = figure_cell_of(figures[metric], demo_stock, x);
	const struct figure_cell *total = figure_cell_of(figures[DEMO_TOTAL], demo_stock, x);
	char row[512], value[32];
	int length;

	figure_value_text(stock->value.median, value, sizeof(value));
	length = snprintf(row, sizeof(row), "%s\t%s\t%.0f\t%s",
			  metric == DEMO_TOTAL ? demo->names[mpi][x] : "", figures[metric]->row,
			  100 * stock->value.median / total->value.median, value);
	for (unsigned int c = 0; c < demo->results.comparison_count; c++) {
		const struct comparison *comparison = demo->results.comparisons[c];
		const struct compared *cell;

		if (comparison->group != (unsigned int)mpi)
			continue;
		cell = cell_of(demo, comparison, metric, x);
		figure_value_text(cell->subject->value.median, value, sizeof(value));
		length += snprintf(row + length, sizeof(row) - (size_t)length,
				   "\t%s\t%.2f [%.2f, %.2f] %s", value, cell->ratio.median,
				   cell->ratio.low, cell->ratio.high, verdict(cell));
	}
	table_add(table, "%s", row);
}

static void print_mpi(const struct demo *demo, int mpi, FILE *out)
{
	static const char *const bound[] = { "more than CPUs", "bound to cores",
					     "bound to hardware threads" };
	struct table table = { .align = "llrrrlrlrl" };
	const struct figure *figure = demo->figures[mpi][DEMO_TOTAL];
	char head[256] = "\t\t%\tstock, ms";

	if (!figure)
		return;
	for (unsigned int v = 0; v < demo->set->variant_count; v++) {
		if (demo->set->variants[v].name != demo_stock)
			snprintf(head + strlen(head), sizeof(head) - strlen(head),
				 "\t%s, ms\tstock / %s", demo->set->variants[v].name,
				 demo->set->variants[v].name);
	}
	fprintf(out, "\n%s %s, %ld ranks, %s\n\n", launcher_info((enum launcher)mpi)->name,
		launcher_info((enum launcher)mpi)->version, demo->opt.ranks, bound[demo->binding]);
	table_add(&table, "%s", head);
	for (unsigned int x = 0; x < figure->x_count; x++)
		for (int m = 0; m < DEMO_METRICS; m++)
			add_row(demo, mpi, m, x, &table);
	table_print(&table, out, 2);
}

/* One after the other, what cannot be run for the same reason together. */
static void print_skipped(const struct demo *demo, FILE *out)
{
	const char *before = NULL;

	for (unsigned int i = 0; i < demo->case_count; i++) {
		const struct demo_case *one = &demo->cases[i];

		if (one->skipped && before && !strcmp(before, one->skipped))
			fprintf(out, ", %s", one->program->name);
		else if (one->skipped)
			fprintf(out, "\nNot run under %s (%s): %s", launcher_info(one->mpi)->name,
				one->skipped, one->program->name);
		before = one->skipped ? one->skipped : before;
	}
	fprintf(out, "%s", before ? "\n" : "");
}

/* Of the total times, over the MPIs. */
static void judge(struct demo *demo, const char *subject, char *text, size_t n)
{
	unsigned int counts[3] = { 0 }, programs = 0;
	double ratios[DEMO_CASES_MAX];

	for (unsigned int c = 0; c < demo->results.comparison_count; c++) {
		const struct comparison *comparison = demo->results.comparisons[c];
		unsigned int all = demo->figures[comparison->group][0]->x_count;

		for (unsigned int x = 0; x < all && !strcmp(comparison->subject, subject); x++) {
			const struct compared *cell = cell_of(demo, comparison, DEMO_TOTAL, x);

			counts[cell->verdict]++;
			ratios[programs++] = cell->ratio.median;
		}
	}
	snprintf(text, n,
		 "with %s %u of %u are faster, %u slower, and of %u this machine can show no "
		 "difference (geometric mean %.2f)",
		 subject, counts[VERDICT_WON], programs, counts[VERDICT_LOST], counts[VERDICT_NONE],
		 stats_geomean(ratios, programs));
}

static void say_verdict(struct demo *demo)
{
	struct results *results = &demo->results;
	char text[1024] = "";

	if (results->complete < STATS_MIN_RUNS) {
		results_say(results,
			    "Verdict: none; of %u rounds no interval holds the median with 95 %%, "
			    "%d are needed (--rounds, --seconds).",
			    results->complete, STATS_MIN_RUNS);
		return;
	}
	for (unsigned int v = 0; v < demo->set->variant_count; v++) {
		size_t length = strlen(text);

		if (demo->set->variants[v].name == demo_stock)
			continue;
		snprintf(text + length, sizeof(text) - length, "%s", length ? "; " : "");
		judge(demo, demo->set->variants[v].name, text + strlen(text),
		      sizeof(text) - strlen(text));
	}
	results_say(results, "Verdict on total times: %s.", text);
}

void demo_judge(struct demo *demo)
{
	results_finish(&demo->results);
	say_verdict(demo);
}

void demo_report(const struct demo *demo, FILE *out)
{
	const struct results *results = &demo->results;

	results_print_head(results, out);
	if (demo->set->about)
		fprintf(out, "%s\n", demo->set->about);
	for (int mpi = 1; mpi < LAUNCHERS; mpi++)
		print_mpi(demo, mpi, out);
	print_skipped(demo, out);
	fprintf(out,
		"\n%%: of stock's total time. in MPI: what a rank spends in MPI, on average. A "
		"program is\nfaster or slower where the interval leaves out 1; without any "
		"difference one in 20 would be.\n\nEvery run was verified:\n");
	for (unsigned int p = 0; p < demo->set->program_count; p++) {
		const struct demo_program *program = &demo->set->programs[p];

		if (!demo->opt.only || !strcmp(demo->opt.only, program->name))
			fprintf(out, "  %-10s %s\n", program->name, program->checks);
	}
	fprintf(out, "\n%s\n", results->summary[0]);
}
