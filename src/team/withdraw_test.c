/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members withdraw from a creation at random places, in teams within this process, whose steps come
 * in random order. Those that withdrew are driven no more, and the others end alike all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "team/creation.h"

enum { RANKS = 5, GATHERS = 4, BYTES = 2048, SEEDS = 40000, STEPS = 1000000 };

/* What the members have sent. 0 bytes: an empty message. */
struct world {
	uint32_t size;
	bool declares; /* as if the kernel had Yama scope 1 */
	uint32_t released;
	bool sent[RANKS][GATHERS];
	size_t bytes[RANKS][GATHERS];
	uint8_t block[RANKS][GATHERS][BYTES];
};

struct member {
	struct world *world;
	uint32_t rank;
	int gather; /* under way; -1: before the first */
	bool running, begun, told;
	size_t bytes;
	const void *own;
	uint8_t *to;
	struct oc_team *team;
	struct oc_request *request;
	int result; /* of the creation: 0 not yet */
	bool withdrew;
};

static unsigned int seed;

static unsigned int dice(unsigned int sides)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % sides;
}

static void publish(const struct member *m, int gather, size_t bytes)
{
	struct world *w = m->world;

	assert_false(w->sent[m->rank][gather]);
	w->sent[m->rank][gather] = true;
	w->bytes[m->rank][gather] = bytes;
	if (!bytes)
		return;
	memcpy(w->block[m->rank][gather], m->own, bytes);
	if (bytes == sizeof(struct oci_hello))
		((struct oci_hello *)(void *)w->block[m->rank][gather])->yama_scope = w->declares;
}

static int gather_start(void *context, const void *send, size_t bytes, void *recv)
{
	struct member *m = context;

	assert_false(m->running);
	assert_true(bytes <= BYTES && m->gather + 1 < GATHERS);
	m->gather++;
	m->bytes = bytes;
	m->own = send;
	m->to = recv;
	m->running = true;
	m->begun = false;
	return 0;
}

static int gather_test(void *context)
{
	struct member *m = context;
	struct world *w = m->world;
	bool empty = false;

	assert_true(m->running);
	/* As before a first exchange is over. */
	if (m->gather == 0 && !m->begun && dice(2))
		return 0;
	if (!m->begun && !m->told)
		publish(m, m->gather, m->bytes);
	if (!m->begun)
		m->told = false;
	m->begun = true;
	for (uint32_t r = 0; r < w->size; r++) {
		if (!w->sent[r][m->gather])
			return 0;
		empty |= !w->bytes[r][m->gather];
	}
	m->running = false;
	for (uint32_t r = 0; r < w->size && !empty; r++) {
		assert_int_equal(w->bytes[r][m->gather], m->bytes);
		memcpy(m->to + r * m->bytes, w->block[r][m->gather], m->bytes);
	}
	return empty ? -ECANCELED : 1;
}

static int withdraw(void *context)
{
	struct member *m = context;

	assert_false(m->told);
	assert_true(m->running);
	m->told = true;
	publish(m, m->gather + m->begun, 0);
	return 0;
}

static void release(void *context)
{
	((struct member *)context)->world->released++;
}

static void open_member(struct member *m, struct world *w, uint32_t rank, bool has_operation)
{
	struct oc_bootstrap bootstrap = { .rank = rank,
					  .size = w->size,
					  .context = m,
					  .allgather_start = gather_start,
					  .allgather_test = gather_test,
					  .release = release,
					  .withdraw = withdraw };

	*m = (struct member){ .world = w, .rank = rank, .gather = -1 };
	assert_int_equal(oc_team_create(&m->team, &bootstrap), 0);
	if (has_operation)
		assert_int_equal(oc_start(m->team, &(struct oc_call){ .collective = OC_BARRIER },
					  &m->request),
				 0);
}

/* Where members withdrew; READY: too late. */
static unsigned int left_in[OCI_TEAM_REFUSED + 1];

static void leave(struct member *m)
{
	struct oci_team *team = &m->team->team;

	m->withdrew = true;
	m->result = oc_team_withdraw(m->team);
	assert_true(m->result == 1 || m->result == -ECANCELED);
	left_in[m->result == 1 ? OCI_TEAM_READY :
		team->draining ? team->creation->left :
				 OCI_TEAM_COMMIT]++;
	assert_int_equal(oc_team_withdraw(m->team), m->result);
	assert_int_equal(oc_team_progress(m->team), m->result);
}

static void bring_up(struct member *members, uint32_t size)
{
	unsigned int patience = dice(60), deserters = dice(4) ? 1 : 2;
	uint32_t decided = 0;

	for (unsigned int step = 0; decided < size; step++) {
		struct member *m = &members[dice(size)];

		assert_true(step < STEPS);
		if (m->result)
			continue;
		if (step >= patience && deserters) {
			leave(m);
			deserters--;
		} else {
			m->result = oc_team_progress(m->team);
		}
		decided += m->result != 0;
	}
}

static void close_members(struct member *members, struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++) {
		struct member *m = &members[r];
		int result = 0;

		assert_int_equal(m->result == 1, members[0].result == 1);
		for (int step = 0; m->request && !result; step++) {
			assert_true(step < STEPS);
			oc_progress();
			result = oc_peek(m->request);
		}
		if (m->request)
			assert_int_equal(result, m->result == 1 ? 1 : OC_HAND_BACK);
		assert_true(m->result == 1 || *oc_team_error(m->team));
	}
	for (uint32_t r = 0; r < w->size; r++)
		assert_int_equal(oc_team_destroy(members[r].team), 0);
	for (int step = 0; w->released < w->size; step++) {
		assert_true(step < STEPS);
		oc_progress();
	}
}

/* Whoever withdrew has taken what the others sent. */
static void nothing_is_left_over(const struct member *members, const struct world *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		for (int gather = 0; gather < GATHERS; gather++)
			for (uint32_t q = 0; w->bytes[r][gather] && q < w->size; q++)
				assert_true(members[q].gather >= gather && !members[q].running);
}

static void whoever_withdraws_holds_nobody(void **state)
{
	static struct member members[RANKS];
	static struct world w;
	size_t live = SIZE_MAX;

	(void)state;
	for (unsigned int i = 0; i < SEEDS; i++) {
		bool has_operation;

		seed = i;
		has_operation = dice(2);
		memset(&w, 0, sizeof(w));
		w.size = 1 + dice(RANKS);
		w.declares = dice(2);
		for (uint32_t r = 0; r < w.size; r++)
			open_member(&members[r], &w, r, has_operation);
		bring_up(members, w.size);
		close_members(members, &w);
		nothing_is_left_over(members, &w);
		oci_team_collect();
		/* Slots are made in the first teams and stay. */
		if (i >= SEEDS / 2 && live == SIZE_MAX)
			live = oci_segment_live_bytes();
		assert_true(i < SEEDS / 2 || oci_segment_live_bytes() == live);
	}
	for (enum oci_team_state s = OCI_TEAM_HELLO; s <= OCI_TEAM_READY; s++)
		assert_true(left_in[s] > 10);
}

static void a_bootstrap_that_cannot_say_so_goes_on(void **state)
{
	static struct member members[2];
	static struct world w = { .size = 2 };

	(void)state;
	for (uint32_t r = 0; r < 2; r++) {
		open_member(&members[r], &w, r, false);
		members[r].team->team.bootstrap.withdraw = NULL;
	}
	assert_int_equal(oc_team_withdraw(members[0].team), -ENOTSUP);
	for (uint32_t r = 0; r < 2; r++)
		while (!members[r].result) {
			oc_team_progress(members[!r].team);
			members[r].result = oc_team_progress(members[r].team);
		}
	close_members(members, &w);
	assert_int_equal(members[0].result, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_withdraws_holds_nobody),
		cmocka_unit_test(a_bootstrap_that_cannot_say_so_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
