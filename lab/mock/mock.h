/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that fail as a test dictates, for tests whose ranks are all in one process. Unit tests are
 * linked with --wrap=oci_copy_cma: while oci_mock.enabled is set, what their library takes for cma
 * copies by this process alone; otherwise it is cma. A team's creation copies, too, to probe, so
 * failures and the hook are dictated once the teams are there.
 */
#ifndef OC_LAB_MOCK_H
#define OC_LAB_MOCK_H

#include "copy/copy.h"

struct oci_mock {
	bool enabled;
	unsigned int fail_every; /* every n-th copy fails; 0 never */
	int fail_with;		 /* with this errno */
	size_t short_bytes;	 /* longest copy that is not cut; 0 no limit */
	unsigned int calls;
	size_t least_by_cpu, most_by_cpu; /* of the ends, but 0 */
	void (*hook)(void);		  /* in the middle of each copy; NULL: nothing */
};

extern struct oci_mock oci_mock;

#endif
