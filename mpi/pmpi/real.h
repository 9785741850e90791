/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MPI's own functions, each looked up at its first call (entry.S, resolve.c): PMPI(Send)(...)
 * calls MPICH's PMPI_Send.
 *
 * They are not linked: this library has no DT_NEEDED on an MPI, must load into programs without
 * one, and exports the names PMPI_ itself (entry.S).
 */
#ifndef OC_PMPI_REAL_H
#define OC_PMPI_REAL_H

#include <mpi.h>

#include "functions.h"

#ifndef MPICH_NUMVERSION
#error "mpi/pmpi is written for MPICH and what shares its mpi.h; Open MPI has mpi/ompi"
#endif
#if MPI_VERSION < 4
#error "mpi/pmpi needs the functions of MPI 4 (MPICH 4.0 and later)"
#endif

/* Of MPI 4.1, which this mpi.h lacks; a program may have a library that does not. */
#if MPI_VERSION == 4 && MPI_SUBVERSION < 1
int MPI_Request_get_status_all(int count, const MPI_Request *request, int *flag,
			       MPI_Status *status);
int MPI_Request_get_status_any(int count, const MPI_Request *request, int *index, int *flag,
			       MPI_Status *status);
int MPI_Request_get_status_some(int count, const MPI_Request *request, int *done, int *index,
				MPI_Status *status);
int MPI_Buffer_flush(void);
int MPI_Comm_flush_buffer(MPI_Comm comm);
int MPI_Comm_detach_buffer(MPI_Comm comm, void *buffer, int *bytes);
int MPI_Comm_detach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count *bytes);
int MPI_Session_flush_buffer(MPI_Session session);
int MPI_Session_detach_buffer(MPI_Session session, void *buffer, int *bytes);
int MPI_Session_detach_buffer_c(MPI_Session session, void *buffer, MPI_Count *bytes);
#endif

struct oci_real {
#define OCI_MEMBER(name) __typeof__(MPI_##name) *name;
	OCI_WRAPPED(OCI_MEMBER)
	OCI_CALLED(OCI_MEMBER)
#undef OCI_MEMBER
};

extern struct oci_real oci_real;

#define PMPI(name) (*oci_real.name)

#endif
