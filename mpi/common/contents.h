/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a derived datatype was made of, alike whether its constructor had int or large counts
 * (MPI_Type_vector, MPI_Type_vector_c).
 */
#ifndef OC_MPI_CONTENTS_H
#define OC_MPI_CONTENTS_H

#include "common/port.h"

struct oci_mpi_contents {
	int combiner;
	/* The constructor's counts and distances in elements, in its order. Of a subarray: the
	 * sizes, the subsizes and the starts, of each as many as there are dimensions. */
	const MPI_Count *number;
	const MPI_Count *place; /* its distances in bytes, in its order */
	int dimensions, order;	/* of a subarray */
	size_t types;
	MPI_Datatype *type;
	void *memory;
};

/* Those of MPI_Type_create_f90_real() and its like are predefined too, though without a name. */
bool oci_mpi_is_predefined(MPI_Datatype type);
/* False, and nothing to close: it has no contents (a predefined type), or there is no memory. */
bool oci_mpi_contents_open(struct oci_mpi_contents *contents, MPI_Datatype type);
void oci_mpi_contents_close(struct oci_mpi_contents *contents);

#endif
