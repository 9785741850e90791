// SPDX-License-Identifier: BSD-3-Clause
/*
 * HPC Challenge. It reads hpccinf.txt in its working directory, appends to hpccoutf.txt there and
 * exits with 0 whatever its checks say, so each check is looked up here: a part that was skipped or
 * could not run must not pass for one that is right.
 */
#include "demo.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HPL's input by line numbers, which is how hpcc reads it. */
#define LINE_P 11
#define LINE_Q 12

/* hpcc's own bound on the FFT's error over eps * log(n): the input's threshold. */
#define FFT_THRESHOLD 16.0

/* Whole text of a file, to be freed; NULL if it cannot be read. */
static char *read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t len = 0;

	if (file && getdelim(&text, &len, '\0', file) < 0) {
		free(text);
		text = NULL;
	}
	if (file)
		fclose(file);
	return text;
}

/* Copies our input with a process grid of p x q ranks, as square as it gets. */
int demo_hpcc_prepare(const struct demo *demo)
{
	char path[PATH_MAX], in[PATH_MAX], out[PATH_MAX];
	char *line = NULL;
	size_t capacity = 0;
	int p = 1;

	for (int d = 2; d * d <= demo->opt.ranks; d++)
		if (demo->opt.ranks % d == 0)
			p = d;

	snprintf(path, sizeof(path), "%s/hpcc/hpccinf.txt", demo->opt.examples);
	snprintf(in, sizeof(in), "%s/hpccinf.txt", demo->folder);
	snprintf(out, sizeof(out), "%s/hpccoutf.txt", demo->folder);

	FILE *from = fopen(path, "r");
	FILE *to = from ? fopen(in, "w") : NULL;

	if (!to) {
		say("%s: %s", from ? in : path, strerror(errno));
		if (from)
			fclose(from);
		return -1;
	}
	for (int number = 1; getline(&line, &capacity, from) > 0; number++) {
		if (number == LINE_P)
			fprintf(to, "%-12d Ps\n", p);
		else if (number == LINE_Q)
			fprintf(to, "%-12d Qs\n", demo->opt.ranks / p);
		else
			fputs(line, to);
	}
	free(line);
	fclose(from);
	unlink(out);
	if (fclose(to)) {
		say("%s: %s", in, strerror(errno));
		return -1;
	}
	return 0;
}

/* The value of a "key=value" line of the summary; NaN if there is none. */
static double value_of(const char *text, const char *key)
{
	const char *found = strstr(text, "Begin of Summary section.");
	size_t len = strlen(key);

	while (found && (found = strchr(found, '\n'))) {
		found++;
		if (strncmp(found, key, len) == 0 && found[len] == '=')
			return strtod(found + len + 1, NULL);
	}
	return NAN;
}

/* How many lines contain one text and, if it is not NULL, another after it. */
static int count_lines(const char *text, const char *part, const char *then)
{
	int count = 0;

	while ((text = strstr(text, part))) {
		const char *end = strchrnul(text, '\n');
		const char *second = then ? strstr(text, then) : text;

		if (second && second < end)
			count++;
		text = end;
	}
	return count;
}

/* True if there is a line "N tests completed and failed ..." (or skipped) whose N is not 0. */
static bool any_nonzero(const char *text, const char *sentence)
{
	const char *found = text;

	while ((found = strstr(found, sentence))) {
		const char *start = found;

		while (start > text && start[-1] != '\n')
			start--;
		if (strtol(start, NULL, 10) != 0)
			return true;
		found += strlen(sentence);
	}
	return false;
}

/* The first of hpcc's checks that did not pass, as a sentence; NULL if all passed. */
static const char *first_failed_check(const char *text)
{
	double fft_bound = FFT_THRESHOLD * DBL_EPSILON / 2.0 * log(value_of(text, "MPIFFT_N"));

	if (value_of(text, "Success") != 1.0)
		return "hpcc does not say Success=1";
	if (count_lines(text, "||Ax-b||_oo", "PASSED") < 1)
		return "no HPL residual PASSED";
	if (count_lines(text, "FAILED", NULL) != 0 ||
	    any_nonzero(text, "tests completed and failed residual checks"))
		return "a residual check FAILED";
	if (any_nonzero(text, "tests skipped because of illegal input"))
		return "a test was skipped because of its input";
	if (count_lines(text, "WALL ", "PASSED") < 1 || !(value_of(text, "PTRANS_GBs") > 0.0))
		return "no PTRANS test PASSED";
	if (value_of(text, "MPIRandomAccess_Errors") != 0.0 ||
	    value_of(text, "MPIRandomAccess_LCG_Errors") != 0.0)
		return "MPIRandomAccess has errors";
	if (count_lines(text, "Found ", "errors in") < 1 ||
	    count_lines(text, "Found ", "errors in") != count_lines(text, "Found ", "(passed)"))
		return "RandomAccess has errors";
	if (!(value_of(text, "MPIFFT_maxErr") <= fft_bound) ||
	    !(value_of(text, "MPIFFT_Gflops") > 0.0))
		return "MPIFFT's error is too large";
	if (count_lines(text, "Solution Validates", NULL) < 1)
		return "STREAM does not validate";
	if (count_lines(text, "Node(s) with error", NULL) < 1 ||
	    count_lines(text, "Node(s) with error", NULL) !=
		    count_lines(text, "Node(s) with error 0\n", NULL))
		return "a part reports nodes with errors";
	return NULL;
}

int demo_hpcc_read(const struct demo *demo, double wall_s, double *values)
{
	char path[PATH_MAX];
	const char *failed;
	char *text;

	snprintf(path, sizeof(path), "%s/hpccoutf.txt", demo->folder);
	text = read_text(path);
	failed = text ? first_failed_check(text) : "hpcc wrote no hpccoutf.txt";
	if (failed) {
		say("hpcc: not verified: %s (%s)", failed, path);
		free(text);
		return -1;
	}
	values[0] = wall_s;
	values[1] = value_of(text, "MPIFFT_Gflops");
	values[2] = value_of(text, "MPIRandomAccess_CheckTime") +
		    value_of(text, "MPIRandomAccess_LCG_CheckTime");
	values[3] = value_of(text, "MPIRandomAccess_GUPs");
	values[4] = value_of(text, "PTRANS_GBs");
	free(text);
	return 0;
}
