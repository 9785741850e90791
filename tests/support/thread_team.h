/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A team whose ranks are threads of one process, so that ThreadSanitizer sees every access to a
 * line, a slot and (by the mock mechanism) a peer's buffer: an access that no flag orders is
 * reported.
 */
#ifndef OC_TESTS_THREAD_TEAM_H
#define OC_TESTS_THREAD_TEAM_H

#include <onecopy/onecopy.h>

/*
 * Runs `body` on each rank at the same time; 0 when all returned 0 and all teams were destroyed,
 * else how many did not, told on stderr. Every `fail_every`-th copy of a peer's bytes fails with
 * EPERM; 0: none does.
 */
int oct_thread_team(uint32_t size, unsigned int fail_every, int (*body)(struct oc_team *team));

#endif
