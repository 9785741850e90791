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

struct oci_real {
#define OCI_MEMBER(name) __typeof__(MPI_##name) *name;
	OCI_WRAPPED(OCI_MEMBER)
	OCI_CALLED(OCI_MEMBER)
#undef OCI_MEMBER
};

extern struct oci_real oci_real;

#define PMPI(name) (*oci_real.name)

#endif
