/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that Open MPI calls: each collective, blocking, nonblocking and persistent, as one
 * description of the call (mpi/common) for whoever runs it.
 */
#include "quick.h"

#include <dlfcn.h>
#include <string.h>

/* Parameters and arguments come in parentheses and end with a comma, so that there may be none. */
#define LIST(...) __VA_ARGS__

#define CALL(COLLECTIVE, fields) ((struct oci_mpi_call){ .collective = COLLECTIVE, LIST fields })

static struct oci_ompi_module *module_of(mca_coll_base_module_t *module)
{
	return (struct oci_ompi_module *)module;
}

/*
 * Open MPI calls some nonblocking functions for itself, from inside its progress too. They are told
 * from the program's by the function of libmpi that the call returns to: MPI_Ixxx or another one.
 * All members run one libmpi, so all tell alike.
 */
static bool is_programs(const void *place)
{
	Dl_info at, libmpi;

	/* Not a function of MPI: a preloaded library may have them as well, as our own one has. */
	return !dladdr(place, &at) || !dladdr((void *)(uintptr_t)ompi_comm_free, &libmpi) ||
	       at.dli_fbase != libmpi.dli_fbase || (at.dli_sname && strstr(at.dli_sname, "MPI_I"));
}

static bool called_by_program(const void *place)
{
	/* Places seen, shifted, with the lowest bit set where they are the program's; atomic.
	 * dladdr() looks through all names of libmpi, for some microseconds. */
	static uintptr_t seen[16];
	static unsigned int next;
	uintptr_t own = (uintptr_t)place << 1, known;

	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		known = __atomic_load_n(&seen[i], __ATOMIC_RELAXED);
		if ((known | 1) == (own | 1))
			return known & 1;
	}
	known = own | is_programs(place);
	__atomic_store_n(&seen[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % 16], known,
			 __ATOMIC_RELAXED);
	return known & 1;
}

/* clang-format off */
/* Out of line, so that the description is written down only where it is needed. */
#define GENERAL(name, COLLECTIVE, parameters, fields)                                         \
	static __attribute__((noinline)) int general_##name(LIST parameters                   \
		oci_ompi_comm *comm, mca_coll_base_module_t *module)                          \
	{                                                                                     \
		return oci_ompi_blocking(module_of(module), comm, &CALL(COLLECTIVE, fields)); \
	}                                                                                     \
	static __attribute__((noinline)) int back_##name(LIST parameters                      \
		oci_ompi_comm *comm, mca_coll_base_module_t *module)                          \
	{                                                                                     \
		return oci_ompi_previous(module_of(module), comm, &CALL(COLLECTIVE, fields)); \
	}

#define BLOCKING(name, COLLECTIVE, parameters, arguments, fields)                             \
	GENERAL(name, COLLECTIVE, parameters, fields)                                         \
	static int name(LIST parameters oci_ompi_comm *comm, mca_coll_base_module_t *module)  \
	{                                                                                     \
		const struct oci_mpi_call call = CALL(COLLECTIVE, fields);                    \
		struct oci_mpi_reduction reduction;                                           \
		struct oc_call engine;                                                        \
		int status;                                                                   \
                                                                                              \
		if (!oci_ompi_quick(&call, comm, &engine, &reduction))                        \
			return general_##name(LIST arguments comm, module);                   \
		if (COLLECTIVE != OC_BARRIER && !engine.bytes)                                \
			return MPI_SUCCESS;                                                   \
		status = oci_ompi_run(module_of(module), comm, &engine, 0);                   \
		return status == OC_HAND_BACK ? back_##name(LIST arguments comm, module) :    \
						status;                                       \
	}

/* Those with blocks of their own sizes, always in general. */
#define BLOCKING_V(name, COLLECTIVE, parameters, fields)                                      \
	static int name(LIST parameters oci_ompi_comm *comm, mca_coll_base_module_t *module)  \
	{                                                                                     \
		return oci_ompi_blocking(module_of(module), comm, &CALL(COLLECTIVE, fields)); \
	}

/* The nonblocking and the persistent form. */
#define STARTED(name, COLLECTIVE, parameters, fields)                                         \
	static int i##name(LIST parameters oci_ompi_comm *comm, ompi_request_t **request,     \
			   mca_coll_base_module_t *module)                                    \
	{                                                                                     \
		return oci_ompi_start(module_of(module), comm, &CALL(COLLECTIVE, fields),     \
				      request);                                               \
	}                                                                                     \
	PERSISTENT(name, COLLECTIVE, parameters, fields)

#define PERSISTENT(name, COLLECTIVE, parameters, fields)                                      \
	static int name##_init(LIST parameters oci_ompi_comm *comm, struct ompi_info_t *info, \
			       ompi_request_t **request, mca_coll_base_module_t *module)      \
	{                                                                                     \
		return oci_ompi_init(module_of(module), comm, &CALL(COLLECTIVE, fields),      \
				     info, request);                                          \
	}

/* Those that Open MPI calls for itself as well. */
#define STARTED_OWN(name, COLLECTIVE, parameters, fields)                                     \
	static __attribute__((noinline)) int i##name(LIST parameters oci_ompi_comm *comm,     \
		ompi_request_t **request, mca_coll_base_module_t *module)                     \
	{                                                                                     \
		const struct oci_mpi_call call = CALL(COLLECTIVE, fields);                    \
                                                                                              \
		if (!called_by_program(__builtin_return_address(0)))                          \
			return oci_ompi_start_own(module_of(module), comm, &call, request);   \
		return oci_ompi_start(module_of(module), comm, &call, request);               \
	}                                                                                     \
	PERSISTENT(name, COLLECTIVE, parameters, fields)

#define SEND const void *sbuf, int scount, oci_ompi_type *stype,
#define SENDV const void *sbuf, const int *scounts, const int *sdispls, oci_ompi_type *stype,
#define SENDW const void *sbuf, const int *scounts, const int *sdispls, \
	oci_ompi_type *const *stypes,
#define RECEIVE void *rbuf, int rcount, oci_ompi_type *rtype,
#define RECEIVEV void *rbuf, const int *rcounts, const int *rdispls, oci_ompi_type *rtype,
#define RECEIVEW void *rbuf, const int *rcounts, const int *rdispls, \
	oci_ompi_type *const *rtypes,
#define REDUCE const void *sbuf, void *rbuf, int count, oci_ompi_type *type, ompi_op_t *op,
#define REDUCEV const void *sbuf, void *rbuf, const int *counts, oci_ompi_type *type, ompi_op_t *op,
#define ROOT int root,
#define SEND_ARGS sbuf, scount, stype,
#define RECEIVE_ARGS rbuf, rcount, rtype,
#define REDUCE_ARGS sbuf, rbuf, count, type, op,
#define SEND_FIELDS .sbuf = sbuf, .scount = scount, .stype = stype,
#define SENDV_FIELDS .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .stype = stype,
#define SENDW_FIELDS .sbuf = sbuf, .scounts = scounts, .sdispls = sdispls, .stypes = stypes,
#define RECEIVE_FIELDS .rbuf = rbuf, .rcount = rcount, .rtype = rtype,
#define RECEIVEV_FIELDS .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rtype = rtype,
#define RECEIVEW_FIELDS .rbuf = rbuf, .rcounts = rcounts, .rdispls = rdispls, .rtypes = rtypes,
#define REDUCE_FIELDS .sbuf = sbuf, .rbuf = rbuf, .scount = count, .stype = type, .op = op,
#define REDUCEV_FIELDS .sbuf = sbuf, .rbuf = rbuf, .rcounts = counts, .stype = type, .op = op,
#define ROOT_FIELD .root = root,

BLOCKING(barrier, OC_BARRIER, (), (), ())
BLOCKING(bcast, OC_BCAST, (void *sbuf, int scount, oci_ompi_type *stype, ROOT),
	 (sbuf, scount, stype, root,), (SEND_FIELDS ROOT_FIELD))
BLOCKING(scatter, OC_SCATTER, (SEND RECEIVE ROOT), (SEND_ARGS RECEIVE_ARGS root,),
	 (SEND_FIELDS RECEIVE_FIELDS ROOT_FIELD))
BLOCKING(gather, OC_GATHER, (SEND RECEIVE ROOT), (SEND_ARGS RECEIVE_ARGS root,),
	 (SEND_FIELDS RECEIVE_FIELDS ROOT_FIELD))
BLOCKING(allgather, OC_ALLGATHER, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS),
	 (SEND_FIELDS RECEIVE_FIELDS))
BLOCKING(alltoall, OC_ALLTOALL, (SEND RECEIVE), (SEND_ARGS RECEIVE_ARGS),
	 (SEND_FIELDS RECEIVE_FIELDS))
BLOCKING(reduce, OC_REDUCE, (REDUCE ROOT), (REDUCE_ARGS root,), (REDUCE_FIELDS ROOT_FIELD))
BLOCKING(allreduce, OC_ALLREDUCE, (REDUCE), (REDUCE_ARGS), (REDUCE_FIELDS))
BLOCKING(reduce_scatter_block, OC_REDUCE_SCATTER_BLOCK, (REDUCE), (REDUCE_ARGS),
	 (REDUCE_FIELDS .rcount = count,))
BLOCKING(scan, OC_SCAN, (REDUCE), (REDUCE_ARGS), (REDUCE_FIELDS))
BLOCKING(exscan, OC_EXSCAN, (REDUCE), (REDUCE_ARGS), (REDUCE_FIELDS))
BLOCKING_V(reduce_scatter, OC_REDUCE_SCATTER, (REDUCEV), (REDUCEV_FIELDS))
BLOCKING_V(scatterv, OC_SCATTERV, (SENDV RECEIVE ROOT), (SENDV_FIELDS RECEIVE_FIELDS ROOT_FIELD))
BLOCKING_V(gatherv, OC_GATHERV, (SEND RECEIVEV ROOT), (SEND_FIELDS RECEIVEV_FIELDS ROOT_FIELD))
BLOCKING_V(allgatherv, OC_ALLGATHERV, (SEND RECEIVEV), (SEND_FIELDS RECEIVEV_FIELDS))
BLOCKING_V(alltoallv, OC_ALLTOALLV, (SENDV RECEIVEV), (SENDV_FIELDS RECEIVEV_FIELDS))
BLOCKING_V(alltoallw, OC_ALLTOALLV, (SENDW RECEIVEW), (SENDW_FIELDS RECEIVEW_FIELDS))

STARTED(barrier, OC_BARRIER, (), ())
STARTED_OWN(bcast, OC_BCAST, (void *sbuf, int scount, oci_ompi_type *stype, ROOT),
	    (SEND_FIELDS ROOT_FIELD))
STARTED(scatter, OC_SCATTER, (SEND RECEIVE ROOT), (SEND_FIELDS RECEIVE_FIELDS ROOT_FIELD))
STARTED(gather, OC_GATHER, (SEND RECEIVE ROOT), (SEND_FIELDS RECEIVE_FIELDS ROOT_FIELD))
STARTED(allgather, OC_ALLGATHER, (SEND RECEIVE), (SEND_FIELDS RECEIVE_FIELDS))
STARTED(alltoall, OC_ALLTOALL, (SEND RECEIVE), (SEND_FIELDS RECEIVE_FIELDS))
STARTED_OWN(reduce, OC_REDUCE, (REDUCE ROOT), (REDUCE_FIELDS ROOT_FIELD))
STARTED_OWN(allreduce, OC_ALLREDUCE, (REDUCE), (REDUCE_FIELDS))
STARTED(reduce_scatter_block, OC_REDUCE_SCATTER_BLOCK, (REDUCE), (REDUCE_FIELDS .rcount = count,))
STARTED(scan, OC_SCAN, (REDUCE), (REDUCE_FIELDS))
STARTED(exscan, OC_EXSCAN, (REDUCE), (REDUCE_FIELDS))
STARTED(reduce_scatter, OC_REDUCE_SCATTER, (REDUCEV), (REDUCEV_FIELDS))
STARTED(scatterv, OC_SCATTERV, (SENDV RECEIVE ROOT), (SENDV_FIELDS RECEIVE_FIELDS ROOT_FIELD))
STARTED(gatherv, OC_GATHERV, (SEND RECEIVEV ROOT), (SEND_FIELDS RECEIVEV_FIELDS ROOT_FIELD))
STARTED(allgatherv, OC_ALLGATHERV, (SEND RECEIVEV), (SEND_FIELDS RECEIVEV_FIELDS))
STARTED(alltoallv, OC_ALLTOALLV, (SENDV RECEIVEV), (SENDV_FIELDS RECEIVEV_FIELDS))
STARTED(alltoallw, OC_ALLTOALLV, (SENDW RECEIVEW), (SENDW_FIELDS RECEIVEW_FIELDS))
/* clang-format on */

void oci_ompi_serve(mca_coll_base_module_t *module)
{
#define SERVE(name) module->coll_##name = name;
	OCI_OMPI_COLLECTIVES(SERVE)
	OCI_OMPI_NONBLOCKING(SERVE)
	OCI_OMPI_PERSISTENT(SERVE)
#undef SERVE
}
