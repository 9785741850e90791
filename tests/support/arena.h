/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared arena as the shared heap makes one, for tests: peers may map it. */
#ifndef OC_TESTS_ARENA_H
#define OC_TESTS_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct oct_arena {
	uint8_t *base;
	size_t bytes, used;
	int fd;
};

/* Makes one of this process and publishes it, as oci_map_publish() does. 0 or -errno. */
int oct_arena_create(struct oct_arena *arena, size_t bytes);
/* Memory in it, aligned to a page; NULL when there is no room. Is never given back. */
void *oct_arena_take(struct oct_arena *arena, size_t bytes);

#endif
