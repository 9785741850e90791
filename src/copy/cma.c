/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross Memory Attach: process_vm_readv and process_vm_writev (Linux 3.2). */
#include "copy/copy.h"
#include "os/os.h"

static ssize_t pull(const struct oci_end *end, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes)
{
	return oci_os_vm_read(end->pid, local, locals, remote, remotes);
}

static ssize_t push(const struct oci_end *end, const struct iovec *local, unsigned int locals,
		    const struct iovec *remote, unsigned int remotes)
{
	return oci_os_vm_write(end->pid, local, locals, remote, remotes);
}

const struct oci_copy oci_copy_cma = {
	.name = "cma",
	.what = "single copies by process_vm_readv and process_vm_writev",
	.pull = pull,
	.push = push,
};
