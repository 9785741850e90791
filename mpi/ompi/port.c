/* SPDX-License-Identifier: BSD-3-Clause */
/* What mpi/common asks of Open MPI: datatypes and operations, through its internal objects;
 * collectives of the modules below us; error codes. */
#include "component.h"

#include "common/port.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/runtime/opal_progress.h"

#include <sched.h>
#include <stdio.h>

void oci_port_type_get(MPI_Datatype type, struct oci_port_type *shape)
{
	oci_ompi_type_get(type, shape);
}

/* Open MPI 4.1 has no large counts. */
int oci_port_type_envelope(MPI_Datatype type, struct oci_port_envelope *e)
{
	int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
	int error = PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);

	*e = (struct oci_port_envelope){ combiner, (size_t)integers, (size_t)addresses, 0,
					 (size_t)types };
	return error;
}

int oci_port_type_contents(MPI_Datatype type, const struct oci_port_envelope *e, int *integers,
			   MPI_Aint *addresses, MPI_Count *counts, MPI_Datatype *types)
{
	(void)counts;
	return PMPI_Type_get_contents(type, (int)e->integers, (int)e->addresses, (int)e->types,
				      integers, addresses, types);
}

int oci_port_type_free(MPI_Datatype *type)
{
	return PMPI_Type_free(type);
}

static int convert(char *packed, char *user, size_t count, const oci_ompi_type *type, bool unpack)
{
	size_t bytes = count * type->super.size;
	opal_convertor_t convertor;
	int status, done = 0;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	if (unpack)
		status = opal_convertor_copy_and_prepare_for_recv(
			ompi_mpi_local_convertor, &type->super, count, user, 0, &convertor);
	else
		status = opal_convertor_copy_and_prepare_for_send(
			ompi_mpi_local_convertor, &type->super, count, user, 0, &convertor);
	while (status == OPAL_SUCCESS && !done && bytes) {
		struct iovec part = { packed, bytes };
		uint32_t parts = 1;
		size_t moved = bytes;

		done = unpack ? opal_convertor_unpack(&convertor, &part, &parts, &moved) :
				opal_convertor_pack(&convertor, &part, &parts, &moved);
		if (done < 0 || !moved)
			status = OMPI_ERROR;
		packed += moved;
		bytes -= moved;
	}
	OBJ_DESTRUCT(&convertor);
	return status == OPAL_SUCCESS ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int oci_port_pack(void *packed, const void *user, size_t count, MPI_Datatype type)
{
	return convert(packed, (char *)(uintptr_t)user, count, type, false);
}

int oci_port_unpack(void *user, const void *packed, size_t count, MPI_Datatype type)
{
	return convert((char *)(uintptr_t)packed, user, count, type, true);
}

int oci_port_type_retain(MPI_Datatype *type)
{
	if (!ompi_datatype_is_predefined(*type))
		OBJ_RETAIN(*type);
	return MPI_SUCCESS;
}

void oci_port_type_release(MPI_Datatype type)
{
	if (!ompi_datatype_is_predefined(type))
		OBJ_RELEASE(type);
}

int oci_port_op_retain(MPI_Op *op)
{
	if (!ompi_op_is_intrinsic(*op))
		OBJ_RETAIN(*op);
	return MPI_SUCCESS;
}

void oci_port_op_release(MPI_Op op)
{
	if (!ompi_op_is_intrinsic(op))
		OBJ_RELEASE(op);
}

bool oci_port_op_commutes(MPI_Op op)
{
	return ompi_op_is_commute(op);
}

/* The Fortran index of a predefined operation is the same everywhere. */
uint32_t oci_port_op_id(MPI_Op op)
{
	return ompi_op_is_intrinsic(op) ? (uint32_t)op->o_f_to_c_index : 0;
}

/* Open MPI's own are vectorised, and called at once. */
oci_port_function *oci_port_op_function(MPI_Op op, MPI_Datatype type, size_t size)
{
	(void)op;
	(void)type;
	(void)size;
	return NULL;
}

/* A loop of Open MPI's over the elements, which looks at nothing else. */
bool oci_port_op_any_thread(MPI_Op op, MPI_Datatype type)
{
	return ompi_op_is_intrinsic(op) && ompi_datatype_is_predefined(type);
}

int oci_port_op_apply(MPI_Op op, const void *in, void *inout, size_t count, MPI_Datatype type)
{
	/* Not const in Open MPI, but only read. */
	ompi_op_reduce(op, (void *)(uintptr_t)in, inout, count, type);
	return MPI_SUCCESS;
}

/* ---- communicators ----------------------------------------------------------------------------
 */

static const mca_coll_base_comm_coll_t *underlying(struct oci_mpi_comm *comm)
{
	return &OCI_CONTAINER(comm, struct oci_ompi_module, comm)->underlying;
}

int oci_port_least(struct oci_mpi_comm *comm, const long own[2], long least[2])
{
	const mca_coll_base_comm_coll_t *below = underlying(comm);

	return below->coll_allreduce(own, least, 2, MPI_LONG, MPI_MIN, comm->comm,
				     below->coll_allreduce_module);
}

int oci_port_allgather(struct oci_mpi_comm *comm, const void *send, size_t bytes, void *receive)
{
	const mca_coll_base_comm_coll_t *below = underlying(comm);

	return below->coll_allgather(send, (int)bytes, MPI_BYTE, receive, (int)bytes, MPI_BYTE,
				     comm->comm, below->coll_allgather_module);
}

uint64_t oci_port_node(struct oci_mpi_comm *comm, uint32_t rank)
{
	return oci_ompi_modex_node(comm->comm, rank);
}

struct oci_mpi_comm *oci_port_comm(MPI_Comm part)
{
	struct oci_ompi_module *module = oci_ompi_module_of(part);

	return module ? &module->comm : NULL;
}

/* Looks at the others before this rank gives its CPU away, by their number: their steps take some
 * microseconds. */
enum { SPINS = 2000 };

void oci_port_turn(struct oci_mpi_comm *comm, uint32_t *turns)
{
	opal_progress();
	if (++*turns > SPINS / comm->size)
		sched_yield();
}

uint32_t oci_port_node_ranks(void)
{
	/* num_local_peers does not count this process */
	return (uint32_t)OCI_OMPI_PROCESS.num_local_peers + 1;
}

/*
 * Open MPI 4.1 has no error class for a dead process (MPI_ERR_PROC_FAILED came with ULFM, in 5.0).
 * So codes of ours are of the class MPI_ERR_OTHER, and its strings begin with their class.
 */
int oci_port_error_add(const char *sentence, int *code)
{
	char text[MPI_MAX_ERROR_STRING];
	int error = PMPI_Add_error_code(MPI_ERR_OTHER, code);

	snprintf(text, sizeof(text), "MPI_ERR_OTHER: %s", sentence);
	return error == MPI_SUCCESS ? PMPI_Add_error_string(*code, text) : error;
}
