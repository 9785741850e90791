/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_alloc() of ranks that have been a team for a while: the first one makes the arena, and peers
 * find it. With ONECOPY_MECHANISM=map there are no other single copies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "copy/map.h"
#include "heap/heap.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/test.h"

#define BYTES ((size_t)300000)

/* From rank 0 to the others, by a collective and by a message each. 0 when the bytes came. */
static int move(struct oc_team *team, uint8_t *buffer, uint8_t value)
{
	uint32_t me = oc_team_rank(team);

	memset(buffer, me ? 0xff : value, BYTES);
	if (oct_bcast(team, buffer, BYTES, 0) || !oct_all(buffer, value, BYTES))
		return 1;
	for (uint32_t r = 1; !me && r < oc_team_size(team); r++)
		if (oc_send(team, r, value, buffer, BYTES))
			return 2;
	memset(buffer, me ? 0xff : value, BYTES);
	if (me && (oc_recv(team, 0, value, buffer, BYTES, NULL) || !oct_all(buffer, value, BYTES)))
		return 3;
	return 0;
}

static int alloc_in_a_team(struct oc_team *team, void *arg)
{
	uint8_t *private = malloc(BYTES), *shared = NULL;
	bool is_root = oc_team_rank(team) == 0;

	(void)arg;
	/* All that can be known of each other is known: there is no arena. */
	if (move(team, private, 1) || oci_map_moved_bytes() || oci_arena_published())
		return 1;
	/* The root alone, and its peers have nothing to map but that. */
	if (is_root) {
		shared = oc_alloc(BYTES);
		if (!oc_is_shared(shared))
			return 2;
	}
	if (oct_barrier(team) || move(team, is_root ? shared : private, 2))
		return 3;
	/* Once by the collective, once by the message. */
	if (!is_root && oci_map_moved_bytes() != 2 * BYTES)
		return 4;
	oc_free(shared);
	free(private);
	return 0;
}

TEST(peers_map_what_is_allocated_in_a_team)
{
	setenv("ONECOPY_MECHANISM", "map", 1);
	setenv("ONECOPY_BCAST", "direct-read", 1);
	assert_int_equal(oct_fork_team(2, -1, alloc_in_a_team, NULL), 0);
	assert_int_equal(oct_fork_team(3, -1, alloc_in_a_team, NULL), 0);
	unsetenv("ONECOPY_BCAST");
	unsetenv("ONECOPY_MECHANISM");
}

/* Asked in a child, so that the ranks begin without. */
static bool is_there(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(oci_arena_self(true) ? 0 : 1);
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(void)
{
	if (!is_there()) {
		fprintf(stderr, "skipped: libonecopy-heap.so was not built (libmimalloc-dev)\n");
		return 77;
	}
	return oct_test_run(NULL, NULL);
}
