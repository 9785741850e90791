/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One module per communicator: whether we serve it, and what lies below us.
 *
 * A communicator is served if all of its processes are of one job, have this component in use
 * (modex.c) and there are at least two. Every member sees these facts alike, so either all select
 * us or none does. On one node it has a team; where it spans nodes, its calls may go in two levels
 * (mpi/common/levels), and all others are those of the modules below us.
 *
 * Its team is not made when the module is enabled (docs/adr/0020): a program makes many
 * communicators that never see a collective, and enabling happens inside Open MPI's own
 * communicator creation, where waiting for a peer can deadlock.
 */
#include "component.h"

#include "ompi/proc/proc.h"

#include <errno.h>
#include <stdlib.h>
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

/* NULL: served. Cheap things first: the last two walk over the group. */
static const char *refusal(oci_ompi_comm *comm, bool spans)
{
	if (OMPI_COMM_IS_INTER(comm))
		return "it is an intercommunicator";
	if (ompi_comm_size(comm) < 2)
		return "it has one process";
	if (!one_job(comm))
		return "it joins processes of several jobs";
	if (!oci_ompi_modex_all(comm, spans))
		return spans ? "it spans nodes, and this is no Open MPI 4.1, ONECOPY_LEVELS is off, "
			       "Open MPI's HAN is switched on (coll_han_priority), or onecopy is "
			       "switched off or of another version or priority in one of its "
			       "processes" :
			       "onecopy is switched off in one of its processes, or of another "
			       "version or priority";
	return NULL;
}

static void disable_underlying(struct oci_ompi_module *self, oci_ompi_comm *comm)
{
	mca_coll_base_module_t *below;

#define DISABLE(name)                                  \
	below = self->underlying.coll_##name##_module; \
	if (below && below->coll_module_disable)       \
		below->coll_module_disable(below, comm);
	OCI_OMPI_ALL(DISABLE)
#undef DISABLE
}

static int module_enable(mca_coll_base_module_t *module, oci_ompi_comm *comm)
{
	struct oci_ompi_module *self = (struct oci_ompi_module *)module;

	/* What nobody below us does we could not hand back: leave it alone. What is not ours we
	 * need not keep. */
#define SAVE(name)                                                                          \
	if (self->super.coll_##name && comm->c_coll->coll_##name &&                         \
	    comm->c_coll->coll_##name##_module) {                                           \
		self->underlying.coll_##name = comm->c_coll->coll_##name;                   \
		self->underlying.coll_##name##_module = comm->c_coll->coll_##name##_module; \
		OBJ_RETAIN(self->underlying.coll_##name##_module);                          \
	} else {                                                                            \
		self->super.coll_##name = NULL;                                             \
	}
	OCI_OMPI_ALL(SAVE)
#undef SAVE
	self->comm.comm = comm;
	self->comm.rank = (uint32_t)ompi_comm_rank(comm);
	self->comm.size = (uint32_t)ompi_comm_size(comm);
	self->comm.spans = ompi_group_have_remote_peers(comm->c_local_group);
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
		disable_underlying(self, comm);
	self->disabled = true;
	return OMPI_SUCCESS;
}

static void module_construct(struct oci_ompi_module *self)
{
	memset(&self->underlying, 0, sizeof(self->underlying));
	self->disabled = false;
	self->comm = (struct oci_mpi_comm){ 0 };
	self->forced_seen = 0;
}

/* MPI_Finalize destroys MPI_COMM_WORLD first, and then all others that still are, by whomever they
 * are referred to: no request may be looked at behind that. */
static void end_with_world(const struct oci_ompi_module *self)
{
	if (self->comm.comm == &ompi_mpi_comm_world.comm) {
		oci_ompi_requests_let_all_go();
		oci_ompi_progress_stop();
	}
}

/*
 * -EBUSY means an operation that is still outstanding. Blocking calls leave none; one that failed
 * half-way might. Waiting for it here could wait for ever, so such a team is left to the process.
 */
static void module_destruct(struct oci_ompi_module *self)
{
	end_with_world(self);
	if (self->comm.team && oc_team_destroy(self->comm.team) == -EBUSY)
		oci_info("a communicator was freed with an operation outstanding: its team's "
			 "memory stays until the process ends");
	oci_mpi_levels_free(&self->comm);
#define RELEASE(name)                              \
	if (self->underlying.coll_##name##_module) \
		OBJ_RELEASE(self->underlying.coll_##name##_module);
	OCI_OMPI_ALL(RELEASE)
#undef RELEASE
	free(self->comm.graph);
}

OBJ_CLASS_INSTANCE(oci_ompi_module, mca_coll_base_module_t, module_construct, module_destruct);

mca_coll_base_module_t *oci_ompi_comm_query(oci_ompi_comm *comm, int *priority)
{
	bool spans = !OMPI_COMM_IS_INTER(comm) && ompi_group_have_remote_peers(comm->c_local_group);
	const char *reason = refusal(comm, spans);
	struct oci_ompi_module *self;

	if (reason) {
		oci_info("communicator %s stays with the MPI: %s", comm->c_name, reason);
		return NULL;
	}
	self = OBJ_NEW(oci_ompi_module);
	if (!self)
		return NULL;
	self->super.coll_module_enable = module_enable;
	self->super.coll_module_disable = module_disable;
	oci_ompi_serve(&self->super, spans);
	*priority = oci_ompi_priority;
	return &self->super;
}

/* The barrier is ours wherever anything is. */
struct oci_ompi_module *oci_ompi_module_of(const oci_ompi_comm *comm)
{
	mca_coll_base_module_t *module = comm->c_coll->coll_barrier_module;

	return module && module->coll_module_enable == module_enable ?
		       (struct oci_ompi_module *)module :
		       NULL;
}
