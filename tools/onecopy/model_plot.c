/* SPDX-License-Identifier: BSD-3-Clause */
/* The plot of `onecopy model`, by gnuplot; the script and its data stay beside the pictures. */
#include "command.h"
#include "lab/harness/child.h"
#include "lab/harness/gnuplot.h"
#include "model.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct plot {
	char stem[256]; /* of the files in the directory */
	const char *directory;
	const struct model_size *sizes;
	unsigned int count;
	const char *names[MODEL_ALGORITHMS * 2]; /* without their parameters */
	unsigned int name_count;
};

static FILE *open_file(const struct plot *plot, const char *end)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", plot->directory, plot->stem, end);
	file = fopen(path, "w");
	if (!file)
		command_say("'%s' cannot be written: %s; there will be no plot", path,
			    strerror(errno));
	return file;
}

/* 0 bytes have no place on a logarithmic axis. */
static bool is_drawn(const struct plot *plot, unsigned int s)
{
	return plot->sizes[s].bytes != 0;
}

/* Each name once, in the order in which they appear. */
static void collect_names(struct plot *plot)
{
	for (unsigned int s = 0; s < plot->count; s++) {
		for (unsigned int i = 0; i < plot->sizes[s].count && is_drawn(plot, s); i++) {
			const char *name = plot->sizes[s].at[i].algorithm;
			unsigned int n = 0;

			while (n < plot->name_count && !predict_same_name(plot->names[n], name))
				n++;
			if (n == plot->name_count && n < MODEL_ALGORITHMS * 2)
				plot->names[plot->name_count++] = name;
		}
	}
}

/* One block an algorithm: bytes, predicted and measured microseconds. */
static bool write_data(const struct plot *plot)
{
	FILE *out = open_file(plot, "dat");

	if (!out)
		return false;
	fprintf(out, "# bytes plans_us closed_us measured_us\n");
	for (unsigned int n = 0; n < plot->name_count; n++) {
		fprintf(out, "%s# %s\n", n ? "\n\n" : "", plot->names[n]);
		for (unsigned int s = 0; s < plot->count; s++) {
			const struct model_size *size = &plot->sizes[s];

			for (unsigned int i = 0; i < size->count && is_drawn(plot, s); i++) {
				const struct oc_prediction *p = &size->at[i];

				if (!predict_same_name(p->algorithm, plot->names[n]))
					continue;
				fprintf(out, "%zu %g ", size->bytes, 1e6 * p->virtual_s);
				fprintf(out, p->closed ? "%g " : "NaN ", 1e6 * p->total);
				fprintf(out, size->measured[i] >= 0 ? "%g\n" : "NaN\n",
					1e6 * size->measured[i]);
			}
		}
	}
	return !fclose(out);
}

static bool is_measured(const struct plot *plot)
{
	for (unsigned int s = 0; s < plot->count; s++) {
		for (unsigned int i = 0; i < plot->sizes[s].count && is_drawn(plot, s); i++) {
			if (plot->sizes[s].measured[i] >= 0)
				return true;
		}
	}
	return false;
}

static void write_figure(const struct plot *plot, const struct oc_predict_call *call, FILE *out,
			 enum gnuplot_format format)
{
	bool measured = is_measured(plot);
	const char *comma = "";
	char model[MODEL_TEXT];

	predict_model_text(&plot->sizes[0].predicted, model, sizeof(model));
	gnuplot_begin(out, format, plot->stem, 900, 600, 12);
	fprintf(out,
		"set title \"%s, %u ranks: %s%s\" noenhanced\n"
		"set logscale x 2\nset logscale y 10\nset format y '%%g'\nset grid\n"
		"set tics nomirror out\nset key outside right noenhanced\n"
		"set xlabel 'bytes of a block'\nset ylabel 'us'\nset xtics (",
		oci_collective_name(call->collective), call->ranks, model,
		measured ? "; points are measured" : "");
	for (unsigned int s = 0; s < plot->count; s++) {
		char text[32];

		if (!is_drawn(plot, s))
			continue;
		predict_bytes_text(plot->sizes[s].bytes, text, sizeof(text));
		fprintf(out, "%s'%s' %zu", comma, text, plot->sizes[s].bytes);
		comma = ", ";
	}
	fprintf(out, ")\nplot ");
	for (unsigned int n = 0; n < plot->name_count; n++) {
		int length = (int)strcspn(plot->names[n], ":");

		fprintf(out,
			"%s'%s.dat' index %u using 1:2 with linespoints lw 2 pt 2 ps 0.6 lc %u title '%.*s'",
			n ? ", " : "", plot->stem, n, n + 1, length, plot->names[n]);
		if (measured)
			fprintf(out,
				", '' index %u using 1:4 with points pt 7 ps 0.8 lc %u notitle", n,
				n + 1);
	}
	fprintf(out, "\n");
}

static int run_gnuplot(const struct plot *plot)
{
	char script[300], why[CHILD_TAIL_CHARS + PATH_MAX + 256];

	snprintf(script, sizeof(script), "%s.gp", plot->stem);
	if (!gnuplot_run(plot->directory, script, why, sizeof(why)))
		return 0;
	command_say("%s", why);
	return 1;
}

int model_plot(const char *directory, const struct oc_predict_call *call,
	       const struct model_size *sizes, unsigned int count)
{
	struct plot plot = { .directory = directory, .sizes = sizes, .count = count };
	FILE *out;

	if (mkdir(directory, 0777) && errno != EEXIST) {
		command_say("'%s' cannot be made: %s", directory, strerror(errno));
		return 1;
	}
	snprintf(plot.stem, sizeof(plot.stem), "%s-%u-%s", oci_collective_name(call->collective),
		 call->ranks, sizes[0].predicted.model);
	collect_names(&plot);
	if (!write_data(&plot))
		return 1;
	out = open_file(&plot, "gp");
	if (!out)
		return 1;
	write_figure(&plot, call, out, GNUPLOT_SVG);
	write_figure(&plot, call, out, GNUPLOT_PNG);
	if (fclose(out)) {
		command_say("'%s/%s.gp' cannot be written: %s", directory, plot.stem,
			    strerror(errno));
		return 1;
	}
	return run_gnuplot(&plot);
}
