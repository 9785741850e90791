/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/harness/meet.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* Round n + 2 reuses the bytes of round n: a rank starts it only after round n + 1 is complete,
 * which every rank started after it had read round n. */
static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct meet *meet = context;
	struct meet_place *mine = &meet->place[meet->rank];

	if (bytes > MEET_BYTES)
		return -EMSGSIZE;
	meet->round++;
	meet->gather_bytes = bytes;
	meet->gather_to = recv;
	memcpy(mine->gathered[meet->round % 2], send, bytes);
	/* Release: the bytes come before the round. Pairs with the acquire in gather_test(). */
	__atomic_store_n(&mine->round, meet->round, __ATOMIC_RELEASE);
	return 0;
}

static int gather_test(void *context)
{
	struct meet *meet = context;

	for (uint32_t i = 0; i < meet->ranks; i++) {
		/* Acquire: pairs with the release in gather_start(). */
		if (__atomic_load_n(&meet->place[i].round, __ATOMIC_ACQUIRE) < meet->round)
			return 0;
	}
	for (uint32_t i = 0; i < meet->ranks; i++)
		memcpy((uint8_t *)meet->gather_to + i * meet->gather_bytes,
		       meet->place[i].gathered[meet->round % 2], meet->gather_bytes);
	return 1;
}

void meet_barrier(struct meet *meet)
{
	/* Release and acquire: what a rank wrote before is seen by those behind the barrier. */
	__atomic_store_n(&meet->place[meet->rank].arrived, ++meet->arrived, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < meet->ranks; i++) {
		unsigned int spins = 0;

		while (__atomic_load_n(&meet->place[i].arrived, __ATOMIC_ACQUIRE) < meet->arrived)
			if (++spins > 1000)
				sched_yield();
	}
}

struct oc_bootstrap meet_bootstrap(struct meet *meet)
{
	return (struct oc_bootstrap){ .rank = meet->rank,
				      .size = meet->ranks,
				      .context = meet,
				      .allgather_start = gather_start,
				      .allgather_test = gather_test };
}

int meet_team(struct meet *meet, struct oc_team **team)
{
	struct oc_bootstrap bootstrap = meet_bootstrap(meet);
	int state = oc_team_create(team, &bootstrap);

	if (state)
		return state;
	while (!state) {
		state = oc_team_progress(*team);
		sched_yield();
	}
	return state < 0 ? state : 0;
}
