/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the processes below this one still make progress, and what each of them does if not.
 *
 * No test has a limit in seconds. It may take as long as it goes on: operations of the engine
 * advance (read from the processes' memory, watch_engine.c), bytes are written, processes and
 * threads begin or end. What does none of this for WATCH_SILENCE_S hangs. Those are seconds that
 * the processes were given: what a thread had to wait for a CPU or for the disk does not count, and
 * on a slow machine a second is longer (watch.c). So a busy machine makes no test fail.
 *
 * The caller is the subreaper of what it watches (lab/harness/descendants.h).
 */
#ifndef OC_TESTS_WATCH_H
#define OC_TESTS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define WATCH_SILENCE_S 120.0
/* Between two looks. */
#define WATCH_LOOK_MS 500

struct watch;

/* silence_s: 0 for WATCH_SILENCE_S. NULL: out of memory. */
struct watch *watch_begin(double silence_s);
/* After about WATCH_LOOK_MS. True: they hang. */
bool watch_look(struct watch *watch);
/* Of each process: what it is, its threads' stacks, its teams. */
void watch_report(struct watch *watch, FILE *out);
/* Says on stderr when a good part of the silence was used up, before it becomes too much. */
void watch_end(struct watch *watch);

/* ---- among the files here ---------------------------------------------------------------------
 */

/* Everything that is to be known of one process; NULL: it is gone or may not be looked at. */
struct watch_dwfl;
struct watch_dwfl *watch_open(pid_t pid);
void watch_close(struct watch_dwfl *dwfl);
/* Addresses of a variable in all of its modules; how many were found, at most `most`. */
unsigned int watch_variable(const struct watch_dwfl *dwfl, const char *name, uint64_t *address,
			    unsigned int most);
/* The stack of each thread. */
void watch_stacks(const struct watch_dwfl *dwfl, FILE *out);

/* A number that changes whenever an operation or a message of this process's teams advances. */
uint64_t watch_engine_marks(pid_t pid, uint64_t engine);
/* What each team is about, in lines. */
void watch_engine_say(pid_t pid, uint64_t engine, FILE *out);

#endif
