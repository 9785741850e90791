/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `onecopy` command: one file per subcommand, and what they share.
 *
 * Whatever the user typed wrong ends in command_usage(): one sentence that says what is valid, and
 * exit status 2.
 */
#ifndef ONECOPY_COMMAND_H
#define ONECOPY_COMMAND_H

#include <argp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct command {
	const char *name;
	const char *summary; /* one line, for the list of commands */
	const struct argp *argp;
	int (*run)(int argc, char **argv); /* argv[0] is "onecopy NAME"; returns the exit status */
};

extern const struct argp run_argp, info_argp, tune_argp, model_argp, explain_argp, bench_argp;
int run_main(int argc, char **argv);
int info_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int model_main(int argc, char **argv);
int explain_main(int argc, char **argv);

/* "onecopy: sentence" on standard error. */
void command_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit status of a command that has printed all it has to say: 1, and a sentence, where that
 * could not be written. */
int command_end(int status);
/* command_say(), and exit(EXIT_USAGE). */
void command_usage(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A number of ranks, from `least` to `most`; else command_usage(). */
uint32_t command_ranks(const char *text, uint32_t least, uint32_t most);

#define COMMAND_HELP_OPTION                                 \
	{                                                   \
		"help", 'h', NULL, 0, "Print this help", -1 \
	}

/* Parses argv into `input`; the parser leaves what it does not know to command_parse_key(). */
void command_parse(const struct argp *argp, int argc, char **argv, void *input);
/* --help, unknown options and options without their value, for every subcommand alike. */
error_t command_parse_key(int key, char *arg, struct argp_state *state);

/*
 * Lists of names in a sentence: "a, b, c". Cut where the text is full, which no list of ours is.
 */
struct word_list {
	char text[1024];
};
void word_list_add(struct word_list *list, const char *word);

#endif
