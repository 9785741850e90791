/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the ranks of a team sit: which share a cache, a NUMA node, a package. A job reads sysfs for
 * that (sysfs.h); who asks for the whole machine or a recorded one has lab/topo/machine.h.
 *
 * A rank describes itself once with oci_topo_self() (it stands on its card, team/lane.h),
 * and every rank computes the same groups from all descriptions with oci_topo_group(). Bound to
 * one core, a rank has a definite place; a rank whose mask spans several caches or NUMA nodes has
 * OCI_TOPO_NOWHERE there and shares with nobody.
 */
#ifndef OC_TOPO_TOPO_H
#define OC_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCI_TOPO_NOWHERE UINT32_MAX

/* Numbers of the smallest objects that hold the whole affinity mask; those of oci_topo_self() and
 * of oci_topo_place() (lab/topo/machine.h) are not to be mixed. */
struct oci_topo_place {
	uint32_t core;
	uint32_t l2;
	uint32_t l3;
	uint32_t numa;
	uint32_t package;
	uint32_t cpus; /* CPUs in the mask */
};

enum oci_topo_level {
	OCI_TOPO_CORE,
	OCI_TOPO_L2,
	OCI_TOPO_L3,
	OCI_TOPO_NUMA,
	OCI_TOPO_PACKAGE,
	OCI_TOPO_MACHINE,
};

/* Are ranks near each other that have this level in common: do they share a cache? */
static inline bool oci_topo_near(enum oci_topo_level common)
{
	return common <= OCI_TOPO_L3;
}

/* Place of the calling process's affinity mask, by sysfs, for a team of so many ranks; all NOWHERE
 * when unknown. False: who shares a cache is not told, or by a hypervisor, which may make it up.
 * Then nothing of two ranks goes by more than their cores, and only these are read: each of the
 * other files takes 5 to 15 us (EPYC guest, 2026-11-24). */
bool oci_topo_self(struct oci_topo_place *place, uint32_t ranks);

/* The closest level that two places share: CORE .. MACHINE. */
enum oci_topo_level oci_topo_common(const struct oci_topo_place *a, const struct oci_topo_place *b);
/* Is it certain that two places have no cache in common? Not where one of them spans several. */
bool oci_topo_apart(const struct oci_topo_place *a, const struct oci_topo_place *b);
/*
 * Groups `count` places at `level`: group[i] is the index of the first place that shares the
 * level with place i (so a leader is group[i] == i). Returns the number of groups. Places that
 * are NOWHERE at the level are alone.
 */
unsigned int oci_topo_group(const struct oci_topo_place *places, unsigned int count,
			    enum oci_topo_level level, uint32_t *group);

#endif
