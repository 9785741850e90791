/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <stdio.h>
#include <unistd.h>

void progress_begin(struct progress *progress)
{
	*progress = (struct progress){ .bar = isatty(STDERR_FILENO) };
}

void progress_show(struct progress *progress, const char *what, double done)
{
	int full = (int)(done * 30);

	if (!progress->bar) {
		fprintf(stderr, "onecopy: %3.0f%% %s\n", 100 * done, what);
		return;
	}
	fprintf(stderr, "\r[%.*s%*s] %3.0f%% %-40.40s", full, "##############################",
		30 - full, "", 100 * done, what);
	fflush(stderr);
	progress->drawn = true;
}

void progress_end(struct progress *progress)
{
	if (progress->drawn)
		fprintf(stderr, "\r%78s\r", "");
	progress->drawn = false;
}
