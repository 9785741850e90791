/* SPDX-License-Identifier: BSD-3-Clause */
/* A call to the functions that were selected before ours, in each of the three forms. */
#include "component.h"

/* clang-format off */
#define CASE(CALL, ID, name, Name, key, first, second, root, ...) \
	case OCI_FUNCTION_##name: return CALL(name, OCI_FROM_CALL(first, second, root));
#define DISPATCH(CALL) \
	switch (c->function) { \
		OC_FUNCTION_ROWS(CASE, CALL) \
	default: return OMPI_ERR_NOT_SUPPORTED; \
	}
/* clang-format on */

static int call_of(const mca_coll_base_comm_coll_t *p, oci_ompi_comm *comm,
		   const struct oci_mpi_call *c)
{
#define BLOCKING(name, ...) p->coll_##name(__VA_ARGS__ comm, p->coll_##name##_module)
	DISPATCH(BLOCKING)
}

int oci_ompi_underlying(struct oci_ompi_module *self, const struct oci_mpi_call *c)
{
	return call_of(&self->underlying, self->comm.comm, c);
}

/* That of peers on several nodes may have a module of ours, too, which would only hand it back. */
int oci_port_call(MPI_Comm comm, const struct oci_mpi_call *c)
{
	struct oci_ompi_module *ours = oci_ompi_module_of(comm);

	return call_of(ours ? &ours->underlying : comm->c_coll, comm, c);
}

int oci_port_start(MPI_Comm comm, const struct oci_mpi_call *c, MPI_Request *request)
{
	struct oci_ompi_module *ours = oci_ompi_module_of(comm);
	const mca_coll_base_comm_coll_t *p = ours ? &ours->underlying : comm->c_coll;

#define BEGIN(name, ...) p->coll_i##name(__VA_ARGS__ comm, request, p->coll_i##name##_module)
	DISPATCH(BEGIN)
}

int oci_port_wait(MPI_Request *request, MPI_Status *status)
{
	return PMPI_Wait(request, status);
}

/* MPI_Test() would call Open MPI's progress, in which we may be. */
int oci_port_test(MPI_Request *request, bool *over, MPI_Status *status)
{
	int done = 0, error = MPI_SUCCESS;

	if (REQUEST_COMPLETE(*request))
		error = PMPI_Test(request, &done, status);
	*over = done || error != MPI_SUCCESS;
	return error;
}

/* MPI_Iprobe() would, too, and take 2 us over TCP. */
bool oci_port_told(MPI_Comm part)
{
	MPI_Request request;
	MPI_Status status;
	int cancelled = 1;

	if (PMPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, part, &request) != MPI_SUCCESS)
		return false;
	PMPI_Cancel(&request);
	PMPI_Wait(&request, &status);
	PMPI_Test_cancelled(&status, &cancelled);
	return !cancelled;
}

int oci_ompi_underlying_start(struct oci_ompi_module *self, const struct oci_mpi_call *c,
			      ompi_request_t **request)
{
	const mca_coll_base_comm_coll_t *p = &self->underlying;

#define START(name, ...) \
	p->coll_i##name(__VA_ARGS__ self->comm.comm, request, p->coll_i##name##_module)
	DISPATCH(START)
}

int oci_ompi_underlying_init(struct oci_ompi_module *self, const struct oci_mpi_call *c,
			     struct ompi_info_t *info, ompi_request_t **request)
{
	const mca_coll_base_comm_coll_t *p = &self->underlying;

#define INIT(name, ...)                                                   \
	p->coll_##name##_init(__VA_ARGS__ self->comm.comm, info, request, \
			      p->coll_##name##_init_module)
	DISPATCH(INIT)
}
