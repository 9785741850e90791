/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/topo/machine.h"

#include "base/log.h"

#include <errno.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct oci_topo {
	hwloc_topology_t hwloc;
};

static struct oci_topo *local_topo;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;

static int configure(hwloc_topology_t hwloc, const char *xml)
{
	if (xml)
		return hwloc_topology_set_xml(hwloc, xml);
	/*
	 * hwloc's x86 component runs on each CPU in turn, which would move the program's thread
	 * about; sysfs says all that we use.
	 */
	hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
	/*
	 * The whole machine, also what a cpuset keeps from us: ranks with a cpuset each would
	 * otherwise all number their own cores from 0 and look as if they shared one.
	 */
	return hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
}

int oci_topo_load(struct oci_topo **topo, const char *xml)
{
	struct oci_topo *created = calloc(1, sizeof(*created));
	int error = -ENOMEM;

	if (!created)
		return -ENOMEM;
	if (hwloc_topology_init(&created->hwloc))
		goto free_created;
	errno = 0;
	if (configure(created->hwloc, xml) || hwloc_topology_load(created->hwloc)) {
		error = errno ? -errno : -EINVAL;
		goto destroy_hwloc;
	}
	*topo = created;
	return 0;

destroy_hwloc:
	hwloc_topology_destroy(created->hwloc);
free_created:
	free(created);
	return error;
}

void oci_topo_destroy(struct oci_topo *topo)
{
	if (!topo)
		return;
	hwloc_topology_destroy(topo->hwloc);
	free(topo);
}

static void load_local(void)
{
	int error = oci_topo_load(&local_topo, NULL);

	if (error)
		oci_info("hwloc cannot read this machine's topology: %s", strerror(-error));
}

const struct oci_topo *oci_topo_local(void)
{
	pthread_once(&local_once, load_local);
	return local_topo;
}

static unsigned int count_of(hwloc_topology_t hwloc, hwloc_obj_type_t type)
{
	int count = hwloc_get_nbobjs_by_type(hwloc, type);

	return count > 0 ? (unsigned int)count : 0;
}

/* Size of the first cache of a level, and how many cores lie under it. */
static void describe_cache(hwloc_topology_t hwloc, hwloc_obj_type_t type, size_t *bytes,
			   unsigned int *cores)
{
	hwloc_obj_t cache = hwloc_get_obj_by_type(hwloc, type, 0);
	int count;

	*bytes = 0;
	*cores = 0;
	if (!cache)
		return;
	*bytes = (size_t)cache->attr->cache.size;
	count = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, cache->cpuset, HWLOC_OBJ_CORE);
	*cores = count > 0 ? (unsigned int)count : 0;
}

void oci_topo_summary(const struct oci_topo *topo, struct oci_topo_summary *summary)
{
	hwloc_topology_t hwloc = topo->hwloc;

	*summary = (struct oci_topo_summary){
		.packages = count_of(hwloc, HWLOC_OBJ_PACKAGE),
		.numa_nodes = count_of(hwloc, HWLOC_OBJ_NUMANODE),
		.l3s = count_of(hwloc, HWLOC_OBJ_L3CACHE),
		.l2s = count_of(hwloc, HWLOC_OBJ_L2CACHE),
		.cores = count_of(hwloc, HWLOC_OBJ_CORE),
		.cpus = count_of(hwloc, HWLOC_OBJ_PU),
	};
	describe_cache(hwloc, HWLOC_OBJ_L2CACHE, &summary->l2_bytes, &summary->cores_per_l2);
	describe_cache(hwloc, HWLOC_OBJ_L3CACHE, &summary->l3_bytes, &summary->cores_per_l3);
}

/* The object of this type that holds the whole set. */
static uint32_t holder(hwloc_topology_t hwloc, hwloc_obj_type_t type, hwloc_const_cpuset_t set)
{
	hwloc_obj_t object = NULL, best = NULL;

	/* Of two memories at the same CPUs (KNL in flat mode) the first, its DDR. */
	while ((object = hwloc_get_next_obj_by_type(hwloc, type, object)) != NULL)
		if (hwloc_bitmap_isincluded(set, object->cpuset) &&
		    (!best ||
		     hwloc_bitmap_weight(object->cpuset) < hwloc_bitmap_weight(best->cpuset)))
			best = object;
	return best ? best->logical_index : OCI_TOPO_NOWHERE;
}

void oci_topo_place(const struct oci_topo *topo, const uint64_t *mask, unsigned int words,
		    struct oci_topo_place *place)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	*place = (struct oci_topo_place){ OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE,
					  OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, 0 };
	if (!set)
		return;
	for (unsigned int cpu = 0; cpu < words * 64; cpu++)
		if (mask[cpu / 64] >> (cpu % 64) & 1)
			hwloc_bitmap_set(set, cpu);
	if (!hwloc_bitmap_iszero(set)) {
		place->core = holder(topo->hwloc, HWLOC_OBJ_CORE, set);
		place->l2 = holder(topo->hwloc, HWLOC_OBJ_L2CACHE, set);
		place->l3 = holder(topo->hwloc, HWLOC_OBJ_L3CACHE, set);
		place->numa = holder(topo->hwloc, HWLOC_OBJ_NUMANODE, set);
		place->package = holder(topo->hwloc, HWLOC_OBJ_PACKAGE, set);
		place->cpus = (uint32_t)hwloc_bitmap_weight(set);
	}
	hwloc_bitmap_free(set);
}
