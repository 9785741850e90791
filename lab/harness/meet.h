/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where forked ranks meet: memory that they share, with a barrier and the allgather that a team's
 * bootstrap needs.
 */
#ifndef HARNESS_MEET_H
#define HARNESS_MEET_H

#include <onecopy/onecopy.h>
#include <stddef.h>
#include <stdint.h>

enum { MEET_BYTES = 8192 };

/* One of each rank, side by side, in shared memory that begins zeroed. */
struct meet_place {
	uint64_t round, arrived;	 /* of the bootstrap, of the barrier */
	uint8_t gathered[2][MEET_BYTES]; /* by parity of the round */
};

/* A rank's own. */
struct meet {
	struct meet_place *place; /* [ranks] */
	uint32_t rank, ranks;
	uint64_t round, arrived;
	size_t gather_bytes;
	void *gather_to;
};

struct oc_bootstrap meet_bootstrap(struct meet *meet);
/* All ranks; spins, then yields. */
void meet_barrier(struct meet *meet);
/* A team of all ranks, ready: 0 or -errno. */
int meet_team(struct meet *meet, struct oc_team **team);

#endif
