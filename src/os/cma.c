/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

/* By the system calls: the C library's functions are the shared heap's where that is preloaded, and
 * it asks us (copy/vm.c). */

/* The kernel refuses longer vectors with EINVAL; cut there, the copy is merely a short one. */
static unsigned int clamp(unsigned int count)
{
	return count < IOV_MAX ? count : IOV_MAX;
}

ssize_t oci_os_vm_read(pid_t pid, const struct iovec *local, unsigned int local_count,
		       const struct iovec *remote, unsigned int remote_count)
{
	ssize_t done = syscall(SYS_process_vm_readv, pid, local, (unsigned long)clamp(local_count),
			       remote, (unsigned long)clamp(remote_count), 0ul);

	return done < 0 ? -errno : done;
}

ssize_t oci_os_vm_write(pid_t pid, const struct iovec *local, unsigned int local_count,
			const struct iovec *remote, unsigned int remote_count)
{
	ssize_t done = syscall(SYS_process_vm_writev, pid, local, (unsigned long)clamp(local_count),
			       remote, (unsigned long)clamp(remote_count), 0ul);

	return done < 0 ? -errno : done;
}
