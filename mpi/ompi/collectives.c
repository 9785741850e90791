/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The eight collectives that the engine serves.
 *
 * Whether a call goes to the engine depends only on what all members see alike: the communicator,
 * the collective, the operation and the bytes by type signature, never on buffers, layouts or
 * MPI_IN_PLACE. A rank whose layout has gaps makes the same engine call on a packed copy.
 *
 * A call of no bytes is over at once, on every member: the MPI_ functions themselves return early
 * on a count of 0, each rank by its own count, while another rank may describe the same nothing as
 * one element of an empty type. If the latter entered the engine it would wait for the former.
 */
#include "component.h"

/* The call as it was made, to the functions that were selected before ours. */
#define PREVIOUS(self, name, ...) \
	((self)->previous.coll_##name(__VA_ARGS__, (self)->previous.coll_##name##_module))

/* One argument triple of an MPI call, of all ranks' blocks; count 0: this rank has no such buffer.
 */
struct side {
	const void *user;
	size_t count;
	oci_ompi_type *type;
};

/* Elements of the receive buffer that are input when the send buffer is MPI_IN_PLACE. */
struct own {
	size_t first, count;
};

static struct oci_ompi_module *module_of(mca_coll_base_module_t *module)
{
	return (struct oci_ompi_module *)module;
}

static int open_side(struct oci_ompi_data *data, const struct side *side)
{
	if (side->user == MPI_IN_PLACE || !side->count) {
		*data = (struct oci_ompi_data){ .type = side->type };
		data->bytes = side->user == MPI_IN_PLACE ? OC_IN_PLACE : NULL;
		return OMPI_SUCCESS;
	}
	return oci_ompi_data_open(data, side->user, side->count, side->type);
}

/*
 * Fills in the buffers of a call, unless something before has failed, runs it and unpacks what was
 * received.
 */
static int exchange(struct oci_ompi_module *self, oci_ompi_comm *comm, struct oc_call *call,
		    const struct side *send, const struct side *receive, struct own own, int status)
{
	struct oci_ompi_data from = { 0 }, to = { 0 };

	if (status == OMPI_SUCCESS)
		status = open_side(&from, send);
	if (status == OMPI_SUCCESS)
		status = open_side(&to, receive);
	if (status == OMPI_SUCCESS)
		status = send->user == MPI_IN_PLACE ?
				 oci_ompi_data_pack(&to, own.first, own.count) :
				 oci_ompi_data_pack(&from, 0, from.count);
	call->send = from.bytes;
	call->recv = to.bytes;
	status = oci_ompi_run(self, comm, call, status);
	if (status == MPI_SUCCESS)
		status = oci_ompi_data_unpack(&to);
	oci_ompi_data_close(&from);
	oci_ompi_data_close(&to);
	return status;
}

static int barrier(oci_ompi_comm *comm, mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_BARRIER };
	int status = oci_ompi_run(self, comm, &call, OMPI_SUCCESS);

	return status == OC_HAND_BACK ? PREVIOUS(self, barrier, comm) : status;
}

static int bcast(void *buffer, int count, oci_ompi_type *type, int root, oci_ompi_comm *comm,
		 mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_BCAST,
				.bytes = (size_t)count * type->super.size,
				.root = (uint32_t)root };
	bool sends = ompi_comm_rank(comm) == root;
	struct oci_ompi_data data;
	int status;

	if (!call.bytes)
		return MPI_SUCCESS;
	status = oci_ompi_data_open(&data, buffer, (size_t)count, type);
	if (status == OMPI_SUCCESS && sends)
		status = oci_ompi_data_pack(&data, 0, data.count);
	call.send = data.bytes;
	status = oci_ompi_run(self, comm, &call, status);
	if (status == MPI_SUCCESS && !sends)
		status = oci_ompi_data_unpack(&data);
	oci_ompi_data_close(&data);
	return status == OC_HAND_BACK ? PREVIOUS(self, bcast, buffer, count, type, root, comm) :
					status;
}

/* Only the root's receive arguments mean anything, and only the others' send arguments surely do.
 */
static int gather(const void *sbuf, int scount, oci_ompi_type *stype, void *rbuf, int rcount,
		  oci_ompi_type *rtype, int root, oci_ompi_comm *comm,
		  mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_GATHER, .root = (uint32_t)root };
	struct side send = { sbuf, (size_t)scount, stype }, receive = { 0 };
	struct own own = { 0 };
	int status;

	if (ompi_comm_rank(comm) == root) {
		receive =
			(struct side){ rbuf, (size_t)rcount * (size_t)ompi_comm_size(comm), rtype };
		own = (struct own){ (size_t)rcount * (size_t)root, (size_t)rcount };
		call.bytes = (size_t)rcount * rtype->super.size;
	} else {
		call.bytes = (size_t)scount * stype->super.size;
	}
	if (!call.bytes)
		return MPI_SUCCESS;
	status = exchange(self, comm, &call, &send, &receive, own, OMPI_SUCCESS);
	return status == OC_HAND_BACK ? PREVIOUS(self, gather, sbuf, scount, stype, rbuf, rcount,
						 rtype, root, comm) :
					status;
}

static int scatter(const void *sbuf, int scount, oci_ompi_type *stype, void *rbuf, int rcount,
		   oci_ompi_type *rtype, int root, oci_ompi_comm *comm,
		   mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_SCATTER, .root = (uint32_t)root };
	struct side send = { 0 }, receive = { rbuf, (size_t)rcount, rtype };
	int status;

	if (ompi_comm_rank(comm) == root) {
		send = (struct side){ sbuf, (size_t)scount * (size_t)ompi_comm_size(comm), stype };
		call.bytes = (size_t)scount * stype->super.size;
	} else {
		call.bytes = (size_t)rcount * rtype->super.size;
	}
	if (!call.bytes)
		return MPI_SUCCESS;
	status = exchange(self, comm, &call, &send, &receive, (struct own){ 0 }, OMPI_SUCCESS);
	return status == OC_HAND_BACK ? PREVIOUS(self, scatter, sbuf, scount, stype, rbuf, rcount,
						 rtype, root, comm) :
					status;
}

static int allgather(const void *sbuf, int scount, oci_ompi_type *stype, void *rbuf, int rcount,
		     oci_ompi_type *rtype, oci_ompi_comm *comm, mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_ALLGATHER,
				.bytes = (size_t)rcount * rtype->super.size };
	struct side send = { sbuf, (size_t)scount, stype };
	struct side receive = { rbuf, (size_t)rcount * (size_t)ompi_comm_size(comm), rtype };
	struct own own = { (size_t)rcount * (size_t)ompi_comm_rank(comm), (size_t)rcount };
	int status;

	if (!call.bytes)
		return MPI_SUCCESS;
	status = exchange(self, comm, &call, &send, &receive, own, OMPI_SUCCESS);
	return status == OC_HAND_BACK ?
		       PREVIOUS(self, allgather, sbuf, scount, stype, rbuf, rcount, rtype, comm) :
		       status;
}

static int alltoall(const void *sbuf, int scount, oci_ompi_type *stype, void *rbuf, int rcount,
		    oci_ompi_type *rtype, oci_ompi_comm *comm, mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_ALLTOALL,
				.bytes = (size_t)rcount * rtype->super.size };
	size_t size = (size_t)ompi_comm_size(comm);
	struct side send = { sbuf, (size_t)scount * size, stype };
	struct side receive = { rbuf, (size_t)rcount * size, rtype };
	int status;

	if (!call.bytes)
		return MPI_SUCCESS;
	status = exchange(self, comm, &call, &send, &receive, (struct own){ 0, receive.count },
			  OMPI_SUCCESS);
	return status == OC_HAND_BACK ?
		       PREVIOUS(self, alltoall, sbuf, scount, stype, rbuf, rcount, rtype, comm) :
		       status;
}

/* rbuf is NULL where there is no result. */
static int run_reduction(struct oci_ompi_module *self, oci_ompi_comm *comm, struct oc_call *call,
			 const struct side *send, const struct side *receive, ompi_op_t *op)
{
	struct oci_ompi_reduction reduction;
	int status;

	status = oci_ompi_reduction_open(&reduction, op, send->type);
	call->op = &reduction.op;
	status = exchange(self, comm, call, send, receive, (struct own){ 0, receive->count },
			  status);
	if (status == MPI_SUCCESS && reduction.failed)
		status = OMPI_ERROR;
	oci_ompi_reduction_close(&reduction);
	return status;
}

/* Alike on all members: the size is of the signature, which a reduction's ranks share. */
static bool too_large(const char *collective, const oci_ompi_type *type)
{
	if (type->super.size <= OC_OP_MAX_BYTES)
		return false;
	oc_count_handed_back(collective, "reductions of elements beyond 4096 bytes are not served");
	return true;
}

static int reduce(const void *sbuf, void *rbuf, int count, oci_ompi_type *type, ompi_op_t *op,
		  int root, oci_ompi_comm *comm, mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_REDUCE,
				.bytes = (size_t)count * type->super.size,
				.root = (uint32_t)root };
	struct side send = { sbuf, (size_t)count, type }, receive = { .type = type };
	int status = OC_HAND_BACK;

	if (!call.bytes)
		return MPI_SUCCESS;
	if (ompi_comm_rank(comm) == root)
		receive = (struct side){ rbuf, (size_t)count, type };
	if (!too_large("reduce", type))
		status = run_reduction(self, comm, &call, &send, &receive, op);
	return status == OC_HAND_BACK ?
		       PREVIOUS(self, reduce, sbuf, rbuf, count, type, op, root, comm) :
		       status;
}

static int allreduce(const void *sbuf, void *rbuf, int count, oci_ompi_type *type, ompi_op_t *op,
		     oci_ompi_comm *comm, mca_coll_base_module_t *module)
{
	struct oci_ompi_module *self = module_of(module);
	struct oc_call call = { .collective = OC_ALLREDUCE,
				.bytes = (size_t)count * type->super.size };
	struct side send = { sbuf, (size_t)count, type };
	struct side receive = { rbuf, (size_t)count, type };
	int status = OC_HAND_BACK;

	if (!call.bytes)
		return MPI_SUCCESS;
	if (!too_large("allreduce", type))
		status = run_reduction(self, comm, &call, &send, &receive, op);
	return status == OC_HAND_BACK ?
		       PREVIOUS(self, allreduce, sbuf, rbuf, count, type, op, comm) :
		       status;
}

void oci_ompi_serve(mca_coll_base_module_t *module)
{
#define SERVE(name) module->coll_##name = name;
	OCI_OMPI_SERVED(SERVE)
#undef SERVE
}
