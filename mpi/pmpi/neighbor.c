/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives, which are left to the MPI, and counted. They keep the two rules of
 * pmpi.h: blocking and nonblocking ones do not match, so where something could be outstanding on
 * any rank, the nonblocking one stands for both, which is what MPICH does inside anyway.
 */
#include "pmpi.h"

#include "common/signature.h"

/* Also counts it. NULL: leave it alone. */
static struct oci_pmpi_comm *counted(MPI_Comm comm, const char *name)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);

	if (state)
		oc_count_handed_back(name, "neighbourhood collectives are left to the MPI");
	return state;
}

/* Whether the nonblocking one stands for a blocking one, on all members alike. */
static bool twin(const struct oci_pmpi_comm *state)
{
	return state && oci_pmpi_job.together && state->known;
}

#define OCI_COUNT int
#define OCI_DISPL int
#define OCI_NAME(name) name
#include "neighbor.h"

#undef OCI_COUNT
#undef OCI_DISPL
#undef OCI_NAME
#define OCI_COUNT MPI_Count
#define OCI_DISPL MPI_Aint
#define OCI_NAME(name) name##_c
#include "neighbor.h"
