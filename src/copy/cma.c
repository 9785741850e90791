/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross Memory Attach: process_vm_readv and process_vm_writev (Linux 3.2). */
#include "copy/copy.h"
#include "os/os.h"

const struct oci_copy oci_copy_cma = {
	.name = "cma",
	.what = "single copies by process_vm_readv and process_vm_writev",
	.pull = oci_os_vm_read,
	.push = oci_os_vm_write,
};
