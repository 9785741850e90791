/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a team is made: inside one call that all members are in, and that may wait for them.
 *
 * So its bootstrap's allgather is a collective of the MPI, on the program's communicator. The
 * engine asks for it with its lock held, behind which nothing may wait: other operations of this
 * rank, for which its peers may be waiting before they come to this call, go on by the engine. So
 * it is only written down there, and done when the engine has been left.
 *
 * Before it the members agree that all have memory for a team, and on the size of what they are
 * about to give, as a rank that lacks the memory does not know it.
 */
#include "base/log.h"
#include "common/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The values are those of the option table, which is read later, or never. */
bool oci_mpi_switched_off(void)
{
	static const char *const off[] = { "off", "0", "no", "false" };
	const char *text = getenv("ONECOPY");

	for (size_t i = 0; text && i < sizeof(off) / sizeof(off[0]); i++)
		if (!strcmp(text, off[i]))
			return true;
	return false;
}

struct gathering {
	struct oci_mpi_comm *comm;
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
static int agree(struct oci_mpi_comm *comm, size_t bytes)
{
	const long own[2] = { (long)bytes, -(long)bytes };
	long least[2] = { 0, 0 };

	if (oci_port_least(comm, own, least) != MPI_SUCCESS)
		return -EIO;
	if (!least[0]) {
		oci_info("collectives of a communicator stay with the MPI: a rank has no "
			 "memory for a team");
		return -ENOMEM;
	}
	return least[0] == -least[1] ? 0 : -EPROTO;
}

static void gather(struct gathering *self)
{
	self->result = agree(self->comm, self->bytes);
	if (!self->result)
		self->result = oci_port_allgather(self->comm, self->send, self->bytes,
						  self->receive) == MPI_SUCCESS ?
				       1 :
				       -EIO;
	self->send = NULL;
}

/* 1, or -errno where the team is refused. */
static int await(struct oc_team *team, struct gathering *gathering)
{
	uint32_t turns = 0;
	int result;

	while (!(result = oc_team_progress(team))) {
		if (gathering->send)
			gather(gathering);
		else
			oci_port_turn(gathering->comm, &turns);
	}
	return result;
}

struct oc_team *oci_mpi_team_make(struct oci_mpi_comm *self, bool able)
{
	struct gathering gathering = { .comm = self };
	/* Without `release`: when this function returns, the bootstrap is not used any more. */
	struct oc_bootstrap bootstrap = {
		.rank = self->rank,
		.size = self->size,
		.node_ranks = oci_port_node_ranks(),
		.names = self->names,
		.context = &gathering,
		.allgather_start = allgather_start,
		.allgather_test = allgather_test,
	};
	struct oc_team *team;

	if (!able || oc_team_create(&team, &bootstrap)) {
		agree(self, 0);
		return NULL;
	}
	if (await(team, &gathering) == 1)
		return team;
	oc_team_destroy(team);
	return NULL;
}

/* While it is made, the MPI's functions may call collectives of the communicator, alike on all
 * members; these are its own. */
struct oc_team *oci_mpi_team_first(struct oci_mpi_comm *self)
{
	if (self->refused || self->making)
		return NULL;
	self->making = true;
	self->team = oci_mpi_team_make(self, true);
	self->making = false;
	self->refused = !self->team;
	if (self->team)
		oci_mpi_force_team(self, self->team, true);
	return self->team;
}
