/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which calls of ranks on several nodes go in two levels. The front ends do them (mpi/common);
 * here is what all ranks must decide alike, before any of them has heard of another.
 */
#include "base/hash.h"
#include "base/options.h"

#include <string.h>

/* The program's words ONECOPY_NAME=mpi mean all of a call. */
static bool is_mpis(enum oc_collective collective)
{
	return !strcmp(oci_options()->algorithm[collective], "mpi");
}

uint64_t oc_levels(void)
{
	uint64_t hash = oci_hash(OCI_HASH_START, OC_VERSION, sizeof(OC_VERSION));
	enum oci_levels levels = oci_options()->levels;

	if (levels == OCI_LEVELS_OFF)
		return 0;
	hash = oci_hash(hash, &levels, sizeof(levels));
	for (int c = 0; c < OC_COLLECTIVES; c++) {
		bool mpis = is_mpis((enum oc_collective)c);

		hash = oci_hash(hash, &mpis, sizeof(mpis));
	}
	return hash ? hash : 1;
}

/*
 * A Scatter sends each block once over the network either way, and two levels keep it until the
 * last one of its node has come. With ONECOPY_LEVELS=on it was 0.66 to 1.08 of the better of stock
 * and HAN from 4 to 256 KiB (tests/hosts/measure.sh, Open MPI 4.1.4, 2 hosts of 2 and of 4 ranks,
 * EPYC of family 26, 2026-11-25).
 */
#define SCATTER_FROM ((size_t)512 << 10)

const char *oc_levels_refusal(enum oc_collective collective, size_t bytes)
{
	if (is_mpis(collective))
		return "the MPI's own algorithm was chosen for this size";
	if (oci_options()->levels != OCI_LEVELS_ON && collective == OC_SCATTER &&
	    bytes < SCATTER_FROM)
		return "on several nodes the MPI's own is as quick for this size";
	return NULL;
}
