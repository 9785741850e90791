/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random messages between random ranks, against what matching must give: every rank knows from the
 * seed what all send, so a receive's bytes tell whether it got the message that it had to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "support/call_bytes.h"
#include "support/fork_team.h"
#include "support/mix.h"
#include "support/test.h"

#define MOST_RANKS 33
#define TAGS 3
#define MOST_PIECES 40

struct traffic {
	unsigned int phases, messages; /* of each rank in a phase */
	size_t largest;
};

static uint64_t drawn;

static size_t draw(size_t below)
{
	return (size_t)(oct_mix(++drawn) % below);
}

/* One message, as all ranks know it. */
struct sent {
	uint32_t source, destination;
	int32_t tag;
	size_t bytes;
	uint64_t seed;
};

static void make_sent(struct sent *s, unsigned int phase, uint32_t source, unsigned int i,
		      uint32_t size, size_t largest)
{
	static const size_t sizes[] = { 0,    1,    8,	   40,	  41,	 96,	97,	1000,
					8192, 8193, 16384, 16385, 33000, 70000, 300000, 1500000 };
	uint64_t x = oct_mix(((uint64_t)phase << 40) + ((uint64_t)source << 20) + i + 1);

	s->source = source;
	s->destination = (uint32_t)(oct_mix(x + 1) % size);
	s->tag = (int32_t)(oct_mix(x + 2) % TAGS);
	s->bytes = sizes[oct_mix(x + 3) % 16];
	if (s->bytes > largest)
		s->bytes = (size_t)(oct_mix(x + 4) % (largest + 1));
	s->seed = x;
}

/* Its bytes; what is done with them looks at their ends. */
__attribute__((no_sanitize("address", "undefined"))) static uint8_t *make_bytes(
	const struct sent *s)
{
	size_t count = s->bytes / sizeof(uint64_t) + 1;
	uint64_t *words = malloc(count * sizeof(*words));

	for (size_t i = 0; i < count; i++)
		words[i] = oct_mix(s->seed + i);
	return (uint8_t *)words;
}

/* A buffer, dense or in pieces with gaps between them that must stay as they are. */
struct memory {
	uint8_t *all;
	size_t room, bytes;
	struct oc_piece pieces[MOST_PIECES + 1];
	struct oc_layout layout;
	bool laid_out;
};

static void memory_make(struct memory *m, size_t bytes)
{
	size_t count = 1 + draw(MOST_PIECES - 1), at = 0, place = 0;

	m->laid_out = draw(3) == 0;
	m->bytes = bytes;
	m->room = bytes + 16 * MOST_PIECES;
	m->all = malloc(m->room);
	memset(m->all, 0xee, m->room);
	if (!m->laid_out)
		return;
	for (size_t i = 0; i < count; i++) {
		size_t piece = i + 1 == count ? bytes - at : draw((bytes - at) / 2 + 1);

		m->pieces[i] = (struct oc_piece){ at, m->all + place };
		at += piece;
		place += piece + draw(16);
	}
	m->pieces[count] = (struct oc_piece){ .at = bytes };
	m->layout = (struct oc_layout){ m->pieces, count };
}

/* Where the bytes from `at` to before `end` begin; *bytes: how many of them lie there. */
static uint8_t *memory_run(const struct memory *m, size_t at, size_t end, size_t *bytes)
{
	size_t piece = 0;

	*bytes = end - at;
	if (!m->laid_out)
		return m->all + at;
	while (m->pieces[piece + 1].at <= at)
		piece++;
	if (end > m->pieces[piece + 1].at)
		*bytes = m->pieces[piece + 1].at - at;
	return (uint8_t *)m->pieces[piece].address + (at - m->pieces[piece].at);
}

static void memory_write(const struct memory *m, const struct sent *s)
{
	uint8_t *bytes = make_bytes(s);

	for (size_t at = 0, run; at < s->bytes; at += run) {
		uint8_t *to = memory_run(m, at, s->bytes, &run);

		memcpy(to, bytes + at, run);
	}
	free(bytes);
}

/* Are the first bytes those of the message, and all others as they were made? */
static bool memory_holds(const struct memory *m, const struct sent *s)
{
	uint8_t *bytes = make_bytes(s);
	bool right = true;

	for (size_t at = 0, run; right && at < s->bytes; at += run) {
		uint8_t *got = memory_run(m, at, s->bytes, &run);

		right = !memcmp(got, bytes + at, run);
		memset(got, 0xee, run);
	}
	free(bytes);
	return right && oct_all(m->all, 0xee, m->room);
}

struct receive {
	struct memory memory;
	struct oc_status status;
	struct oc_request *request;
	uint32_t source;
	int32_t tag;
	bool blocking;
};

struct send {
	struct sent sent;
	struct memory memory;
	struct oc_request *request;
};

/* Does the message that a receive got, in posting order, follow from those before it? */
static bool verify(struct receive *r, struct sent *list, bool *got, size_t count, bool by_tag)
{
	struct sent *s = NULL;

	for (size_t i = 0; i < count && !s; i++) {
		if (got[i] || list[i].source != r->status.source ||
		    (by_tag && list[i].tag != r->status.tag))
			continue;
		s = &list[i];
		got[i] = true;
	}
	if (!s || s->tag != r->status.tag || s->bytes != r->status.bytes)
		return false;
	if ((r->source != OC_ANY_SOURCE && r->source != s->source) ||
	    (r->tag != OC_ANY_TAG && r->tag != s->tag))
		return false;
	return memory_holds(&r->memory, s);
}

static int start_send(struct oc_team *team, struct send *s)
{
	memory_make(&s->memory, s->sent.bytes);
	memory_write(&s->memory, &s->sent);
	if (s->memory.laid_out)
		return oc_isendv(team, s->sent.destination, s->sent.tag, &s->memory.layout,
				 &s->request);
	return oc_isend(team, s->sent.destination, s->sent.tag, s->memory.all, s->sent.bytes,
			&s->request);
}

static int start_receive(struct oc_team *team, struct receive *r, bool blocking)
{
	struct memory *m = &r->memory;

	r->blocking = blocking;
	if (blocking && m->laid_out)
		return oc_recvv(team, r->source, r->tag, &m->layout, &r->status);
	if (blocking)
		return oc_recv(team, r->source, r->tag, m->all, m->bytes, &r->status);
	if (m->laid_out)
		return oc_irecvv(team, r->source, r->tag, &m->layout, &r->status, &r->request);
	return oc_irecv(team, r->source, r->tag, m->all, m->bytes, &r->status, &r->request);
}

static int finish(struct send *sends, unsigned int messages, struct receive *receives, size_t count)
{
	int failed = 0;

	for (unsigned int i = 0; i < messages; i++)
		failed |= oc_wait(sends[i].request);
	for (size_t i = 0; i < count; i++) {
		if (!receives[i].blocking)
			failed |= oc_wait(receives[i].request);
	}
	return failed;
}

/* mode bit 0: from any source; bit 1: with any tag. */
static int phase(struct oc_team *team, const struct traffic *t, unsigned int number)
{
	uint32_t me = oc_team_rank(team), size = oc_team_size(team);
	unsigned int mode = number % 4, messages = t->messages;
	bool late = number / 4 % 2, blocking = number / 8 % 2;
	struct send *sends = calloc(messages, sizeof(*sends));
	struct sent *list = calloc((size_t)size * messages, sizeof(*list));
	bool *got = calloc((size_t)size * messages, sizeof(*got));
	struct receive *receives = calloc((size_t)size * messages, sizeof(*receives));
	size_t count = 0;
	int failed = 0;

	drawn = oct_mix(number * 64 + me + 1000);
	for (uint32_t r = 0; r < size; r++) {
		for (unsigned int i = 0; i < messages; i++) {
			make_sent(&list[count], number, r, i, size, t->largest);
			if (r == me)
				sends[i].sent = list[count];
			count += list[count].destination == me;
		}
	}
	for (size_t i = 0; i < count; i++) {
		receives[i].source = mode & 1 ? OC_ANY_SOURCE : list[i].source;
		receives[i].tag = mode & 2 ? OC_ANY_TAG : list[i].tag;
		/* A receive may get another message than list[i]: room for the largest. */
		memory_make(&receives[i].memory, mode ? t->largest : list[i].bytes);
	}
	for (size_t i = 0; !late && i < count; i++)
		failed |= start_receive(team, &receives[i], false);
	for (unsigned int i = 0; i < messages; i++)
		failed |= start_send(team, &sends[i]);
	if (draw(2) == 0)
		oc_progress();
	for (size_t i = 0; late && i < count; i++)
		failed |= start_receive(team, &receives[i], blocking);
	if (number % 3 == 0)
		failed |= oct_barrier(team);
	failed |= finish(sends, messages, receives, count);
	if (failed)
		fprintf(stderr, "rank %u phase %u: %d %s\n", me, number, failed,
			oc_team_error(team));
	for (size_t i = 0; !failed && i < count; i++) {
		if (verify(&receives[i], list, got, count, !(mode & 2)))
			continue;
		fprintf(stderr, "rank %u phase %u: receive %zu from %u is wrong\n", me, number, i,
			receives[i].status.source);
		failed = 1;
	}
	for (size_t i = 0; i < count; i++)
		free(receives[i].memory.all);
	for (unsigned int i = 0; i < messages; i++)
		free(sends[i].memory.all);
	free(sends);
	free(list);
	free(got);
	free(receives);
	return failed;
}

static int traffic(struct oc_team *team, void *arg)
{
	/* Every fifth has each mode, late and not, and a barrier in its middle or not, too. */
	const unsigned int step = OCT_ONE_IN == 1 ? 1 : 5;
	const struct traffic *t = arg;

	for (unsigned int i = 0; i < t->phases; i += step) {
		/* A rank that is a phase ahead would send to receives that take any. */
		if (phase(team, t, i) || oct_barrier(team))
			return 1;
	}
	return 0;
}

static void random_messages(uint32_t ranks, unsigned int phases, unsigned int messages,
			    size_t largest)
{
	struct traffic t = { phases, messages, largest };

	assert_int_equal(oct_fork_team(ranks, -1, traffic, &t), 0);
}

TEST(messages_of_one_rank_to_itself)
{
	random_messages(1, 16, 20, 1500000);
}

TEST(messages_of_two_ranks)
{
	random_messages(2, 16, 30, 1500000);
}

TEST(messages_of_three_ranks)
{
	random_messages(3, 16, 20, 300000);
}

TEST(messages_of_five_ranks)
{
	random_messages(5, 16, 12, 100000);
}

TEST(messages_of_eight_ranks)
{
	random_messages(8, 16, 12, 100000);
}

TEST(messages_of_thirty_three_ranks)
{
	random_messages(33, 16, 6, 40000);
}
