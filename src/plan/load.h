/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank copies by itself in a call, before it does. */
#ifndef OC_PLAN_LOAD_H
#define OC_PLAN_LOAD_H

#include "plan/plan.h"

/* Bytes of single copies. `near`: those of them from and to ranks for which is_near says so. */
struct oci_load {
	size_t all, near;
};

/* Of a copy that both ends share all is counted, as the other one may be late; of what this rank
 * helps others with nothing. is_near is asked for ranks, not for v. */
struct oci_load oci_plan_load(const struct oci_plan *plan, const struct oci_params *params,
			      bool (*is_near)(const void *context, uint32_t rank),
			      const void *context);

#endif
