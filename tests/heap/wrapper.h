/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEAP_WRAPPER_H
#define HEAP_WRAPPER_H

#include <stdbool.h>
#include <sys/mman.h>

struct heard {
	unsigned int mmap, munmap, mprotect, mremap, madvise;
	bool page; /* of this page madvise() was told that it may go */
};
struct heard wrapper_heard(const void *page);

#endif
