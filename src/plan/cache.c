/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void drop(struct oci_plan_cache *cache, struct oci_cached **at)
{
	struct oci_cached *gone = *at;

	*at = gone->next;
	cache->count--;
	free(gone->plan);
	free(gone);
}

/* Lets the least recently used plan go that nobody runs. */
static void evict(struct oci_plan_cache *cache)
{
	struct oci_cached **oldest = NULL;

	for (struct oci_cached **at = &cache->first; *at; at = &(*at)->next)
		if (!(*at)->users)
			oldest = at;
	if (oldest)
		drop(cache, oldest);
}

static struct oci_cached *make(struct oci_plan_cache *cache, const struct oci_plan_key *key,
			       oci_build_fn build, int *error)
{
	struct oci_cached *made = calloc(1, sizeof(*made));

	if (!made) {
		*error = -ENOMEM;
		return NULL;
	}
	made->plan = build(key, error);
	if (!made->plan) {
		free(made);
		return NULL;
	}
	if (cache->count >= OCI_CACHE_PLANS)
		evict(cache);
	cache->count++;
	return made;
}

struct oci_cached *oci_cache_get(struct oci_plan_cache *cache, const struct oci_plan_key *key,
				 oci_build_fn build, int *error)
{
	struct oci_cached **at = &cache->first, *cached;

	while (*at && memcmp(&(*at)->plan->key, key, sizeof(*key)))
		at = &(*at)->next;
	cached = *at;
	if (cached)
		*at = cached->next;
	else
		cached = make(cache, key, build, error);
	if (!cached)
		return NULL;
	cached->next = cache->first;
	cache->first = cached;
	cached->users++;
	return cached;
}

void oci_cache_clear(struct oci_plan_cache *cache)
{
	while (cache->first)
		drop(cache, &cache->first);
}
