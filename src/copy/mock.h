/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mechanism for tests whose ranks are all in one process. It is never probed in a job: only
 * oci_mock.enabled, which a test sets, makes a team agree on it.
 */
#ifndef OC_COPY_MOCK_H
#define OC_COPY_MOCK_H

#include "copy/copy.h"

struct oci_mock {
	bool enabled;
	unsigned int fail_every; /* every n-th copy fails; 0 never */
	int fail_with;		 /* with this errno */
	size_t short_bytes;	 /* longest copy that is not cut; 0 no limit */
	unsigned int calls;
	void (*hook)(void); /* in the middle of each copy; NULL: nothing */
};

extern struct oci_mock oci_mock;

#endif
