/* SPDX-License-Identifier: BSD-3-Clause */
/* A seccomp filter as container runtimes have it. */
#ifndef ONECOPY_TESTS_FILTER_H
#define ONECOPY_TESTS_FILTER_H

#define FILTER_COPIES "process_vm_readv,process_vm_writev"

/*
 * These system calls, by their names and separated by commas, give `error` from now on: in this
 * process and in what it starts, for good. 0 or -errno; -ENOTSUP: the filter has no effect.
 */
int filter_install(const char *calls, int error);

#endif
