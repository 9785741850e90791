/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a command leaves behind. mpirun puts every rank into a process group of its own, so killing
 * the command's group misses them; but orphans go to the nearest ancestor that is a subreaper. A
 * header, as the tests of the MPI share no library with the harness.
 */
#ifndef HARNESS_DESCENDANTS_H
#define HARNESS_DESCENDANTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DESCENDANTS_ROUNDS = 500 }; /* of 10 ms */

/* From now on orphans of our descendants become our children. */
static inline void descendants_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Collects those that have ended; whether that is all of them. */
static inline bool descendants_gone(void)
{
	pid_t reaped;

	while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
	}
	return reaped < 0;
}

/*
 * Kills and collects all children of the calling thread, which must be the one that forks. Each
 * round reads the list anew: killing a process hands its children to us.
 */
static inline void descendants_end(void)
{
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	char path[64];
	pid_t reaped = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	for (int round = 0; round < DESCENDANTS_ROUNDS && reaped >= 0; round++) {
		FILE *list = fopen(path, "r");
		int pid;

		while (list && fscanf(list, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		if (list)
			fclose(list);
		while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) {
		}
		if (reaped == 0)
			nanosleep(&pause, NULL);
	}
}

#endif
