/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots by gnuplot. Scripts and data stay beside the pictures, so that anyone can draw them again.
 */
#ifndef HARNESS_GNUPLOT_H
#define HARNESS_GNUPLOT_H

#include <stddef.h>
#include <stdio.h>

/* Each picture is drawn as both. */
enum gnuplot_format { GNUPLOT_SVG, GNUPLOT_PNG, GNUPLOT_FORMATS };

/* Begins a picture, STEM.svg or STEM.png: a script may have several. */
void gnuplot_begin(FILE *out, enum gnuplot_format format, const char *stem, int width, int height,
		   int font_points);

/* Runs a script in its directory. 0, or -errno with a sentence in why[0..n). */
int gnuplot_run(const char *directory, const char *script, char *why, size_t n);

#endif
