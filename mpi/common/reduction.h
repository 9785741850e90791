/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI_Op as the engine's operation, so that predefined and user-defined operations, C and
 * Fortran, run the MPI's own functions.
 */
#ifndef OC_MPI_REDUCTION_H
#define OC_MPI_REDUCTION_H

#include "common/port.h"

#include <onecopy/onecopy.h>

struct oci_mpi_reduction {
	struct oc_op op; /* op.context is this struct: it does not move */
	MPI_Op mpi;
	MPI_Datatype type;
	uintptr_t lower;  /* an element's first byte, from its origin; dense types */
	char *scratch;	  /* two typed buffers, where elements have gaps; else NULL */
	char *in, *inout; /* in it, shifted so that element 0 starts at its lower bound */
	size_t chunk;	  /* elements of each */
	int failed;	  /* MPI error code of a conversion inside apply */
};

/* 0 or -ENOMEM. The type's shape is as oci_port_type_get() says. */
int oci_mpi_reduction_open(struct oci_mpi_reduction *reduction, MPI_Op op, MPI_Datatype type,
			   const struct oci_port_type *shape);
void oci_mpi_reduction_close(struct oci_mpi_reduction *reduction);

#endif
