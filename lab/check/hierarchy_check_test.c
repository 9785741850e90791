/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The algorithms by hierarchy go through the checker on the machines of tests/topologies, among
 * them the 48 cores of paper 000: ranks placed core by core, over the NUMA nodes in turn, and at
 * random with some of them bound to a package or to nothing. Any rank is the root.
 */
#include <stdio.h>

#include "coll/tree.h"
#include "lab/check/coll_check_test.h"
#include "lab/topo/machine.h"
#include "support/test.h"
#include "topo/hierarchy.h"

static const struct machine {
	const char *name;
	uint32_t cpus, ranks;
	uint32_t round; /* CPUs between the ranks of a placement that goes round */
} machines[] = {
	{ "ig-8x6", 48, 48, 6 },	{ "epyc-nps4-2x64", 128, 128, 16 },
	{ "knl-68", 272, 68, 8 },	{ "broadwell-2x14", 28, 28, 14 },
	{ "power8-2x10", 160, 40, 80 },
};

enum placement { IN_ORDER, ROUND, AT_RANDOM, PLACEMENTS };

static uint64_t random_state = 7;

static uint32_t pick(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % below);
}

static struct oci_topo_place bound(const struct oci_topo *topo, uint32_t first, uint32_t count)
{
	struct oci_topo_place place;
	uint64_t mask[8] = { 0 };

	for (uint32_t cpu = first; cpu < first + count; cpu++)
		mask[cpu / 64] |= (uint64_t)1 << (cpu % 64);
	oci_topo_place(topo, mask, 8, &place);
	return place;
}

static struct oci_topo_place place_of(const struct oci_topo *topo, const struct machine *m,
				      enum placement placement, uint32_t rank, uint32_t ranks)
{
	uint32_t apart = m->cpus / m->ranks, rounds = m->cpus / m->round;

	switch (placement) {
	case IN_ORDER:
		return bound(topo, rank * apart * (m->ranks / ranks), 1);
	case ROUND:
		return bound(topo, (rank % rounds * m->round + rank / rounds) % m->cpus, 1);
	default:
		/* Unequal groups, several ranks on one CPU; one in eight is not bound to a core. */
		if (pick(8))
			return bound(topo, pick(pick(2) ? m->cpus : m->round + 1), 1);
		return pick(2) ? bound(topo, 0, m->cpus) : bound(topo, 0, m->round);
	}
}

static const struct oci_hierarchy *hierarchy_of(const struct machine *m, enum placement placement,
						uint32_t ranks)
{
	const struct oci_hierarchy *hierarchy = NULL;
	struct oci_topo_place places[MOST_PLANS];
	struct oci_topo *topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/tests/topologies/%s.xml", OC_SOURCE_DIR, m->name);
	assert_int_equal(oci_topo_load(&topo, path), 0);
	for (uint32_t rank = 0; rank < ranks; rank++)
		places[rank] = place_of(topo, m, placement, rank, ranks);
	assert_int_equal(oci_hierarchy_get(places, ranks, &hierarchy), 0);
	oci_topo_destroy(topo);
	return hierarchy;
}

/* ---- the plans ------------------------------------------------------------------------------ */

static const struct oci_hierarchy *current;

static void check_calls(const struct subject *subject)
{
	static const size_t sizes[] = { 48, 0, 8, 200 };
	size_t unit = oci_is_reduction(subject->collective) ? 8 : 1;
	struct subject copy = *subject;
	struct sequence s = { 0 };
	static uint64_t turn;

	if (!oci_algorithm(subject->collective, subject->algorithm)->by_hierarchy)
		return;
	copy.hierarchy = current->id;
	for (uint32_t i = 0; i < (full() ? 40u : 8u); i++) {
		uint32_t root = i < 2 ? i * (copy.size - 1) : pick(copy.size);
		size_t bytes = copy.collective == OC_BARRIER ? 0 : sizes[i % COUNT(sizes)];

		add_call(&s, &copy, root, bytes, unit, i % 3 == 1);
	}
	s.check.lanes = turn % 2 ? 2 : 8;
	s.check.segment_bytes = turn % 3 ? 24 : 0;
	run(&s, copy.size, turn % OCI_CHECK_EXHAUSTIVE, turn);
	turn++;
	clear(&s);
}

static void check_in_both_orders(const struct subject *subject)
{
	both_orders(subject, check_calls);
}

TEST(plans_by_hierarchy_are_right_on_every_machine)
{
	for (size_t i = 0; i < COUNT(machines); i++)
		for (enum placement p = 0; p < PLACEMENTS; p++)
			for (uint32_t ranks = machines[i].ranks; ranks > 2; ranks /= 2) {
				current = hierarchy_of(&machines[i], p, ranks);
				if (!current)
					continue;
				for_each_subject(ranks, check_in_both_orders);
				oci_hierarchy_put(current);
			}
	assert_true(total.sequences > 0);
}

/* ---- the trees ------------------------------------------------------------------------------ */

static struct oci_plan_key key_of(uint32_t root)
{
	return (struct oci_plan_key){ .size = current->size,
				      .root = root,
				      .hierarchy = current->id };
}

/* Ranks of a package, other than its leader, have their parents in it. */
static void check_crossings(const struct oci_tree *t)
{
	uint32_t crossings = 0, groups = 0;

	for (uint32_t rank = 0; rank < current->size; rank++) {
		uint32_t v = (rank + t->size - t->root) % t->size, parent;

		groups += oci_hierarchy_group(current, 0, rank) == rank;
		if (v == oci_tree_top(t))
			continue;
		parent = (oci_tree_parent(t, v) + t->root) % t->size;
		crossings += oci_hierarchy_group(current, 0, rank) !=
			     oci_hierarchy_group(current, 0, parent);
	}
	assert_int_equal(crossings, groups - 1);
}

/* Every rank is below the root, and the children of a rank are those who call it their parent. */
static void check_tree(const struct oci_tree *t)
{
	uint32_t edges = 0;

	for (uint32_t v = 0; v < t->size; v++) {
		uint32_t up = v, steps = 0, child = v, down[MOST_PLANS], count = 0;

		while (up != oci_tree_top(t)) {
			up = oci_tree_parent(t, up);
			assert_true(++steps < t->size);
		}
		while ((child = oci_tree_ascending(t, v, child)) != v) {
			assert_int_equal(oci_tree_parent(t, child), v);
			down[count++] = child;
		}
		edges += count;
		while ((child = oci_tree_descending(t, v, child)) != v)
			assert_int_equal(child, down[--count]);
		assert_int_equal(count, 0);
	}
	assert_int_equal(edges, t->size - 1);
}

TEST(each_package_is_entered_once)
{
	for (size_t i = 0; i < COUNT(machines); i++)
		for (enum placement p = 0; p < PLACEMENTS; p++) {
			current = hierarchy_of(&machines[i], p, machines[i].ranks);
			assert_non_null(current);
			for (uint32_t root = 0; root < current->size; root++) {
				struct oci_plan_key key = key_of(root);
				struct oci_tree t = oci_tree_by_hierarchy(&key, false);

				check_tree(&t);
				check_crossings(&t);
				t = oci_tree_by_hierarchy(&key, true);
				assert_int_equal((oci_tree_top(&t) + root) % t.size, 0);
				check_tree(&t);
				if (current->in_order)
					check_crossings(&t);
			}
			oci_hierarchy_put(current);
		}
}

/* One ring through all ranks, both ways alike, which leaves each group of each level once. */
static void check_ring(void)
{
	uint32_t rank = 0, left[OCI_HIERARCHY_LEVELS] = { 0 }, groups[OCI_HIERARCHY_LEVELS] = { 0 };

	for (uint32_t i = 0; i < current->size; i++) {
		uint32_t next = oci_ring_next(current, current->size, rank, false);

		assert_int_equal(oci_ring_next(current, current->size, next, true), rank);
		for (uint32_t level = 0; level < current->levels; level++) {
			left[level] += oci_hierarchy_group(current, level, rank) !=
				       oci_hierarchy_group(current, level, next);
			groups[level] += oci_hierarchy_group(current, level, rank) == rank;
		}
		rank = next;
		assert_true(rank || i == current->size - 1);
	}
	for (uint32_t level = 0; level < current->levels; level++)
		assert_int_equal(left[level], groups[level] > 1 ? groups[level] : 0);
}

TEST(a_ring_enters_each_group_once)
{
	for (size_t i = 0; i < COUNT(machines); i++)
		for (enum placement p = 0; p < PLACEMENTS; p++) {
			current = hierarchy_of(&machines[i], p, machines[i].ranks);
			check_ring();
			oci_hierarchy_put(current);
		}
}

/* Paper 000, Figure 1: the root reaches the leaders of the 7 other nodes and the 5 ranks of its
 * own.
 */
TEST(the_48_cores_of_the_paper_are_8_groups_of_6)
{
	struct oci_plan_key key;
	struct oci_tree t;
	uint32_t child = 0, children = 0;

	current = hierarchy_of(&machines[0], IN_ORDER, 48);
	key = key_of(20);
	t = oci_tree_by_hierarchy(&key, false);
	while ((child = oci_tree_ascending(&t, 0, child)) != 0)
		children++;
	assert_int_equal(children, 12);
	/* Rank 26 is in the node of ranks 24 to 29, rank 23 in that of the root. */
	assert_int_equal((oci_tree_parent(&t, 26 - 20) + 20) % 48, 24);
	assert_int_equal((oci_tree_parent(&t, 23 - 20) + 20) % 48, 20);
	assert_int_equal((oci_tree_parent(&t, 24 - 20) + 20) % 48, 20);
	oci_hierarchy_put(current);
}

int main(void)
{
	return oct_test_run(NULL, print_totals);
}
