/* SPDX-License-Identifier: BSD-3-Clause */
/* Places and groups on recorded machines, and on the one that the test runs on. */
#include "lab/topo/machine.h"
#include "os/os.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct oci_topo *load(const char *name)
{
	struct oci_topo *topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR, name);
	assert_int_equal(oci_topo_load(&topo, path), 0);
	return topo;
}

/* Place of a rank bound to `count` CPUs from `first` on. */
static struct oci_topo_place bound(const struct oci_topo *topo, unsigned int first,
				   unsigned int count)
{
	struct oci_topo_place place;
	uint64_t mask[8] = { 0 };

	for (unsigned int cpu = first; cpu < first + count; cpu++)
		mask[cpu / 64] |= (uint64_t)1 << (cpu % 64);
	oci_topo_place(topo, mask, 8, &place);
	return place;
}

TEST(summaries_match_the_machines)
{
	static const struct {
		const char *name;
		struct oci_topo_summary want;
	} machine[] = {
		{ "ig-8x6", { 8, 8, 8, 48, 48, 48, 512 << 10, 5 << 20, 1, 6 } },
		{ "broadwell-2x14", { 2, 2, 2, 28, 28, 28, 256 << 10, 35 << 20, 1, 14 } },
		{ "knl-68", { 1, 1, 0, 34, 68, 272, 1 << 20, 0, 2, 0 } },
		{ "power8-2x10", { 2, 2, 2, 20, 20, 160, 512 << 10, 8 << 20, 1, 10 } },
		{ "epyc-nps4-2x64", { 2, 8, 16, 128, 128, 128, 512 << 10, 32 << 20, 1, 8 } },
	};

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
		struct oci_topo *topo = load(machine[i].name);
		struct oci_topo_summary got;

		memset(&got, 0xff, sizeof(got));
		oci_topo_summary(topo, &got);
		assert_int_equal(got.packages, machine[i].want.packages);
		assert_int_equal(got.numa_nodes, machine[i].want.numa_nodes);
		assert_int_equal(got.l3s, machine[i].want.l3s);
		assert_int_equal(got.l2s, machine[i].want.l2s);
		assert_int_equal(got.cores, machine[i].want.cores);
		assert_int_equal(got.cpus, machine[i].want.cpus);
		assert_int_equal(got.l2_bytes, machine[i].want.l2_bytes);
		assert_int_equal(got.l3_bytes, machine[i].want.l3_bytes);
		assert_int_equal(got.cores_per_l2, machine[i].want.cores_per_l2);
		assert_int_equal(got.cores_per_l3, machine[i].want.cores_per_l3);
		oci_topo_destroy(topo);
	}
}

TEST(a_bound_rank_has_a_place_at_every_level)
{
	struct oci_topo *topo = load("ig-8x6");
	struct oci_topo_place place = bound(topo, 47, 1);

	assert_int_equal(place.core, 47);
	assert_int_equal(place.l2, 47);
	assert_int_equal(place.l3, 7);
	assert_int_equal(place.numa, 7);
	assert_int_equal(place.package, 7);
	assert_int_equal(place.cpus, 1);
	oci_topo_destroy(topo);
}

TEST(a_wide_mask_is_nowhere_below_what_holds_it)
{
	struct oci_topo *topo = load("epyc-nps4-2x64");
	struct oci_topo_place l3 = bound(topo, 8, 8), numa = bound(topo, 4, 8);
	struct oci_topo_place package = bound(topo, 10, 40), machine = bound(topo, 0, 128);
	struct oci_topo_place none = bound(topo, 0, 0);

	assert_int_equal(l3.core, OCI_TOPO_NOWHERE);
	assert_int_equal(l3.l3, 1);
	assert_int_equal(numa.l3, OCI_TOPO_NOWHERE);
	assert_int_equal(numa.numa, 0);
	assert_int_equal(package.numa, OCI_TOPO_NOWHERE);
	assert_int_equal(package.package, 0);
	assert_int_equal(package.cpus, 40);
	assert_int_equal(machine.package, OCI_TOPO_NOWHERE);
	assert_int_equal(none.cpus, 0);
	assert_int_equal(none.package, OCI_TOPO_NOWHERE);
	oci_topo_destroy(topo);
}

TEST(the_common_level_is_the_closest)
{
	struct oci_topo *epyc = load("epyc-nps4-2x64"), *knl = load("knl-68");
	struct oci_topo_place first = bound(epyc, 0, 1), thread, wide;

	for (int i = 0; i < 5; i++) {
		static const unsigned int cpu[] = { 0, 1, 8, 16, 64 };
		static const enum oci_topo_level want[] = { OCI_TOPO_CORE, OCI_TOPO_L3,
							    OCI_TOPO_NUMA, OCI_TOPO_PACKAGE,
							    OCI_TOPO_MACHINE };
		struct oci_topo_place other = bound(epyc, cpu[i], 1);

		assert_int_equal(oci_topo_common(&first, &other), want[i]);
		assert_int_equal(oci_topo_common(&other, &first), want[i]);
	}
	/* KNL: four threads a core, two cores an L2, no L3 */
	thread = bound(knl, 0, 1);
	wide = bound(knl, 3, 1);
	assert_int_equal(oci_topo_common(&thread, &wide), OCI_TOPO_CORE);
	wide = bound(knl, 4, 1);
	assert_int_equal(oci_topo_common(&thread, &wide), OCI_TOPO_L2);
	wide = bound(knl, 8, 1);
	assert_int_equal(oci_topo_common(&thread, &wide), OCI_TOPO_NUMA);
	/* Unbound ranks share nothing but what holds their masks, not even with their like. */
	wide = bound(knl, 0, 272);
	assert_int_equal(oci_topo_common(&wide, &wide), OCI_TOPO_NUMA);
	oci_topo_destroy(epyc);
	oci_topo_destroy(knl);
}

/* Masks of CPUs from a and from b on. */
TEST(places_are_apart_where_no_cache_can_be_theirs_together)
{
	static const struct {
		const char *name;
		unsigned int a, a_cpus, b, b_cpus;
		bool apart;
	} row[] = {
		{ "ig-8x6", 0, 1, 5, 1, false },
		{ "ig-8x6", 0, 1, 6, 1, true },
		{ "ig-8x6", 0, 6, 6, 6, true }, /* bound to a package each */
		{ "ig-8x6", 0, 48, 6, 1, false },
		{ "broadwell-2x14", 0, 1, 13, 1, false },
		{ "broadwell-2x14", 13, 1, 14, 1, true },
		{ "power8-2x10", 0, 1, 8, 1, false },
		{ "power8-2x10", 79, 1, 80, 1, true },
		/* No L3: cores of two L2s; who has two of these may be at either. */
		{ "knl-68", 0, 1, 7, 1, false },
		{ "knl-68", 0, 1, 8, 1, true },
		{ "knl-68", 0, 16, 16, 8, false },
		/* L3s of one node of memory; a mask that spans two of them. */
		{ "epyc-nps4-2x64", 0, 1, 7, 1, false },
		{ "epyc-nps4-2x64", 0, 1, 8, 1, true },
		{ "epyc-nps4-2x64", 0, 8, 8, 8, true },
		{ "epyc-nps4-2x64", 0, 16, 16, 1, false },
		{ "epyc-nps4-2x64", 0, 64, 64, 64, true },
		{ "epyc-nps4-2x64", 0, 128, 0, 128, false },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct oci_topo *topo = load(row[i].name);
		struct oci_topo_place a = bound(topo, row[i].a, row[i].a_cpus);
		struct oci_topo_place b = bound(topo, row[i].b, row[i].b_cpus);

		assert_int_equal(oci_topo_apart(&a, &b), row[i].apart);
		assert_int_equal(oci_topo_apart(&b, &a), row[i].apart);
		oci_topo_destroy(topo);
	}
}

TEST(groups_name_their_first_member)
{
	struct oci_topo *topo = load("ig-8x6");
	struct oci_topo_place places[48];
	uint32_t group[48];

	/* Round robin over the NUMA nodes, as `mpirun --map-by numa` places ranks. */
	for (unsigned int rank = 0; rank < 48; rank++)
		places[rank] = bound(topo, rank % 8 * 6 + rank / 8, 1);
	assert_int_equal(oci_topo_group(places, 48, OCI_TOPO_NUMA, group), 8);
	for (unsigned int rank = 0; rank < 48; rank++)
		assert_int_equal(group[rank], rank % 8);
	assert_int_equal(oci_topo_group(places, 48, OCI_TOPO_CORE, group), 48);
	assert_int_equal(oci_topo_group(places, 48, OCI_TOPO_MACHINE, group), 1);
	assert_int_equal(oci_topo_group(places, 0, OCI_TOPO_NUMA, group), 0);
	places[8] = bound(topo, 0, 48); /* unbound: alone */
	assert_int_equal(oci_topo_group(places, 48, OCI_TOPO_NUMA, group), 9);
	assert_int_equal(group[8], 8);
	assert_int_equal(group[16], 0);
	oci_topo_destroy(topo);
}

static void *load_in_thread(void *argument)
{
	(void)argument;
	return (void *)oci_topo_local();
}

TEST(this_machine_is_loaded_once)
{
	struct oci_topo_summary summary;
	struct oci_topo_place self;
	pthread_t thread[2];
	void *seen[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, load_in_thread, NULL), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], &seen[i]);
	assert_non_null(seen[0]);
	assert_ptr_equal(seen[0], seen[1]);
	assert_ptr_equal(seen[0], oci_topo_local());
	oci_topo_summary(oci_topo_local(), &summary);
	oci_topo_self(&self, 3);
	assert_int_equal(self.cpus, oci_os_cpus_allowed());
	assert_true(summary.cpus >= self.cpus);
}

TEST(a_bad_file_is_an_error)
{
	struct oci_topo *topo = (struct oci_topo *)1;

	assert_int_equal(oci_topo_load(&topo, "/nonexistent.xml"), -ENOENT);
	assert_true(oci_topo_load(&topo, OC_SOURCE_DIR "/LICENSE") < 0);
	assert_ptr_equal(topo, (struct oci_topo *)1);
	oci_topo_destroy(NULL);
}
