/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups within groups: the ranks of a team by package, NUMA node and shared cache.
 *
 * A pure function of the places of all ranks, so all ranks that exchanged them have the same one.
 * Only levels that tell ranks apart and bring some together are kept: on a machine whose packages
 * are NUMA nodes with one cache each there is one level. Ranks that are not bound sit alone in
 * every level; if all do, or all sit together, the ranks are flat and have no hierarchy.
 *
 * Equal hierarchies of a process are one object with one number, which plans are known by.
 */
#ifndef OC_TOPO_HIERARCHY_H
#define OC_TOPO_HIERARCHY_H

#include "topo/topo.h"

#define OCI_HIERARCHY_LEVELS 4 /* package, NUMA node, L3, L2 */

struct oci_hierarchy {
	uint32_t id; /* never 0, which stands for flat; never used again */
	uint32_t size;
	uint32_t levels;				/* at least 1; the widest first */
	enum oci_topo_level kind[OCI_HIERARCHY_LEVELS]; /* of each level */
	bool in_order;	/* every group is a run of consecutive ranks */
	uint32_t users; /* under the lock of hierarchy.c */
	struct oci_hierarchy *next;
	/* group[level * size + rank]: the lowest rank of the group that `rank` is in. */
	uint32_t group[];
};

/* The hierarchy of `count` places, NULL when they are flat. 0 or -ENOMEM. Put back after use. */
int oci_hierarchy_get(const struct oci_topo_place *places, uint32_t count,
		      const struct oci_hierarchy **hierarchy);
void oci_hierarchy_put(const struct oci_hierarchy *hierarchy); /* NULL: nothing */
/* That of a number; NULL for 0. Only while somebody who got it has not put it back. */
const struct oci_hierarchy *oci_hierarchy_find(uint32_t id);
/* In a child of fork(2): no thread holds the lock. */
void oci_hierarchy_fork_child(void);

/* The lowest rank of a rank's group at a level. */
static inline uint32_t oci_hierarchy_group(const struct oci_hierarchy *h, uint32_t level,
					   uint32_t rank)
{
	return h->group[(size_t)level * h->size + rank];
}

#endif
