/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's side of the shared heap: which arena this process has.
 */
#ifndef OC_HEAP_HEAP_H
#define OC_HEAP_HEAP_H

#include "heap/arena.h"

#include <stdbool.h>

/*
 * The arena of this process: of the preloaded libonecopy-heap.so, or of the one that somebody has
 * loaded by `load`, which looks for it beside the object that this code is in. NULL: neither. May
 * have none (fd is -1) and says why; look again after a fork. Thread safe; loading takes some 100
 * us, once. A preloaded heap without an arena is said once at info, by the first rank as a warning.
 */
const struct oci_arena *oci_arena_self(bool load);
/* In a child: another thread may have been looking. */
void oci_arena_self_fork_child(void);
/* Which version of mimalloc it is by, and which ones are known. */
void oci_arena_allocator(const struct oci_arena *arena, char *text, size_t bytes);

#endif
