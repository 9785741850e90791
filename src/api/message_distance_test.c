/* SPDX-License-Identifier: BSD-3-Clause */
/* Which messages are eager follows how far the sender finds the receiver, by dictated times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "support/fork_team.h"

#define BYTES ((size_t)16 << 10)
/* More than two verdicts are apart, as the first may be of both phases. */
enum { MESSAGES = 4400 };

static uint64_t looks;
static bool near;

/* Now and then a look meets an interrupt, or a line that came by itself. */
static uint64_t dictated(const uint64_t *word, uint64_t *value)
{
	*value = oci_load_acquire(word);
	return ++looks % 8 < 3 ? (near ? 5000 : 5) : near ? 20 : 120;
}

static int exchange(struct oc_team *team, uint32_t rank, uint8_t *buffer, size_t bytes, int round)
{
	struct oc_status status;
	int failed;

	memset(buffer, rank ? 0 : round + 1, bytes);
	if (rank)
		failed = oc_recv(team, 0, round, buffer, bytes, &status) ?:
				 oc_send(team, 0, round, buffer, bytes);
	else
		failed = oc_send(team, 1, round, buffer, bytes) ?:
				 oc_recv(team, 1, round, buffer, bytes, &status);
	for (size_t i = 0; i < bytes && !failed; i++)
		failed = buffer[i] != (uint8_t)(round + 1);
	return failed;
}

/* Of 16 KiB: did they need a line each? */
static bool is_announced(struct oc_team *team, uint32_t rank, uint8_t *buffer, int *failed)
{
	size_t lines = team->p2p->lines;
	struct oc_request *request;

	/* Ours is under way until the peer has said that it is there. */
	*failed = oc_isend(team, !rank, 7, buffer, BYTES, &request);
	if (!*failed) {
		bool announced = team->p2p->lines < lines || (!lines && team->p2p->lines);

		*failed = oc_recv(team, !rank, 7, buffer + BYTES, BYTES, NULL) ?: oc_wait(request);
		return announced;
	}
	return false;
}

/* 0, or what went wrong. */
static int rank_of(struct oct_board *board, uint32_t rank)
{
	struct oc_bootstrap bootstrap = oct_bootstrap(board, rank);
	static uint8_t buffer[2 * BYTES];
	struct oc_team *team;
	int failed, round = 0;

	oci_distance_measure = dictated;
	if (oc_team_create(&team, &bootstrap))
		return 1;
	/* Unknown, near, far, near again. */
	for (int phase = 0; phase < 4; phase++) {
		enum oci_apart expected = phase ? (near ? OCI_NEAR : OCI_FAR) : OCI_APART_UNKNOWN;
		bool announced;

		for (int i = 0; i < (phase ? MESSAGES : 8); i++)
			if (exchange(team, rank, buffer, (size_t)i % 200, round++ % 100))
				return 2;
		if (team->p2p->out[!rank]->apart != expected)
			return 3;
		announced = is_announced(team, rank, buffer, &failed);
		if (failed)
			return 4;
		/* Without single copies the limit is another. */
		if (phase && team->team.member[!rank].mechanism != OCI_MECH_SHM &&
		    announced != (expected == OCI_FAR))
			return 5;
		near = !near;
	}
	return oc_team_destroy(team) ? 6 : 0;
}

static void the_limit_follows_the_distance(void **state)
{
	struct oct_board *board = oct_board_create(2);
	pid_t pid[2];

	(void)state;
	for (uint32_t rank = 0; rank < 2; rank++) {
		pid[rank] = fork();
		assert_true(pid[rank] >= 0);
		if (!pid[rank]) {
			/* A file of a machine with one state would know better. */
			setenv("ONECOPY_TUNING", "none", 1);
			_exit(rank_of(board, rank));
		}
	}
	for (int rank = 0; rank < 2; rank++) {
		int status = -1;

		assert_int_equal(waitpid(pid[rank], &status, 0), pid[rank]);
		assert_int_equal(status, 0);
	}
	oct_board_destroy(board);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_follows_the_distance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
