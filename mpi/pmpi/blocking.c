/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives, and the functions of all three forms, with int and with large counts, which
 * differ in nothing but their parameters. Members of one call may use different ones of the latter
 * two.
 *
 * A call that is not served must not block inside the MPI while a peer needs this process for
 * another operation of ours. What is outstanding differs from rank to rank, but a blocking and a
 * nonblocking collective do not match, so the members decide from what they know alike: on a
 * communicator with a team, a barrier of the team comes first, in which everything moves; who is
 * through it finds all members inside the call. On others, the nonblocking form stands for it. In a
 * job across nodes the call goes through as it is, while a helper drives, which may call the MPI
 * there (life.c); and so it does with processes of another job, who may not have this library.
 */
#include "pmpi.h"

#include "common/signature.h"

static bool positive(const void *counts, bool is_long, uint32_t size)
{
	for (uint32_t r = 0; counts && r < size; r++)
		if (oci_mpi_number(counts, is_long, r) < 0)
			return false;
	return counts;
}

/*
 * MPI_BOTTOM is a null pointer in MPICH, which takes it for a buffer that is missing where the type
 * has its data at 0.
 */
static bool missing(const void *buffer, MPI_Count count, MPI_Datatype type)
{
	struct oci_port_type shape;

	if (OCI_LIKELY(buffer || !count || type == MPI_DATATYPE_NULL))
		return false;
	oci_port_type_get(type, &shape);
	return shape.size && !shape.true_lb;
}

/* A count and type, or as many as there are ranks. */
static bool side_sane(const struct oci_mpi_side *side, bool many, uint32_t size)
{
	if (many && !positive(side->counts, side->long_counts, size))
		return false;
	if (!many && (side->count < 0 || missing(side->buffer, side->count, side->type)))
		return false;
	return side->types || side->type != MPI_DATATYPE_NULL;
}

static bool reduction_sane(const struct oci_mpi_call *c, uint32_t rank, uint32_t size)
{
	struct oci_mpi_side operand = c->send;

	if (oci_sends_each(c->collective))
		operand.count = c->rcount;
	operand.counts = c->rcounts;
	/* MPICH misses the result of an Exscan on the first rank too, where it means nothing. */
	if (!c->rbuf && !oci_is_exclusive(c->collective) && oci_mpi_receives(c, rank) &&
	    missing(NULL, operand.count, c->stype))
		return false;
	return c->op != MPI_OP_NULL && c->stype != MPI_DATATYPE_NULL &&
	       oci_pmpi_op_fits(c->op, c->stype) &&
	       side_sane(&operand, oci_has_counts(c->collective), size);
}

/* Without memory for the graph, the engine tells the others. */
static bool neighbors_sane(const struct oci_mpi_call *c, struct oci_mpi_comm *comm)
{
	const struct oci_mpi_graph *graph = oci_mpi_graph(comm);
	int topology = MPI_UNDEFINED;

	if (c->sbuf == MPI_IN_PLACE || c->rbuf == MPI_IN_PLACE)
		return false;
	if (!graph) {
		PMPI(Topo_test)(comm->comm, &topology);
		return topology != MPI_UNDEFINED;
	}
	/* A side without blocks means nothing. */
	if (graph->out.blocks &&
	    !side_sane(&c->send, oci_function_array_sent(c->function), graph->out.blocks))
		return false;
	return !graph->in.blocks ||
	       side_sane(&c->recv, oci_function_array_received(c->function), graph->in.blocks);
}

/* MPICH takes one buffer where it is built without checks of arguments, and with
 * MPIR_CVAR_COLL_ALIAS_CHECK=0. This call has nothing to move should it be taken. */
static bool refuses_aliases(void)
{
	int none = 0;

	return PMPI(Alltoallv)(&none, &none, &none, MPI_INT, &none, &none, &none, MPI_INT,
			       oci_pmpi_job.self) != MPI_SUCCESS;
}

/* Gathered or scattered: has the block that is the root's, or in an Allgather a rank's, its place
 * already? An int that overflows there overflows here. */
static bool in_its_place(const struct oci_mpi_call *c, uint32_t rank)
{
	bool gathers = oci_receives_each(c->collective);
	const struct oci_mpi_side *block = gathers ? &c->send : &c->recv;
	const struct oci_mpi_side *blocks = gathers ? &c->recv : &c->send;
	MPI_Count first = (MPI_Count)rank * block->count;
	struct oci_port_type shape;

	if (c->stype != c->rtype || !block->count)
		return false;
	if (blocks->counts ? !oci_mpi_number(blocks->counts, blocks->long_counts, rank) :
			     c->scount != c->rcount)
		return false;
	if (blocks->counts)
		first = oci_mpi_number(blocks->displs, blocks->long_displs, rank);
	else if (!blocks->long_counts)
		first = (int)first;
	oci_port_type_get(c->rtype, &shape);
	return (uintptr_t)block->buffer ==
	       (uintptr_t)blocks->buffer + (uintptr_t)first * shape.size;
}

/*
 * Is one buffer given for both sides, by MPICH's own rule? It is the same from 4.0 to 5.0
 * (maint/local_python/binding_c.py), and must be the same here: who goes to MPICH alone, and is not
 * refused there, waits for the others for ever.
 */
static bool aliased(const struct oci_mpi_call *c, uint32_t rank, uint32_t size)
{
	MPI_Count any = oci_sends_each(c->collective) ? c->rcount : c->scount;
	bool reduces = oci_is_reduction(c->collective);
	bool one_block = !reduces && oci_each_on_one_side(c->collective);

	if (!one_block && OCI_LIKELY(c->sbuf != c->rbuf))
		return false;
	if (!oci_mpi_sends(c, rank) || !oci_mpi_receives(c, rank))
		return false;
	if (one_block)
		return in_its_place(c, rank) && refuses_aliases();
	if (!reduces)
		return c->stype == c->rtype && c->stypes == c->rtypes && c->scounts == c->rcounts &&
		       c->scount == c->rcount && (c->scounts || c->scount) && refuses_aliases();
	for (uint32_t r = 0; c->rcounts && r < size; r++)
		any |= oci_mpi_number(c->rcounts, c->long_rcounts, r);
	return any && refuses_aliases();
}

/* What is wrong on one rank must not reach the engine, where its peers would wait for it; nor what
 * only the MPI knows. */
bool oci_pmpi_sane(const struct oci_mpi_call *c, struct oci_pmpi_comm *state)
{
	if (state->reason && !state->mpi.spans)
		return true;
	if (c->root < 0 || (uint32_t)c->root >= state->mpi.size)
		return false;
	if (!oci_row_sends(c->collective))
		return true;
	if (oci_is_reduction(c->collective))
		return reduction_sane(c, state->mpi.rank, state->mpi.size) &&
		       !aliased(c, state->mpi.rank, state->mpi.size);
	if (oci_is_neighbor(c->collective))
		return neighbors_sane(c, &state->mpi);
	if (oci_mpi_sends(c, state->mpi.rank) && c->sbuf != MPI_IN_PLACE &&
	    !side_sane(&c->send, oci_counts_sent(c->collective), state->mpi.size))
		return false;
	if (oci_mpi_receives(c, state->mpi.rank) && c->rbuf != MPI_IN_PLACE &&
	    !side_sane(&c->recv, oci_counts_received(c->collective), state->mpi.size))
		return false;
	return !aliased(c, state->mpi.rank, state->mpi.size);
}

/* What is not served, alike on all members. */
static int hand_back(const struct oci_mpi_call *call, struct oci_pmpi_comm *state,
		     oci_native *native, oci_native_blocking *blocking)
{
	struct oc_call barrier = { .collective = OC_BARRIER };
	MPI_Comm comm = state->mpi.comm;
	MPI_Request request;
	int status;

	if (!state->known || !oci_pmpi_job.together)
		return OCI_HELPED(blocking(call, comm));
	if (state->mpi.size == 1 && !state->inter)
		return blocking(call, comm);
	if (!state->reason && oci_mpi_team(&state->mpi)) {
		status = oci_mpi_run_engine(&state->mpi, &barrier, 0);
		if (status == MPI_SUCCESS)
			return blocking(call, comm);
		if (status != OC_HAND_BACK)
			return oci_pmpi_raise(comm, status);
	}
	status = native(call, comm, &request);
	return status ? status : oci_pmpi_await(&request, MPI_STATUS_IGNORE);
}

static int collective(const struct oci_mpi_call *call, oci_native *native,
		      oci_native_blocking *blocking, MPI_Comm comm)
{
	struct oci_pmpi_comm *state = oci_pmpi_comm_get(comm);
	int status;

	if (OCI_UNLIKELY(!state || !oci_pmpi_sane(call, state)))
		return OCI_HELPED(blocking(call, comm));
	if (OCI_LIKELY(!state->reason) || state->mpi.spans) {
		status = state->mpi.spans ? oci_mpi_levels_run(&state->mpi, call) :
					    oci_mpi_run(&state->mpi, call);
		if (OCI_LIKELY(status == MPI_SUCCESS))
			return MPI_SUCCESS;
		if (status != OC_HAND_BACK)
			return oci_pmpi_raise(comm, status);
	} else if (state->mpi.size > 1 || state->inter) {
		oci_mpi_count_back(call, state->reason);
	}
	return hand_back(call, state, native, blocking);
}

/* ---- the functions ----------------------------------------------------------------------------
 */

/* clang-format off */
#define FORMS(X, ID, name, Name, key, first, second, root, ...) \
	static int OCI_NAME(blocking_##name)(const struct oci_mpi_call *c, MPI_Comm comm) \
	{ \
		(void)c; \
		return OCI_THEIRS(Name)(OCI_FROM_CALL(first, second, root) comm); \
	} \
	static int OCI_NAME(native_##name)(const struct oci_mpi_call *c, MPI_Comm comm, \
					   MPI_Request *request) \
	{ \
		(void)c; \
		return OCI_THEIRS(I##name)(OCI_FROM_CALL(first, second, root) comm, request); \
	} \
	static int OCI_NAME(init_##name)(const struct oci_mpi_call *c, MPI_Comm comm, \
					 MPI_Info info, MPI_Request *request) \
	{ \
		(void)c; \
		return OCI_THEIRS(Name##_init)(OCI_FROM_CALL(first, second, root) comm, info, request); \
	} \
	int OCI_OURS(Name)(OCI_PARAMETERS(first, second, root) MPI_Comm comm) \
	{ \
		struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root); \
\
		return collective(&call, OCI_NAME(native_##name), OCI_NAME(blocking_##name), comm); \
	} \
	int OCI_OURS(I##name)(OCI_PARAMETERS(first, second, root) MPI_Comm comm, MPI_Request *request) \
	{ \
		struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root); \
\
		return oci_pmpi_start(&call, OCI_NAME(native_##name), comm, request); \
	} \
	int OCI_OURS(Name##_init)(OCI_PARAMETERS(first, second, root) MPI_Comm comm, MPI_Info info, \
				  MPI_Request *request) \
	{ \
		struct oci_mpi_call call = OCI_CALL(ID, name, first, second, root); \
\
		return oci_pmpi_persist(&call, OCI_NAME(init_##name), comm, info, request); \
	}
#define FUNCTION(X, ID, name, ...) [OCI_FUNCTION_##name] = OCI_NAME(X##_##name),
/* clang-format on */

#define OCI_COUNT int
#define OCI_DISPL int
#define OCI_NAME(name) name
OC_FUNCTION_ROWS(FORMS, )
#undef OCI_COUNT
#undef OCI_DISPL
#undef OCI_NAME
#define OCI_COUNT MPI_Count
#define OCI_DISPL MPI_Aint
#define OCI_NAME(name) name##_c
OC_FUNCTION_ROWS_WITH_COUNTS(FORMS, )

int oci_port_call(MPI_Comm comm, const struct oci_mpi_call *call)
{
	static oci_native_blocking *const blocking_of[OCI_FUNCTIONS] = {
		[OCI_FUNCTION_barrier] = blocking_barrier,
		OC_FUNCTION_ROWS_WITH_COUNTS(FUNCTION, blocking)
	};

	return OCI_HELPED(blocking_of[call->function](call, comm));
}

int oci_port_start(MPI_Comm comm, const struct oci_mpi_call *call, MPI_Request *request)
{
	static oci_native *const native_of[OCI_FUNCTIONS] = {
		[OCI_FUNCTION_barrier] = native_barrier,
		OC_FUNCTION_ROWS_WITH_COUNTS(FUNCTION, native)
	};

	return native_of[call->function](call, comm, request);
}
