/* SPDX-License-Identifier: BSD-3-Clause */
/* Between blocking.c, which makes the functions of served collectives, and what runs them. */
#ifndef OC_PMPI_CALLS_H
#define OC_PMPI_CALLS_H

#include "pmpi.h"

typedef int oci_native_init(const struct oci_mpi_call *call, MPI_Comm comm, MPI_Info info,
			    MPI_Request *request);
typedef int oci_native_blocking(const struct oci_mpi_call *call, MPI_Comm comm);

/* Nonblocking collectives of this communicator may be served; else the reason is counted. */
bool oci_pmpi_served(const struct oci_pmpi_comm *state, const char *name);
int oci_pmpi_start(const struct oci_mpi_call *call, const char *name, oci_native *native,
		   MPI_Comm comm, MPI_Request *request);
int oci_pmpi_persist(const struct oci_mpi_call *call, const char *name,
		     oci_native_init *native_init, MPI_Comm comm, MPI_Info info,
		     MPI_Request *request);

#endif
