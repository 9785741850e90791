/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a call: on a node, between the leaders, and messages between ranks; its steps. */
#include "common/levels/levels.h"

int oci_levels_copy(void *to, const void *from, size_t count, MPI_Datatype type)
{
	enum { MOST = 4096 }; /* predefined types have far less */
	struct oci_port_type shape;
	int error = MPI_SUCCESS;
	size_t some;
	char bytes[MOST];

	oci_port_type_get(type, &shape);
	if (shape.dense) {
		memmove(to, from, count * shape.size);
		return MPI_SUCCESS;
	}
	for (size_t at = 0; at < count && error == MPI_SUCCESS; at += some) {
		some = count - at < MOST / shape.size ? count - at : MOST / shape.size;
		error = oci_port_pack(bytes, oci_levels_at(from, (MPI_Count)at, type), some, type);
		if (error == MPI_SUCCESS)
			error = oci_port_unpack(oci_levels_at(to, (MPI_Count)at, type), bytes, some,
						type);
	}
	return error;
}

/* What is not the team's is the MPI's. */
static void start_on_node(struct plan *p, const struct oci_mpi_call *part)
{
	struct oci_mpi_request *request = &p->lane->part;
	int result, error;

	oci_mpi_request_open(request, p->lane->node, false);
	result = oci_mpi_start_part(p->lane->node, request, part, &error);
	p->on_node = !result;
	if (p->on_node)
		return;
	oci_mpi_close(&request->operation);
	p->status = result == OC_HAND_BACK ?
			    oci_port_start(p->lane->node_comm, part, &p->node_request) :
			    error;
}

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
	if (!p->waits) {
		start_on_node(p, part);
		return;
	}
	status = oci_mpi_run(node, part);
	p->status = status == OC_HAND_BACK ? oci_port_call(node->comm, part) : status;
}

/* ---- between nodes ----------------------------------------------------------------------------
 *
 * What a rank sends behind an error is nothing, so before that it says so to each of its peers,
 * once for a lane. They look for it as cheaply as can be: once in a call. `failed` is relaxed: it
 * comes alone, and the calls of a lane have an order anyway.
 */

static void tell(struct plan *p)
{
	struct oci_mpi_lane *lane = p->lane;
	MPI_Request request;

	if (OCI_LIKELY(p->status == MPI_SUCCESS) ||
	    __atomic_load_n(&lane->failed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&lane->failed, true, __ATOMIC_RELAXED);
	for (uint32_t n = 0; n < p->l->nodes; n++)
		if (n != p->l->mine && OCI_PORT_MPI(Isend)(NULL, 0, MPI_BYTE, (int)n, 0,
							   lane->peers, &request) == MPI_SUCCESS)
			OCI_PORT_MPI(Request_free)(&request);
}

void oci_levels_hear(struct plan *p, bool looks)
{
	struct oci_mpi_lane *lane = p->lane;
	bool failed = __atomic_load_n(&lane->failed, __ATOMIC_RELAXED);

	if (looks && !failed && OCI_UNLIKELY(oci_port_told(lane->peers)))
		__atomic_store_n(&lane->failed, failed = true, __ATOMIC_RELAXED);
	if (OCI_UNLIKELY(failed))
		oci_levels_note(p, oci_mpi_failure_as("a rank on another node could not take part; "
						      "this communicator cannot be used any more"));
}

void oci_levels_between(struct plan *p, const struct oci_mpi_call *part)
{
	if (!(p->leader || p->shared))
		return;
	tell(p);
	oci_levels_note(p, p->piece || !p->waits ?
				   oci_port_start(p->lane->peers, part, &p->request) :
				   oci_port_call(p->lane->peers, part));
	if (!p->piece)
		oci_levels_hear(p, p->waits);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

void oci_levels_transfer(struct plan *p, bool sends, void *buffer, MPI_Count count,
			 MPI_Datatype type, uint32_t rank)
{
	struct message *m = &p->lane->messages[p->begun];
	oci_port_count elements = (oci_port_count)count;
	int tag = p->tag, error;

	if (p->leader)
		tell(p);
	if (sends)
		error = OCI_PORT_COUNTED(Isend)(buffer, p->status == MPI_SUCCESS ? elements : 0,
						type, (int)rank, tag, p->l->all, &m->request);
	else
		error = OCI_PORT_COUNTED(Irecv)(buffer, elements, type, (int)rank, tag, p->l->all,
						&m->request);
	m->from_other = !sends && rank != p->comm->rank;
	p->begun += error == MPI_SUCCESS;
	oci_levels_note(p, error);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

void oci_levels_again(struct plan *p, int steps)
{
	p->next -= steps;
}

static int outcome(const struct message *m, int error, const MPI_Status *status)
{
	int bytes = 1;

	if (error == MPI_SUCCESS && m->from_other)
		error = OCI_PORT_MPI(Get_count)(status, MPI_BYTE, &bytes);
	return bytes ? error : MPI_ERR_OTHER;
}

/* Whatever has become of the call: until then its memory is the MPI's. */
static void await_all(struct plan *p)
{
	if (p->request != MPI_REQUEST_NULL)
		oci_levels_note(p, oci_port_wait(&p->request, MPI_STATUS_IGNORE));
	for (size_t i = 0; i < p->begun; i++) {
		struct message *m = &p->lane->messages[i];
		MPI_Status status;
		int error = oci_port_wait(&m->request, &status);

		oci_levels_note(p, outcome(m, error, &status));
	}
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

static bool is_over(struct plan *p, MPI_Request *request)
{
	bool over = true;

	if (*request != MPI_REQUEST_NULL)
		oci_levels_note(p, oci_port_test(request, &over, MPI_STATUS_IGNORE));
	return over;
}

static bool is_here(struct plan *p, struct message *m)
{
	MPI_Status status;
	bool over;
	int error = oci_port_test(&m->request, &over, &status);

	if (over)
		oci_levels_note(p, outcome(m, error, &status));
	return over;
}

static bool node_is_over(struct plan *p)
{
	struct oci_mpi_request *request = &p->lane->part;
	int result, error;

	if (!p->on_node)
		return is_over(p, &p->node_request);
	result = oc_peek(request->engine);
	if (!result)
		return false;
	error = oci_mpi_outcome(request, result);
	oci_mpi_close(&request->operation);
	p->on_node = false;
	oci_levels_note(p, error);
	return true;
}

static bool others_are_over(struct plan *p)
{
	if (!is_over(p, &p->request))
		return false;
	while (p->begun && is_here(p, &p->lane->messages[p->begun - 1]))
		p->begun--;
	return !p->begun;
}

bool oci_levels_walk_on(struct plan *p)
{
	for (;;) {
		const struct step *step = p->next;

		if (!node_is_over(p) || (!step->beside && !others_are_over(p)))
			return false;
		if (!step->run)
			return true;
		p->next++;
		step->run(p);
	}
}
