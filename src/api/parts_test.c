/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduce_scatter with parts of different sizes, on real processes, byte by byte: by every
 * algorithm, blocking and as a request, in place and not; and the tables that are refused.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "support/fork_team.h"
#include "support/test.h"

#define MOST_RANKS 5

/* x -> a x + b over bytes: associative, does not commute; 2 bytes an element. */
static void compose(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *f = in;
	uint8_t *g = inout;

	(void)context;
	for (size_t i = 0; i < 2 * count; i += 2) {
		uint8_t a = (uint8_t)(f[i] * g[i]), b = (uint8_t)(f[i] * g[i + 1] + f[i + 1]);

		g[i] = a;
		g[i + 1] = b;
	}
}

static void add_pairs(void *context, const void *in, void *inout, size_t count)
{
	const uint8_t *a = in;
	uint8_t *b = inout;

	(void)context;
	for (size_t i = 0; i < 2 * count; i++)
		b[i] = (uint8_t)(a[i] + b[i]);
}

static const struct oc_op ops[] = {
	{ .apply = add_pairs, .bytes = 2, .commutative = 1, .id = 1 },
	{ .apply = compose, .bytes = 2, .commutative = 0, .id = 2 },
};

static uint8_t byte_of(unsigned int n, uint32_t rank, size_t i)
{
	return (uint8_t)(n * 131 + rank * 29 + i + (i >> 8) * 3 + (i >> 16));
}

/* Parts of 0, 1, 2 and 3 units, from another rank on each time. */
static size_t cut(struct oc_block *parts, uint32_t size, size_t unit, unsigned int n)
{
	size_t at = 0;

	for (uint32_t r = 0; r < size; r++) {
		parts[r] = (struct oc_block){ at, (r + n) % 4 * unit };
		at += parts[r].bytes;
	}
	return at;
}

static void expect(uint8_t *want, const struct oc_block *part, uint32_t size, unsigned int n,
		   const struct oc_op *op)
{
	uint8_t *other = malloc(part->bytes + 1);

	for (uint32_t r = size; r-- > 0;) {
		uint8_t *to = r == size - 1 ? want : other;

		for (size_t i = 0; i < part->bytes; i++)
			to[i] = byte_of(n, r, part->offset + i);
		if (to == other)
			op->apply(NULL, other, want, part->bytes / op->bytes);
	}
	free(other);
}

struct job {
	struct oc_team *team;
	unsigned int calls;
	uint8_t *send, *recv, *want;
};

static int one_call(struct job *j, size_t unit, const struct oc_op *op, bool in_place)
{
	uint32_t rank = oc_team_rank(j->team), size = oc_team_size(j->team);
	unsigned int n = j->calls++;
	struct oc_block parts[MOST_RANKS];
	size_t total = cut(parts, size, unit, n), mine = parts[rank].bytes;
	size_t filled = in_place ? total : mine;
	struct oc_call call = { .collective = OC_REDUCE_SCATTER,
				.send = in_place ? OC_IN_PLACE : j->send,
				.recv = j->recv,
				.op = op,
				.recv_blocks = parts };
	struct oc_request *request;
	int result;

	for (size_t i = 0; i < total; i++)
		(in_place ? j->recv : j->send)[i] = byte_of(n, rank, i);
	memset(j->recv + filled, 0x5a, 64);
	expect(j->want, &parts[rank], size, n, op);
	if (n % 3 != 2) {
		result = oc_collective(j->team, &call);
	} else {
		result = oc_start(j->team, &call, &request);
		if (!result)
			result = oc_wait(request);
	}
	for (size_t i = 0; i < 64 && !result; i++)
		result = j->recv[filled + i] != 0x5a;
	if (!result && !memcmp(j->recv, j->want, mine))
		return 0;
	fprintf(stderr, "rank %u of %u, call %u, unit %zu%s: %d (%s)\n", rank, size, n, unit,
		in_place ? ", in place" : "", result, oc_team_error(j->team));
	return 1;
}

static int every_algorithm(struct oc_team *team, void *arg)
{
	static const size_t units[] = { 0, 2, 124, 498, 8192, 16386, 300002 };
	size_t most = 3 * MOST_RANKS * 300002 + 64;
	struct job j = { .team = team,
			 .send = malloc(most),
			 .recv = malloc(most),
			 .want = malloc(most) };
	const struct oci_algorithm *a;
	int failed = 0;

	(void)arg;
	for (unsigned int i = 0; (a = oci_algorithm(OC_REDUCE_SCATTER, i)) != NULL; i++) {
		failed |= oc_team_force(team, "reduce_scatter", a->name);
		for (unsigned int k = 0; k < 7 * 4 && !failed; k++)
			failed = one_call(&j, units[k / 4], &ops[k & 1], k & 2);
	}
	free(j.send);
	free(j.recv);
	free(j.want);
	return failed;
}

TEST(parts_of_all_sizes_by_every_algorithm)
{
	static const uint32_t ranks[] = { 1, 2, 3, 5 };

	for (unsigned int i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		assert_int_equal(oct_fork_team(ranks[i], -1, every_algorithm, NULL), 0);
}

TEST_ON_RANKS(tables_with_gaps_or_halves_of_elements_are_refused, 2)
{
	static uint8_t send[64], recv[64];
	struct oc_block gap[] = { { 0, 8 }, { 10, 8 } }, half[] = { { 0, 8 }, { 8, 7 } };
	struct oc_block huge[] = { { 0, SIZE_MAX - 1 }, { SIZE_MAX - 1, 8 } };
	struct oc_block right[] = { { 0, 8 }, { 8, 8 } };
	const struct oc_block *const wrong[] = { NULL, gap, half, huge };
	struct oc_call call = { .collective = OC_REDUCE_SCATTER,
				.send = send,
				.recv = recv,
				.op = &ops[0] };

	for (unsigned int i = 0; i < 4; i++) {
		call.recv_blocks = wrong[i];
		if (oc_collective(team, &call) != -EINVAL)
			return 1;
	}
	/* Nothing was sent: the team goes on. */
	call.recv_blocks = right;
	return oc_collective(team, &call) != 0;
}
