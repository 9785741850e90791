/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls as their nonblocking twins, or beside a thread that drives, while something of
 * ours is outstanding, so that a peer that waits for us is not left waiting. With nothing
 * outstanding: two loads and a tail call.
 *
 * Point-to-point calls match each other in all forms, so each rank decides by itself.
 *
 * MPI_Bsend does not wait for anybody. MPI_Buffer_detach does, but has no twin (passed_on.c).
 */
#include "pmpi.h"

#include <stdlib.h>

#define OCI_COUNT int
#define OCI_NAME(name) name
#include "messages.h"

#undef OCI_COUNT
#undef OCI_NAME
#define OCI_COUNT MPI_Count
#define OCI_NAME(name) name##_c
#include "messages.h"

/* A loop around the nonblocking probe, until it has found something. */
#define PROBE(name, twin, parameters, arguments, begun)    \
	int oci_pmpi_##name parameters                     \
	{                                                  \
		int found = 0, error;                      \
                                                           \
		if (!oci_pmpi_attention())                 \
			return PMPI(name) arguments;       \
		OCI_UNTIL(found, error, PMPI(twin) begun); \
		return error;                              \
	}

PROBE(Probe, Iprobe, (int from, int tag, MPI_Comm comm, MPI_Status *status),
      (from, tag, comm, status), (from, tag, comm, &found, status))
PROBE(Mprobe, Improbe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
      (from, tag, comm, message, status), (from, tag, comm, &found, message, status))
