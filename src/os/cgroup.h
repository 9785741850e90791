/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits that a control group sets on this process, versions 1 and 2. `mount` is /sys/fs/cgroup
 * and `membership` oci_cgroup_self(), except in tests, which bring a tree of their own.
 *
 * A limit of an ancestor holds as well, so the tightest on the way up counts. Inside a container
 * the path in `membership` may be one that only the host sees; the mount's own root is then the
 * container's group, and is always looked at.
 */
#ifndef OC_OS_CGROUP_H
#define OC_OS_CGROUP_H

#include <stddef.h>

/* The text of /proc/self/cgroup as it was when first asked for, as the kernel takes up to 45 us to
 * write it: a job is put into its groups before it starts. "" where there is none. */
const char *oci_cgroup_self(void);
/* CPU time as a number of CPUs; 0: no limit. */
double oci_cgroup_cpus(const char *mount, const char *membership);
/* Bytes that may still be charged, page cache that can be dropped included; SIZE_MAX: no limit. */
size_t oci_cgroup_memory_left(const char *mount, const char *membership);

#endif
