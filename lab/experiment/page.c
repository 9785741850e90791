/* SPDX-License-Identifier: BSD-3-Clause */
/* The page that gathers the tables, as text, and the plots of a run: index.html. */
#include "lab/experiment/experiment.h"

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
	"pre{background:#f5f5f5;padding:.6em;overflow:auto}\n"
	"</style>\n</head>\n<body>\n<h1>onecopy bench</h1>\n"
	"<p><a href=\"results.json\">JSON</a> <a href=\"table.txt\">text</a> "
	"<a href=\"#plots\">plots</a></p>\n<pre>";

static void put_tables(const struct results *results, FILE *out)
{
	char *text = NULL;
	size_t length;
	FILE *tables = must(open_memstream(&text, &length));

	results_print(results, tables);
	fclose(tables);
	for (const char *at = must(text); *at; at++) {
		if (*at == '&')
			fputs("&amp;", out);
		else if (*at == '<')
			fputs("&lt;", out);
		else
			fputc(*at, out);
	}
	free(text);
}

static void put_plot(FILE *out, const char *stem, const char *what)
{
	fprintf(out, "<p><img src=\"%s.svg\" alt=\"%s\"><br>\n", stem, what);
	fprintf(out,
		"<a href=\"%s.svg\">SVG</a> <a href=\"%s.png\">PNG</a> "
		"<a href=\"%s.gp\">gnuplot</a></p>\n",
		stem, stem, stem);
}

static void put_plots(const struct results *results, FILE *out)
{
	const char *before = "";

	for (unsigned int c = 0; c < results->comparison_count; c++) {
		const struct comparison *comparison = results->comparisons[c];
		char stem[64];

		if (!comparison->stem[0] || !strcmp(before, comparison->stem))
			continue;
		before = comparison->stem;
		snprintf(stem, sizeof(stem), "latency-%s", comparison->stem);
		put_plot(out, stem, "values");
		snprintf(stem, sizeof(stem), "ratio-%s", comparison->stem);
		put_plot(out, stem, "ratios");
	}
	for (unsigned int f = 0; f < results->figure_count; f++) {
		const struct figure *figure = results->figures[f];
		char stem[96];

		if (figure->folded || !figure_is_drawn(figure))
			continue;
		if (figure->measured)
			put_plot(out, figure->name, figure->title);
		figure_stem(figure, true, stem, sizeof(stem));
		if (figure->predicted)
			put_plot(out, stem, figure->title);
	}
}

int results_write_page(const struct results *results, const char *out, bool plotted)
{
	char path[PATH_MAX];
	bool failed;
	FILE *page;

	snprintf(path, sizeof(path), "%s/index.html", out);
	page = fopen(path, "w");
	if (!page) {
		say("%s cannot be written: %s", path, strerror(errno));
		return 1;
	}
	fputs(head, page);
	put_tables(results, page);
	fputs("</pre>\n<h2 id=\"plots\">Plots</h2>\n", page);
	if (plotted)
		put_plots(results, page);
	fputs("</body>\n</html>\n", page);
	failed = ferror(page);
	if (!fclose(page) && !failed)
		return 0;
	say("%s cannot be written: %s", path, strerror(errno));
	return 1;
}
