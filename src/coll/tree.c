/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/tree.h"

#include "coll/build.h"
#include "pattern/knomial.h"

static struct oci_tree by_radix(const struct oci_plan_key *key, uint32_t k, bool in_order)
{
	return (struct oci_tree){
		.size = key->size,
		.root = key->root,
		.radix = k,
		.top = in_order ? 0 : key->root,
	};
}

struct oci_tree oci_tree_by_hierarchy(const struct oci_plan_key *key, bool in_order)
{
	const struct oci_hierarchy *hierarchy = oci_hierarchy_find(key->hierarchy);
	struct oci_tree t = by_radix(key, 0, in_order);

	t.hierarchy = hierarchy;
	if (in_order && hierarchy && !hierarchy->in_order)
		t.radix = 1;
	return t;
}

static uint32_t v_of(const struct oci_tree *t, uint32_t rank)
{
	return (rank + t->size - t->root) % t->size;
}

static uint32_t rank_of(const struct oci_tree *t, uint32_t v)
{
	return (uint32_t)(((uint64_t)v + t->root) % t->size);
}

static uint32_t leader(const struct oci_tree *t, uint32_t level, uint32_t rank)
{
	uint32_t lowest = oci_hierarchy_group(t->hierarchy, level, rank);

	return lowest == oci_hierarchy_group(t->hierarchy, level, t->top) ? t->top : lowest;
}

/* Of an absolute rank; the root is its own. */
static uint32_t parent_rank(const struct oci_tree *t, uint32_t rank)
{
	if (rank == t->top)
		return rank;
	if (t->radix) {
		uint32_t place = (rank + t->size - t->top) % t->size;

		return (uint32_t)(((uint64_t)oci_knomial_parent(place, t->radix) + t->top) %
				  t->size);
	}
	for (uint32_t level = t->hierarchy ? t->hierarchy->levels : 0; level-- > 0;)
		if (leader(t, level, rank) != rank)
			return leader(t, level, rank);
	return t->top;
}

uint32_t oci_tree_top(const struct oci_tree *t)
{
	return v_of(t, t->top);
}

uint32_t oci_tree_parent(const struct oci_tree *t, uint32_t v)
{
	return v_of(t, parent_rank(t, rank_of(t, v)));
}

uint32_t oci_tree_ascending(const struct oci_tree *t, uint32_t v, uint32_t child)
{
	uint32_t mine = rank_of(t, v);
	uint32_t rank = child == v ? 0 : rank_of(t, child) + 1;

	while (rank < t->size && (rank == mine || parent_rank(t, rank) != mine))
		rank++;
	return rank < t->size ? v_of(t, rank) : v;
}

uint32_t oci_tree_descending(const struct oci_tree *t, uint32_t v, uint32_t child)
{
	uint32_t mine = rank_of(t, v);
	uint32_t above = child == v ? t->size : rank_of(t, child);

	while (above > 0 && (above - 1 == mine || parent_rank(t, above - 1) != mine))
		above--;
	return above > 0 ? v_of(t, above - 1) : v;
}

/* ---- rings --------------------------------------------------------------------------------- */

/* Does a come before b: by the leaders of their widest groups in which these differ, else by rank?
 */
static bool is_before(const struct oci_hierarchy *h, uint32_t a, uint32_t b)
{
	for (uint32_t level = 0; h && level < h->levels; level++) {
		uint32_t x = oci_hierarchy_group(h, level, a), y = oci_hierarchy_group(h, level, b);

		if (x != y)
			return x < y;
	}
	return a < b;
}

/* The nearest on that side of rank; past the end the farthest on the other side. */
uint32_t oci_ring_next(const struct oci_hierarchy *h, uint32_t size, uint32_t rank, bool before)
{
	uint32_t near = rank, far = rank;

	for (uint32_t r = 0; r < size; r++) {
		if (r == rank)
			continue;
		if (is_before(h, r, rank) == before) {
			if (near == rank || is_before(h, near, r) == before)
				near = r;
		} else if (far == rank || is_before(h, far, r) == before) {
			far = r;
		}
	}
	return near != rank ? near : far;
}

/* ---- sums ---------------------------------------------------------------------------------- */

struct sum {
	struct oci_builder *b;
	const struct oci_tree *t;
	enum oci_buf partial;
	struct oci_range acc;
	bool begun;
};

static void add_child(struct sum *s, uint32_t child)
{
	struct oci_range temp = oci_segmented(oci_block(OCI_BUF_TEMP, 0)), from;
	bool leaf = oci_tree_is_leaf(s->t, child);

	from = oci_segmented(oci_block(leaf ? OCI_BUF_SEND : s->partial, 0));
	oci_build_wait_post(s->b, child, 1, 1, leaf ? 0 : 1);
	oci_build_pull(s->b, s->begun ? temp : s->acc, child, from);
	if (s->begun)
		oci_build_reduce(s->b, temp, s->acc);
	s->begun = true;
}

struct oci_tree oci_sum_tree(struct oci_builder *b)
{
	const struct oci_plan_key *key = oci_builder_key(b);
	bool by_hierarchy = oci_building(b)->by_hierarchy, in_order = !key->commutative;

	oci_build_segment(b, by_hierarchy ? key->parameter : OCI_REDUCE_BYTES);
	return by_hierarchy ? oci_tree_by_hierarchy(key, in_order) :
			      by_radix(key, key->parameter, in_order);
}

void oci_build_sum(struct oci_builder *b, const struct oci_tree *t, enum oci_buf partial,
		   struct oci_range acc)
{
	bool in_order = !oci_builder_key(b)->commutative;
	struct sum s = { .b = b, .t = t, .partial = partial, .acc = acc };
	struct oci_range mine = oci_segmented(oci_block(OCI_BUF_SEND, 0));
	uint32_t v = oci_builder_key(b)->v, child = v;

	while (in_order && (child = oci_tree_descending(t, v, child)) != v)
		add_child(&s, child);
	for (int leaves = 1; !in_order && leaves >= 0; leaves--)
		while ((child = oci_tree_ascending(t, v, child)) != v)
			if (oci_tree_is_leaf(t, child) == leaves)
				add_child(&s, child);
	if (s.begun)
		oci_build_reduce(b, mine, acc);
	else
		oci_build_copy(b, mine, acc);
}
