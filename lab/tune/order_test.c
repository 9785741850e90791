/* SPDX-License-Identifier: BSD-3-Clause */
/* On recorded machines, whose CPUs are numbered in different ways. */
#include "lab/topo/machine.h"
#include "lab/tune/order.h"
#include "support/test.h"

#include <stdio.h>

#define MOST 512

static struct oci_tune_cpu cpus[MOST];

/* All CPUs of a machine, by number. */
static uint32_t load(const char *name)
{
	struct oci_topo_summary summary;
	struct oci_topo *topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR, name);
	assert_int_equal(oci_topo_load(&topo, path), 0);
	oci_topo_summary(topo, &summary);
	assert_true(summary.cpus <= MOST);
	for (uint32_t i = 0; i < summary.cpus; i++) {
		uint64_t mask[MOST / 64] = { 0 };

		mask[i / 64] = (uint64_t)1 << i % 64;
		oci_topo_place(topo, mask, MOST / 64, &cpus[i].place);
		cpus[i].number = i;
	}
	oci_topo_destroy(topo);
	return summary.cpus;
}

/* The first `cores` are one core each of one package, the next ones of another. */
static void check(uint32_t count, uint32_t cores, uint32_t packages)
{
	for (uint32_t i = 0; i < cores * packages; i++) {
		assert_int_equal(cpus[i].place.package, cpus[i / cores * cores].place.package);
		for (uint32_t j = 0; j < i; j++)
			assert_true(cpus[j].place.core != cpus[i].place.core);
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			assert_true(cpus[j].number != cpus[i].number);
}

TEST(ranks_fill_a_package_before_they_enter_the_next)
{
	static const struct {
		const char *name;
		uint32_t cores, packages;
	} machines[] = { { "broadwell-2x14", 14, 2 },
			 { "power8-2x10", 10, 2 },
			 { "ig-8x6", 6, 8 },
			 { "knl-68", 68, 1 } };

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		uint32_t count = load(machines[i].name);

		assert_int_equal(oci_tune_order(cpus, count), machines[i].cores);
		check(count, machines[i].cores, machines[i].packages);
	}
}

/* Even numbers in one package, odd ones in the other, as some firmware has it. */
TEST(numbers_that_go_round_the_packages_are_put_in_order)
{
	uint32_t count = load("broadwell-2x14"), n = count / 2;
	static struct oci_topo_place in_order[MOST];

	for (uint32_t i = 0; i < count; i++)
		in_order[i] = cpus[i].place;
	for (uint32_t i = 0; i < count; i++)
		cpus[i].place = in_order[i % 2 * n + i / 2];
	assert_int_equal(oci_tune_order(cpus, count), 14);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(cpus[i].number, 2 * i);
		assert_int_equal(cpus[n + i].number, 2 * i + 1);
	}
	check(count, 14, 2);
}

TEST(places_that_nobody_knows_stay)
{
	for (uint32_t i = 0; i < 4; i++)
		cpus[i] = (struct oci_tune_cpu){
			.number = i,
			.place = { OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE,
				   OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, 0 },
		};
	assert_int_equal(oci_tune_order(cpus, 4), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(cpus[i].number, i);
}
