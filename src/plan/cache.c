/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bucket_of(const struct oci_plan_key *key)
{
	uint32_t hash = key->collective * 31u + key->algorithm;

	hash = (hash * 31u + key->parameter) * 31u + key->v;
	hash = (hash ^ key->root << 7 ^ key->hierarchy << 3 ^ key->commutative) * 2654435761u;
	return hash >> 26;
}

_Static_assert(OCI_CACHE_BUCKETS == 1 << 6, "bucket_of() keeps 6 bits");

/* Lets the least recently used plan go that nobody runs. */
static void evict(struct oci_plan_cache *cache)
{
	struct oci_cached **oldest = NULL;

	for (unsigned int i = 0; i < OCI_CACHE_BUCKETS; i++) {
		for (struct oci_cached **at = &cache->bucket[i]; *at; at = &(*at)->next) {
			if (!(*at)->users && (!oldest || (*at)->used < (*oldest)->used))
				oldest = at;
		}
	}
	if (oldest) {
		struct oci_cached *gone = *oldest;

		*oldest = gone->next;
		free(gone->plan);
		free(gone);
		cache->count--;
	}
}

static struct oci_cached *insert(struct oci_plan_cache *cache, const struct oci_plan_key *key,
				 oci_build_fn build, int *error)
{
	struct oci_cached *made = calloc(1, sizeof(*made));
	uint32_t bucket = bucket_of(key);

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
	made->next = cache->bucket[bucket];
	cache->bucket[bucket] = made;
	cache->count++;
	return made;
}

struct oci_cached *oci_cache_get(struct oci_plan_cache *cache, const struct oci_plan_key *key,
				 oci_build_fn build, int *error)
{
	struct oci_cached *cached = cache->bucket[bucket_of(key)];

	while (cached && memcmp(&cached->plan->key, key, sizeof(*key)))
		cached = cached->next;
	if (!cached)
		cached = insert(cache, key, build, error);
	if (cached) {
		cached->used = ++cache->tick;
		cached->users++;
	}
	return cached;
}

void oci_cache_clear(struct oci_plan_cache *cache)
{
	for (unsigned int i = 0; i < OCI_CACHE_BUCKETS; i++) {
		while (cache->bucket[i]) {
			struct oci_cached *gone = cache->bucket[i];

			cache->bucket[i] = gone->next;
			free(gone->plan);
			free(gone);
		}
	}
	cache->count = 0;
}
