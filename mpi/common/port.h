/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpi/common asks of the MPI that it is compiled for. Each front end has one port.c: Open
 * MPI's uses internal objects, that of the preload library PMPI_ functions.
 *
 * All functions may be called by any thread. Errors are MPI error codes, MPI_SUCCESS is 0.
 */
#ifndef OC_MPI_PORT_H
#define OC_MPI_PORT_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* OCI_PORT_MPI(Topo_test) is the MPI's own MPI_Topo_test, past whoever stands in front of it. */
#ifdef OPEN_MPI
#define OCI_PORT_MPI(name) PMPI_##name
#else
#include "pmpi/real.h"
#define OCI_PORT_MPI(name) PMPI(name)
#endif

/* A function with the widest counts that the MPI has, and one of these. */
#ifdef OPEN_MPI
#define OCI_PORT_COUNTED(name) PMPI_##name
typedef int oci_port_count;
#else
#define OCI_PORT_COUNTED(name) PMPI(name##_c)
typedef MPI_Count oci_port_count;
#endif
/* Communicators that a process may have by oci_port_part(): of MPICH's 2048 a quarter; Open MPI has
 * as many as the network. */
#ifdef OPEN_MPI
enum { OCI_PORT_PARTS = 16384 };
#else
enum { OCI_PORT_PARTS = 512 };
#endif
/* From so many ranks on the MPI's MPI_Bcast may cut a message at elements, which may be other ones
 * on each rank: Open MPI 4.1.4 takes scatter_allgather of 1 MiB from 16 on, split_binary of less.
 */
#ifdef OPEN_MPI
enum { OCI_PORT_CUTS_FROM = 16 };
#else
enum { OCI_PORT_CUTS_FROM = INT32_MAX };
#endif
/* A Reduce in place that must not commute is right with any root: that of MPICH 4.0.2 reads
 * MPI_IN_PLACE as an address at a root other than 0. */
#ifdef OPEN_MPI
enum { OCI_PORT_KEEPS_ORDER_IN_PLACE = 1 };
#else
enum { OCI_PORT_KEEPS_ORDER_IN_PLACE = 0 };
#endif
/* Whose nonblocking calls are compared with those in two levels. */
#ifdef OPEN_MPI
#define OCI_PORT_LEVELS_FORM OC_LEVELS_OPENMPI
#else
#define OCI_PORT_LEVELS_FORM OC_LEVELS_MPICH
#endif
/* The MPI asks the receiver before it sends a message of more than 16 KiB to another node, for
 * which an Alltoall between leaders waits longer than the MPI's own. */
#ifdef OPEN_MPI
enum { OCI_PORT_ASKS_FIRST = 0 };
#else
enum { OCI_PORT_ASKS_FIRST = 1 };
#endif
/* The root of the MPI's own Gather receives from all at once; in two levels from its node first.
 * Where blocks go straight to it a Gather in two levels was at 0.72 to 0.83 of Open MPI's own,
 * Gathervs at 0.98 to 1.04 in the mean, at 0.65 to 1.07 up to 16 KiB (docs/results/nodes.csv,
 * nodes-at-once.csv); MPICH's own are slower. */
#ifdef OPEN_MPI
enum { OCI_PORT_GATHERS_AT_ONCE = 1 };
#else
enum { OCI_PORT_GATHERS_AT_ONCE = 0 };
#endif
/* From so many ranks of a node on a Gatherv gains: MPICH's with 2 was at 0.73 to 1.01 on two hosts
 * and at 0.91 to 1.16 on four (docs/results/nodes.csv). */
enum { OCI_PORT_GATHERVS_FROM = 4 };
#define OCI_PORT_LONG_COUNTS (sizeof(oci_port_count) > sizeof(int))

/* What a datatype looks like. */
struct oci_port_type {
	size_t size;	   /* bytes of data */
	ptrdiff_t extent;  /* from one element to the next */
	ptrdiff_t true_lb; /* of the first byte of data */
	ptrdiff_t true_extent;
	bool dense;	 /* elements follow each other without a gap, and their data is in order of
			  * address: `count` of them are count * size bytes from true_lb on */
	bool contiguous; /* one element is: its size bytes lie together, in order, from true_lb on
			  */
};

#define OCI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OCI_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* The struct whose member that is. */
#define OCI_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

void oci_port_type_get(MPI_Datatype type, struct oci_port_type *shape);

/* How a derived type was made: MPI_Type_get_envelope and MPI_Type_get_contents, with large counts
 * where the MPI has them. */
struct oci_port_envelope {
	int combiner;
	size_t integers, addresses, counts, types;
};
int oci_port_type_envelope(MPI_Datatype type, struct oci_port_envelope *envelope);
int oci_port_type_contents(MPI_Datatype type, const struct oci_port_envelope *envelope,
			   int *integers, MPI_Aint *addresses, MPI_Count *counts,
			   MPI_Datatype *types);
int oci_port_type_free(MPI_Datatype *type);

/* Between `count` typed elements and dense bytes, in the order of the type map. */
int oci_port_pack(void *packed, const void *user, size_t count, MPI_Datatype type);
int oci_port_unpack(void *user, const void *packed, size_t count, MPI_Datatype type);

/*
 * Keep a type or an operation alive although the program frees it. What is kept may be another
 * handle, which stands for the same: use that one. Predefined ones come back as they are.
 */
int oci_port_type_retain(MPI_Datatype *type);
void oci_port_type_release(MPI_Datatype type);
int oci_port_op_retain(MPI_Op *op);
void oci_port_op_release(MPI_Op op);

bool oci_port_op_commutes(MPI_Op op);
/* A number that all processes give to a predefined operation; 0 for a user's. */
uint32_t oci_port_op_id(MPI_Op op);
/* As struct oc_op has it: inout[i] = in[i] (op) inout[i], dense elements of `size` bytes. NULL:
 * there is none that is faster than the MPI's own. */
typedef void oci_port_function(void *context, const void *in, void *inout, size_t count);
oci_port_function *oci_port_op_function(MPI_Op op, MPI_Datatype type, size_t size);
/* May oci_port_op_apply() be called in a thread of ours, beside any call of the program's? */
bool oci_port_op_any_thread(MPI_Op op, MPI_Datatype type);
/* inout[i] = in[i] (op) inout[i], typed elements. */
int oci_port_op_apply(MPI_Op op, const void *in, void *inout, size_t count, MPI_Datatype type);

/* ---- communicators: how a team is made (team.c) ----------------------------------------------
 *
 * Collectives of the MPI on a communicator of ours, at one place among those of all members, inside
 * a call that may wait. What else is outstanding in this process goes on meanwhile.
 */
struct oci_mpi_comm;
struct oci_mpi_call;
/* The least of all members' two numbers. */
int oci_port_least(struct oci_mpi_comm *comm, const long own[2], long least[2]);
int oci_port_allgather(struct oci_mpi_comm *comm, const void *send, size_t bytes, void *receive);
/* A turn of a wait for the others, who have nothing to say to the MPI. */
void oci_port_turn(struct oci_mpi_comm *comm, uint32_t *turns);
/* Where a member is: oc_node() of its process. */
uint64_t oci_port_node(struct oci_mpi_comm *comm, uint32_t rank);
/* A communicator of some members, by all: each says who is in its own, in its order; NULL: all are;
 * 0: it is in none. Errors of it return. Other communicators are being made meanwhile, by
 * members in any order. */
int oci_port_part(struct oci_mpi_comm *comm, const uint32_t *ranks, uint32_t count, MPI_Comm *part);
void oci_port_free(MPI_Comm *part);
/* What is kept of such a part, where it is on one node; NULL: it is not served. */
struct oci_mpi_comm *oci_port_comm(MPI_Comm part);
/* A call of the MPI itself, on a communicator of either kind, whose arrays are of oci_port_count;
 * begun. */
int oci_port_call(MPI_Comm comm, const struct oci_mpi_call *call);
int oci_port_start(MPI_Comm comm, const struct oci_mpi_call *call, MPI_Request *request);
/* As MPI_Wait, of such a call or a message. */
int oci_port_wait(MPI_Request *request, MPI_Status *status);
/* As MPI_Test, of such a call or a message, in whoever moves the MPI: it may not move it again. */
int oci_port_test(MPI_Request *request, bool *over, MPI_Status *status);
/* Has a message of no bytes come, of tag 0, from any rank of a part? Likewise. */
bool oci_port_told(MPI_Comm part);
/* Processes of this job on this node. */
uint32_t oci_port_node_ranks(void);

/* A new error code that stands for this sentence (failure.c). */
int oci_port_error_add(const char *sentence, int *code);

#endif
