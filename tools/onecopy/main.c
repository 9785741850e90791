/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"
#include "foreground.h"
#include "parts.h"

#include <onecopy/onecopy.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{ "run", "run a program, or the script that starts it, with onecopy under its MPI",
	  &run_options, run_main },
	{ "info", "what works on this machine, what does not, and why", &info_options, info_main },
	{ "tune", "measure this machine, so that jobs choose by what it is", &tune_options,
	  tune_main },
	{ "model", "predict every algorithm of a collective against size, here or elsewhere",
	  &model_options, model_main },
	{ "explain", "which algorithm is chosen for a call, and why", &explain_options,
	  explain_main },
	{ "bench", "measure this machine, and MPIs and programs with and without onecopy",
	  &bench_options, bench_main },
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *stream)
{
	fputs("Usage: onecopy COMMAND [OPTION...]\n"
	      "Makes the collectives of MPI programs inside a node move every byte once.\n\n",
	      stream);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fputs("  help     print this, or the help of a command: onecopy help COMMAND\n\n"
	      "  -h, --help     print this help\n"
	      "  -V, --version  print the version\n\n"
	      "Start with: onecopy run --stats mpirun -n 4 ./app\n"
	      "Manual pages: onecopy(1), onecopy-run(1), onecopy-info(1), onecopy-tune(1),\n"
	      "  onecopy-model(1), onecopy-explain(1), onecopy-bench(1), onecopy-environment(7)\n",
	      stream);
}

static const char *command_word(unsigned int i)
{
	return i < COMMANDS ? commands[i].name : NULL;
}

static const struct command *find_command(const char *name)
{
	return &commands[word_take(name, *name == '-' ? "an option of onecopy" : "a command",
				   command_word, ", help, --help, --version")];
}

static int print_command_help(const struct command *command)
{
	char name[64];

	snprintf(name, sizeof(name), "onecopy %s", command->name);
	options_help(command->options, name);
	return 0;
}

/* A word that is silently ignored was meant to do something. */
static void refuse_more(int argc, char **argv, int expected)
{
	if (argc > expected)
		usage("'%s' is one argument too many for 'onecopy %s'", argv[expected], argv[1]);
}

static int is(const char *text, const char *a, const char *b)
{
	return !strcmp(text, a) || !strcmp(text, b);
}

/*
 * No file of ours may get the number of a standard stream that is closed: what is said would go
 * into it. What stands there cannot be written to (or read from) either, and what we run finds
 * the stream closed, as it was.
 */
static void hold_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
	const struct command *command;
	char name[64];

	hold_streams();
	foreground_heed_children();
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	parts_take_variables();
	if (is(argv[1], "--version", "-V")) {
		refuse_more(argc, argv, 2);
		printf("onecopy %s\n", oc_version());
		return command_end(0);
	}
	if (is(argv[1], "--help", "-h") || (argc == 2 && !strcmp(argv[1], "help"))) {
		refuse_more(argc, argv, 2);
		print_help(stdout);
		return command_end(0);
	}
	if (!strcmp(argv[1], "help")) {
		refuse_more(argc, argv, 3);
		return command_end(print_command_help(find_command(argv[2])));
	}

	command = find_command(argv[1]);
	snprintf(name, sizeof(name), "onecopy %s", command->name);
	argv[1] = name;
	return command->run(argc - 1, argv + 1);
}
