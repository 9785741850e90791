/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls of a communicator that spans nodes go in two levels, as all its members know alike.
 */
#include "common/levels/levels.h"

#define NOT_SERVED "on several nodes this function is the MPI's own"
#define TOO_LARGE "on several nodes a call of 2 GiB or more is the MPI's own"
#define APART "the ranks of a node do not follow each other in the communicator"
#define OWN_OPERATION                                                                          \
	"on several nodes a reduction by an operation of the program is the MPI's own if its " \
	"elements have gaps or do not begin at their address"
#define IN_ORDER_IN_PLACE "on several nodes a Reduce that does not commute is MPICH's own"

static const struct step *const two_levels[OCI_FUNCTIONS] = {
	[OCI_FUNCTION_barrier] = oci_levels_barrier,
	[OCI_FUNCTION_bcast] = oci_levels_bcast,
	[OCI_FUNCTION_reduce] = oci_levels_reduce,
	[OCI_FUNCTION_allreduce] = oci_levels_allreduce,
	[OCI_FUNCTION_scan] = oci_levels_scan,
	[OCI_FUNCTION_exscan] = oci_levels_scan,
	[OCI_FUNCTION_gather] = oci_levels_rooted,
	[OCI_FUNCTION_gatherv] = oci_levels_rooted,
	[OCI_FUNCTION_scatter] = oci_levels_rooted,
	[OCI_FUNCTION_scatterv] = oci_levels_rooted,
	[OCI_FUNCTION_allgather] = oci_levels_allgather,
	[OCI_FUNCTION_allgatherv] = oci_levels_allgather,
	[OCI_FUNCTION_alltoall] = oci_levels_alltoall,
	[OCI_FUNCTION_reduce_scatter] = oci_levels_reduce_scatter,
	[OCI_FUNCTION_reduce_scatter_block] = oci_levels_reduce_scatter,
};

/* Its sizes are the root's and each rank's own. */
static bool has_own_sizes(enum oc_collective collective)
{
	return oci_is_v(collective) && oci_is_rooted(collective);
}

static bool has_blocks(enum oc_collective collective)
{
	return oci_sends_each(collective) || oci_receives_each(collective);
}

/* Of the message or a block, of all blocks where these have their own sizes, as all members know
 * it; SIZE_MAX: more than there can be. */
static size_t bytes_of(const struct oci_mpi_comm *self, const struct oci_mpi_call *c)
{
	bool root = (uint32_t)c->root == self->rank, reduces = oci_is_reduction(c->collective);
	bool sent = reduces ? !oci_sends_each(c->collective) :
			      oci_size_is_sent(c->collective, root);
	size_t bytes, count = (size_t)(sent ? c->scount : c->rcount);
	struct oci_port_type shape;

	if (!oci_row_sends(c->collective) || has_own_sizes(c->collective))
		return 0;
	if (oci_has_counts(c->collective))
		for (uint32_t r = count = 0; r < self->size; r++)
			if (__builtin_add_overflow(
				    count, (size_t)oci_mpi_number(c->rcounts, c->long_rcounts, r),
				    &count))
				return SIZE_MAX;
	oci_port_type_get(sent || reduces ? c->stype : c->rtype, &shape);
	return __builtin_mul_overflow(count, shape.size, &bytes) ? SIZE_MAX : bytes;
}

static bool is_mpis(const struct oci_mpi_comm *self, enum oc_collective collective)
{
	/* Of no bytes, so that the word alone counts. */
	return !strcmp(self->forced[collective], "mpi") ||
	       oc_levels_refusal(collective, 0, OC_LEVELS_BLOCKING);
}

/* Memory between the parts has elements as the program's buffers have them, and as many bytes on
 * all members: MPI wants one type on all. */
static bool lies_alike(const struct oci_mpi_call *c)
{
	struct oci_port_type shape;

	if (oci_port_op_id(c->op))
		return true;
	oci_port_type_get(c->stype, &shape);
	return shape.dense && !shape.true_lb;
}

const char *oci_levels_refusal(const struct plan *p)
{
	const struct oci_mpi_comm *self = p->comm;
	const struct oci_mpi_call *c = p->call;
	size_t bytes = p->bytes, all = bytes;

	if (!two_levels[c->function])
		return NOT_SERVED;
	if (has_blocks(c->collective) && !oci_has_counts(c->collective) &&
	    __builtin_mul_overflow(bytes, self->size, &all))
		return TOO_LARGE;
	/* Open MPI's functions take counts of int, of bytes too, and so do types of ours (order.c).
	 */
	if (all > INT_MAX)
		return TOO_LARGE;
	if (oci_is_reduction(c->collective) && !lies_alike(c))
		return OWN_OPERATION;
	if (!OCI_PORT_KEEPS_ORDER_IN_PLACE && c->collective == OC_REDUCE &&
	    !oci_port_op_commutes(c->op))
		return IN_ORDER_IN_PLACE;
	if (is_mpis(self, c->collective))
		return OC_LEFT_TO_MPI;
	return oc_levels_refusal(c->collective, bytes,
				 p->waits ? OC_LEVELS_BLOCKING : OCI_PORT_LEVELS_FORM);
}

static size_t vector_bytes(const struct plan *p)
{
	struct oci_port_type shape;

	oci_port_type_get(p->call->stype, &shape);
	if (oci_sends_each(p->call->collective) && p->alike)
		return p->bytes * p->comm->size / shape.size * (size_t)shape.extent;
	return p->bytes / shape.size * (size_t)shape.extent;
}

struct need oci_levels_need(const struct plan *p)
{
	const struct oci_mpi_levels *l = p->l;
	struct need need = { 0 };

	if (oci_levels_shares(p)) {
		need.of_all = oci_levels_shares_need(p);
		return need;
	}
	switch (p->call->collective) {
	case OC_GATHER:
	case OC_SCATTER:
	case OC_GATHERV:
	case OC_SCATTERV:
		need.of_leaders = l->most * oci_levels_together(p);
		break;
	case OC_REDUCE:
		need.of_leaders = vector_bytes(p);
		break;
	case OC_REDUCE_SCATTER:
	case OC_REDUCE_SCATTER_BLOCK:
		need.of_leaders = 2 * vector_bytes(p);
		break;
	case OC_SCAN:
	case OC_EXSCAN:
		need.of_all = 2 * vector_bytes(p);
		break;
	case OC_ALLGATHER:
		need.of_leaders = p->bytes * p->comm->size;
		break;
	case OC_ALLGATHERV:
		need.of_leaders = p->bytes;
		break;
	case OC_ALLTOALL:
		need.of_leaders = 2 * l->most * p->bytes * p->comm->size;
		break;
	case OC_BCAST:
		need.of_all = oci_levels_bcast_copy(p);
		break;
	default:
		break;
	}
	return need;
}

bool oci_levels_has_messages(const struct plan *p)
{
	return oci_is_rooted(p->call->collective) && has_blocks(p->call->collective);
}

const char *oci_levels_lack(const struct plan *p)
{
	enum oc_collective collective = p->call->collective;

	if (!p->l->in_order && (oci_is_prefix(collective) || (oci_is_reduction(collective) &&
							      !oci_port_op_commutes(p->call->op))))
		return APART;
	if (collective == OC_ALLTOALL && p->l->most * p->comm->size * p->bytes > OC_LEVELS_ROWS)
		return "on several nodes an Alltoall of so many blocks is the MPI's own";
	if (OCI_PORT_ASKS_FIRST && collective == OC_ALLTOALL &&
	    !oc_levels_together(collective, p->l->most, p->bytes))
		return "on several nodes an Alltoall whose nodes send each other more than 16 KiB "
		       "is MPICH's own";
	if (OCI_PORT_GATHERS_AT_ONCE && oci_receives_each(collective) &&
	    oci_is_rooted(collective) && !oci_levels_together(p))
		return "on several nodes of fewer than 16 ranks a Gather whose blocks go straight to the "
		       "root is Open MPI's own";
	if (collective == OC_GATHERV && p->l->most < OCI_PORT_GATHERVS_FROM &&
	    !oci_levels_together(p))
		return "on several nodes of fewer than 4 ranks a Gatherv is the MPI's own";
	return NULL;
}

bool oci_levels_survey(struct plan *p, struct oci_mpi_comm *self, const struct oci_mpi_call *call,
		       bool waits)
{
	*p = (struct plan){
		.comm = self,
		.call = call,
		.waits = waits,
		.status = MPI_SUCCESS,
		.node_request = MPI_REQUEST_NULL,
		.request = MPI_REQUEST_NULL,
		.alike = !oci_has_counts(call->collective),
	};
	if (!two_levels[call->function])
		return true;
	p->bytes = bytes_of(self, call);
	return p->bytes || !oci_row_sends(call->collective) || has_own_sizes(call->collective);
}

void oci_levels_open(struct plan *p, struct oci_mpi_lane *lane, const struct oci_mpi_call *call)
{
	p->call = call;
	p->lane = lane;
	p->l = p->comm->levels;
	p->leader = !p->l->local[p->comm->rank];
	p->next = oci_levels_shares(p);
	p->shared = p->next != NULL;
	if (!p->shared)
		p->next = two_levels[call->function];
	if (oci_is_rooted(call->collective))
		p->root_node = p->l->place[call->root];
	/* Blocking ones look behind their part between nodes. */
	oci_levels_hear(p, p->leader && (!p->waits || oci_levels_has_messages(p)));
}

int oci_levels_close(const struct plan *p)
{
	if (p->status == MPI_SUCCESS)
		oc_count_levels(p->call->collective, p->bytes);
	/* An error of the MPI's with that number is not to send this rank alone to the MPI. */
	return p->status == OC_HAND_BACK ? MPI_ERR_OTHER : p->status;
}

/* ---- blocking calls ---------------------------------------------------------------------------
 */

/* Once the nodes are known. */
static const char *lack(struct plan *p)
{
	const char *reason = oci_levels_lack(p);

	if (reason)
		return reason;
	if (oci_levels_has_messages(p) && !oci_levels_messages(p->comm))
		return OCI_LEVELS_NO_MESSAGES;
	return oci_levels_room(p->comm, p->l->lane, oci_levels_need(p)) ? NULL :
									  OCI_LEVELS_NO_SCRATCH;
}

int oci_mpi_levels_run(struct oci_mpi_comm *self, const struct oci_mpi_call *call)
{
	const char *reason;
	struct plan p;

	if (self->making)
		return OC_HAND_BACK;
	/* Before anything that waits: from what moves nothing the MPI lets some ranks go at once.
	 */
	if (!oci_levels_survey(&p, self, call, true))
		return MPI_SUCCESS;
	if (OCI_UNLIKELY(self->wants_lanes) && two_levels[call->function])
		oci_levels_make_lanes(self);
	reason = oci_levels_refusal(&p);
	if (!reason) {
		p.l = oci_levels_of(self);
		reason = p.l ? lack(&p) : self->why;
	}
	if (reason) {
		oci_mpi_count_back(call, reason);
		return OC_HAND_BACK;
	}
	oci_levels_open(&p, p.l->lane, call);
	oci_levels_walk(&p);
	return oci_levels_close(&p);
}
