/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int counter = -1;

bool misses_open(char *why, size_t n)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_CACHE_MISSES };
	int error;

	counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (counter >= 0)
		return true;
	error = errno;
	if (error == EACCES || error == EPERM)
		snprintf(why, n,
			 "the kernel does not let this user read them (%s): it takes "
			 "kernel.perf_event_paranoid of 1 or less, or CAP_PERFMON",
			 strerror(error));
	else
		snprintf(why, n,
			 "this machine gives programs no such counter (perf_event_open: %s), as "
			 "most virtual machines do",
			 strerror(error));
	return false;
}

uint64_t misses_read(void)
{
	uint64_t count;

	return read(counter, &count, sizeof(count)) == sizeof(count) ? count : 0;
}
