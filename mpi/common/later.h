/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A nonblocking collective that is the MPI's, but not yet: earlier calls of its communicator still
 * wait for their team, and the MPI is to get all that come back to it in the order of the calls.
 * What struct oci_mpi_call has no room for is here: blocks for neighbours instead of ranks.
 */
#ifndef OC_MPI_LATER_H
#define OC_MPI_LATER_H

#include "common/operation.h"

struct oci_mpi_later {
	/* Starts it in the MPI. */
	int (*start)(const struct oci_mpi_later *later, MPI_Comm comm, MPI_Request *request);
	void *context; /* the front end's */
	/* Its collective, buffers, types, operation and root. A call that moves nothing, such as
	 * MPI_Comm_idup, is an OC_BARRIER. */
	struct oci_mpi_call mpi;
	uint32_t sblocks, rblocks; /* elements of each of its arrays */
	MPI_Comm *made;		   /* of MPI_Comm_idup */
	MPI_Info info;
	void *memory; /* of what is kept */
};

/* The same call with copies of its arrays, and with its types and operation kept; NULL: no memory.
 */
struct oci_mpi_later *oci_mpi_later_keep(const struct oci_mpi_later *call, uint32_t rank);
/* When the operation is over. */
void oci_mpi_later_drop(struct oci_mpi_later *later);

/* How many neighbours a rank sends to and receives from; 0 where there is no topology. */
void oci_mpi_neighbors(MPI_Comm comm, uint32_t *to, uint32_t *from);

#endif
