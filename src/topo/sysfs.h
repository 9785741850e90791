/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a job asks of the machine, from sysfs: a dozen small files, where hwloc reads the whole
 * machine (and its plugins) for milliseconds in every rank.
 */
#ifndef OC_TOPO_SYSFS_H
#define OC_TOPO_SYSFS_H

#include "topo/topo.h"

#define OCI_SYSFS "/sys/devices/system"

/* As oci_topo_place(); an object's number is its lowest CPU, of a NUMA node the kernel's. 0, or
 * -ENOENT where the folder `root` does not say on which core the mask's first CPU is. `core`: of
 * objects the core alone, the others are NOWHERE. */
int oci_sysfs_place(const char *root, const uint64_t *mask, unsigned int words, bool core,
		    struct oci_topo_place *place);
/* Bytes of the L3 cache (without one: the L2) of CPU 0 for each core under it; 0: none is told. */
size_t oci_sysfs_cache_share(const char *root);

#endif
