/* SPDX-License-Identifier: BSD-3-Clause */
/* The `onecopy` command: one file per subcommand, and what they share. */
#ifndef ONECOPY_COMMAND_H
#define ONECOPY_COMMAND_H

#include "lab/harness/options.h"

#include <stdint.h>

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

struct command {
	const char *name;
	const char *summary; /* one line, for the list of commands */
	const struct option_set *options;
	int (*run)(int argc, char **argv); /* argv[0] is "onecopy NAME"; returns the exit status */
};

extern const struct option_set run_options, info_options, tune_options, model_options,
	explain_options, bench_options;
int run_main(int argc, char **argv);
int info_main(int argc, char **argv);
int tune_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int model_main(int argc, char **argv);
int explain_main(int argc, char **argv);

/* The exit status of a command that has printed all it has to say: 1, and a sentence, where that
 * could not be written. */
int command_end(int status);
/* A number of ranks, from `least` to `most`; else usage(). */
uint32_t command_ranks(const char *text, uint32_t least, uint32_t most);

#endif
