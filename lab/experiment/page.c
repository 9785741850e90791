/* SPDX-License-Identifier: BSD-3-Clause */
/* The page that gathers the tables, as text, and the plots of a run: index.html. */
#include "lab/experiment/experiment.h"

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
	for (const char *at = must(text); *at; at++)
		if (*at == '&')
			fputs("&amp;", out);
		else if (*at == '<')
			fputs("&lt;", out);
		else
			fputc(*at, out);
	free(text);
}

static int put_plot(const struct results *results, const struct picture *picture, void *page)
{
	const char *stem = picture->stem;

	(void)results;
	fprintf(page,
		"<p><img src=\"%s.svg\" alt=\"%s\"><br>\n<a href=\"%s.svg\">SVG</a> "
		"<a href=\"%s.png\">PNG</a> <a href=\"%s.gp\">gnuplot</a></p>\n",
		stem, picture->what, stem, stem, stem);
	return 0;
}

int results_write_page(const struct results *results, const char *out, bool plotted)
{
	char path[PATH_MAX];
	FILE *page = results_open(out, "index", "html", path);

	if (!page)
		return 1;
	fputs(head, page);
	put_tables(results, page);
	fputs("</pre>\n<h2 id=\"plots\">Plots</h2>\n", page);
	if (plotted)
		results_pictures(results, put_plot, page);
	fputs("</body>\n</html>\n", page);
	return results_close(page, path);
}
