/* SPDX-License-Identifier: BSD-3-Clause */
/* How messages end other than well: peers that die or leave, messages that are too long, arguments
 * that are wrong. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fork_team.h"
#include "support/test.h"

#define LARGE 300000

static int expect(const char *what, int got, int want)
{
	if (got != want)
		fprintf(stderr, "%s: %d, not %d\n", what, got, want);
	return got != want;
}

/* ---- peers that die -------------------------------------------------------------------------- */

static int probe_who_dies(struct oc_team *team, void *arg)
{
	uint32_t source = *(const uint32_t *)arg;
	struct oc_status status;
	int result, sent = 5, got = 0;

	if (oc_team_rank(team)) {
		if (!oct_barrier(team) && !oc_send(team, 0, 3, &sent, sizeof(sent)))
			kill(getpid(), SIGKILL);
		return 1;
	}
	if (oct_barrier(team))
		return 1;
	while (!(result = oc_iprobe(team, source, 3, &status)))
		;
	/* What it sent as its last deed is there. */
	if (expect("probe", result, 1) || expect("bytes", (int)status.bytes, sizeof(got)) ||
	    expect("receive", oc_recv(team, source, 3, &got, sizeof(got), NULL), 0) || got != sent)
		return 1;
	while (!(result = oc_iprobe(team, source, OC_ANY_TAG, NULL)))
		;
	return expect("probe of the dead", result, -EOWNERDEAD) ||
	       expect("dead rank", oc_team_dead_rank(team), 1);
}

TEST(a_probe_for_messages_of_a_dead_rank_fails)
{
	uint32_t sources[] = { 1, OC_ANY_SOURCE };

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(oct_fork_team(2, 1, probe_who_dies, &sources[i]), 0);
}

/* ---- peers that leave ------------------------------------------------------------------------ */

static int all_leave(struct oc_team *team, void *arg)
{
	uint32_t source = *(const uint32_t *)arg;
	int got = 0, sent = 9;

	if (oc_team_rank(team))
		return oc_send(team, 0, 0, &sent, sizeof(sent));
	if (source != OC_ANY_SOURCE)
		usleep(20000); /* it has left */
	for (uint32_t r = 1; r < oc_team_size(team); r++) {
		if (expect("sent before it left", oc_recv(team, source, 0, &got, sizeof(got), NULL),
			   0) ||
		    got != sent)
			return 1;
		if (source != OC_ANY_SOURCE)
			break;
	}
	return expect("nobody is left", oc_recv(team, source, 0, &got, sizeof(got), NULL), -EPIPE);
}

TEST(a_receive_from_who_has_left_fails)
{
	uint32_t sources[] = { 1, OC_ANY_SOURCE };

	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(oct_fork_team(2, -1, all_leave, &sources[i]), 0);
		assert_int_equal(oct_fork_team(4, -1, all_leave, &sources[i]), 0);
	}
}

/* ---- messages that are too long -------------------------------------------------------------- */

/* Each is consumed: the next one is the next one. */
static int truncated(struct oc_team *team, void *arg)
{
	static const size_t sizes[] = { 1, 80, 3000, 20000, LARGE };
	uint8_t *buffer = malloc(LARGE);
	int failed = 0;

	(void)arg;
	for (unsigned int i = 0; i < 3 * 5 && !failed; i++) {
		size_t bytes = sizes[i % 5], room = i / 5 ? bytes / 2 : 0;
		struct oc_piece pieces[] = { { 0, buffer },
					     { room / 3, buffer + room / 3 + 7 },
					     { room, NULL } };
		struct oc_layout layout = { pieces, 2 };
		struct oc_status status;
		int result;

		if (oc_team_rank(team)) {
			memset(buffer, (int)i + 1, bytes);
			failed = oc_send(team, 0, (int32_t)i, buffer, bytes);
			continue;
		}
		memset(buffer, 0xee, LARGE);
		result = i / 5 == 2 ? oc_recvv(team, 1, OC_ANY_TAG, &layout, &status) :
				      oc_recv(team, 1, OC_ANY_TAG, buffer, room, &status);
		failed = expect("too long", result, -EMSGSIZE) || status.bytes != bytes ||
			 status.tag != (int32_t)i || status.source != 1;
		for (size_t at = 0; at < bytes && !failed; at++) {
			size_t end = i / 5 == 2 ? room + 7 : room;
			bool gap = i / 5 == 2 && at >= room / 3 && at < room / 3 + 7;
			uint8_t want = at < end && !gap ? (uint8_t)(i + 1) : 0xee;

			failed = expect("byte", buffer[at], want);
		}
	}
	free(buffer);
	return failed;
}

TEST(a_message_that_is_too_long_gives_what_fits_and_no_more)
{
	assert_int_equal(oct_fork_team(2, -1, truncated, NULL), 0);
	setenv("ONECOPY_MECHANISM", "shm", 1);
	assert_int_equal(oct_fork_team(2, -1, truncated, NULL), 0);
	unsetenv("ONECOPY_MECHANISM");
}

/* ---- arguments ------------------------------------------------------------------------------- */

TEST(wrong_arguments_are_refused)
{
	struct oc_piece nothing = { .at = 0 }, lost = { .at = 8 };
	struct oc_layout none = { NULL, 1 }, empty = { &nothing, 0 }, without = { &lost, 0 };
	struct oc_request *request;
	struct oc_team *team;
	uint8_t byte = 1;

	assert_int_equal(oct_local_teams(1, &team), 0);
	assert_int_equal(oc_isend(team, 1, 0, &byte, 1, &request), -EINVAL);
	assert_int_equal(oc_isend(team, OC_ANY_SOURCE, 0, &byte, 1, &request), -EINVAL);
	assert_int_equal(oc_isend(team, 0, -1, &byte, 1, &request), -EINVAL);
	assert_int_equal(oc_recv(team, 0, -2, &byte, 1, NULL), -EINVAL);
	assert_int_equal(oc_isend(team, 0, 0, NULL, 1, &request), -EINVAL);
	assert_int_equal(oc_isendv(team, 0, 0, NULL, &request), -EINVAL);
	assert_int_equal(oc_isendv(team, 0, 0, &none, &request), -EINVAL);
	assert_int_equal(oc_isendv(team, 0, 0, &without, &request), -EINVAL);
	assert_int_equal(oc_recvv(team, 0, 0, NULL, NULL), -EINVAL);
	assert_int_equal(oc_iprobe(team, 7, 0, NULL), -EINVAL);
	assert_int_equal(oc_iprobe(team, 0, 0, NULL), 0);
	assert_int_equal(oc_send(team, 0, 0, &byte, 0), 0);
	assert_int_equal(oc_recv(team, 0, 1, &byte, 1, NULL), -EDEADLK);
	assert_int_equal(oc_iprobe(team, 0, 0, NULL), 1);
	assert_int_equal(oc_recvv(team, 0, 0, &empty, NULL), 0);
	assert_int_equal(oc_team_destroy(team), 0);
}
