/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/harness/gnuplot.h"

#include <errno.h>
#include <sys/wait.h>

#include "lab/harness/child.h"

enum { TIMEOUT_S = 120 };

void gnuplot_begin(FILE *out, enum gnuplot_format format, const char *stem, int width, int height,
		   int font_points)
{
	static const char *const terminals[] = { "svg dynamic", "pngcairo" };
	static const char *const ends[] = { "svg", "png" };

	fprintf(out,
		"reset\nset terminal %s size %d,%d font 'DejaVu Sans,%d' background rgb 'white'\n"
		"set output '%s.%s'\n",
		terminals[format], width, height, font_points, stem, ends[format]);
}

int gnuplot_run(const char *directory, const char *script, char *why, size_t n)
{
	struct child_args args = { .n = 0 };
	struct child_result result;
	int err;

	/* env -C, so that the script's relative names lie beside it. */
	child_args_add(&args, "env");
	child_args_add(&args, "-C");
	child_args_add(&args, directory);
	child_args_add(&args, "gnuplot");
	child_args_add(&args, script);
	err = child_run(&args, TIMEOUT_S, &result);
	if (err == -ECHILD && WIFEXITED(result.status) &&
	    WEXITSTATUS(result.status) == CHILD_NOT_FOUND) {
		snprintf(why, n,
			 "there are no plots, because gnuplot is not installed (Debian: "
			 "gnuplot-nox); with it, run 'gnuplot %s' in %s",
			 script, directory);
	} else if (err) {
		snprintf(why, n, "gnuplot failed on %s/%s: %s", directory, script, result.tail);
	}
	child_args_destroy(&args);
	return err;
}
