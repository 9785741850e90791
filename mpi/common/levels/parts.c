/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a call: on a node, between the leaders, and messages between ranks; its steps. */
#include "common/levels/levels.h"

void oci_levels_on_node(struct plan *p, const struct oci_mpi_call *part)
{
	struct oci_mpi_comm *node = p->lane->node;
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
	p->status = p->piece ? oci_port_start(p->lane->leaders, part, &p->request) :
			       oci_port_call(p->lane->leaders, part);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

/* Of messages of ours on a communicator that nobody else has. */
enum { TAG = 0 };

static void begun_with(struct plan *p, int error)
{
	if (error == MPI_SUCCESS)
		p->begun++;
	else
		p->status = error;
}

void oci_levels_send(struct plan *p, const void *buffer, MPI_Count count, MPI_Datatype type,
		     uint32_t rank)
{
	if (p->status == MPI_SUCCESS)
		begun_with(p,
			   OCI_PORT_COUNTED(Isend)(buffer, (oci_port_count)count, type, (int)rank,
						   TAG, p->l->all, &p->lane->requests[p->begun]));
}

void oci_levels_receive(struct plan *p, void *buffer, MPI_Count count, MPI_Datatype type,
			uint32_t rank)
{
	if (p->status == MPI_SUCCESS)
		begun_with(p,
			   OCI_PORT_COUNTED(Irecv)(buffer, (oci_port_count)count, type, (int)rank,
						   TAG, p->l->all, &p->lane->requests[p->begun]));
}

/* ---- steps ------------------------------------------------------------------------------------
 */

void oci_levels_again(struct plan *p, int steps)
{
	p->next -= steps;
}

/* Whatever has become of the call: until then its memory is the MPI's. */
static void await(struct plan *p, MPI_Request *request)
{
	int error = OCI_PORT_MPI(Wait)(request, MPI_STATUS_IGNORE);

	if (p->status == MPI_SUCCESS)
		p->status = error;
}

static void await_all(struct plan *p)
{
	if (p->request != MPI_REQUEST_NULL)
		await(p, &p->request);
	for (size_t i = 0; i < p->begun; i++)
		await(p, &p->lane->requests[i]);
	p->begun = 0;
}

void oci_levels_walk(struct plan *p)
{
	while (p->next->run) {
		const struct step *step = p->next++;

		if (!step->beside)
			await_all(p);
		step->run(p);
	}
	await_all(p);
}
