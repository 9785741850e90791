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

#define SEND(name, twin)                                                                         \
	int oci_pmpi_##name(const void *buffer, int count, MPI_Datatype type, int peer, int tag, \
			    MPI_Comm comm)                                                       \
	{                                                                                        \
		MPI_Request request;                                                             \
		int error;                                                                       \
                                                                                                 \
		if (!oci_pmpi_attention())                                                       \
			return PMPI(name)(buffer, count, type, peer, tag, comm);                 \
		error = PMPI(twin)(buffer, count, type, peer, tag, comm, &request);              \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE);              \
	}

SEND(Send, Isend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)

int oci_pmpi_Recv(void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
		  MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI(Recv)(buffer, count, type, peer, tag, comm, status);
	error = PMPI(Irecv)(buffer, count, type, peer, tag, comm, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

int oci_pmpi_Mrecv(void *buffer, int count, MPI_Datatype type, MPI_Message *message,
		   MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI(Mrecv)(buffer, count, type, message, status);
	error = PMPI(Imrecv)(buffer, count, type, message, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

int oci_pmpi_Sendrecv(const void *sbuf, int scount, MPI_Datatype stype, int to, int stag,
		      void *rbuf, int rcount, MPI_Datatype rtype, int from, int rtag, MPI_Comm comm,
		      MPI_Status *status)
{
	MPI_Request send, receive;
	int error, also;

	if (!oci_pmpi_attention())
		return PMPI(Sendrecv)(sbuf, scount, stype, to, stag, rbuf, rcount, rtype, from,
				      rtag, comm, status);
	error = PMPI(Irecv)(rbuf, rcount, rtype, from, rtag, comm, &receive);
	if (error)
		return error;
	error = PMPI(Isend)(sbuf, scount, stype, to, stag, comm, &send);
	if (error) {
		PMPI(Cancel)(&receive);
		PMPI(Request_free)(&receive);
		return error;
	}
	error = oci_pmpi_await(&receive, status);
	also = oci_pmpi_await(&send, MPI_STATUS_IGNORE);
	return error ? error : also;
}

int oci_pmpi_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int stag,
			      int from, int rtag, MPI_Comm comm, MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI(Sendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm,
					      status);
	error = PMPI(Isendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

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
	oci_pmpi_await_decided(state);
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
