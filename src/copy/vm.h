/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copies that an MPI makes for itself, by process_vm_readv() and process_vm_writev(): between
 * shared heaps they are made by mapped memory instead.
 */
#ifndef OC_COPY_VM_H
#define OC_COPY_VM_H

#include <stdint.h>

#include "copy/map.h"
#include "heap/arena.h"

/* Once, in a process whose preloaded heap has those calls (heap/dso/vm.c). Nothing happens without
 * one, or where an option forbids it. */
void oci_vm_serve(void);

/* What was moved so, and what the kernel has moved all the same; a sentence why. */
struct oci_map_misses oci_vm_mapped(void);
struct oci_map_misses oci_vm_missed(enum oci_vm_miss why);
const char *oci_vm_miss_text(enum oci_vm_miss why);

#endif
