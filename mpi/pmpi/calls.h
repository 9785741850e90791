/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each served collective once: its parameters, how they become a struct oci_mpi_call, and how its
 * arguments come out of one again. blocking.c makes the functions of this list, once for each kind
 * of count, which it names OCI_COUNT, with displacements of OCI_DISPL and names as OCI_NAME makes
 * them.
 *
 * X(Name, Iname, name, ID, (parameters), (arguments), initialisers): parameters and arguments end
 * with a comma, so that there may be none; arguments read `c`, a struct oci_mpi_call.
 */
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

/* clang-format off */
#define OCI_CALL(id, ...) \
	{ .collective = OC_##id, .long_counts = sizeof(OCI_COUNT) > sizeof(int), \
	  .long_displs = sizeof(OCI_DISPL) > sizeof(int), __VA_ARGS__ }

#define SEND_P const void *sbuf, OCI_COUNT scount, MPI_Datatype stype,
#define SENDV_P const void *sbuf, const OCI_COUNT scounts[], const OCI_DISPL sdispls[], MPI_Datatype stype,
#define SENDW_P const void *sbuf, const OCI_COUNT scounts[], const OCI_DISPL sdispls[], \
	const MPI_Datatype stypes[],
#define RECV_P void *rbuf, OCI_COUNT rcount, MPI_Datatype rtype,
#define RECVV_P void *rbuf, const OCI_COUNT rcounts[], const OCI_DISPL rdispls[], MPI_Datatype rtype,
#define RECVW_P void *rbuf, const OCI_COUNT rcounts[], const OCI_DISPL rdispls[], const MPI_Datatype rtypes[],
#define REDUCE_P const void *sbuf, void *rbuf, OCI_COUNT count, MPI_Datatype type, MPI_Op op,
#define REDUCEV_P const void *sbuf, void *rbuf, const OCI_COUNT counts[], MPI_Datatype type, MPI_Op op,
#define ROOT_P int root,

#define SEND_A c->sbuf, (OCI_COUNT)c->scount, c->stype,
#define SENDV_A c->sbuf, c->scounts, c->sdispls, c->stype,
#define SENDW_A c->sbuf, c->scounts, c->sdispls, c->stypes,
#define RECV_A c->rbuf, (OCI_COUNT)c->rcount, c->rtype,
#define RECVV_A c->rbuf, c->rcounts, c->rdispls, c->rtype,
#define RECVW_A c->rbuf, c->rcounts, c->rdispls, c->rtypes,
#define REDUCE_A c->sbuf, c->rbuf, (OCI_COUNT)c->scount, c->stype, c->op,
#define ROOT_A c->root,

#define SEND_I .sbuf = sbuf, .scount = scount, .stype = stype,
#define SENDV_I .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .stype = stype,
#define SENDW_I .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .stypes = stypes,
#define RECV_I .rbuf = rbuf, .rcount = rcount, .rtype = rtype,
#define RECVV_I .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rtype = rtype,
#define RECVW_I .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rtypes = rtypes,
#define REDUCE_I .sbuf = sbuf, .rbuf = rbuf, .scount = count, .stype = type, .op = op,
#define ROOT_I .root = root,

#define OCI_CALLS(X) \
	X(Barrier, Ibarrier, barrier, BARRIER, (), (), ) OCI_CALLS_WITH_COUNTS(X)
#define OCI_CALLS_WITH_COUNTS(X) \
	X(Bcast, Ibcast, bcast, BCAST, (void *sbuf, OCI_COUNT scount, MPI_Datatype stype, ROOT_P), \
	  ((void *)(uintptr_t)c->sbuf, (OCI_COUNT)c->scount, c->stype, ROOT_A), SEND_I ROOT_I) \
	X(Scatter, Iscatter, scatter, SCATTER, (SEND_P RECV_P ROOT_P), (SEND_A RECV_A ROOT_A), \
	  SEND_I RECV_I ROOT_I) \
	X(Scatterv, Iscatterv, scatterv, SCATTERV, (SENDV_P RECV_P ROOT_P), (SENDV_A RECV_A ROOT_A), \
	  SENDV_I RECV_I ROOT_I) \
	X(Gather, Igather, gather, GATHER, (SEND_P RECV_P ROOT_P), (SEND_A RECV_A ROOT_A), \
	  SEND_I RECV_I ROOT_I) \
	X(Gatherv, Igatherv, gatherv, GATHERV, (SEND_P RECVV_P ROOT_P), (SEND_A RECVV_A ROOT_A), \
	  SEND_I RECVV_I ROOT_I) \
	X(Allgather, Iallgather, allgather, ALLGATHER, (SEND_P RECV_P), (SEND_A RECV_A), \
	  SEND_I RECV_I) \
	X(Allgatherv, Iallgatherv, allgatherv, ALLGATHERV, (SEND_P RECVV_P), (SEND_A RECVV_A), \
	  SEND_I RECVV_I) \
	X(Alltoall, Ialltoall, alltoall, ALLTOALL, (SEND_P RECV_P), (SEND_A RECV_A), \
	  SEND_I RECV_I) \
	X(Alltoallv, Ialltoallv, alltoallv, ALLTOALLV, (SENDV_P RECVV_P), (SENDV_A RECVV_A), \
	  SENDV_I RECVV_I) \
	X(Alltoallw, Ialltoallw, alltoallw, ALLTOALLV, (SENDW_P RECVW_P), (SENDW_A RECVW_A), \
	  SENDW_I RECVW_I) \
	X(Reduce, Ireduce, reduce, REDUCE, (REDUCE_P ROOT_P), (REDUCE_A ROOT_A), REDUCE_I ROOT_I) \
	X(Allreduce, Iallreduce, allreduce, ALLREDUCE, (REDUCE_P), (REDUCE_A), REDUCE_I) \
	X(Reduce_scatter, Ireduce_scatter, reduce_scatter, REDUCE_SCATTER, (REDUCEV_P), \
	  (c->sbuf, c->rbuf, c->rcounts, c->stype, c->op,), \
	  .sbuf = sbuf, .rbuf = rbuf, .rcounts = counts, .stype = type, .op = op) \
	X(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter_block, REDUCE_SCATTER_BLOCK, \
	  (REDUCE_P), (c->sbuf, c->rbuf, (OCI_COUNT)c->rcount, c->stype, c->op,), \
	  .sbuf = sbuf, .rbuf = rbuf, .rcount = count, .stype = type, .op = op) \
	X(Scan, Iscan, scan, SCAN, (REDUCE_P), (REDUCE_A), REDUCE_I) \
	X(Exscan, Iexscan, exscan, EXSCAN, (REDUCE_P), (REDUCE_A), REDUCE_I)
/* clang-format on */

#endif
