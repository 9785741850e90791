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

/* Counts settings of any key on any communicator, but for the empty words that a subscription
 * begins with; a new module has seen none. */
uint32_t oci_ompi_forced_generation = 1;

/* Returns what to keep under the key; NULL: nothing. The default stands for "not set". */
static oci_ompi_key_char *key_set(opal_infosubscriber_t *object, oci_ompi_key_char *key,
				  oci_ompi_key_char *value)
{
	(void)object;
	(void)key;
	if (!*value)
		return NULL;
	__atomic_add_fetch(&oci_ompi_forced_generation, 1, __ATOMIC_RELAXED);
	return value;
}

void oci_ompi_forced_subscribe(oci_ompi_comm *comm)
{
	static char unset[] = ""; /* not NULL, which 4.1 would pass to strdup() */

	for (int i = 0; i < OC_COLLECTIVES; i++)
		opal_infosubscribe_subscribe(&comm->super, oci_mpi_info_keys[i], unset, key_set);
}

static bool get(opal_info_t *info, const char *key, char words[OPAL_MAX_INFO_VAL + 1])
{
	int found = 0;
#if OMPI_MAJOR_VERSION < 5
	opal_info_get(info, key, OPAL_MAX_INFO_VAL, words, &found);
#else
	opal_cstring_t *value;

	opal_info_get(info, key, &value, &found);
	if (found) {
		snprintf(words, OPAL_MAX_INFO_VAL + 1, "%s", value->string);
		OBJ_RELEASE(value);
	}
#endif
	return found;
}

void oci_ompi_forced_apply(struct oci_ompi_module *self)
{
	opal_info_t *info = self->comm.comm->super.s_info;
	char words[OPAL_MAX_INFO_VAL + 1];

	self->forced_seen = __atomic_load_n(&oci_ompi_forced_generation, __ATOMIC_RELAXED);
	for (int i = 0; info && i < OC_COLLECTIVES; i++)
		if (get(info, oci_mpi_info_keys[i], words))
			oci_mpi_force(&self->comm, i, words);
}
