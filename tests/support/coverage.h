/* SPDX-License-Identifier: BSD-3-Clause */
/* In front of every file where line coverage is counted: processes that leave by _exit(), as forked
 * ranks do, are counted, too. */
#ifndef OC_TESTS_COVERAGE_H
#define OC_TESTS_COVERAGE_H

#include <unistd.h>

void __gcov_dump(void);

#define _exit(status) (__gcov_dump(), _exit(status))

#endif
