/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls as their nonblocking twins, while something of ours is outstanding, so that a peer
 * that waits for us is not left waiting. With nothing outstanding: one load and a tail call.
 *
 * Point-to-point calls match each other in all forms, so each rank decides by itself. Blocking and
 * nonblocking neighbourhood collectives do not match; where something could be outstanding on any
 * rank, the nonblocking one stands for both, which is what MPICH does inside anyway.
 *
 * MPI_Bsend does not wait for anybody. MPI_Buffer_detach does, but has no twin; see README.md.
 */
#include "pmpi.h"

#define OCI_COUNT int
#define OCI_NAME(name) name
#include "twin.h"

int oci_pmpi_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	uint32_t turns = 0;
	int found = 0, error;

	if (!oci_pmpi_attention())
		return PMPI(Probe)(from, tag, comm, status);
	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Iprobe)(from, tag, comm, &found, status);
		if (error || found)
			return error;
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	return PMPI(Iprobe)(from, tag, comm, flag, status);
}

int oci_pmpi_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	uint32_t turns = 0;
	int found = 0, error;

	if (!oci_pmpi_attention())
		return PMPI(Mprobe)(from, tag, comm, message, status);
	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Improbe)(from, tag, comm, &found, message, status);
		if (error || found)
			return error;
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		     MPI_Status *status)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	return PMPI(Improbe)(from, tag, comm, flag, message, status);
}

/* ---- neighbourhood collectives ----------------------------------------------------------------
 */

/* Also counts it. True: the twin, on all members alike. */
static bool neighbors(MPI_Comm comm, const char *name)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);

	if (!state)
		return false;
	oc_count_handed_back(name, "neighbourhood collectives are left to the MPI");
	return oci_pmpi_job.together && state->known;
}

#define LIST(...) __VA_ARGS__
#define NEIGHBOR(Name, Iname, name, parameters, arguments)                          \
	int oci_pmpi_##Name(LIST parameters, MPI_Comm comm)                         \
	{                                                                           \
		MPI_Request request;                                                \
		int error;                                                          \
                                                                                    \
		if (!neighbors(comm, name))                                         \
			return PMPI(Name)(LIST arguments, comm);                    \
		oci_pmpi_await_decided(oci_pmpi_comm_get(comm));                    \
		error = PMPI(Iname)(LIST arguments, comm, &request);                \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE); \
	}                                                                           \
	int oci_pmpi_##Iname(LIST parameters, MPI_Comm comm, MPI_Request *request)  \
	{                                                                           \
		neighbors(comm, name);                                              \
		return PMPI(Iname)(LIST arguments, comm, request);                  \
	}

/* clang-format off */
NEIGHBOR(Neighbor_allgather, Ineighbor_allgather, "neighbor_allgather",
	 (const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, int rcount,
	  MPI_Datatype rtype),
	 (sbuf, scount, stype, rbuf, rcount, rtype))
NEIGHBOR(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor_allgatherv",
	 (const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, const int rcounts[],
	  const int rdispls[], MPI_Datatype rtype),
	 (sbuf, scount, stype, rbuf, rcounts, rdispls, rtype))
NEIGHBOR(Neighbor_alltoall, Ineighbor_alltoall, "neighbor_alltoall",
	 (const void *sbuf, int scount, MPI_Datatype stype, void *rbuf, int rcount,
	  MPI_Datatype rtype),
	 (sbuf, scount, stype, rbuf, rcount, rtype))
NEIGHBOR(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor_alltoallv",
	 (const void *sbuf, const int scounts[], const int sdispls[], MPI_Datatype stype,
	  void *rbuf, const int rcounts[], const int rdispls[], MPI_Datatype rtype),
	 (sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype))
NEIGHBOR(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor_alltoallw",
	 (const void *sbuf, const int scounts[], const MPI_Aint sdispls[],
	  const MPI_Datatype stypes[], void *rbuf, const int rcounts[], const MPI_Aint rdispls[],
	  const MPI_Datatype rtypes[]),
	 (sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes))
/* clang-format on */
