/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of a team, kept for reuse: bounded, the least recently used one goes first. One thread
 * at a time, as the team. A call that is like the last one of its collective does not ask here; one
 * whose root goes round does, with a plan for each root.
 */
#ifndef OC_PLAN_CACHE_H
#define OC_PLAN_CACHE_H

#include "plan/plan.h"

/* Plans kept; more exist only while more are in use by outstanding operations. */
#define OCI_CACHE_PLANS 64
#define OCI_CACHE_BUCKETS 64

struct oci_cached {
	struct oci_cached *next; /* in its bucket */
	struct oci_plan *plan;
	uint64_t used;	/* tick of the last use */
	uint32_t users; /* executions under way */
};

struct oci_plan_cache {
	struct oci_cached *bucket[OCI_CACHE_BUCKETS];
	uint64_t tick;
	uint32_t count;
};

/* Builds the plan of a key: oci_plan_build() of src/coll. */
typedef struct oci_plan *(*oci_build_fn)(const struct oci_plan_key *key, int *error);

/* The plan of a key, built when it is not there. NULL and *error. Put back after use. */
struct oci_cached *oci_cache_get(struct oci_plan_cache *cache, const struct oci_plan_key *key,
				 oci_build_fn build, int *error);
static inline void oci_cache_put(struct oci_cached *cached)
{
	cached->users--;
}
void oci_cache_clear(struct oci_plan_cache *cache);

#endif
