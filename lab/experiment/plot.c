/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plots, by gnuplot. Scripts and data stay beside the pictures, so that anyone can draw them
 * again in another way. A figure of its own has a picture; those of a comparison share two, with a
 * panel each: their values, and their ratios.
 */
#include "lab/experiment/experiment.h"
#include "lab/harness/child.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>

enum { TIMEOUT_S = 120 };
enum {
	TICS_LEVEL = 10, /* so many names of places stand side by side; more are turned */
	PANEL_TICS = 6,
	PANEL_COLUMNS = 4,
	PANEL_WIDTH = 400,
	PANEL_HEIGHT = 360,
	TITLE_HEIGHT = 98,  /* of all panels and of the first row's */
	LABELS_HEIGHT = 68, /* below the last row */
};

/* Not of a figure without values, nor of Barrier, which has no bytes to be drawn over. */
/* Of no value at all gnuplot draws nothing, and ends. */
static bool is_drawn(const struct figure *figure)
{
	bool any = false;

	for (unsigned int i = 0; i < figure->series_count * figure->x_count && !any; i++)
		any = figure->cells[i].count || !isnan(figure->cells[i].plans);
	return any && figure->x[0];
}

/* The first comparison of a group has its pictures, if any of its figures is drawn. */
static bool has_pictures(const struct results *results, unsigned int c)
{
	const struct comparison *comparison = results->comparisons[c];
	struct figure *f = NULL;

	while ((f = comparison_figure(results, comparison, f)) && !is_drawn(f))
		;
	return f && comparison->stem[0] &&
	       !(c && !strcmp(results->comparisons[c - 1]->stem, comparison->stem));
}

int results_pictures(const struct results *results,
		     int (*each)(const struct results *, const struct picture *, void *),
		     void *context)
{
	int failed = 0;

	for (unsigned int c = 0; c < results->comparison_count; c++) {
		const struct comparison *comparison = results->comparisons[c];

		for (int ratios = 0; ratios < 2 && !failed && has_pictures(results, c); ratios++) {
			struct picture picture = { .what = ratios ? "ratios" : "values",
						   .comparison = comparison,
						   .second = ratios };

			snprintf(picture.stem, sizeof(picture.stem), "%s-%s",
				 ratios ? "ratio" : "latency", comparison->stem);
			failed = each(results, &picture, context);
		}
	}
	for (unsigned int i = 0; i < results->figure_count; i++) {
		const struct figure *f = results->figures[i];

		for (int predicted = 0; predicted < 2 && !failed; predicted++) {
			struct picture picture = { .what = f->title,
						   .figure = f,
						   .second = predicted };

			if (f->folded || !is_drawn(f) || !(predicted ? f->predicted : f->measured))
				continue;
			snprintf(picture.stem, sizeof(picture.stem), "%s%s", f->name,
				 predicted && f->measured ? "-model" : "");
			failed = each(results, &picture, context);
		}
	}
	return failed;
}

static int run_gnuplot(const char *directory, const char *script)
{
	struct child_args args = { .n = 0 };
	struct child_result result;
	int err;

	/* env -C, so that the script's relative names lie beside it. */
	child_args_add_words(&args, "env -C");
	child_args_add(&args, directory);
	child_args_add(&args, "gnuplot");
	child_args_add(&args, script);
	err = child_run(&args, TIMEOUT_S, &result);
	if (err == -ECHILD && WIFEXITED(result.status) &&
	    WEXITSTATUS(result.status) == CHILD_NOT_FOUND)
		say("there are no plots, because gnuplot is not installed (Debian: gnuplot-nox); "
		    "with it, run 'gnuplot %s' in %s",
		    script, directory);
	else if (err)
		say("gnuplot failed on %s/%s: %s", directory, script, result.tail);
	child_args_destroy(&args);
	return err ? 1 : 0;
}

/* As gnuplot reads it without looking into it: `ps` in double quotes it would run. */
static void put_quoted(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++)
		fputs(*text == '\'' ? "''" : (char[]){ *text, '\0' }, out);
	fputc('\'', out);
}

/* Two lines, of which the second says where and when. */
static void put_title(const struct results *results, const char *title, const char *what, FILE *out)
{
	put_quoted(title, out);
	fputc('.', out);
	put_quoted(what, out);
	fputs(".\"\\n\".", out);
	put_quoted(results->host.cpu, out);
	fprintf(out, ".', Linux %s, %s'", results->host.kernel, results->host.date);
}

static void put_numbers(FILE *out, unsigned int count, const double *numbers)
{
	for (unsigned int i = 0; i < count; i++)
		if (isnan(numbers[i]))
			fputs(" NaN", out);
		else
			fprintf(out, " %g", numbers[i]);
	fputc('\n', out);
}

static void put_ratios(const struct comparison *comparison, const struct figure *figure, FILE *out)
{
	fprintf(out, "\n\n# %s against %s\n", comparison->subject, comparison->stock);
	for (unsigned int i = 0; i < comparison->cell_count; i++) {
		const struct compared *cell = &comparison->cells[i];

		if (cell->figure != figure)
			continue;
		fprintf(out, "%zu", figure->x[cell->x]);
		put_numbers(out, 5,
			    (double[]){ cell->ratio.median, cell->ratio.low, cell->ratio.high,
					cell->control.low, cell->control.high });
	}
}

/*
 * One block a series, as gnuplot's `index` counts them; a series without values has its block, too.
 * Behind them one for each comparison of the figure.
 */
static int write_data(const struct results *results, const struct figure *figure,
		      const char *directory)
{
	char path[PATH_MAX];
	FILE *out = results_open(directory, figure->name, "dat", path);

	if (!out) {
		say("there will be no plots");
		return 1;
	}
	fprintf(out,
		"# %s median low high plans closed (%s); of a comparison ratio low high and the "
		"control's low high\n",
		figure->x_name, figure->unit);
	for (unsigned int s = 0; s < figure->series_count; s++) {
		fprintf(out, "%s# %s\n", s ? "\n\n" : "", figure->series[s]);
		for (unsigned int x = 0; x < figure->x_count; x++) {
			const struct figure_cell *cell = figure_cell(figure, s, x);
			bool there = cell->count && figure_shows(figure, x);

			fprintf(out, "%zu", figure->x[x]);
			put_numbers(out, 5,
				    (double[]){ there ? cell->value.median : NAN,
						there ? cell->value.low : NAN,
						there ? cell->value.high : NAN, cell->plans,
						cell->closed });
		}
	}
	for (unsigned int c = 0; c < results->comparison_count; c++)
		if (figure->group && results->comparisons[c]->group == figure->group)
			put_ratios(results->comparisons[c], figure, out);
	return results_close(out, path);
}

/* ---- what is drawn --------------------------------------------------------------------------- */

static void begin(FILE *out, bool png, const char *stem, int width, int height, int font_points)
{
	fprintf(out,
		"reset\nset terminal %s size %d,%d font 'DejaVu Sans,%d' background rgb 'white'\n"
		"set output '%s.%s'\nset grid\nset tics nomirror out\n",
		png ? "pngcairo" : "svg dynamic", width, height, font_points, stem,
		png ? "png" : "svg");
}

/* `most` labels on the axis; names are all there, as nothing tells those between two. */
static void put_x_axis(const struct figure *figure, unsigned int most, FILE *out)
{
	/* Room at both ends, so that no error bar hides in the frame. */
	const double room = figure->x_is_bytes ? 1.6 : 1.2;
	const char *comma = "";
	unsigned int shown = 0, at = 0;

	for (unsigned int x = 0; x < figure->x_count; x++)
		shown += figure_shows(figure, x);
	if (figure->x_names)
		fprintf(out, "set xrange [0.5:%g]\nset xtics noenhanced rotate by -30 (",
			figure->x_count + 0.5);
	else
		fprintf(out, "set logscale x 2\nset xrange [%g:%g]\nset xlabel '%s'\nset xtics %s(",
			(double)figure->x[0] / room, (double)figure->x[figure->x_count - 1] * room,
			figure->x_name,
			most > TICS_LEVEL && shown > TICS_LEVEL ? "rotate by -60 " : "");
	for (unsigned int x = 0; x < figure->x_count; x++) {
		char text[32];

		if (!figure_shows(figure, x) ||
		    (at++ % ((shown + most - 1) / most) && !figure->x_names))
			continue;
		figure_x_text(figure, x, text, sizeof(text));
		fprintf(out, "%s'%s' %zu", comma, text, figure->x[x]);
		comma = ", ";
	}
	fputs(")\n", out);
}

static void put_y_axis(const struct figure *figure, FILE *out)
{
	/* Plain numbers, one a decade: no powers to decode. */
	fprintf(out, "set ylabel '%s' offset 1.5\n%s\n", figure->unit,
		figure->log_y ? "set logscale y 10\nset format y '%g'\nset yrange [*:*]" :
				"set yrange [0:*]");
}

/* A series' colours and marks; gnuplot's colours begin again after 8. */
static void put_style(unsigned int s, FILE *out)
{
	static const int points[] = { 7, 5, 9, 13, 3 };

	fprintf(out, "lw 2 pt %d ps 0.6 lc %u dt %u", points[s / 8 % 5], s + 1, s / 8 % 5 + 1);
}

/* The intervals as bars: what the rounds differ by. Of named places, which nothing lies between,
 * series `s` of `count` stand side by side. */
static void put_bars(const struct figure *figure, unsigned int s, unsigned int count, FILE *out)
{
	if (figure->x_names)
		fprintf(out, "using ($1%+g):2:3:4 with yerrorbars ", 0.15 * (s - (count - 1) / 2.));
	else
		fputs("using 1:2:3:4 with yerrorlines ", out);
}

static void put_curves(const struct figure *figure, bool predicted, bool titles, FILE *out)
{
	fputs("plot ", out);
	for (unsigned int s = 0; s < figure->series_count; s++) {
		fprintf(out, "%s'%s.dat' index %u ", s ? ", " : "", figure->name, s);
		if (predicted)
			fputs("using 1:5 with lines ", out);
		else
			put_bars(figure, s, figure->series_count, out);
		put_style(s, out);
		if (titles) {
			fputs(" title ", out);
			put_quoted(figure->series[s], out);
		}
		if (!predicted)
			continue;
		fprintf(out, ", '' index %u using 1:2:3:4 with yerrorbars ", s);
		put_style(s, out);
		fputs(" notitle", out);
	}
	fputc('\n', out);
}

static void put_picture(const struct results *results, const struct figure *figure, bool predicted,
			const char *stem, FILE *out)
{
	for (int png = 0; png < 2; png++) {
		begin(out, png, stem, 900, 560, 12);
		fputs("set title ", out);
		put_title(results, figure->title,
			  !predicted	   ? "" :
			  figure->measured ? ": predicted (lines), measured (points)" :
					     ": predicted",
			  out);
		fputs(" noenhanced\nset key outside right noenhanced\n", out);
		put_x_axis(figure, figure->x_count, out);
		put_y_axis(figure, out);
		put_curves(figure, predicted, true, out);
	}
}

/* ---- panels ---------------------------------------------------------------------------------- */

/* The comparisons that share a picture are those of one group. */
static void put_ratio_curves(const struct results *results, const struct comparison *first,
			     const struct figure *figure, FILE *out)
{
	unsigned int s = 0, count = 0;

	for (unsigned int c = 0; c < results->comparison_count; c++)
		count += results->comparisons[c]->group == first->group;
	fputs("plot ", out);
	if (first->control)
		fprintf(out,
			"'%s.dat' index %u using 1:5:6 with filledcurves fc rgb '#cccccc', "
			"%g with lines lw 1.5 dt 2 lc rgb '#c0392b', ",
			figure->name, figure->series_count, first->floor);
	fputs("1 with lines lw 1 lc rgb '#000000'", out);
	for (; s < count; s++) {
		fprintf(out, ", '%s.dat' index %u ", figure->name, figure->series_count + s);
		put_bars(figure, s, count, out);
		put_style(s + 1, out);
	}
	fputc('\n', out);
}

/* One range for all panels, so that they can be compared at a glance. */
static void put_ratio_axis(const struct results *results, const struct comparison *first, FILE *out)
{
	double low = first->floor, high = 1.1;

	for (unsigned int c = 0; c < results->comparison_count; c++) {
		const struct comparison *comparison = results->comparisons[c];

		for (unsigned int i = 0; i < comparison->cell_count; i++) {
			const struct compared *cell = &comparison->cells[i];

			if (comparison->group != first->group)
				continue;
			low = fmin(low, fmin(cell->ratio.low, cell->control.low));
			high = fmax(high, fmax(cell->ratio.high, cell->control.high));
		}
	}
	/* Twice as fast and twice as slow are equally far from 1 only on a logarithmic scale. */
	fprintf(out,
		"set ylabel 'ratio' offset 1.5\nset logscale y 2\nset yrange [%g:%g]\nset ytics (%s)\n",
		low / 1.05, high * 1.05,
		high / low > 5 ? "0.03, 0.06, 0.12, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64" :
				 "0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 2.5, 3, 4");
}

static void put_legend(const struct results *results, const struct comparison *first, bool ratios,
		       FILE *out)
{
	const struct figure *figure = comparison_figure(results, first, NULL);
	unsigned int s = 0;

	fputs("unset title\nunset xlabel\nunset ylabel\nunset tics\nunset border\nunset grid\n"
	      "set key center center spacing 1.6 noenhanced\nset xrange [1:2]\nset yrange [1:2]\n"
	      "plot ",
	      out);
	if (ratios)
		fputs("NaN with lines lw 1 lc rgb '#000000' title 'equal'", out);
	if (ratios && first->control)
		fprintf(out,
			", NaN with filledcurves fc rgb '#cccccc' title '%s/%s, interval', "
			"NaN with lines lw 1.5 dt 2 lc rgb '#c0392b' title 'floor %g'",
			first->stock, first->control, first->floor);
	for (unsigned int c = 0; c < results->comparison_count && ratios; c++) {
		if (results->comparisons[c]->group != first->group)
			continue;
		fputs(", NaN with linespoints ", out);
		put_style(++s, out);
		fprintf(out, " title '%s/%s, interval'", first->stock,
			results->comparisons[c]->subject);
	}
	for (; s < figure->series_count && !ratios; s++) {
		fprintf(out, "%sNaN with linespoints ", s ? ", " : "");
		put_style(s, out);
		fputs(" title ", out);
		put_quoted(figure->series[s], out);
	}
	fputc('\n', out);
}

static void put_panels(const struct results *results, const struct comparison *first, bool ratios,
		       const char *stem, FILE *out)
{
	unsigned int panels = 1, columns, rows; /* one for the legend */
	struct figure *f = NULL;
	int height;

	while ((f = comparison_figure(results, first, f)))
		panels += is_drawn(f);
	columns = panels < PANEL_COLUMNS ? panels : PANEL_COLUMNS;
	rows = (panels + columns - 1) / columns;
	height = (int)rows * PANEL_HEIGHT + 40;
	for (int png = 0; png < 2; png++) {
		begin(out, png, stem, (int)columns * PANEL_WIDTH, height, 11);
		fprintf(out,
			"set multiplot layout %u,%u margins 0.055,0.985,%.3f,%.3f spacing "
			"0.055,0.13 title ",
			rows, columns, (double)LABELS_HEIGHT / height,
			1 - (double)TITLE_HEIGHT / height);
		put_title(results, first->title, ratios ? ": ratios, above 1 faster" : ": times",
			  out);
		fputs(" noenhanced\nunset key\n", out);
		while ((f = comparison_figure(results, first, f))) {
			if (!is_drawn(f))
				continue;
			fputs("set title ", out);
			put_quoted(f->row, out);
			fputs(" offset 0,-0.5 noenhanced\n", out);
			put_x_axis(f, PANEL_TICS, out);
			if (ratios) {
				put_ratio_axis(results, first, out);
				put_ratio_curves(results, first, f, out);
			} else {
				put_y_axis(f, out);
				put_curves(f, false, false, out);
			}
		}
		put_legend(results, first, ratios, out);
		fprintf(out, "unset multiplot\n");
	}
}

/* A script, and the picture that it draws. */
static int draw(const struct results *results, const struct picture *picture, void *context)
{
	char *directory = context, path[PATH_MAX], script[sizeof(picture->stem) + 4];
	FILE *out = results_open(directory, picture->stem, "gp", path);

	if (!out) {
		say("there will be no plots");
		return 1;
	}
	if (picture->figure)
		put_picture(results, picture->figure, picture->second, picture->stem, out);
	else
		put_panels(results, picture->comparison, picture->second, picture->stem, out);
	if (results_close(out, path))
		return 1;
	snprintf(script, sizeof(script), "%s.gp", picture->stem);
	return run_gnuplot(directory, script);
}

/* The first plot that cannot be drawn is the last: the reason is that of all. */
int results_plot(const struct results *results, const char *out)
{
	int failed = 0;

	for (unsigned int f = 0; f < results->figure_count && !failed; f++)
		if (is_drawn(results->figures[f]))
			failed = write_data(results, results->figures[f], out);
	return failed ? failed : results_pictures(results, draw, (void *)out);
}
