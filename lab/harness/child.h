/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Run a command, keep the end of what it says, and never wait longer than agreed. (`onecopy run`,
 * which is the user's command in the foreground, has tools/onecopy/foreground.h.)
 */
#ifndef HARNESS_CHILD_H
#define HARNESS_CHILD_H

#include <stdbool.h>

enum {
	CHILD_TAIL_CHARS = 4096,
	CHILD_MAX_ARGS = 64,
	CHILD_NO_OUTPUT = 126, /* the exit status where its streams could not be set */
	CHILD_NOT_FOUND = 127, /* the exit status of a command that could not be executed */
};

struct child_args {
	char *argv[CHILD_MAX_ARGS + 1];
	int n;
	/* Gets each line of its stdout and stderr, without its end; NULL: nobody does. */
	void (*line)(void *context, const char *line);
	void *context;
};

struct child_result {
	int status; /* as waitpid has it */
	bool timed_out;
	double seconds;
	char line[1024];	     /* its last line so far, when it has no end yet */
	char tail[CHILD_TAIL_CHARS]; /* the end of its stdout and stderr together */
};

/* Append one argument. Beyond CHILD_MAX_ARGS it is dropped, and child_run refuses the command. */
void child_args_add(struct child_args *args, const char *text);
void child_args_add_long(struct child_args *args, long number);

/* Append the words of a command line, split as a shell does, without running anything. -EINVAL */
int child_args_add_words(struct child_args *args, const char *line);

/* The command line, to be pasted into a shell. Static storage, until the next call. */
const char *child_args_text(const struct child_args *args);
void child_args_destroy(struct child_args *args);

/*
 * Run it and wait; after @timeout_s, or once it is interrupted, end
 * it: SIGTERM first, so that mpirun can stop its ranks, SIGKILL 5 s later.
 * What it leaves behind is killed then, too (after descendants_adopt(), ranks included).
 * Returns 0 if it ran and exited with status 0, -ETIMEDOUT, -EINTR, -ECHILD for another exit
 * status or a signal, or another -errno if it could not be started at all.
 */
int child_run(const struct child_args *args, long timeout_s, struct child_result *result);

/*
 * From now on SIGINT and SIGTERM interrupt instead of ending this process: with `once` the first of
 * each alone, as nobody but the next one ends what is no child_run(). No change where it is so
 * already, or where they are ignored.
 */
void child_heed_signals(bool once);
bool child_interrupted(void);
/* What is run from now on is not ended by it. */
void child_forget_interrupt(void);

#endif
