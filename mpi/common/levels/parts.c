/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a call: on a node, between the leaders, in pieces, and messages between ranks. */
#include "common/levels/levels.h"

void oci_levels_on_node(struct plan *p, const struct oci_mpi_call *part)
{
	struct oci_mpi_comm *node = p->l->node;
	const struct oc_call call = {
		.collective = part->collective,
		.root = (uint32_t)part->root,
		.bytes = p->bytes,
	};
	int status;

	if (!node)
		return;
	if (OCI_UNLIKELY(p->status != MPI_SUCCESS)) {
		oci_mpi_run_engine(node, &call, -EIO);
		return;
	}
	status = oci_mpi_run(node, part);
	p->status = status == OC_HAND_BACK ? oci_port_call(node->comm, part) : status;
}

void oci_levels_between(struct plan *p, const struct oci_mpi_call *part)
{
	if (!p->leader || p->status != MPI_SUCCESS)
		return;
	p->status = p->pieces > 1 ? oci_port_start(p->l->leaders, part, &p->request) :
				    oci_port_call(p->l->leaders, part);
}

/* Whatever has become of the call: the memory is the MPI's until then. */
static void settle(struct plan *p)
{
	int error;

	if (p->request == MPI_REQUEST_NULL)
		return;
	error = OCI_PORT_MPI(Wait)(&p->request, MPI_STATUS_IGNORE);
	if (p->status == MPI_SUCCESS)
		p->status = error;
}

void oci_levels_cut(struct plan *p, size_t count, size_t piece)
{
	p->piece = piece;
	p->pieces = (count + piece - 1) / piece;
}

void oci_levels_run_stages(struct plan *p, const struct stages *stages, size_t count)
{
	size_t first = 0, before = 0, length = 0;

	for (size_t i = 0; i < p->pieces; i++) {
		size_t last = length;

		length = p->pieces == 1 || count - first < p->piece ? count - first : p->piece;
		stages->give(p, first, length);
		settle(p);
		stages->between(p, first, length);
		if (i)
			stages->get(p, before, last);
		before = first;
		first += length;
	}
	settle(p);
	stages->get(p, before, length);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

/* Of messages of ours on a communicator that nobody else has. */
enum { TAG = 0 };

static void begun_with(struct plan *p, int error, size_t *begun)
{
	if (error == MPI_SUCCESS)
		++*begun;
	else
		p->status = error;
}

void oci_levels_send(struct plan *p, const void *buffer, MPI_Count count, MPI_Datatype type,
		     uint32_t rank, size_t *begun)
{
	if (p->status == MPI_SUCCESS)
		begun_with(p,
			   OCI_PORT_COUNTED(Isend)(buffer, (oci_port_count)count, type, (int)rank,
						   TAG, p->l->all, &p->l->requests[*begun]),
			   begun);
}

void oci_levels_receive(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			uint32_t rank, size_t *begun)
{
	if (p->status == MPI_SUCCESS)
		begun_with(p,
			   OCI_PORT_COUNTED(Irecv)(buffer, (oci_port_count)count, type, (int)rank,
						   TAG, p->l->all, &p->l->requests[*begun]),
			   begun);
}

void oci_levels_await(struct plan *p, size_t begun)
{
	for (size_t i = 0; i < begun; i++) {
		int error = OCI_PORT_MPI(Wait)(&p->l->requests[i], MPI_STATUS_IGNORE);

		if (p->status == MPI_SUCCESS)
			p->status = error;
	}
}
