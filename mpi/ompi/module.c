/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One module per communicator: whether we serve it, what lies below us, and its team.
 *
 * A communicator is served if all of its processes are of one job on one node, have this component
 * in use (presence.c) and there are at least two. Every member sees these facts alike, so either
 * all select us or none does.
 *
 * The team is made inside the first call that may wait for all members and that the engine could
 * serve, a blocking collective or an _init call: all members are in that call. Not when the module
 * is enabled: a program makes many communicators that never see a collective, and enabling happens
 * inside Open MPI's own communicator creation, where waiting for a peer can deadlock.
 */
#include "component.h"

#include "ompi/proc/proc.h"

#include <errno.h>
#include <string.h>

static bool one_job(const oci_ompi_comm *comm)
{
	ompi_group_t *group = comm->c_local_group;
	uint32_t job = ompi_proc_local()->super.proc_name.jobid;

	for (int rank = 0; rank < group->grp_proc_count; rank++)
		if (ompi_group_get_proc_name(group, rank).jobid != job)
			return false;
	return true;
}

/* NULL: served. Cheap things first: the last three walk over the group. */
static const char *refusal(oci_ompi_comm *comm)
{
	if (OMPI_COMM_IS_INTER(comm))
		return "it is an intercommunicator";
	if (ompi_comm_size(comm) < 2)
		return "it has one process";
	if (ompi_group_have_remote_peers(comm->c_local_group))
		return "it spans nodes";
	if (!one_job(comm))
		return "it joins processes of several jobs";
	if (!oci_ompi_presence_everywhere(comm))
		return "onecopy is switched off in one of its processes, or of another version";
	return NULL;
}

static void disable_previous(struct oci_ompi_module *self, oci_ompi_comm *comm)
{
	mca_coll_base_module_t *below;

#define DISABLE(name)                                \
	below = self->previous.coll_##name##_module; \
	if (below && below->coll_module_disable)     \
		below->coll_module_disable(below, comm);
	OCI_OMPI_ALL(DISABLE)
#undef DISABLE
}

static int module_enable(mca_coll_base_module_t *module, oci_ompi_comm *comm)
{
	struct oci_ompi_module *self = (struct oci_ompi_module *)module;

	/* What nobody below us does we could not hand back: leave it alone. */
#define SAVE(name)                                                                        \
	if (comm->c_coll->coll_##name && comm->c_coll->coll_##name##_module) {            \
		self->previous.coll_##name = comm->c_coll->coll_##name;                   \
		self->previous.coll_##name##_module = comm->c_coll->coll_##name##_module; \
		OBJ_RETAIN(self->previous.coll_##name##_module);                          \
	} else {                                                                          \
		self->super.coll_##name = NULL;                                           \
	}
	OCI_OMPI_ALL(SAVE)
#undef SAVE
	oci_ompi_forced_subscribe(comm);
	oci_ompi_progress_start();
	return OMPI_SUCCESS;
}

/*
 * Open MPI calls it once per function of a communicator that goes away, but only for the modules
 * in the communicator's table: those below us are told by us, once per function as well. They are
 * still referenced until our destruction.
 */
static int module_disable(mca_coll_base_module_t *module, oci_ompi_comm *comm)
{
	struct oci_ompi_module *self = (struct oci_ompi_module *)module;

	if (!self->disabled)
		disable_previous(self, comm);
	self->disabled = true;
	return OMPI_SUCCESS;
}

static void module_construct(struct oci_ompi_module *self)
{
	memset(&self->previous, 0, sizeof(self->previous));
	memset(self->forced, 0, sizeof(self->forced));
	self->disabled = false;
	self->team = NULL;
	self->making = self->refused = false;
	self->forced_seen = 0;
}

/*
 * -EBUSY means an operation that is still outstanding. Blocking calls leave none; one that failed
 * half-way might. Waiting for it here could wait for ever, so such a team is left to the process.
 */
static void module_destruct(struct oci_ompi_module *self)
{
	if (self->team && oc_team_destroy(self->team) == -EBUSY)
		oci_mpi_info("a communicator was freed with an operation outstanding: its team's "
			     "memory stays until the process ends");
#define RELEASE(name)                            \
	if (self->previous.coll_##name##_module) \
		OBJ_RELEASE(self->previous.coll_##name##_module);
	OCI_OMPI_ALL(RELEASE)
#undef RELEASE
}

OBJ_CLASS_INSTANCE(oci_ompi_module, mca_coll_base_module_t, module_construct, module_destruct);

mca_coll_base_module_t *oci_ompi_comm_query(oci_ompi_comm *comm, int *priority)
{
	const char *reason = refusal(comm);
	struct oci_ompi_module *self;

	if (reason) {
		oci_mpi_info("communicator %s stays with the MPI: %s", comm->c_name, reason);
		return NULL;
	}
	self = OBJ_NEW(oci_ompi_module);
	if (!self)
		return NULL;
	self->super.coll_module_enable = module_enable;
	self->super.coll_module_disable = module_disable;
	oci_ompi_serve(&self->super);
	*priority = oci_ompi_priority;
	return &self->super;
}

int oci_ompi_team(struct oci_ompi_module *self, oci_ompi_comm *comm)
{
	if (OPAL_UNLIKELY(!self->team)) {
		/* While it is made: functions below us may call those of the communicator, which
		 * are ours, alike on all members. */
		if (self->refused || self->making)
			return OC_HAND_BACK;
		self->making = true;
		self->team = oci_ompi_team_make(self, comm, true);
		self->making = false;
		self->refused = !self->team;
		if (self->refused)
			return OC_HAND_BACK;
	}
	oci_ompi_forced_update(self, comm);
	return 0;
}

int oci_ompi_run(struct oci_ompi_module *self, oci_ompi_comm *comm, const struct oc_call *call,
		 int prepared)
{
	int error = oci_ompi_team(self, comm);

	if (OPAL_UNLIKELY(error)) {
		if (self->refused)
			oc_count_handed_back(oci_collective_name(call->collective),
					     OCI_OMPI_REFUSED);
		return OC_HAND_BACK;
	}
	error = OPAL_LIKELY(!prepared) ? oc_collective(self->team, call) :
					 oc_team_abandon(self->team, call, prepared);
	if (OPAL_LIKELY(!error))
		return MPI_SUCCESS;
	return error > 0 ? OC_HAND_BACK : oci_ompi_failure(self->team, error);
}
