// SPDX-License-Identifier: BSD-3-Clause
/*
 * The plots, by gnuplot. Its scripts and their data stay beside the pictures, so that anyone can
 * draw them again in another way.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "compare.h"
#include "lab/harness/gnuplot.h"

enum {
	PANEL_COLUMNS = 4,
	PANEL_WIDTH = 400,
	PANEL_HEIGHT = 360,
	TITLE_HEIGHT = 98,  /* of all panels and of the first row's */
	LABELS_HEIGHT = 68, /* below the last row */
	MAX_TICS = 6
};

struct figure {
	const char *name; /* of its files, before -<ranks> */
	const char *title;
	const char *y_label;
	void (*settings)(FILE *out, const struct compare *compare, const struct ranks_summary *s);
	void (*panel)(FILE *out, const struct compare *compare, const struct ranks_summary *s,
		      int block);
	void (*legend)(FILE *out, const struct compare *compare, const struct ranks_summary *s);
};

static const char stock_style[] = "lw 2 pt 5 ps 0.7 lc rgb '#555555'";
static const char onecopy_style[] = "lw 2 pt 7 ps 0.7 lc rgb '#0a66c2'";
static const char heap_style[] = "lw 2 pt 9 ps 0.7 lc rgb '#2e8b57'";
static const char limit_style[] = "lw 1.5 dt 2 lc rgb '#000000'";

static FILE *open_file(const struct compare *compare, const char *name, int ranks, const char *end)
{
	char path[COMPARE_PATH_CHARS + 64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s-%d.%s", compare->out, name, ranks, end);
	file = fopen(path, "w");
	if (!file) {
		fprintf(stderr,
			"oc_bench_compare: '%s' cannot be written: %s. There will be no "
			"plots.\n",
			path, strerror(errno));
	}
	return file;
}

/* One block a collective, as gnuplot's `index` counts them. */
static int write_data(const struct compare *compare, const struct ranks_summary *s,
		      const struct ranks_summary *heap)
{
	FILE *out = open_file(compare, "data", s->ranks, "dat");
	enum oc_collective before = OC_COLLECTIVES;
	int i;

	if (!out) {
		return -EIO;
	}
	fprintf(out, "# bytes stock_us onecopy_us ratio low high control_low control_high heap_us "
		     "memcpy_us\n");
	for (i = 0; i < compare->cells_n; i++) {
		const struct compare_cell *cell = &compare->cells[i];
		const struct cell_summary *c = &s->cells[i];

		if (cell->collective == OC_BARRIER) {
			continue;
		}
		if (cell->collective != before) {
			fprintf(out, "%s# %s\n", before == OC_COLLECTIVES ? "" : "\n\n",
				oci_collective_name(cell->collective));
			before = cell->collective;
		}
		fprintf(out, "%zu %g %g %g %g %g %g %g %g %g\n", cell->bytes, c->stock_us,
			c->onecopy_us, c->ratio.median, c->ratio.low, c->ratio.high, c->control.low,
			c->control.high, heap ? heap->cells[i].onecopy_us : 0, c->limit_us);
	}
	fclose(out);
	return 0;
}

static void latency_settings(FILE *out, const struct compare *compare,
			     const struct ranks_summary *s)
{
	(void)compare;
	(void)s;
	/* Plain numbers, one a decade: no powers to decode. */
	fprintf(out, "set logscale y 10\nset format y '%%g'\nset yrange [*:*]\n");
}

static void latency_panel(FILE *out, const struct compare *compare, const struct ranks_summary *s,
			  int block)
{
	fprintf(out,
		"plot 'data-%d.dat' index %d using 1:2 with linespoints %s, "
		"'' index %d using 1:3 with linespoints %s",
		s->ranks, block, stock_style, block, onecopy_style);
	if (compare_has(compare, CONFIG_HEAP)) {
		fprintf(out, ", '' index %d using 1:9 with linespoints %s", block, heap_style);
	}
	if (compare_has(compare, CONFIG_LIMIT)) {
		fprintf(out, ", '' index %d using 1:10 with lines %s", block, limit_style);
	}
	fputc('\n', out);
}

static void latency_legend(FILE *out, const struct compare *compare, const struct ranks_summary *s)
{
	(void)s;
	fprintf(out,
		"plot NaN with linespoints %s title 'stock', NaN with linespoints %s title "
		"'onecopy'",
		stock_style, onecopy_style);
	if (compare_has(compare, CONFIG_HEAP)) {
		fprintf(out, ", NaN with linespoints %s title 'with shared heaps'", heap_style);
	}
	if (compare_has(compare, CONFIG_LIMIT)) {
		fprintf(out, ", NaN with lines %s title 'memcpy of these bytes'", limit_style);
	}
	fputc('\n', out);
}

/* One range for all panels, so that they can be compared at a glance. */
static void ratio_settings(FILE *out, const struct compare *compare, const struct ranks_summary *s)
{
	double low = s->floor, high = 1.1;
	int i;

	for (i = 0; i < compare->cells_n; i++) {
		const struct cell_summary *c = &s->cells[i];

		low = fmin(low, fmin(c->ratio.low, c->control.low));
		high = fmax(high, fmax(c->ratio.high, c->control.high));
	}
	/* Twice as fast and twice as slow are equally far from 1 only on a logarithmic scale. */
	fprintf(out, "set logscale y 2\nset yrange [%g:%g]\nset ytics (%s)\n", low / 1.05,
		high * 1.05,
		high / low > 5 ? "0.03, 0.06, 0.12, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64" :
				 "0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 2.5, 3, 4");
}

static void ratio_panel(FILE *out, const struct compare *compare, const struct ranks_summary *s,
			int block)
{
	(void)compare;
	fprintf(out,
		"plot 'data-%d.dat' index %d using 1:7:8 with filledcurves fc rgb '#cccccc', "
		"1 with lines lw 1 lc rgb '#000000', "
		"%g with lines lw 1.5 dt 2 lc rgb '#c0392b', "
		"'' index %d using 1:4:5:6 with yerrorlines %s\n",
		s->ranks, block, s->floor, block, onecopy_style);
}

static void ratio_legend(FILE *out, const struct compare *compare, const struct ranks_summary *s)
{
	(void)compare;
	fprintf(out,
		"plot NaN with linespoints %s title 'stock/onecopy, interval', "
		"NaN with filledcurves fc rgb '#cccccc' title 'stock/stock, interval', "
		"NaN with lines lw 1 lc rgb '#000000' title 'equal', "
		"NaN with lines lw 1.5 dt 2 lc rgb '#c0392b' title 'floor %g'\n",
		onecopy_style, s->floor);
}

static const struct figure figures[] = {
	{ "latency", "latency", "us", latency_settings, latency_panel, latency_legend },
	{ "ratio", "stock/onecopy, above 1 onecopy is faster", "ratio", ratio_settings, ratio_panel,
	  ratio_legend },
};

/* At most six labels on the axis, as "4", "1K", "4M". */
static void write_tics(const struct compare *compare, FILE *out)
{
	const struct size_list *sizes = &compare->options.sizes;
	int step = (sizes->n + MAX_TICS - 1) / MAX_TICS, i;

	fprintf(out, "set xtics (");
	for (i = 0; i < sizes->n; i += step) {
		size_t bytes = sizes->bytes[i];
		const char *unit = "";

		if (bytes % (1 << 20) == 0) {
			bytes >>= 20;
			unit = "M";
		} else if (bytes % (1 << 10) == 0) {
			bytes >>= 10;
			unit = "K";
		}
		fprintf(out, "%s'%zu%s' %zu", i ? ", " : "", bytes, unit, sizes->bytes[i]);
	}
	/* Room at both ends, so that no error bar hides in the frame. */
	fprintf(out, ")\nset xrange [%g:%g]\n", (double)sizes->bytes[0] / 1.6,
		(double)sizes->bytes[sizes->n - 1] * 1.6);
}

static void write_figure(const struct compare *compare, const struct ranks_summary *s,
			 const struct figure *figure, enum gnuplot_format format, FILE *out)
{
	int panels = 0, columns, rows, height, i;
	char stem[64];

	for (i = 0; i < compare->options.collectives.n; i++) {
		panels += compare->options.collectives.at[i] != OC_BARRIER;
	}
	/* One more for the legend. */
	columns = panels + 1 < PANEL_COLUMNS ? panels + 1 : PANEL_COLUMNS;
	rows = (panels + columns) / columns;
	height = rows * PANEL_HEIGHT + 40;
	snprintf(stem, sizeof(stem), "%s-%d", figure->name, s->ranks);
	gnuplot_begin(out, format, stem, columns * PANEL_WIDTH, height, 11);
	fprintf(out,
		"set multiplot layout %d,%d margins 0.055,0.985,%.3f,%.3f spacing 0.055,0.13 "
		"title \"%d ranks, %s: %s\\n%s, %s, %s\" noenhanced\n",
		rows, columns, (double)LABELS_HEIGHT / height, 1 - (double)TITLE_HEIGHT / height,
		s->ranks, s->oversubscribed ? "sharing cores" : "one a core", figure->title,
		compare->mpi[0], compare->host.cpu, compare->host.date);
	fprintf(out,
		"set logscale x 2\nset grid\nset tics nomirror out\nunset key\n"
		"set xlabel 'bytes' offset 0,0.4\nset ylabel '%s' offset 0.8\n",
		figure->y_label);
	write_tics(compare, out);
	figure->settings(out, compare, s);
	for (panels = 0, i = 0; i < compare->options.collectives.n; i++) {
		if (compare->options.collectives.at[i] != OC_BARRIER) {
			fprintf(out, "set title '%s' offset 0,-0.5\n",
				oci_collective_name(compare->options.collectives.at[i]));
			figure->panel(out, compare, s, panels++);
		}
	}
	fprintf(out, "unset title\nunset xlabel\nunset ylabel\nunset tics\nunset border\n"
		     "unset grid\nset key center center spacing 1.6\n"
		     "set xrange [1:2]\nset yrange [1:2]\n");
	figure->legend(out, compare, s);
	fprintf(out, "unset multiplot\n");
}

static int run_gnuplot(const struct compare *compare, const char *name, int ranks)
{
	char script[64], why[CHILD_TAIL_CHARS + COMPARE_PATH_CHARS + 256];
	int err;

	snprintf(script, sizeof(script), "%s-%d.gp", name, ranks);
	err = gnuplot_run(compare->out, script, why, sizeof(why));
	if (err) {
		fprintf(stderr, "oc_bench_compare: %s\n", why);
	}
	return err;
}

int compare_plot(const struct compare *compare, const struct ranks_summary *summaries)
{
	size_t f;
	int i, err = 0;

	if (compare->cells_n == 0 ||
	    (compare->cells_n == 1 && compare->cells[0].collective == OC_BARRIER)) {
		return 0;
	}
	for (i = 0; i < compare->options.ranks_n && !err; i++) {
		const struct ranks_summary *s = &summaries[i];

		err = write_data(compare, s,
				 compare_has(compare, CONFIG_HEAP) ?
					 &summaries[i + compare->options.ranks_n] :
					 NULL);
		for (f = 0; f < sizeof(figures) / sizeof(figures[0]) && !err; f++) {
			FILE *out = open_file(compare, figures[f].name, s->ranks, "gp");

			if (!out) {
				return -EIO;
			}
			write_figure(compare, s, &figures[f], GNUPLOT_SVG, out);
			write_figure(compare, s, &figures[f], GNUPLOT_PNG, out);
			fclose(out);
			err = run_gnuplot(compare, figures[f].name, s->ranks);
		}
	}
	return err;
}
