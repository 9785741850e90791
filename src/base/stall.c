/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Races in slow motion: a rank may be preempted between any two instructions, but between the two
 * that matter it is once in a million runs, on some other machine. Sanitized builds (OC_STALL) stop
 * before loads and stores of shared words instead.
 *
 * A stop anywhere alike would mostly hit the polling of flags. So each thread has its mind on a few
 * places of the code at a time, stops there often, and turns to others after a while.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"

#define GROUPS_BITS 5		/* places of the code are in one of 32 groups */
#define ACCESSES_PER_GROUP 2048 /* that a thread makes before it turns to another group */
#define ACCESSES_PER_STOP 16	/* of the group, on average */
#define ACCESSES_PER_YIELD 256
#define STOP_NS 100000 /* the longest */

static _Thread_local uint64_t state;
static _Thread_local uint32_t accesses, group;

static uint32_t random_bits(void)
{
	if (!state) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		state = (uint64_t)now.tv_nsec << 32 | (uint64_t)syscall(SYS_gettid) << 1 | 1;
	}
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

void oci_stall(void)
{
	uint64_t place = (uintptr_t)__builtin_return_address(0);
	uint32_t random = random_bits();
	int error = errno;

	if (accesses++ % ACCESSES_PER_GROUP == 0)
		group = random >> (32 - GROUPS_BITS);
	if (place * 0x9e3779b97f4a7c15u >> (64 - GROUPS_BITS) == group &&
	    random % ACCESSES_PER_STOP == 0) {
		struct timespec stop = { .tv_nsec = (random >> 8) % STOP_NS };

		nanosleep(&stop, NULL);
		errno = error;
	} else if (random % ACCESSES_PER_YIELD == 1) {
		sched_yield();
	}
}
