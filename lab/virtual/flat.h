/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPIs' own collectives over messages (network.h): the algorithms that Open MPI's module
 * `tuned` (4.1) and MPICH (4.0) have for what goes in two levels, but those that are never the
 * quickest. Which of them an MPI takes for a size is its own table; here the quickest is taken.
 */
#ifndef OC_VIRTUAL_FLAT_H
#define OC_VIRTUAL_FLAT_H

#include "lab/virtual/network.h"
#include "plan/plan.h"

struct oci_flat {
	const char *name; /* of the quickest */
	double s;
};

/*
 * `bytes` as of a call (oci_shape); root 0; all ranks begin at 0. 0; -ENOTSUP: there is no such
 * collective here; -ENOMEM.
 */
int oci_flat_quickest(const struct oci_model *model, enum oc_collective collective, size_t bytes,
		      uint32_t nodes, uint32_t each, struct oci_flat *flat);
/* The same by the algorithm of that name; -ENOENT: the collective has none. */
int oci_flat_by(const struct oci_model *model, enum oc_collective collective, const char *name,
		size_t bytes, uint32_t nodes, uint32_t each, double *s);

#endif
