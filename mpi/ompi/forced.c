/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms forced on one communicator by its info keys onecopy_NAME.
 *
 * Open MPI deletes a key that MPI_Comm_set_info brings unless somebody subscribed to it, so every
 * served communicator subscribes. The subscription also tells when a key is set later: then all
 * communicators look again at their next served collective. Members see the same words at the same
 * place among their collectives because MPI_Comm_set_info is itself collective.
 */
#include "component.h"

#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"

#include <string.h>

/* Not const: opal_infosubscribe_subscribe() takes them so. */
static char keys[OC_COLLECTIVES][32] = OCI_INFO_KEYS;

/* Counts settings of any key on any communicator; a new module has seen none. */
uint32_t oci_ompi_forced_generation = 1;

/* Returns what to keep under the key; NULL: nothing. The default stands for "not set". */
static char *key_set(opal_infosubscriber_t *object, char *key, char *value)
{
	(void)object;
	(void)key;
	__atomic_add_fetch(&oci_ompi_forced_generation, 1, __ATOMIC_RELAXED);
	return *value ? value : NULL;
}

void oci_ompi_forced_subscribe(oci_ompi_comm *comm)
{
	static char unset[] = ""; /* not NULL, which 4.1 would pass to strdup() */

	for (int i = 0; i < OC_COLLECTIVES; i++)
		opal_infosubscribe_subscribe(&comm->super, keys[i], unset, key_set);
}

static void force(struct oci_ompi_module *self, oci_ompi_comm *comm, int i, const char *words)
{
	char kept[OCI_FORCED_BYTES] = "";

	memcpy(kept, words, strnlen(words, sizeof(kept) - 1));
	if (!strcmp(self->forced[i], kept))
		return;
	memcpy(self->forced[i], kept, sizeof(kept));
	/* All ranks have the same words; the first one speaks. */
	if (oc_team_force(self->team, oci_collective_name(i), words) && ompi_comm_rank(comm) == 0)
		oci_mpi_warn("info key %s=%s of communicator %s is ignored: %s", keys[i], words,
			     comm->c_name, oc_team_error(self->team));
}

void oci_ompi_forced_apply(struct oci_ompi_module *self, oci_ompi_comm *comm)
{
	char words[OPAL_MAX_INFO_VAL + 1];

	self->forced_seen = __atomic_load_n(&oci_ompi_forced_generation, __ATOMIC_RELAXED);
	for (int i = 0; comm->super.s_info && i < OC_COLLECTIVES; i++) {
		int found = 0;

		opal_info_get(comm->super.s_info, keys[i], OPAL_MAX_INFO_VAL, words, &found);
		if (found)
			force(self, comm, i, words);
	}
}

void oci_ompi_forced_copy(const struct oci_ompi_module *self, struct oc_team *team)
{
	for (int i = 0; i < OC_COLLECTIVES; i++)
		if (*self->forced[i])
			oc_team_force(team, oci_collective_name(i), self->forced[i]);
}
