/* SPDX-License-Identifier: BSD-3-Clause */
/* Hierarchies of places that were written by hand, and on the machines of tests/topologies. */
#include "topo/hierarchy.h"

#include <stdio.h>

#include "lab/topo/machine.h"
#include "support/test.h"

#define N OCI_TOPO_NOWHERE
#define MOST 272

static const struct oci_hierarchy *on_machine(const char *name, unsigned int ranks,
					      unsigned int apart)
{
	struct oci_topo_place places[MOST];
	const struct oci_hierarchy *h = NULL;
	struct oci_topo *topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR, name);
	assert_int_equal(oci_topo_load(&topo, path), 0);
	for (unsigned int rank = 0; rank < ranks; rank++) {
		uint64_t mask[8] = { 0 };

		mask[rank * apart / 64] |= (uint64_t)1 << (rank * apart % 64);
		oci_topo_place(topo, mask, 8, &places[rank]);
	}
	assert_int_equal(oci_hierarchy_get(places, ranks, &h), 0);
	oci_topo_destroy(topo);
	return h;
}

TEST(levels_that_tell_nothing_are_left_out)
{
	static const struct {
		const char *name;
		unsigned int ranks, apart, levels;
		enum oci_topo_level kind[OCI_HIERARCHY_LEVELS];
	} row[] = {
		{ "ig-8x6", 48, 1, 1, { OCI_TOPO_PACKAGE } },
		{ "ig-8x6", 6, 1, 0, { 0 } }, /* all in one node */
		{ "ig-8x6", 8, 6, 0, { 0 } }, /* one in each */
		{ "broadwell-2x14", 28, 1, 1, { OCI_TOPO_PACKAGE } },
		{ "power8-2x10", 20, 8, 1, { OCI_TOPO_PACKAGE } },
		{ "power8-2x10", 160, 1, 2, { OCI_TOPO_PACKAGE, OCI_TOPO_L2 } },
		{ "knl-68", 68, 4, 1, { OCI_TOPO_L2 } },
		{ "epyc-nps4-2x64", 128, 1, 3, { OCI_TOPO_PACKAGE, OCI_TOPO_NUMA, OCI_TOPO_L3 } },
		{ "epyc-nps4-2x64", 16, 8, 2, { OCI_TOPO_PACKAGE, OCI_TOPO_NUMA } },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct oci_hierarchy *h = on_machine(row[i].name, row[i].ranks, row[i].apart);

		assert_int_equal(h ? h->levels : 0, row[i].levels);
		assert_true(!h || h->in_order);
		for (unsigned int level = 0; level < row[i].levels; level++)
			assert_int_equal(h->kind[level], row[i].kind[level]);
		oci_hierarchy_put(h);
	}
}

TEST(groups_lie_within_groups)
{
	/* A cache that spans the two NUMA nodes of a package, and one that is half a node. */
	static const struct oci_topo_place places[] = {
		{ 0, 0, 0, 0, 0, 1 }, { 1, 1, 0, 0, 0, 1 }, { 2, 2, 0, 1, 0, 1 },
		{ 3, 3, 1, 2, 1, 1 }, { 4, 4, 1, 2, 1, 1 }, { 5, 5, 2, 2, 1, 1 },
		{ N, N, N, N, 1, 6 }, { N, N, N, N, N, 9 }, { N, N, N, N, N, 9 },
	};
	static const uint32_t want[3][9] = { { 0, 0, 0, 3, 3, 3, 3, 7, 8 },
					     { 0, 0, 2, 3, 3, 3, 6, 7, 8 },
					     { 0, 0, 2, 3, 3, 5, 6, 7, 8 } };
	const struct oci_hierarchy *h;

	assert_int_equal(oci_hierarchy_get(places, 9, &h), 0);
	assert_non_null(h);
	assert_int_equal(h->levels, 3);
	assert_true(h->in_order);
	for (uint32_t level = 0; level < 3; level++)
		for (uint32_t rank = 0; rank < 9; rank++)
			assert_int_equal(oci_hierarchy_group(h, level, rank), want[level][rank]);
	oci_hierarchy_put(h);
}

TEST(equal_places_are_one_hierarchy)
{
	struct oci_topo_place places[4] = { { 0, 0, 0, 0, 0, 1 },
					    { 1, 1, 1, 1, 1, 1 },
					    { 2, 2, 0, 0, 0, 1 },
					    { 3, 3, 1, 1, 1, 1 } };
	const struct oci_hierarchy *a, *b, *other;
	uint32_t id;

	assert_int_equal(oci_hierarchy_get(places, 4, &a), 0);
	/* Another core of the same cache: nothing that a plan could see. */
	places[3].core = 9;
	assert_int_equal(oci_hierarchy_get(places, 4, &b), 0);
	assert_ptr_equal(a, b);
	assert_false(a->in_order);
	assert_int_equal(oci_hierarchy_get(places, 3, &other), 0);
	assert_ptr_not_equal(a, other);
	assert_int_not_equal(a->id, other->id);
	id = a->id;
	assert_int_not_equal(id, 0);
	oci_hierarchy_put(a);
	assert_ptr_equal(oci_hierarchy_find(id), b);
	oci_hierarchy_put(b);
	assert_null(oci_hierarchy_find(id));
	/* A number is never used again. */
	assert_int_equal(oci_hierarchy_get(places, 4, &a), 0);
	assert_true(a->id > id);
	oci_hierarchy_put(a);
	oci_hierarchy_put(other);
	oci_hierarchy_put(NULL);
	assert_null(oci_hierarchy_find(0));
}

TEST(unbound_ranks_are_flat)
{
	static const struct oci_topo_place places[3] = { { N, N, N, N, N, 4 },
							 { N, N, N, N, N, 4 },
							 { N, N, N, N, N, 4 } };
	const struct oci_hierarchy *h = (const struct oci_hierarchy *)1;

	assert_int_equal(oci_hierarchy_get(places, 3, &h), 0);
	assert_null(h);
	h = (const struct oci_hierarchy *)1;
	assert_int_equal(oci_hierarchy_get(places, 1, &h), 0);
	assert_null(h);
}
