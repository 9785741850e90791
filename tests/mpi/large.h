/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ONECOPY_TESTS_LARGE_H
#define ONECOPY_TESTS_LARGE_H

/* How many layouts were sent. */
int large_types(void);

#endif
