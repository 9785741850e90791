/* SPDX-License-Identifier: BSD-3-Clause */
/* What the `model` executor says of a call: its plans, built and run in virtual time. */
#ifndef OC_COLL_PREDICT_H
#define OC_COLL_PREDICT_H

#include "coll/coll.h"
#include "lab/virtual/virtual.h"

/* The shape's hierarchy is the team's; it may be that of ranks placed core by core on the model's
 * machine, those beyond its last core from the first one on again: 0 or -ENOMEM, to be put back
 * (topo/hierarchy.h); NULL where they are flat. */
int oci_predict_hierarchy(const struct oci_model *model, uint32_t size,
			  const struct oci_hierarchy **hierarchy);

/* The plans of all ranks, by relative rank, to be forgotten: 0 or -errno. */
int oci_predict_plans(const struct oci_shape *shape, struct oci_choice choice,
		      struct oci_plan ***plans);
void oci_predict_forget(struct oci_plan **plans, uint32_t size);

/* "knomial:4"; "mpi". */
void oci_predict_name(enum oc_collective collective, struct oci_choice choice, char *text,
		      size_t n);

/*
 * Root 0, ranks placed core by core, the operation of a reduction commutes. 0; -EINVAL with a
 * sentence (no such algorithm, or it does not fit), or what oci_virtual_run() says.
 */
int oci_predict(const struct oci_model *model, const struct oci_shape *shape,
		struct oci_choice choice, struct oci_virtual_result *result, char *why, size_t n);

#endif
