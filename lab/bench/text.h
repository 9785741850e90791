/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in and out: sizes with units, ranges. */
#ifndef BENCH_TEXT_H
#define BENCH_TEXT_H

#include <stddef.h>

#include "lab/harness/options.h"

enum { TEXT_SIZE_CHARS = 24, TEXT_ERROR_CHARS = 512 };

/* Print "4 B", "64 KiB", "3 MiB": exact, in the largest unit that divides the number. */
const char *size_format(size_t bytes, char out[TEXT_SIZE_CHARS]);

/* The powers of four from @min to @max: the sizes a latency curve is drawn over by default. */
void size_list_powers_of_4(struct size_list *list, size_t min, size_t max);

/* Numbers from @low to @high, both included. */
struct range {
	double low;
	double high;
};

/* Parse "0:140", whole decimal fractions between 0 and @max. Returns 0 or -EINVAL. */
int range_parse(const char *text, double max, struct range *range);

/* Exit statuses of both programs. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2, /* of the harness: EXIT_USAGE */
	STATUS_GATE = 3,
};

/* --token-ns: the same, and ends the program where the text is wrong. */
void range_take(const char *text, struct range *range);

#endif
