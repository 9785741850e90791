/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/hierarchy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_mutex_t lock;
	struct oci_hierarchy *first;
	uint32_t last_id;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Cuts the groups of `outer` by a level of the places. On some machines a cache spans NUMA nodes,
 * on others it is the other way round: what lies within what is never asked for, every level only
 * divides. Is the level worth having: is some group cut, and not everything into single ranks?
 */
static bool divide(const struct oci_topo_place *places, uint32_t count, enum oci_topo_level level,
		   const uint32_t *outer, uint32_t *raw, uint32_t *group)
{
	bool cut = false, together = false;

	oci_topo_group(places, count, level, raw);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = outer[i];

		while (raw[first] != raw[i] || outer[first] != outer[i])
			first++;
		group[i] = first;
		cut |= first != outer[i];
		together |= first != i;
	}
	return cut && together;
}

static bool runs_of_ranks(const struct oci_hierarchy *h)
{
	for (uint32_t level = 0; level < h->levels; level++)
		for (uint32_t rank = 1; rank < h->size; rank++) {
			uint32_t group = oci_hierarchy_group(h, level, rank);

			if (group != rank && group != oci_hierarchy_group(h, level, rank - 1))
				return false;
		}
	return true;
}

/* A hierarchy without a number, and with room for one level more than it can have; or NULL. */
static struct oci_hierarchy *make(const struct oci_topo_place *places, uint32_t count)
{
	static const enum oci_topo_level kinds[OCI_HIERARCHY_LEVELS] = { OCI_TOPO_PACKAGE,
									 OCI_TOPO_NUMA, OCI_TOPO_L3,
									 OCI_TOPO_L2 };
	size_t cells = (OCI_HIERARCHY_LEVELS + 2) * (size_t)count;
	struct oci_hierarchy *h = calloc(1, sizeof(*h) + cells * sizeof(uint32_t));
	const uint32_t *outer;
	uint32_t *raw;

	if (!h)
		return NULL;
	h->size = count;
	/* The team as one group, and the groups of a level alone: behind those of the levels. */
	outer = h->group + OCI_HIERARCHY_LEVELS * (size_t)count;
	raw = h->group + (OCI_HIERARCHY_LEVELS + 1) * (size_t)count;
	for (uint32_t i = 0; i < OCI_HIERARCHY_LEVELS; i++) {
		uint32_t *group = h->group + h->levels * (size_t)count;

		if (!divide(places, count, kinds[i], outer, raw, group))
			continue;
		h->kind[h->levels++] = kinds[i];
		outer = group;
	}
	h->in_order = runs_of_ranks(h);
	return h;
}

static bool same(const struct oci_hierarchy *a, const struct oci_hierarchy *b)
{
	return a->size == b->size && a->levels == b->levels &&
	       !memcmp(a->kind, b->kind, sizeof(a->kind)) &&
	       !memcmp(a->group, b->group, (size_t)a->levels * a->size * sizeof(uint32_t));
}

int oci_hierarchy_get(const struct oci_topo_place *places, uint32_t count,
		      const struct oci_hierarchy **hierarchy)
{
	struct oci_hierarchy *made = make(places, count), *found;

	if (!made)
		return -ENOMEM;
	if (!made->levels) {
		free(made);
		*hierarchy = NULL;
		return 0;
	}
	pthread_mutex_lock(&known.lock);
	found = known.first;
	while (found && !same(found, made))
		found = found->next;
	if (!found) {
		found = made;
		made = NULL;
		found->id = ++known.last_id;
		found->next = known.first;
		known.first = found;
	}
	found->users++;
	pthread_mutex_unlock(&known.lock);
	free(made);
	*hierarchy = found;
	return 0;
}

void oci_hierarchy_put(const struct oci_hierarchy *hierarchy)
{
	struct oci_hierarchy **at = &known.first, *gone = NULL;

	if (!hierarchy)
		return;
	pthread_mutex_lock(&known.lock);
	while (*at != hierarchy)
		at = &(*at)->next;
	if (!--(*at)->users) {
		gone = *at;
		*at = gone->next;
	}
	pthread_mutex_unlock(&known.lock);
	free(gone);
}

const struct oci_hierarchy *oci_hierarchy_find(uint32_t id)
{
	const struct oci_hierarchy *found;

	if (!id)
		return NULL;
	pthread_mutex_lock(&known.lock);
	found = known.first;
	while (found && found->id != id)
		found = found->next;
	pthread_mutex_unlock(&known.lock);
	return found;
}

void oci_hierarchy_fork_child(void)
{
	pthread_mutex_init(&known.lock, NULL);
}
