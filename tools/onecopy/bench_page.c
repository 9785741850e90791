/* SPDX-License-Identifier: BSD-3-Clause */
/* The page that gathers the tables and plots of a run: index.html, which needs nothing but them. */
#include "bench.h"
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n<title>onecopy bench</title>\n"
	"<style>\n"
	"body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}\n"
	"img{max-width:100%;height:auto;border:1px solid #ddd}\n"
	"table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}\n"
	"th,td{padding:.15em .8em;text-align:right;border-bottom:1px solid #eee}\n"
	"th{border-bottom:2px solid #999}\n"
	"td.name,th.name{text-align:left}\ntr.first td{border-top:1px solid #999}\n"
	"tr.chosen td.name{font-weight:bold}\ntd.best{background:#e4f3e4}\n"
	"pre{background:#f5f5f5;padding:.6em;overflow:auto}\n.about{color:#555}\n"
	"</style>\n</head>\n<body>\n";

static void put(FILE *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static void put_in(FILE *out, const char *before, const char *text, const char *after)
{
	fputs(before, out);
	put(out, text);
	fputs(after, out);
}

static void put_number(FILE *out, double value, bool best)
{
	char text[32];

	figure_value_text(value, text, sizeof(text));
	fprintf(out, "<td%s>%s</td>", best ? " class=\"best\"" : "", text);
}

static void put_row(FILE *out, const struct figure *figure, unsigned int series, unsigned int x,
		    unsigned int place, double best)
{
	const struct figure_cell *cell = figure_cell(figure, series, x);
	char at[32];

	figure_x_text(figure, x, at, sizeof(at));
	fprintf(out, "<tr class=\"%s %s\"><td>%s</td>", place ? "" : "first",
		cell->chosen ? "chosen" : "", place ? "" : at);
	put_in(out, "<td class=\"name\">", cell->label, "</td>");
	put_number(out, cell->median, figure->compared && !place);
	put_number(out, cell->low, false);
	put_number(out, cell->high, false);
	if (figure->compared)
		fprintf(out, "<td>%.2f</td>", cell->median / best);
	if (figure->predicted) {
		put_number(out, cell->plans, false);
		put_number(out, cell->closed, false);
	}
	fputs("</tr>\n", out);
}

static void put_table(FILE *out, const struct figure *figure)
{
	unsigned int *order = calloc(figure->series_count + 1, sizeof(*order));

	fprintf(out, "<table>\n<tr><th>%s</th><th class=\"name\"></th><th>%s</th>", figure->x_name,
		figure->unit);
	fputs("<th>10 %</th><th>90 %</th>", out);
	fputs(figure->compared ? "<th>best = 1</th>" : "", out);
	fputs(figure->predicted ? "<th>plans</th><th>closed form</th>" : "", out);
	fputs("</tr>\n", out);
	for (unsigned int x = 0; order && x < figure->x_count; x++) {
		unsigned int count = figure_order(figure, x, order);

		for (unsigned int i = 0; i < count; i++)
			put_row(out, figure, order[i], x, i,
				figure_cell(figure, order[0], x)->median);
	}
	fputs("</table>\n", out);
	free(order);
}

static void put_plot(FILE *out, const struct figure *figure, bool predicted)
{
	char stem[128];

	bench_plot_stem(figure, predicted, stem, sizeof(stem));
	fprintf(out, "<p><img src=\"%s.svg\" alt=\"%s\"><br>\n", stem, figure->title);
	fprintf(out,
		"<a href=\"%s.svg\">SVG</a> <a href=\"%s.png\">PNG</a> "
		"<a href=\"%s.gp\">gnuplot</a> <a href=\"%s.dat\">data</a></p>\n",
		stem, stem, stem, figure->name);
}

static void put_figure(FILE *out, const struct figure *figure, bool plotted)
{
	fprintf(out, "<h2 id=\"%s\">", figure->name);
	put_in(out, "", figure->title, "</h2>\n");
	put_in(out, "<p class=\"about\">", figure->about, "</p>\n");
	if (plotted && figure->measured)
		put_plot(out, figure, false);
	if (plotted && figure->predicted)
		put_plot(out, figure, true);
	put_table(out, figure);
	for (unsigned int i = 0; i < figure->note_count; i++)
		put_in(out, "<p>", figure->notes[i], "</p>\n");
}

static void put_head(FILE *out, const struct bench *bench)
{
	fputs(head, out);
	fputs("<h1>onecopy bench</h1>\n", out);
	put_in(out, "<pre>", bench->command, "</pre>\n");
	put_in(out, "<p>", bench->machine.host, ", ");
	put(out, bench->machine.cpu);
	fprintf(out, ", %u CPUs (%u to be used), Linux ", bench->machine.cpus, bench->cpus);
	put(out, bench->machine.kernel);
	fprintf(out, ", %s, onecopy %s.<br>\n", bench->date, oc_version());
	fprintf(out,
		"Medians and quantiles over %u rounds, in which everything takes turns. Bold: what "
		"jobs take. <a href=\"results.json\">JSON</a> <a href=\"table.txt\">text</a></p>\n",
		bench->options.rounds);
	if (bench->model[0])
		put_in(out, "<p>Model: ", bench->model, ".</p>\n");
	for (size_t i = 0; i < sizeof(bench->summary) / sizeof(bench->summary[0]); i++) {
		if (bench->summary[i])
			put_in(out, "<p>", bench->summary[i], "</p>\n");
	}
	fputs("<ul>\n", out);
	for (unsigned int f = 0; f < bench->figure_count; f++) {
		fprintf(out, "<li><a href=\"#%s\">", bench->figures[f]->name);
		put_in(out, "", bench->figures[f]->title, "</a></li>\n");
	}
	fputs("</ul>\n", out);
}

int bench_write_page(const struct bench *bench, bool plotted)
{
	char path[PATH_MAX];
	bool failed;
	FILE *out;

	snprintf(path, sizeof(path), "%s/index.html", bench->options.out);
	out = fopen(path, "w");
	if (!out) {
		command_say("%s cannot be written: %s", path, strerror(errno));
		return 1;
	}
	put_head(out, bench);
	for (unsigned int f = 0; f < bench->figure_count; f++)
		put_figure(out, bench->figures[f], plotted && bench_plot_has(bench->figures[f]));
	fputs("</body>\n</html>\n", out);
	failed = ferror(out);
	if (fclose(out) || failed) {
		command_say("%s cannot be written: %s", path, strerror(errno));
		return 1;
	}
	return 0;
}
