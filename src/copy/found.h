/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arenas of processes of which nothing is known but their number, as somebody calls
 * process_vm_readv() with it: found in /proc, shared with what teams have mapped (arena.h).
 *
 * Who has a number may change, by a death or by exec, and memory behind an address may be taken
 * away. So each use asks anew whether the process has this arena still, and which pages of it are
 * open; both stand in the arena's file (heap/arena.h).
 */
#ifndef OC_COPY_FOUND_H
#define OC_COPY_FOUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "team/arena.h"

struct oci_found;

/* Once, before anything else: 0, or -errno, and then nothing is ever found. Children of this
 * process, however they were made, find nothing. */
int oci_found_start(void);

/*
 * The arena of process pid: it is alive, and the kernel lets us read its memory (which is asked
 * once a tick). It and *mapping are held until oci_found_put(). NULL: it has none, or that cannot
 * be told right now. Thread safe; waits for nobody. Allocates when it finds a process for the first
 * time.
 */
struct oci_found *oci_found_get(pid_t pid, struct oci_mapping **mapping);
void oci_found_put(struct oci_found *found);

/* Are `bytes`, at least one, from `address` of that process open memory of its arena? */
bool oci_found_has(const struct oci_found *found, uint64_t address, size_t bytes);

#endif
