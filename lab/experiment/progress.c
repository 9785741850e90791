/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/progress.h"

#include "lab/harness/clock.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

void progress_begin(struct progress *progress)
{
	*progress = (struct progress){ .bar = isatty(STDERR_FILENO), .start_s = now_s() };
}

double progress_seconds(const struct progress *progress)
{
	return now_s() - progress->start_s;
}

void progress_show(struct progress *progress, const char *what, double done)
{
	int full = (int)(done * 30);
	double elapsed = progress_seconds(progress);
	char time[48] = "";

	if (!progress->bar) {
		fprintf(stderr, "%s: %3.0f%% %s\n", program_invocation_short_name, 100 * done,
			what);
		return;
	}
	/* Sooner it would be a guess. */
	if (done > 0.02 && elapsed > 5) {
		long left = (long)(elapsed / done * (1 - done));

		snprintf(time, sizeof(time), ", about %ld:%02ld left", left / 60, left % 60);
	}
	fprintf(stderr, "\r\033[K[%.*s%*s] %3.0f%% %.40s%s", full, "##############################",
		30 - full, "", 100 * done, what, time);
	fflush(stderr);
	progress->drawn = true;
}

void progress_end(struct progress *progress)
{
	if (progress->drawn)
		fprintf(stderr, "\r\033[K");
	progress->drawn = false;
}
