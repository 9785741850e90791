/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a command is that takes a while, on standard error. */
#ifndef EXPERIMENT_PROGRESS_H
#define EXPERIMENT_PROGRESS_H

#include <stdbool.h>

struct progress {
	bool bar; /* standard error is a terminal: one line, rewritten; else a line for each step */
	bool drawn;
	double start_s; /* of the clock that only goes on */
};

void progress_begin(struct progress *progress);
/* done: 0 to 1 */
void progress_show(struct progress *progress, const char *what, double done);
/* Since it began. */
double progress_seconds(const struct progress *progress);
/* Takes the bar away, so that a sentence can be printed. */
void progress_end(struct progress *progress);

#endif
