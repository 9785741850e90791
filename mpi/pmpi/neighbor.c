/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives, which are left to the MPI. They keep the two rules of pmpi.h: blocking
 * and nonblocking ones do not match, so where something could be outstanding on any rank, the
 * nonblocking one stands for both, which is what MPICH does inside anyway. And they keep their
 * place among the collectives of the communicator: MPICH numbers those in the order of the calls,
 * the persistent ones in their _init calls. So an _init call, which may wait, waits for what may
 * yet be handed back, and a nonblocking call stands behind it.
 */
#include "pmpi.h"

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

static int start_later(struct oci_mpi_later *call, struct oci_pmpi_comm *state, MPI_Comm comm,
		       MPI_Request *request)
{
	if (state)
		oci_mpi_neighbors(comm, &call->sblocks, &call->rblocks);
	return oci_pmpi_start_later(call, state, comm, request);
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
