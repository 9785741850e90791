/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copies that an MPI makes for itself, by process_vm_readv() and process_vm_writev(): between
 * shared heaps they are made by mapped memory instead.
 */
#ifndef OC_COPY_VM_H
#define OC_COPY_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "copy/map.h"
#include "heap/arena.h"

/* Once, in a process whose preloaded heap has those calls (heap/dso/vm.c). Nothing happens without
 * one, or where an option forbids it. */
void oci_vm_serve(void);

/*
 * In the loaded object whose file's name begins so, process_vm_readv() is ours from now on: of
 * large ranges the other process copies its part, if it only waits (copy/invite.h). In a job of so
 * many ranks on this node. Nothing happens where an option forbids it, or the copies of all objects
 * are served by oci_vm_serve(). Is it so?
 */
bool oci_vm_share(const char *library, uint32_t node_ranks);
/* What was read so with the other process's part in it, and of these bytes, that part. */
struct oci_map_misses oci_vm_shared(uint64_t *pushed);

/* What was moved by mapped memory, and what the kernel has moved all the same; a sentence why. */
struct oci_map_misses oci_vm_mapped(void);
struct oci_map_misses oci_vm_missed(enum oci_vm_miss why);
const char *oci_vm_miss_text(enum oci_vm_miss why);

#endif
