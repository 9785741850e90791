/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes of the job have this component in use.
 *
 * `mpirun -x ONECOPY=off`, `--mca coll ^onecopy`, a negative priority and an MPI that moves device
 * memory may hold for some ranks only. Then no communicator with such a rank may be served, and its
 * members must know that alike. So a process that takes part publishes one byte with its contact
 * information in MPI_Init (the modex), before which nobody's is asked for; absence means that it
 * does not take part.
 */
#include "component.h"

#include "ompi/proc/proc.h"

#include <stdlib.h>

#define KEY "onecopy.coll"

/* Grows when processes of two versions of this component must not share a communicator. */
enum { PUBLISHED = 2 };

/* Of this job's processes, by vpid; UNKNOWN until asked for. Filled by any thread, alike. */
enum { UNKNOWN, PRESENT, ABSENT };
static uint8_t *known;

bool oci_ompi_modex_publish(void)
{
	uint8_t value = PUBLISHED;
	int error = OPAL_ERR_NOT_AVAILABLE;

	if (OCI_OMPI_CAN_PUBLISH)
		OPAL_MODEX_SEND_VALUE(error, OCI_OMPI_LOCAL, KEY, &value, OCI_OMPI_BYTE);
	if (error != OPAL_SUCCESS)
		return false;
	known = calloc(OCI_OMPI_PROCESS.num_procs, 1);
	return true;
}

/*
 * About 10 us from the local server (4.1.4, PMIx 4.2.2, Intel VM, 2026-11). Immediate: without it
 * PMIx waits two seconds for what a process has not published, in case it still does. Processes of
 * a node have published everything once the point-to-point layer has found them, which is before
 * the first communicator.
 */
static uint8_t ask(opal_process_name_t name)
{
	uint8_t value = 0, *place = &value;
	int error;

	OPAL_MODEX_RECV_VALUE_IMMEDIATE(error, KEY, &name, &place, OCI_OMPI_BYTE);
	return error == OPAL_SUCCESS && value == PUBLISHED ? PRESENT : ABSENT;
}

static bool present(opal_process_name_t name)
{
	uint8_t *memory = known && name.vpid < OCI_OMPI_PROCESS.num_procs ? &known[name.vpid] :
									    NULL;
	uint8_t presence = memory ? __atomic_load_n(memory, __ATOMIC_RELAXED) : UNKNOWN;

	if (presence == UNKNOWN) {
		presence = ask(name);
		if (memory)
			__atomic_store_n(memory, presence, __ATOMIC_RELAXED);
	}
	return presence == PRESENT;
}

bool oci_ompi_modex_all(oci_ompi_comm *comm)
{
	ompi_group_t *group = comm->c_local_group;

	for (int rank = 0; rank < group->grp_proc_count; rank++)
		if (!present(ompi_group_get_proc_name(group, rank)))
			return false;
	return true;
}
