/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plots of a bench, by gnuplot. Scripts and data stay beside the pictures, so that anyone can
 * draw them again in another way.
 */
#include "bench.h"
#include "command.h"
#include "lab/harness/child.h"
#include "lab/harness/gnuplot.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* So many names of places stand side by side; more are turned. */
enum { TICS_LEVEL = 10 };

void bench_plot_stem(const struct figure *figure, bool predicted, char *stem, size_t n)
{
	snprintf(stem, n, "%s%s", figure->name, predicted ? "-model" : "");
}

bool bench_plot_has(const struct figure *figure)
{
	return figure->series_count && figure->x[0];
}

static FILE *open_file(const struct bench *bench, const char *stem, const char *end)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", bench->options.out, stem, end);
	file = fopen(path, "w");
	if (!file)
		command_say("%s cannot be written: %s", path, strerror(errno));
	return file;
}

static int close_file(const struct bench *bench, FILE *file, const char *stem, const char *end)
{
	bool failed = ferror(file);

	if (!fclose(file) && !failed)
		return 0;
	command_say("%s/%s.%s cannot be written: %s", bench->options.out, stem, end,
		    strerror(errno));
	return 1;
}

static void write_number(FILE *out, double value)
{
	if (isnan(value))
		fprintf(out, " NaN");
	else
		fprintf(out, " %g", value);
}

/* One block a series, as gnuplot's `index` counts them; a series without values has its block. */
static int write_data(const struct bench *bench, const struct figure *figure)
{
	FILE *out = open_file(bench, figure->name, "dat");

	if (!out)
		return 1;
	fprintf(out, "# %s median low high plans closed (%s)\n", figure->x_name, figure->unit);
	for (unsigned int s = 0; s < figure->series_count; s++) {
		fprintf(out, "%s# %s\n", s ? "\n\n" : "", figure->series[s]);
		for (unsigned int x = 0; x < figure->x_count; x++) {
			const struct figure_cell *cell = figure_cell(figure, s, x);

			fprintf(out, "%zu", figure->x[x]);
			write_number(out, cell->count ? cell->median : NAN);
			write_number(out, cell->count ? cell->low : NAN);
			write_number(out, cell->count ? cell->high : NAN);
			write_number(out, cell->plans);
			write_number(out, cell->closed);
			fputc('\n', out);
		}
	}
	return close_file(bench, out, figure->name, "dat");
}

static void write_axes(const struct figure *figure, FILE *out)
{
	const double step = figure->x_is_bytes ? 1.6 : 1.2;

	/* A single place has no range of its own: gnuplot would warn, or draw none. */
	fprintf(out, "set logscale x 2\nset xrange [%g:%g]\nset xtics %s(",
		(double)figure->x[0] / step, (double)figure->x[figure->x_count - 1] * step,
		figure->x_count > TICS_LEVEL ? "rotate by -60 " : "");
	for (unsigned int x = 0; x < figure->x_count; x++) {
		char text[32];

		figure_x_text(figure, x, text, sizeof(text));
		fprintf(out, "%s'%s' %zu", x ? ", " : "", text, figure->x[x]);
	}
	fprintf(out, ")\nset xlabel '%s'\nset ylabel '%s'\n", figure->x_name, figure->unit);
	if (figure->log_y)
		fprintf(out, "set logscale y 10\nset format y '%%g'\n");
	else
		fprintf(out, "set yrange [0:*]\n");
}

static void write_picture(const struct bench *bench, const struct figure *figure, bool predicted,
			  FILE *out, enum gnuplot_format format)
{
	char stem[128];
	static const int points[] = { 7, 5, 9, 13, 3 };
	unsigned int drawn = 0;

	bench_plot_stem(figure, predicted, stem, sizeof(stem));
	gnuplot_begin(out, format, stem, 900, 560, 12);
	fprintf(out,
		"set title \"%s%s\\n%s, Linux %s, %s\" noenhanced\n"
		"set grid\nset tics nomirror out\nset key outside right noenhanced\n",
		figure->title, predicted ? ": predicted (lines), measured (points)" : "",
		bench->machine.cpu, bench->machine.kernel, bench->date);
	write_axes(figure, out);
	fprintf(out, "plot ");
	for (unsigned int s = 0; s < figure->series_count; s++) {
		const char *comma = drawn++ ? ", " : "";
		/* gnuplot's colours begin again after 8. */
		unsigned int dash = s / 8 % 5 + 1, point = (unsigned int)points[s / 8 % 5];

		/* The quantiles as bars: what the rounds differ by. */
		if (predicted)
			fprintf(out,
				"%s'%s.dat' index %u using 1:5 with lines lw 2 lc %u dt %u title '%s', "
				"'' index %u using 1:2:3:4 with yerrorbars pt %u ps 0.8 lc %u notitle",
				comma, figure->name, s, s + 1, dash, figure->series[s], s, point,
				s + 1);
		else
			fprintf(out,
				"%s'%s.dat' index %u using 1:2:3:4 with yerrorlines lw 2 pt %u ps 0.6 "
				"lc %u dt %u title '%s'",
				comma, figure->name, s, point, s + 1, dash, figure->series[s]);
	}
	fprintf(out, "\n");
}

static int run_gnuplot(const struct bench *bench, const char *stem)
{
	char script[160], why[CHILD_TAIL_CHARS + PATH_MAX + 256];

	snprintf(script, sizeof(script), "%s.gp", stem);
	if (!gnuplot_run(bench->options.out, script, why, sizeof(why)))
		return 0;
	command_say("%s", why);
	return 1;
}

static int draw(const struct bench *bench, const struct figure *figure, bool predicted)
{
	char stem[128];
	FILE *out;

	bench_plot_stem(figure, predicted, stem, sizeof(stem));
	out = open_file(bench, stem, "gp");
	if (!out)
		return 1;
	write_picture(bench, figure, predicted, out, GNUPLOT_SVG);
	write_picture(bench, figure, predicted, out, GNUPLOT_PNG);
	if (close_file(bench, out, stem, "gp"))
		return 1;
	return run_gnuplot(bench, stem);
}

/* The first plot that cannot be drawn is the last: the reason is that of all. */
int bench_plot(const struct bench *bench)
{
	int failed = 0;

	for (unsigned int f = 0; f < bench->figure_count && !failed; f++) {
		const struct figure *figure = bench->figures[f];

		if (!bench_plot_has(figure))
			continue;
		failed = write_data(bench, figure);
		if (!failed && figure->measured)
			failed = draw(bench, figure, false);
		if (!failed && figure->predicted)
			failed = draw(bench, figure, true);
	}
	return failed;
}
