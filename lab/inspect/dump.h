/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_LAB_DUMP_H
#define OC_LAB_DUMP_H

#include <stdio.h>

#include "plan/plan.h"

/* Graphviz: the plans of all p ranks of one collective, edges within ranks and between flags. */
void oci_plan_dump_dot(FILE *out, const char *algorithm, const struct oci_plan *const *plans,
		       uint32_t count);

#endif
