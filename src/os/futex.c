/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* No FUTEX_PRIVATE_FLAG: the word lies in memory that several processes map. */
int oci_os_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u),
	};

	if (!syscall(SYS_futex, word, FUTEX_WAIT, expected,
		     timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0))
		return 0;
	return -errno;
}

void oci_os_futex_wake(uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}
