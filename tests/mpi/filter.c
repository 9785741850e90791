/* SPDX-License-Identifier: BSD-3-Clause */
#include "filter.h"

#include <errno.h>
#include <seccomp.h>

int filter_install(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err;

	if (!filter)
		return -ENOMEM;
	err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_readv), 0);
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_writev),
				       0);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}
