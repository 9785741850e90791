/* SPDX-License-Identifier: BSD-3-Clause */
/* A seccomp filter as container runtimes have it: process_vm_readv and _writev give EPERM. */
#ifndef ONECOPY_TESTS_FILTER_H
#define ONECOPY_TESTS_FILTER_H

/* For this process and what it starts, for good. 0 or -errno. */
int filter_install(void);

#endif
