// SPDX-License-Identifier: BSD-3-Clause
/*
 * One run. The demo is the subreaper of all it starts, since mpirun puts every rank into a group of
 * its own: what outlives a killed mpirun becomes our child and is killed too.
 */
#include "demo.h"
#include "lab/harness/descendants.h"
#include "lab/harness/stock_environment.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define TAIL_LINES 15

int demo_words(struct child_args *args, const char *words)
{
	if (!child_args_add_words(args, words))
		return 0;
	fprintf(stderr, "onecopy-demo: cannot split '%s' into words as a shell would\n", words);
	return -1;
}

static void note_interrupt(int signal)
{
	(void)signal;
	child_interrupt();
}

void demo_run_setup(void)
{
	struct sigaction action = { .sa_handler = note_interrupt };
	char dropped[1024];

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	descendants_adopt();
	if (stock_environment(dropped, sizeof(dropped)))
		fprintf(stderr,
			"onecopy-demo: dropped from the environment, since one side must run without "
			"onecopy: %s\n",
			dropped);
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
}

char *demo_read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t len = 0;

	if (!file)
		return NULL;
	if (getdelim(&text, &len, '\0', file) < 0) {
		free(text);
		text = ferror(file) ? NULL : strdup("");
	}
	fclose(file);
	return text;
}

static void print_tail(const char *path, const char *what)
{
	char *text = demo_read_text(path);
	size_t len = text ? strlen(text) : 0;
	char *from = text + len;

	for (int lines = 0; from > text; from--)
		if (from[-1] == '\n' && from != text + len && ++lines == TAIL_LINES)
			break;
	if (len)
		fprintf(stderr, "--- the end of its %s ---\n%s%s", what, from,
			text[len - 1] == '\n' ? "" : "\n");
	free(text);
}

void demo_tail(const struct demo *demo, const struct child_args *args)
{
	fprintf(stderr, "the command was: %s\n", child_args_text(args));
	print_tail(demo->files.out, "standard output");
	print_tail(demo->files.err, "standard error");
	fprintf(stderr, "(files kept in %s)\n", demo->files.folder);
}

int demo_run(const struct demo *demo, struct child_args *args, double *wall_s)
{
	struct child_result result;
	int error;

	args->out = demo->files.out;
	args->err = demo->files.err;
	error = child_run(args, demo->opt.timeout_s, &result);
	*wall_s = result.seconds;
	if (!error)
		return 0;
	if (error == -ETIMEDOUT || error == -EINTR)
		fprintf(stderr, "\nonecopy-demo: a run %s after %.1f s\n",
			error == -EINTR ? "was interrupted" : "did not end in time and was killed",
			*wall_s);
	else if (error != -ECHILD)
		fprintf(stderr, "\nonecopy-demo: a run could not be started: %s\n",
			strerror(-error));
	else if (WIFSIGNALED(result.status))
		fprintf(stderr, "\nonecopy-demo: a run was killed by signal %d (%s)\n",
			WTERMSIG(result.status), strsignal(WTERMSIG(result.status)));
	else
		fprintf(stderr, "\nonecopy-demo: a run failed with exit status %d\n",
			WEXITSTATUS(result.status));
	return -1;
}
