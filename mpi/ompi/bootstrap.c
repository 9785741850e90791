/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a team is made: inside one call that all members are in, and that may wait for them.
 *
 * So its bootstrap's allgather is one of the modules below us, on the program's communicator. The
 * engine asks for it with its lock held, behind which nothing may wait: other collectives of this
 * rank, for which its peers may be waiting before they come to this one, go on by the engine. So it
 * is only written down there, and done when the engine has been left.
 *
 * Before it the members agree that all have memory for a team, and on the size of what they are
 * about to give, as a rank that lacks the memory does not know it.
 */
#include "component.h"

#include "opal/runtime/opal_progress.h"

#include <errno.h>
#include <sched.h>

/* Looks at the others before this rank gives its CPU away, by their number: their steps take some
 * microseconds. */
enum { SPINS = 2000 };

struct gathering {
	struct oci_ompi_module *module;
	oci_ompi_comm *comm;
	const void *send; /* NULL: nothing is under way */
	size_t bytes;
	void *receive;
	int result; /* of the last one: 1 or -errno; 0: it is under way */
};

static int allgather_start(void *context, const void *send, size_t bytes, void *receive)
{
	struct gathering *self = context;

	self->send = send;
	self->bytes = bytes;
	self->receive = receive;
	self->result = 0;
	return 0;
}

static int allgather_test(void *context)
{
	const struct gathering *self = context;

	return self->result;
}

/* Of `bytes` of all members, 0 on those without memory for a team; 0 or -errno, alike on all. */
static int agree(struct oci_ompi_module *module, oci_ompi_comm *comm, size_t bytes)
{
	const mca_coll_base_comm_coll_t *below = &module->previous;
	long own[2] = { (long)bytes, -(long)bytes }, least[2] = { 0, 0 };

	if (below->coll_allreduce(own, least, 2, MPI_LONG, MPI_MIN, comm,
				  below->coll_allreduce_module) != OMPI_SUCCESS)
		return -EIO;
	if (!least[0])
		return -ENOMEM;
	return least[0] == -least[1] ? 0 : -EPROTO;
}

static int gather(struct gathering *self)
{
	const mca_coll_base_comm_coll_t *below = &self->module->previous;
	int bytes = (int)self->bytes;
	int error = agree(self->module, self->comm, self->bytes);

	if (error)
		return error;
	error = below->coll_allgather(self->send, bytes, MPI_BYTE, self->receive, bytes, MPI_BYTE,
				      self->comm, below->coll_allgather_module);
	return error == OMPI_SUCCESS ? 1 : -EIO;
}

/* 1, or -errno where the team is refused. */
static int await(struct oc_team *team, struct gathering *gathering)
{
	int result, turns = 0;

	while (!(result = oc_team_progress(team))) {
		if (gathering->send) {
			gathering->result = gather(gathering);
			gathering->send = NULL;
		} else {
			opal_progress();
			if (++turns > SPINS / ompi_comm_size(gathering->comm))
				sched_yield();
		}
	}
	return result;
}

struct oc_team *oci_ompi_team_make(struct oci_ompi_module *module, oci_ompi_comm *comm, bool able)
{
	struct gathering gathering = { .module = module, .comm = comm };
	/* Without `release`: when this function returns, the bootstrap is not used any more. */
	struct oc_bootstrap bootstrap = {
		.rank = (uint32_t)ompi_comm_rank(comm),
		.size = (uint32_t)ompi_comm_size(comm),
		/* num_local_peers does not count this process */
		.node_ranks = (uint32_t)ompi_process_info.num_local_peers + 1,
		.context = &gathering,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
	};
	struct oc_team *team;

	if (!able || oc_team_create(&team, &bootstrap)) {
		oci_mpi_info("no memory for a team of communicator %s: its calls stay with the MPI",
			     comm->c_name);
		agree(module, comm, 0);
		return NULL;
	}
	if (await(team, &gathering) == 1)
		return team;
	oc_team_destroy(team);
	return NULL;
}
