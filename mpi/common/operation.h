/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A collective call of MPI as a call of the engine: counts, displacements, datatypes, MPI_IN_PLACE
 * and MPI_Op become dense bytes, blocks and an oc_op. The same for blocking, nonblocking and
 * persistent forms, and for both front ends.
 *
 * Whether a call goes to the engine depends only on what all members see alike. Layouts, buffer
 * addresses and MPI_IN_PLACE are one rank's own, and never change the engine's call.
 */
#ifndef OC_MPI_OPERATION_H
#define OC_MPI_OPERATION_H

#include "common/data.h"
#include "common/graph.h"
#include "common/port.h"
#include "common/reduction.h"

#include <onecopy/collectives.h>

/*
 * The arguments as the program gave them, under the names of onecopy/collectives.h; those that a
 * collective has not, or that mean nothing on this rank, are ignored. An Alltoallw is an
 * OC_ALLTOALLV with stypes, rtypes; its displacements are bytes. Of a function of the neighborhood
 * that has no counts, they are NULL.
 */
struct oci_mpi_call {
	enum oc_collective collective;
	enum oci_function function;
	const struct oci_mpi_graph *graph; /* this and the next: set by oci_mpi_open() */
	bool grid;
	/* Each side, and its members by the names of arguments: collectives.h has two of some. */
	union {
		struct oci_mpi_side send;
		struct {
			union {
				const void *sbuf;
				void *buffer;
			};
			union {
				MPI_Count scount, count;
			};
			const void *scounts;
			union {
				const void *sdispls, *sadispls;
			};
			union {
				MPI_Datatype stype, type;
			};
			const MPI_Datatype *stypes;
			bool long_scounts, long_sdispls;
		};
	};
	union {
		struct oci_mpi_side recv;
		struct {
			void *rbuf;
			MPI_Count rcount;
			const void *rcounts;
			union {
				const void *rdispls, *radispls;
			};
			MPI_Datatype rtype;
			const MPI_Datatype *rtypes;
			bool long_rcounts, long_rdispls;
		};
	};
	MPI_Op op;
	int root;
};

#define OCI_SAME(side, member, name)                                 \
	_Static_assert(offsetof(struct oci_mpi_call, side.member) == \
			       offsetof(struct oci_mpi_call, name),  \
		       "one member by both names")
OCI_SAME(send, buffer, sbuf);
OCI_SAME(send, count, scount);
OCI_SAME(send, counts, scounts);
OCI_SAME(send, displs, sdispls);
OCI_SAME(send, type, stype);
OCI_SAME(send, types, stypes);
OCI_SAME(send, long_counts, long_scounts);
OCI_SAME(send, long_displs, long_sdispls);
OCI_SAME(recv, buffer, rbuf);
OCI_SAME(recv, count, rcount);
OCI_SAME(recv, counts, rcounts);
OCI_SAME(recv, displs, rdispls);
OCI_SAME(recv, type, rtype);
OCI_SAME(recv, types, rtypes);
OCI_SAME(recv, long_counts, long_rcounts);
OCI_SAME(recv, long_displs, long_rdispls);
#undef OCI_SAME

/* A call made ready for the engine. Lives from oci_mpi_open() to oci_mpi_close(), and does not
 * move. */
struct oci_mpi_operation {
	struct oc_call call; /* for oc_collective(), oc_start() */
	/*
	 * What readying this rank's part came to: where it is not 0 (-ENOMEM, -EIO), the rank calls
	 * oc_team_abandon() in place of oc_collective(), so that the others do not wait.
	 */
	int status;
	bool simple; /* opened by the short way (fastpath.h): what follows is not set but for
		      * reduction, where there is one, and few */
	/*
	 * The call as it may be given to the MPI while the operation is open: the program's, or,
	 * where it was opened with `retain`, with the retained types, operation, counts and
	 * displacements in place of the program's.
	 */
	struct oci_mpi_call mpi;
	/* The rest is private to mpi/common. */
	uint32_t rank, size;
	bool retained; /* mpi has what close gives back */
	void *copies;  /* of counts, displacements and types */
	bool reduces;
	struct oci_mpi_data send, recv;
	struct oc_block *parts; /* of a Reduce_scatter */
	struct oci_mpi_reduction reduction;
	struct oc_block few[2][OCI_MPI_FEW]; /* blocks of either side, or parts; not cleared */
};

enum oci_mpi_path {
	OCI_MPI_ENGINE,	 /* ask the engine with operation->call */
	OCI_MPI_NOTHING, /* the call has no bytes on any rank: it is over, on every member alike */
	OCI_MPI_BACK,	 /* to the MPI's own, on every member alike: *reason says why, a literal */
};

/*
 * Makes a call ready; allocates what it needs, for any number of runs (a persistent operation is
 * opened once). `retain`: the call returns before it is over, so types and the operation are kept
 * until oci_mpi_close(), and counts and displacements are copied. To be closed whatever it returns.
 * `graph`: of a neighborhood collective, who is whose neighbor; it lives as long. NULL: there was
 * no memory to know it. `grid`: oci_mpi_is_grid() of the communicator.
 */
enum oci_mpi_path oci_mpi_open(struct oci_mpi_operation *operation, const struct oci_mpi_call *call,
			       uint32_t rank, uint32_t size, const struct oci_mpi_graph *graph,
			       bool grid, bool retain, const char **reason);
/* Before each run: packs what this rank gives. A failure is in operation->status. */
void oci_mpi_load(struct oci_mpi_operation *operation);
/* After each run that the engine served: unpacks what this rank got. An MPI error code. */
int oci_mpi_store(struct oci_mpi_operation *operation);
void oci_mpi_close(struct oci_mpi_operation *operation);

/* retain.c: the part of `retain`. 0 or -ENOMEM. */
int oci_mpi_retain(struct oci_mpi_operation *operation);
void oci_mpi_release(struct oci_mpi_operation *operation);
/* How many elements its arrays have on either side. */
uint32_t oci_mpi_send_blocks(const struct oci_mpi_call *call, uint32_t size);
uint32_t oci_mpi_recv_blocks(const struct oci_mpi_call *call, uint32_t size);
/* Whether this rank's send and receive arguments mean anything. */
bool oci_mpi_sends(const struct oci_mpi_call *call, uint32_t rank);
bool oci_mpi_receives(const struct oci_mpi_call *call, uint32_t rank);

#endif
