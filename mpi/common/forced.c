/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "common/comm.h"

#include <string.h>

char oci_mpi_info_keys[OC_COLLECTIVES][32] = OCI_INFO_KEYS;

static void force(const struct oci_mpi_comm *self, struct oc_team *team, int i, bool warn)
{
	/* All ranks have the same words; the first one speaks. */
	if (oc_team_force(team, oci_collective_name(i), self->forced[i]) && warn && !self->rank &&
	    !self->quiet)
		oci_warn("info key %s=%s of a communicator is ignored: %s", oci_mpi_info_keys[i],
			 self->forced[i], oc_team_error(team));
}

void oci_mpi_force(struct oci_mpi_comm *self, int i, const char *words)
{
	char kept[OCI_FORCED_BYTES] = "";

	memcpy(kept, words, strnlen(words, sizeof(kept) - 1));
	if (!strcmp(self->forced[i], kept))
		return;
	memcpy(self->forced[i], kept, sizeof(kept));
	if (self->team)
		force(self, self->team, i, true);
	oci_mpi_levels_force(self, i);
}

void oci_mpi_force_team(const struct oci_mpi_comm *self, struct oc_team *team, bool warn)
{
	for (int i = 0; i < OC_COLLECTIVES; i++)
		if (*self->forced[i])
			force(self, team, i, warn);
}
