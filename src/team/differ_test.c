/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are not alike: options that are each rank's own affair have other values on each, and
 * some have a shared heap, early, late or never. All results must be right and nobody may hang.
 * Options that must be alike and are not: all ranks say so, and hand their calls back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "support/arena.h"
#include "support/call.h"
#include "support/fork_team.h"
#include "support/test.h"

#define RANKS 4
#define MOST ((size_t)300000)
#define ARENA_BYTES ((size_t)64 << 20)

/* What a rank has of a shared heap. */
enum heap { NO_HEAP, BEFORE, AFTER }; /* the team was created */

static const struct world {
	const char *mechanism; /* alike */
	const char *variable;
	const char *value[RANKS];
	enum heap heap[RANKS];
} worlds[] = {
	{ "auto", "ONECOPY_P2P", { "auto", "eager", "shm", "vmsplice" }, { 0 } },
	{ "shm", "ONECOPY_P2P", { "writev", "auto", "vmsplice", "eager" }, { 0 } },
	{ "auto", "ONECOPY_P2P", { "map", "cma", "auto", "map" }, { BEFORE, NO_HEAP, AFTER } },
	{ "auto", "ONECOPY_P2P_EAGER", { "0", "1G", "auto", "5000" }, { 0 } },
	{ "auto", "ONECOPY_SPINS", { "0", "1", "2000", "1000000" }, { BEFORE, AFTER } },
	{ "auto",
	  "ONECOPY_MAP_BYTES",
	  { "0", "64M", "1G", "1" },
	  { BEFORE, BEFORE, BEFORE, BEFORE } },
	{ "map",
	  "ONECOPY_MAP_BYTES",
	  { "1G", "0", "128M", "64M" },
	  { BEFORE, BEFORE, BEFORE, BEFORE } },
	{ "map", "ONECOPY_P2P_EAGER", { "1G", "0", "auto", "1" }, { NO_HEAP, BEFORE, AFTER } },
};

static int heap_make(struct oct_memory *m, bool now)
{
	struct oct_arena arena;

	m->bytes = oct_memory_bytes(MOST, RANKS);
	if (now && oct_arena_create(&arena, ARENA_BYTES))
		return -1;
	m->send = now ? oct_arena_take(&arena, m->bytes) : malloc(m->bytes);
	m->recv = now ? oct_arena_take(&arena, m->bytes) : malloc(m->bytes);
	return m->send && m->recv ? 0 : -1;
}

/* Each rank sends two messages to each, itself too; the second one is received by any source. */
static int messages(struct oc_team *team, struct oct_memory *m, unsigned int n, size_t bytes)
{
	uint32_t me = oc_team_rank(team);
	struct oc_request *request[3 * RANKS];
	unsigned int count = 0;
	struct oc_status status;
	int result = 0;

	memset(m->recv, 0xee, RANKS * bytes);
	for (uint32_t r = 0; r < RANKS; r++)
		oct_fill(m->send + r * bytes, n, me, r, bytes);
	for (uint32_t r = 0; r < RANKS && !result; r++) {
		result = oc_irecv(team, r, 1, m->recv + r * bytes, bytes, NULL, &request[count++]);
		if (!result)
			result =
				oc_isend(team, r, 1, m->send + r * bytes, bytes, &request[count++]);
		if (!result)
			result =
				oc_isend(team, r, 2, m->send + r * bytes, bytes, &request[count++]);
	}
	for (uint32_t r = 0; r < RANKS && !result; r++) {
		uint8_t *to = malloc(bytes + 1);

		result = oc_recv(team, OC_ANY_SOURCE, 2, to, bytes, &status);
		if (!result && !oct_filled(to, n, status.source, me, bytes))
			result = -EIO;
		free(to);
	}
	while (count && !result)
		result = oc_wait(request[--count]);
	for (uint32_t r = 0; !result && r < RANKS; r++)
		if (!oct_filled(m->recv + r * bytes, n, r, me, bytes))
			result = -EIO;
	if (result)
		fprintf(stderr, "rank %u: messages of %zu bytes: %s (%s)\n", me, bytes,
			strerror(-result), oc_team_error(team));
	return result;
}

static int everything(struct oc_team *team, struct oct_memory *m)
{
	static const enum oc_collective blocks[] = { OC_SCATTERV, OC_GATHERV, OC_ALLGATHERV,
						     OC_ALLTOALLV };
	static const size_t sizes[] = { 8, 600, 3000, 20000, 70000, MOST };
	int result = 0;

	for (unsigned int n = 0; n < 24 && !result; n++) {
		struct oct_spec spec = { .n = n,
					 .bytes = sizes[n % 6],
					 .root = n % RANKS,
					 .op = &oct_sum };

		for (int c = OC_BCAST; c <= OC_ALLREDUCE && !result; c++) {
			spec.collective = (enum oc_collective)c;
			result = oct_call_run(team, m, &spec);
		}
		spec.collective = blocks[n % 4];
		spec.root = n / 4 % RANKS;
		result = result ?: oct_call_run(team, m, &spec) ?: messages(team, m, n, spec.bytes);
	}
	return result;
}

/* ---- ranks, each with its environment -------------------------------------------------------- */

static int rank_of_world(const struct oc_bootstrap *bootstrap, void *arg)
{
	const struct world *w = arg;
	uint32_t rank = bootstrap->rank;
	struct oct_memory m = { 0 };
	struct oc_team *team;
	int result;

	setenv("ONECOPY_MECHANISM", w->mechanism, 1);
	setenv(w->variable, w->value[rank], 1);
	if ((w->heap[rank] == BEFORE && heap_make(&m, true)) || oc_team_create(&team, bootstrap) ||
	    oct_barrier(team))
		return 1;
	if (w->heap[rank] != BEFORE && heap_make(&m, w->heap[rank] == AFTER))
		return 2;
	result = everything(team, &m);
	oc_team_destroy(team);
	return result ? 3 : 0;
}

TEST(options_of_its_own_change_no_result)
{
	for (size_t i = 0; i < sizeof(worlds) / sizeof(worlds[0]); i++)
		if (oct_fork_ranks(RANKS, -1, rank_of_world, (void *)&worlds[i]))
			fail_msg("%s differs, ONECOPY_MECHANISM=%s", worlds[i].variable,
				 worlds[i].mechanism);
}

static int rank_is_refused(const struct oc_bootstrap *bootstrap, void *arg)
{
	const struct world *w = arg;
	struct oc_team *team;

	setenv(w->variable, w->value[bootstrap->rank], 1);
	if (oc_team_create(&team, bootstrap) || oct_barrier(team) != OC_HAND_BACK ||
	    !strstr(oc_team_error(team), "rank 2 has other ONECOPY_ options than rank 0"))
		return 1;
	oc_team_destroy(team);
	return 0;
}

TEST(options_that_must_be_alike_are_compared)
{
	static const struct world alike[] = {
		{ NULL, "ONECOPY_MECHANISM", { "auto", "auto", "shm", "auto" }, { 0 } },
		{ NULL, "ONECOPY_MECHANISM", { "map", "map", "cma", "cma" }, { 0 } },
		{ NULL, "ONECOPY_BCAST", { "auto", "auto", "knomial:4", "auto" }, { 0 } },
		{ NULL, "ONECOPY_ALLTOALLV", { "mpi", "mpi", "auto", "mpi" }, { 0 } },
		{ NULL, "ONECOPY_CHECK", { "on", "1", "off", "yes" }, { 0 } },
		{ NULL, "ONECOPY_SEGMENT_BYTES", { "64M", "65536K", "65M", "64m" }, { 0 } },
	};

	for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
		if (oct_fork_ranks(RANKS, -1, rank_is_refused, (void *)&alike[i]))
			fail_msg("%s differs and nobody said so", alike[i].variable);
}
