/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes of the job have this component in use.
 *
 * `mpirun -x ONECOPY=off`, `--mca coll ^onecopy`, a negative priority and an MPI that moves device
 * memory may hold for some ranks only. Then no communicator with such a rank may be served, and its
 * members must know that alike; where priorities differ neither, as a component of Open MPI's own
 * may come before ours on one rank and behind it on another. So a process that takes part publishes
 * its priority and where it is with its contact information in MPI_Init (the modex), before which
 * nobody's is asked for; absence means that it does not take part.
 */
#include "component.h"

#include "ompi/proc/proc.h"
#include "opal/mca/base/mca_base_var.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "onecopy.coll"

/* Of this job's processes, by vpid; UNKNOWN until asked for. Filled by any thread, alike. */
enum { UNKNOWN, PRESENT, ABSENT };
struct presence {
	int state;	       /* atomic, the last that is written */
	int priority;	       /* oci_ompi_priority */
	uint64_t node, levels; /* oc_node(), levels_here() */
};
static struct presence *known;

/* Its first number grows when processes of two versions of this component must not share a
 * communicator. */
#define FORMAT "4 %d %" PRIx64 " %" PRIx64

/*
 * As oc_levels(), and 0 where Open MPI's own two levels are switched on. Below ours they would,
 * where they cannot serve a communicator, call its function in the belief that this is another
 * module's: it is ours, which calls theirs again, without end.
 */
static uint64_t levels_here(void)
{
	int han = mca_base_var_find("ompi", "coll", "han", "priority");
	const int *priority = NULL;

	if (han >= 0 && mca_base_var_get_value(han, &priority, NULL, NULL) == OPAL_SUCCESS &&
	    priority && *priority > 0)
		return 0;
	return oc_levels();
}

bool oci_ompi_modex_publish(void)
{
	int error = OPAL_ERR_NOT_AVAILABLE;
	char text[64];

	snprintf(text, sizeof(text), FORMAT, oci_ompi_priority, oc_node(), levels_here());
	if (OCI_OMPI_CAN_PUBLISH)
		OPAL_MODEX_SEND_VALUE(error, OCI_OMPI_GLOBAL, KEY, text, OCI_OMPI_STRING);
	if (error != OPAL_SUCCESS)
		return false;
	known = calloc(OCI_OMPI_PROCESS.num_procs, sizeof(*known));
	return true;
}

/*
 * About 10 us from the local server (4.1.4, PMIx 4.2.2, Intel VM, 2026-11). Immediate: without it
 * PMIx waits two seconds for what a process has not published, in case it still does. Processes of
 * a node have published everything once the point-to-point layer has found them, which is before
 * the first communicator; those of other nodes where all data is collected (spans_known()).
 */
static struct presence ask(opal_process_name_t name)
{
	struct presence presence = { .state = ABSENT };
	char *text = NULL;
	int error;

	OPAL_MODEX_RECV_VALUE_IMMEDIATE(error, KEY, &name, &text, OCI_OMPI_STRING);
	if (error == OPAL_SUCCESS && text &&
	    sscanf(text, FORMAT, &presence.priority, &presence.node, &presence.levels) == 3)
		presence.state = PRESENT;
	free(text);
	return presence;
}

static struct presence look(oci_ompi_comm *comm, int rank)
{
	opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
	struct presence *memory =
		known && name.vpid < OCI_OMPI_PROCESS.num_procs ? &known[name.vpid] : NULL;
	struct presence presence;

	/* Acquire: pairs with the release below. */
	if (memory && __atomic_load_n(&memory->state, __ATOMIC_ACQUIRE) != UNKNOWN)
		return *memory;
	presence = ask(name);
	if (memory) {
		__atomic_store_n(&memory->priority, presence.priority, __ATOMIC_RELAXED);
		__atomic_store_n(&memory->node, presence.node, __ATOMIC_RELAXED);
		__atomic_store_n(&memory->levels, presence.levels, __ATOMIC_RELAXED);
		__atomic_store_n(&memory->state, presence.state, __ATOMIC_RELEASE);
	}
	return presence;
}

/*
 * Whether MPI_Init has brought to every process what all have published. Else it would be fetched
 * from other nodes when somebody first asks, and what is there already would differ by process.
 */
static bool spans_known(void)
{
	/* Open MPI 5.0.7 finds nothing of other nodes by a Get that does not wait, after a fence
	 * that collects all: members would not agree. */
	return OMPI_MAJOR_VERSION < 5 && opal_pmix_collect_all_data && !opal_pmix_base_async_modex;
}

bool oci_ompi_modex_all(oci_ompi_comm *comm, bool spans)
{
	uint64_t levels = levels_here();

	if (spans && (!levels || !spans_known()))
		return false;
	for (int rank = 0; rank < ompi_comm_size(comm); rank++) {
		struct presence presence = look(comm, rank);

		if (presence.state != PRESENT || presence.priority != oci_ompi_priority)
			return false;
		if (spans && (!presence.node || presence.levels != levels))
			return false;
	}
	return true;
}

uint64_t oci_ompi_modex_node(oci_ompi_comm *comm, uint32_t rank)
{
	return look(comm, (int)rank).node;
}
