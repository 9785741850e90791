/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured to be best, by collective, kind of team and size: rows.c has the tables. */
#ifndef OC_COLL_ROWS_H
#define OC_COLL_ROWS_H

#include "coll/coll.h"

enum oci_team_kind { OCI_PAIR, OCI_TEAM, OCI_CROWD, OCI_KINDS }; /* two; more; more than CPUs */

enum oci_team_kind oci_team_kind(const struct oci_shape *shape);
/* Can it run such calls? Not asked of OCI_CHOICE_MPI. */
bool oci_choice_fits(const struct oci_shape *shape, const struct oci_choice *choice);
/* The choice of the rows; every shape has one. */
struct oci_choice oci_by_rows(const struct oci_shape *shape);
/* Does what is chosen for two ranks with such a block depend on shape->common, by the rows? */
bool oci_near_decides(enum oc_collective collective, size_t bytes);
/* Do two ranks that share a cache gain by larger slots in such a blocking call? */
static inline bool oci_large_slots_gain(enum oc_collective collective, size_t bytes)
{
	return __builtin_expect(bytes > OCI_SLOT_BYTES, 0) && oci_near_decides(collective, bytes);
}

#endif
