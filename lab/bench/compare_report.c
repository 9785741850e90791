// SPDX-License-Identifier: BSD-3-Clause
/* The tables. */
#include "compare.h"

static void print_heading(const struct compare *compare, const struct ranks_summary *s, FILE *out)
{
	const struct cell_summary *any = &s->cells[0];

	fprintf(out, "%d ranks, %s, %s%s buffers, %ld runs each, %s\n", s->ranks,
		s->oversubscribed ? "sharing cores" : "one a core",
		s->subject == CONFIG_HEAP ? "shared heaps, " : "",
		buffer_mode_name(compare->options.mode), compare->rounds, compare->mpi[0]);
	if (compare_has(compare, CONFIG_OTHER)) {
		fprintf(out,
			"stock is the faster of this and %s in each cell; * marks the latter.\n",
			compare->mpi[1]);
	}
	fprintf(out,
		"us: median call of the slowest rank. ratio: stock/onecopy, control: "
		"stock/stock, in [] their %s.\n",
		compare->rounds >= STATS_MIN_RUNS ? "95 % intervals" : "ranges");
	if (compare->rounds < STATS_MIN_RUNS) {
		fprintf(out,
			"Of %ld runs the whole range covers the median with only %.0f %%, so no "
			"cell is judged lost.\n",
			compare->rounds, 100 * any->ratio.coverage);
	}
	if (compare_has(compare, CONFIG_LIMIT)) {
		fprintf(out,
			"memcpy us: what the bytes that have to move take without any waiting, "
			"and that in %% of the time before it.\n");
	}
	fprintf(out, "\n%-*s %8s %11s %11s %7s  %-15s %8s  %-15s%s\n",
		collective_list_width(&compare->options.collectives), "collective", "size",
		"stock us", s->subject == CONFIG_HEAP ? "heap us" : "onecopy us", "ratio",
		"[interval]", "control", "[interval]",
		compare_has(compare, CONFIG_LIMIT) ? " memcpy us    %" : "");
}

/* Where it varies, so does what is measured. */
static void print_token(const struct compare *compare, const struct ranks_summary *s, FILE *out)
{
	const struct range *token = &compare->token_ns[s->ranks_index];

	if (token->high > 0) {
		fprintf(out,
			"A token took %.0f to %.0f ns from rank to rank (medians of the cells)%s%s.\n",
			token->low, token->high,
			compare->options.token ? "; counted are calls with " : "",
			compare->options.token ? compare->options.token : "");
	}
}

static void print_estimate(const struct stats_estimate *e, FILE *out)
{
	char interval[48];

	snprintf(interval, sizeof(interval), "[%.2f, %.2f]", e->low, e->high);
	fprintf(out, "  %-15s", interval);
}

static void print_cell(int width, const struct compare_cell *cell, const struct cell_summary *s,
		       FILE *out)
{
	char size[TEXT_SIZE_CHARS] = "-";

	if (cell->collective != OC_BARRIER) {
		size_format(cell->bytes, size);
	}
	fprintf(out, "%-*s %8s %11.2f%c%10.2f %7.2f", width, oci_collective_name(cell->collective),
		size, s->stock_us, s->stock == CONFIG_OTHER ? '*' : ' ', s->onecopy_us,
		s->ratio.median);
	print_estimate(&s->ratio, out);
	fprintf(out, " %8.2f", s->control.median);
	print_estimate(&s->control, out);
	if (s->limit_us > 0) {
		fprintf(out, " %9.2f %4.0f", s->limit_us, 100 * s->limit_us / s->onecopy_us);
	}
	fprintf(out, "%s\n", s->lost ? " LOST" : "");
}

static void print_group(const char *name, const struct group_summary *group, FILE *out)
{
	if (group->cells == 0) {
		return;
	}
	fprintf(out, "%-24s %4d %20.2f", name, group->cells, group->ratio.median);
	print_estimate(&group->ratio, out);
	fprintf(out, " %8.2f", group->control.median);
	print_estimate(&group->control, out);
	fputc('\n', out);
}

static void print_lost(const struct compare *compare, const struct ranks_summary *s, FILE *out)
{
	char size[TEXT_SIZE_CHARS];
	const char *sep = ": ";
	int i;

	if (compare->rounds < STATS_MIN_RUNS) {
		return;
	}
	fprintf(out, "cells lost (whole interval below %.2f): %d", s->floor, s->lost);
	for (i = 0; i < compare->cells_n; i++) {
		if (s->cells[i].lost) {
			fprintf(out, "%s%s %s", sep,
				oci_collective_name(compare->cells[i].collective),
				size_format(compare->cells[i].bytes, size));
			sep = ", ";
		}
	}
	fputc('\n', out);
}

void compare_print(const struct compare *compare, const struct ranks_summary *summaries, FILE *out)
{
	const struct host *host = &compare->host;
	int width = collective_list_width(&compare->options.collectives);
	int i, cell;

	fprintf(out, "%s, %s, Linux %s, %s, commit %.12s%s\n", host->name, host->cpu, host->kernel,
		host->date, host->commit, host->dirty ? " with changes" : "");
	for (i = 0; i < compare_summaries(compare); i++) {
		const struct ranks_summary *s = &summaries[i];

		fputc('\n', out);
		print_heading(compare, s, out);
		for (cell = 0; cell < compare->cells_n; cell++) {
			print_cell(width, &compare->cells[cell], &s->cells[cell], out);
		}
		fprintf(out, "\n%-24s %4s %20s  %-15s %8s\n", "geometric mean over", "n", "ratio",
			"", "control");
		print_group("all cells but barrier", &s->all, out);
		print_group("cells of 64 KiB and more", &s->large, out);
		print_group("barrier", &s->barrier, out);
		print_lost(compare, s, out);
		print_token(compare, s, out);
	}
}
