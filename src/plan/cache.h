/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of a team, kept for reuse: bounded, the least recently used one goes first. One thread
 * at a time, as the team. A call that is like the last one of its collective does not ask here.
 */
#ifndef OC_PLAN_CACHE_H
#define OC_PLAN_CACHE_H

#include "plan/plan.h"

/* Plans kept; more exist only while more are in use by outstanding operations. */
#define OCI_CACHE_PLANS 64

struct oci_cached {
	struct oci_cached *next; /* used less recently */
	struct oci_plan *plan;
	uint32_t users; /* executions under way */
};

struct oci_plan_cache {
	struct oci_cached *first;
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
