/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way our programs take their options, and what they say. Whatever a user typed wrong ends in
 * usage(): one sentence that says what is valid, and exit status 2.
 */
#ifndef HARNESS_OPTIONS_H
#define HARNESS_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

enum { EXIT_USAGE = 2 };

/* "PROGRAM: sentence" on standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

enum option_kind {
	OPTION_FLAG,	 /* a bool, which it sets */
	OPTION_TEXT,	 /* a const char * */
	OPTION_COUNT,	 /* a long from `least` to `most` */
	OPTION_FRACTION, /* a double likewise */
};

struct option_row {
	const char *name; /* NULL: `help` is the heading of those that follow */
	int key;	  /* its letter; 0: none */
	const char *value, *help;
	enum option_kind kind;
	size_t place; /* of its member in the options */
	double least, most;
	/* Gets that member, or with `place` 0 the options; NULL: by its kind. */
	void (*take)(void *place, const char *text);
};

struct option_set {
	const struct option_row *rows; /* to one of neither name nor help; --help is added */
	/* Gets what is no option, and may take the rest of argv, by state->next; NULL: there is to
	 * be nothing. */
	void (*argument)(void *options, const char *text, struct argp_state *state);
	const char *arguments, *about; /* as argp's args_doc and doc */
};

/* argv[0]: what the user calls it. Prints the help and exits, where that is asked for. */
void options_parse(const struct option_set *set, int argc, char **argv, void *options);
void options_help(const struct option_set *set, const char *name);

/* A whole decimal number, a fraction from `min` to `max`. 0 or -EINVAL. */
int long_parse(const char *text, long min, long max, long *value);
int double_parse(const char *text, double min, double max, double *value);

enum { SIZES_MOST = 64 };

struct size_list {
	size_t at[SIZES_MOST];
	unsigned int count;
};

/* "64", "64K", "64KiB", "4M", "1G": units are powers of 1024. 0; -EINVAL for anything else, and for
 * more than 1 TiB. */
int size_parse(const char *text, size_t *bytes);
/* A size, or "4,1K,64K", of `least` bytes and more; else usage(). */
size_t size_take(const char *option, const char *text, size_t least);
void size_list_take(const char *option, const char *text, size_t least, struct size_list *list);

/* Lists of names in a sentence: "a, b, c". Cut where the text is full, which no list of ours is. */
struct word_list {
	char text[1024];
};
void word_list_add(struct word_list *list, const char *word);
/* Which of the words it is that valid(0), valid(1), ... are, until NULL; letter case does not
 * matter. Else usage(): "'word' is not WHAT; valid: a, b, c" and what is valid besides, "" or ", or
 * ...". */
unsigned int word_take(const char *word, const char *what, const char *(*valid)(unsigned int i),
		       const char *besides);

#endif
