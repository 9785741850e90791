/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 1's main thread leaves by pthread_exit, and another goes on with MPI: the process lives, and
 * the others do not take it for dead, neither by what /proc says nor, later, when the program has
 * used up all descriptors and has pipes where it found some that it did not open. What they call
 * arrives.
 */
#include "case.h"
#include "support/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WARM_UP = 5, CALLS = 4, CALLS_WITH_FILES = 2, FILES = 1024, LATE_US = 50000 };

static int file[FILES], files;

static void calls(unsigned int first, unsigned int count)
{
	static const enum case_collective what[] = { CASE_BARRIER, CASE_BCAST, CASE_ALLREDUCE };

	for (unsigned int i = first; i < first + count; i++) {
		for (unsigned int c = 0; c < sizeof(what) / sizeof(what[0]); c++) {
			struct case_call call = { .collective = what[c],
						  .bytes = i % 2 ? 1 << 18 : 64,
						  .kind = (int)i % 5,
						  .salt = i };

			if (case_run(MPI_COMM_WORLD, &call))
				case_fail("a collective failed");
		}
	}
}

/* Readable pipes in place of pidfds, and then no descriptor any more. */
static void take_descriptors(void)
{
	int ends[2];

	if (pipe(ends) || write(ends[1], "x", 1) != 1)
		case_fail("no pipe");
	oct_replace_pidfds(ends[0]);
	oct_limit(RLIMIT_NOFILE, FILES);
	while (files < FILES && (file[files] = open("/dev/null", O_RDONLY)) >= 0)
		files++;
}

static void *rest(void *late)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		if (i == CALLS_WITH_FILES)
			take_descriptors();
		if (late)
			usleep(LATE_US);
		calls(WARM_UP + i, 1);
	}
	while (files)
		close(file[--files]);
	exit(case_end("main_left: %d calls\n", WARM_UP + CALLS));
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int rank;

	case_begin_threads(&argc, &argv, &rank, NULL);
	calls(0, WARM_UP);
	if (rank != 1)
		rest(NULL);
	if (pthread_create(&thread, NULL, rest, &rank))
		case_fail("no thread");
	pthread_exit(NULL);
}
