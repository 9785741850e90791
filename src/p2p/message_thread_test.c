/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of ranks that are threads of one process: for ThreadSanitizer. A further thread drives
 * requests all the while.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "os/os.h"
#include "support/test.h"
#include "support/thread_team.h"

#define RANKS 3
#define ROUNDS 60
#define MOST 200000

static const size_t sizes[] = { 0, 8, 100, 3000, 9000, 30000, MOST };

/* A ring of messages; every buffer is written anew before it is sent or received into. */
static int one_round(struct oc_team *team, unsigned int n, bool blocking)
{
	static __thread uint8_t out[2][MOST], in[2][MOST];
	uint32_t me = oc_team_rank(team), to = (me + 1) % RANKS, from = (me + RANKS - 1) % RANKS;
	size_t bytes = sizes[n % 7];
	struct oc_request *sends[2], *receives[2];
	struct oc_status status;
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		memset(out[i], (int)(n + me) + i, MOST);
		memset(in[i], 0xee, MOST);
	}
	if (blocking) {
		for (int i = 0; i < 2; i++) {
			if (me % 2 == 0)
				failed |= oc_send(team, to, i, out[i], bytes);
			failed |= oc_recv(team, i ? OC_ANY_SOURCE : from, i, in[i], MOST, &status);
			if (me % 2)
				failed |= oc_send(team, to, i, out[i], bytes);
			failed |= status.bytes != bytes || status.source != from;
		}
	} else {
		for (int i = 0; i < 2; i++)
			failed |= oc_isend(team, to, i, out[i], bytes, &sends[i]);
		for (int i = 2; i-- > 0;)
			failed |= oc_irecv(team, from, i, in[i], MOST, NULL, &receives[i]);
		for (int i = 0; i < 2; i++)
			failed |= oc_wait(receives[i]) | oc_wait(sends[i]);
	}
	for (int i = 0; i < 2; i++) {
		for (size_t at = 0; at < bytes; at++)
			failed |= in[i][at] != (uint8_t)(n + from + (unsigned int)i);
	}
	return failed;
}

static int run(struct oc_team *team)
{
	int failed = 0;

	/* An odd ring cannot block all around: the even ranks' large sends wait for receives. */
	for (unsigned int n = 0; n < ROUNDS && !failed; n++)
		failed = one_round(team, n, sizes[n % 7] < 9000 && n % 2);
	return failed;
}

static uint64_t ended;

static void *drive(void *arg)
{
	(void)arg;
	while (!oci_load_acquire(&ended)) {
		oc_progress();
		oci_os_yield();
	}
	return NULL;
}

static void run_ranks(unsigned int fail_every)
{
	pthread_t driver;

	oci_store_release(&ended, 0);
	assert_int_equal(pthread_create(&driver, NULL, drive, NULL), 0);
	assert_int_equal(oct_thread_team(RANKS, fail_every, run), 0);
	oci_store_release(&ended, 1);
	pthread_join(driver, NULL);
}

TEST(no_access_of_a_message_is_unordered)
{
	run_ranks(0);
}

/* Every third copy fails, of the receiver and of the sender that helps. */
TEST(nor_when_copies_fail_and_the_rest_is_sent)
{
	run_ranks(3);
}
