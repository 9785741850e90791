/* SPDX-License-Identifier: BSD-3-Clause */
/* Text in and out: sizes with units, comma lists, and the way our programs take their options. */
#ifndef BENCH_TEXT_H
#define BENCH_TEXT_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum { TEXT_MAX_SIZES = 64, TEXT_SIZE_CHARS = 24, TEXT_ERROR_CHARS = 512 };

struct size_list {
	size_t bytes[TEXT_MAX_SIZES];
	int n;
};

/*
 * Parse "64", "64K", "64KiB", "4M", "4MiB" or "1G" into bytes. Units are powers of 1024.
 * Returns 0, or -EINVAL for anything else, zero and numbers over 1 TiB included.
 */
int size_parse(const char *text, size_t *bytes);

/* Print "4 B", "64 KiB", "3 MiB": exact, in the largest unit that divides the number. */
const char *size_format(size_t bytes, char out[TEXT_SIZE_CHARS]);

/* Parse "4,1K,64K". On failure returns -EINVAL and puts the reason, a sentence, in @error. */
int size_list_parse(const char *text, struct size_list *list, char error[TEXT_ERROR_CHARS]);

/* The powers of four from @min to @max: the sizes a latency curve is drawn over by default. */
void size_list_powers_of_4(struct size_list *list, size_t min, size_t max);

/* Parse a whole decimal number between @min and @max. Returns 0 or -EINVAL. */
int long_parse(const char *text, long min, long max, long *value);

/* Parse a whole decimal fraction between @min and @max. Returns 0 or -EINVAL. */
int double_parse(const char *text, double min, double max, double *value);

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
	STATUS_USAGE = 2,
	STATUS_GATE = 3,
};

/*
 * Parse the command line without ever leaving the process, so that an MPI program stays in charge
 * of how it ends. @argp's parser sees the key ARGS_KEY_HELP for --help and must only return 0.
 * Returns -1 to go on, or the status to exit with: 0 after --help, 2 after a wrong option, which
 * was then explained on stderr, followed by the valid ones. A @quiet process (rank 1 and up) says
 * nothing and returns the same.
 */
int args_parse(const struct argp *argp, int argc, char **argv, void *options, bool quiet);

/* An option that is no more than a value: its key, where the value lies, what it may be, and the
 * sentence that says so. */
struct plain_option {
	int key;
	enum plain_kind { PLAIN_FLAG, PLAIN_TEXT, PLAIN_COUNT, PLAIN_FRACTION, PLAIN_SIZE } kind;
	size_t place;	    /* a bool, const char *, long, double or size_t */
	double least, most; /* of a count or a fraction */
	const char *sentence;
};

/* The table ends with key 0. ARGP_ERR_UNKNOWN: the option is not in it. */
error_t plain_parse(const struct plain_option *options, int key, const char *arg,
		    struct argp_state *state);
/* Says what is wrong with an option: EINVAL. */
error_t args_fail(struct argp_state *state, const char *sentence);

/* Of options that both programs have. */
#define TOKEN_SENTENCE                                                                      \
	"--token-ns takes the least and the most time of a token from rank to rank in ns, " \
	"as in 0:140."
#define CACHED_SENTENCE "--cached and --cold exclude each other: give one."

enum { ARGS_KEY_HELP = 'h' };
#define ARGS_HELP_OPTION                                              \
	{                                                             \
		"help", ARGS_KEY_HELP, NULL, 0, "Print this help", -1 \
	}

#endif
