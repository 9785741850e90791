/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arguments of MPI's functions, before the communicator, made of the words of a row of
 * onecopy/collectives.h: as parameters, as their names, and as arguments that come out of a struct
 * oci_mpi_call, which is called `c`, again. Each list ends with a comma, so that there may be none.
 *
 * Who uses them says what a count and a displacement are: OCI_COUNT, OCI_DISPL.
 */
#ifndef OC_MPI_SIGNATURE_H
#define OC_MPI_SIGNATURE_H

#include "common/operation.h"

#define OCI_PARAMETERS(...) OC_SIGNATURE(OCI_PARAMETER, __VA_ARGS__)
#define OCI_NAMES(...) OC_SIGNATURE(OCI_ITS_NAME, __VA_ARGS__)
#define OCI_FROM_CALL(...) OC_SIGNATURE(OCI_MEMBER_OF_CALL, __VA_ARGS__)
#define OCI_CALL(ID, name, first, ...)                                                          \
	{                                                                                       \
		.collective = OC_##ID, .function = OCI_FUNCTION_##name,                         \
		.long_scounts = sizeof(OCI_COUNT) > sizeof(int),                                \
		.long_rcounts = sizeof(OCI_COUNT) > sizeof(int),                                \
		.long_sdispls = OCI_LONG_DISPLS(first), .long_rdispls = OCI_LONG_DISPLS(first), \
		OC_SIGNATURE(OCI_INITIALISER, first, __VA_ARGS__)                               \
	}

#define OCI_LONG_DISPLS(first) \
	(sizeof(OCI_DISPL) > sizeof(int) || OCI_ARGUMENTS_##first == OCI_ARGUMENTS_SENDA)

#define OCI_PARAMETER(name) OCI_TYPE_##name name,
#define OCI_ITS_NAME(name) name,
#define OCI_MEMBER_OF_CALL(name) (OCI_TYPE_##name) c->name,
#define OCI_INITIALISER(name) .name = name,

#define OCI_TYPE_buffer void *
#define OCI_TYPE_sbuf const void *
#define OCI_TYPE_rbuf void *
#define OCI_TYPE_count OCI_COUNT
#define OCI_TYPE_scount OCI_COUNT
#define OCI_TYPE_rcount OCI_COUNT
#define OCI_TYPE_scounts const OCI_COUNT *
#define OCI_TYPE_rcounts const OCI_COUNT *
#define OCI_TYPE_sdispls const OCI_DISPL *
#define OCI_TYPE_rdispls const OCI_DISPL *
#define OCI_TYPE_sadispls const MPI_Aint *
#define OCI_TYPE_radispls const MPI_Aint *
#define OCI_TYPE_type MPI_Datatype
#define OCI_TYPE_stype MPI_Datatype
#define OCI_TYPE_rtype MPI_Datatype
#define OCI_TYPE_stypes const MPI_Datatype *
#define OCI_TYPE_rtypes const MPI_Datatype *
#define OCI_TYPE_op MPI_Op
#define OCI_TYPE_root int

#endif
