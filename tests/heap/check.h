/* SPDX-License-Identifier: BSD-3-Clause */
/* What the scenarios share. Plain C: under a malloc of our own, less is more. */
#ifndef HEAP_CHECK_H
#define HEAP_CHECK_H

#include "heap/arena.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_Exit(1);                                                               \
		}                                                                               \
	} while (0)

#define MIB ((size_t)1 << 20)

/* The arena of this process; never NULL. */
const struct oci_arena *arena(void);
/* Whether all of the block is in it. */
bool in_arena(const void *memory, size_t bytes);
/* The same program again, with another scenario; returns only when that is impossible. */
void again(const char *scenario);
/* Waits for a child that must end with 0. */
void reap(int pid);

/* A scenario: a word of the command line, and what it checks. */
struct scenario {
	const char *name;
	void (*run)(void);
};
extern const struct scenario family_scenarios[], limit_scenarios[], fork_scenarios[],
	meeting_scenarios[], beginning_scenarios[], stack_scenarios[];

#endif
