/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs and hwloc say the same: of this machine, and of recorded ones whose topology is written
 * into a temporary folder as the kernel would.
 */
#include "topo/sysfs.h"

#include "os/os.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <hwloc.h>

#include "copy/memcpy.h"
#include "lab/topo/machine.h"
#include "support/test.h"

enum { WORDS = 8, MOST_MASKS = 4 * 64 * WORDS };

/* In memory: of 11 s ext4 took 10 to look for inodes that were not deleted just before. */
static const char folder_of_memory[] = "/dev/shm/onecopy-sysfs-XXXXXX";
static char root[sizeof(folder_of_memory)];

/* ---- a machine as a folder ------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
	char path[512];
	va_list arguments;
	FILE *file;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", text);
	assert_int_equal(fclose(file), 0);
}

static void put_set(hwloc_const_bitmap_t set, const char *folder, const char *name)
{
	char text[4096];

	hwloc_bitmap_list_snprintf(text, sizeof(text), set);
	put(text, "%s/%s", folder, name);
}

static void put_cache(hwloc_obj_t cache, const char *folder, const char *type)
{
	char text[32];

	put(type, "%s/type", folder);
	snprintf(text, sizeof(text), "%u", cache->attr->cache.depth);
	put(text, "%s/level", folder);
	snprintf(text, sizeof(text), "%luK", (unsigned long)cache->attr->cache.size >> 10);
	put(text, "%s/size", folder);
	put_set(cache->cpuset, folder, "shared_cpu_list");
}

/* The files of one CPU; `old`: with the names of kernels before 5.3. */
static void put_cpu(hwloc_topology_t hwloc, hwloc_obj_t pu, bool old)
{
	static const hwloc_obj_type_t caches[] = { HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
						   HWLOC_OBJ_L3CACHE };
	hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, pu);
	hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, pu);
	char folder[256], index[300];
	unsigned int count = 0;

	snprintf(folder, sizeof(folder), "%s/cpu/cpu%u", root, pu->os_index);
	snprintf(index, sizeof(index), "%s/topology", folder);
	put_set(core->cpuset, index, old ? "thread_siblings_list" : "core_cpus_list");
	put_set(package->cpuset, index, old ? "core_siblings_list" : "package_cpus_list");
	for (unsigned int i = 0; i < 3; i++) {
		hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(hwloc, caches[i], pu);

		if (!cache)
			continue;
		snprintf(index, sizeof(index), "%s/cache/index%u", folder, count++);
		put_cache(cache, index, i == 2 ? "Unified" : "Data");
		/* One of instructions behind it, as the kernel has them: not the one that is asked
		 * for. */
		snprintf(index, sizeof(index), "%s/cache/index%u", folder, count++);
		put_cache(cache, index, "Instruction");
		put_set(pu->cpuset, index, "shared_cpu_list");
	}
}

static void put_machine(hwloc_topology_t hwloc, bool old)
{
	hwloc_obj_t pu = NULL, node = NULL;
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc(), seen = hwloc_bitmap_alloc();

	while ((pu = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_PU, pu)))
		put_cpu(hwloc, pu, old);
	while ((node = hwloc_get_next_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, node))) {
		char folder[256];

		snprintf(folder, sizeof(folder), "%s/node/node%u", root, node->os_index);
		/* A second memory at the same CPUs has none of its own. */
		if (hwloc_bitmap_intersects(seen, node->cpuset))
			put("", "%s/cpulist", folder);
		else
			put_set(node->cpuset, folder, "cpulist");
		hwloc_bitmap_or(seen, seen, node->cpuset);
		hwloc_bitmap_set(nodes, node->os_index);
	}
	put_set(nodes, root, "node/online");
	hwloc_bitmap_free(nodes);
	hwloc_bitmap_free(seen);
}

static void begin_folder(void)
{
	strcpy(root, folder_of_memory);
	assert_non_null(mkdtemp(root));
}

static void end_folder(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

/* ---- both answers ------------------------------------------------------------------------------
 */

struct mask {
	uint64_t word[WORDS];
};

/* Each CPU, each with the next, each eight, all. */
static unsigned int make_masks(unsigned int cpus, struct mask *masks)
{
	unsigned int count = 0;

	for (unsigned int width = 1; width <= 8; width = width == 1 ? 2 : width * 4)
		for (unsigned int first = 0; first + width <= cpus; first += width == 8 ? 8 : 1) {
			masks[count] = (struct mask){ { 0 } };
			for (unsigned int cpu = first; cpu < first + width; cpu++)
				masks[count].word[cpu / 64] |= (uint64_t)1 << (cpu % 64);
			count++;
		}
	masks[count] = (struct mask){ { 0 } };
	for (unsigned int cpu = 0; cpu < cpus; cpu++)
		masks[count].word[cpu / 64] |= (uint64_t)1 << (cpu % 64);
	return count + 1;
}

/* The same ranks share the same levels, and are alone on the same. */
static void compare(const char *folder, const struct oci_topo *topo, unsigned int cpus)
{
	static struct mask masks[MOST_MASKS];
	static struct oci_topo_place ours[MOST_MASKS], theirs[MOST_MASKS];
	static uint32_t our_group[MOST_MASKS], their_group[MOST_MASKS];
	unsigned int count = make_masks(cpus, masks);

	for (unsigned int i = 0; i < count; i++) {
		assert_int_equal(oci_sysfs_place(folder, masks[i].word, WORDS, false, &ours[i]), 0);
		oci_topo_place(topo, masks[i].word, WORDS, &theirs[i]);
		assert_int_equal(ours[i].cpus, theirs[i].cpus);
	}
	for (enum oci_topo_level level = OCI_TOPO_CORE; level <= OCI_TOPO_PACKAGE; level++) {
		unsigned int groups = oci_topo_group(ours, count, level, our_group);

		assert_int_equal(groups, oci_topo_group(theirs, count, level, their_group));
		assert_memory_equal(our_group, their_group, count * sizeof(*our_group));
	}
}

static void check_share(const char *folder, const struct oci_topo *topo)
{
	struct oci_topo_summary s;
	size_t share = 0;

	oci_topo_summary(topo, &s);
	if (s.l3_bytes && s.cores_per_l3)
		share = s.l3_bytes / s.cores_per_l3;
	else if (s.l2_bytes && s.cores_per_l2)
		share = s.l2_bytes / s.cores_per_l2;
	assert_int_equal(oci_sysfs_cache_share(folder), share);
}

TEST(recorded_machines_look_as_to_hwloc)
{
	static const char *const machines[] = { "ig-8x6", "broadwell-2x14", "knl-68", "power8-2x10",
						"epyc-nps4-2x64" };

	for (unsigned int i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		hwloc_topology_t hwloc;
		struct oci_topo *topo;
		struct oci_topo_summary s;
		char path[512];

		snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR,
			 machines[i]);
		assert_int_equal(hwloc_topology_init(&hwloc), 0);
		assert_int_equal(hwloc_topology_set_xml(hwloc, path), 0);
		assert_int_equal(hwloc_topology_load(hwloc), 0);
		assert_int_equal(oci_topo_load(&topo, path), 0);
		oci_topo_summary(topo, &s);
		begin_folder();
		put_machine(hwloc, i % 2);
		compare(root, topo, s.cpus);
		check_share(root, topo);
		end_folder();
		oci_topo_destroy(topo);
		hwloc_topology_destroy(hwloc);
	}
}

/* A machine as hwloc's synthetic description has it. */
static size_t dma_min_of(const char *description)
{
	hwloc_topology_t hwloc;
	size_t bytes;

	assert_int_equal(hwloc_topology_init(&hwloc), 0);
	assert_int_equal(hwloc_topology_set_synthetic(hwloc, description), 0);
	assert_int_equal(hwloc_topology_load(hwloc), 0);
	begin_folder();
	put_machine(hwloc, false);
	bytes = oci_memcpy_dma_min(root);
	end_folder();
	hwloc_topology_destroy(hwloc);
	return bytes;
}

/* Paper 001, section 3.5: two cores on 4 MiB, one on as much, and caches of 6 MiB. */
TEST(dma_min_is_that_of_the_papers)
{
	assert_int_equal(dma_min_of("Package:2 L2:2(size=4194304) Core:2 PU:1"), 1 << 20);
	assert_int_equal(dma_min_of("Package:2 L2:2(size=4194304) Core:1 PU:1"), 2 << 20);
	assert_int_equal(dma_min_of("Package:1 L2:2(size=6291456) Core:2 PU:1"), 3 << 19);
	assert_int_equal(dma_min_of("Package:1 L2:2(size=6291456) Core:1 PU:1"), 3 << 20);
	/* Two threads of a core are one process, as one runs on a core. */
	assert_int_equal(dma_min_of("Package:1 L3:1(size=8388608) Core:4 PU:2"), 1 << 20);
}

TEST(this_machine_looks_as_to_hwloc)
{
	const struct oci_topo *topo = oci_topo_local();
	struct oci_topo_place place;
	struct oci_topo_summary s;
	uint64_t mask[WORDS];

	if (!topo || oci_os_affinity(0, mask, WORDS) > WORDS ||
	    oci_sysfs_place(OCI_SYSFS, mask, WORDS, false, &place)) {
		oct_skip(OCI_SYSFS " or hwloc says nothing of this machine");
	}
	oci_topo_summary(topo, &s);
	if (s.cpus <= 64 * WORDS)
		compare(OCI_SYSFS, topo, s.cpus);
	check_share(OCI_SYSFS, topo);
}

TEST(what_is_missing_or_broken_is_not_known)
{
	static const char *const broken[] = { "1-", "x", "3-1", "0,9000", "0 1", "-1" };
	static char longest[10000];
	struct oci_topo_place place;
	uint64_t one = 1, none = 0;

	begin_folder();
	assert_int_equal(oci_sysfs_place(root, &one, 1, false, &place), -ENOENT);
	assert_int_equal(oci_sysfs_cache_share(root), 0);
	put("0-1", "%s/cpu/cpu0/topology/core_cpus_list", root);
	assert_int_equal(oci_sysfs_place(root, &none, 1, false, &place), -ENOENT);
	assert_int_equal(oci_sysfs_place(root, &one, 1, false, &place), 0);
	assert_int_equal(place.core, 0);
	assert_int_equal(place.package, OCI_TOPO_NOWHERE);
	assert_int_equal(place.l2, OCI_TOPO_NOWHERE);
	assert_int_equal(place.l3, OCI_TOPO_NOWHERE);
	assert_int_equal(place.numa, 0);
	assert_int_equal(place.cpus, 1);
	assert_int_equal(oci_sysfs_place(root, &one, 1, true, &place), 0);
	assert_int_equal(place.core, 0);
	assert_int_equal(place.numa, OCI_TOPO_NOWHERE);
	assert_int_equal(place.cpus, 1);
	for (unsigned int i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		put(broken[i], "%s/cpu/cpu0/topology/package_cpus_list", root);
		put(broken[i], "%s/node/online", root);
		assert_int_equal(oci_sysfs_place(root, &one, 1, false, &place), 0);
		assert_int_equal(place.package, OCI_TOPO_NOWHERE);
		assert_int_equal(place.numa, 0);
	}
	/* Half a list would be another one. */
	for (size_t i = 0; i + 2 < sizeof(longest); i += 2)
		memcpy(longest + i, "0,", 2);
	put(longest, "%s/cpu/cpu0/topology/package_cpus_list", root);
	assert_int_equal(oci_sysfs_place(root, &one, 1, false, &place), 0);
	assert_int_equal(place.package, OCI_TOPO_NOWHERE);
	end_folder();
}
