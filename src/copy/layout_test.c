/* SPDX-License-Identifier: BSD-3-Clause */
/* Places and layouts, against a byte-by-byte model; peers' layouts through the mock mechanism. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "copy/copy.h"
#include "copy/layout.h"
#include "lab/mock/mock.h"
#include "support/test.h"

#define ROOM 4096
#define SEQ 11

static uint64_t state = 20261120;

static size_t draw(size_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(state >> 33) % below;
}

/* A layout of random pieces in `memory`, in random order of address, some of them empty. */
struct sample {
	uint8_t memory[ROOM];
	struct oc_piece pieces[40];
	struct oc_layout layout;
	uint8_t *byte[ROOM]; /* where each dense byte lies */
	size_t bytes;
};

static void sample_make(struct sample *s)
{
	size_t cells = 2 + draw(30), cell = ROOM / cells, count = 0;
	bool down = draw(2);

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < cells; i++) {
		size_t length = draw(4) ? draw(cell) : 0;
		uint8_t *at = s->memory + (down ? cells - 1 - i : i) * cell;

		s->pieces[count++] = (struct oc_piece){ s->bytes, at };
		for (size_t b = 0; b < length; b++)
			s->byte[s->bytes + b] = at + b;
		s->bytes += length;
	}
	s->pieces[count].at = s->bytes;
	s->layout = (struct oc_layout){ s->pieces, count };
	for (size_t i = 0; i < ROOM; i++)
		s->memory[i] = (uint8_t)draw(256);
}

TEST(pieces_of_any_range_are_its_bytes)
{
	static struct sample s;

	for (int round = 0; round < 2000; round++) {
		struct iovec cut[OCI_LAYOUT_CUT];
		size_t at, bytes, seen = 0;
		unsigned int room = 1 + (unsigned int)draw(5), count;

		sample_make(&s);
		if (!s.bytes)
			continue;
		at = draw(s.bytes);
		bytes = draw(s.bytes - at + 1);
		count = oci_layout_cut(&s.layout, at, bytes, cut, room);
		assert_true(count <= room);
		assert_int_equal(count == 0, bytes == 0);
		for (unsigned int i = 0; i < count; i++) {
			for (size_t b = 0; b < cut[i].iov_len; b++)
				assert_ptr_equal((uint8_t *)cut[i].iov_base + b,
						 s.byte[at + seen++]);
		}
		assert_true(seen <= bytes);
		if (count < room)
			assert_int_equal(seen, bytes);
	}
}

TEST(places_copy_between_layouts_and_addresses)
{
	static struct sample from, to;
	static uint8_t dense[ROOM];
	static struct oci_team team;

	for (int round = 0; round < 2000; round++) {
		size_t bytes, a, b;

		sample_make(&from);
		sample_make(&to);
		team.layouts[SEQ % OCI_LANES] =
			(struct oci_layouts){ .send = from.layout, .recv = to.layout };
		bytes = from.bytes < to.bytes ? from.bytes : to.bytes;
		bytes = draw(bytes + 1);
		a = draw(from.bytes - bytes + 1);
		b = draw(to.bytes - bytes + 1);
		oci_place_copy(&team, SEQ, (OCI_LAID_OUT | OCI_LAID_OUT_RECV) + b, OCI_LAID_OUT + a,
			       bytes);
		oci_place_copy(&team, SEQ, (uintptr_t)dense, OCI_LAID_OUT + a, bytes);
		for (size_t i = 0; i < bytes; i++) {
			assert_int_equal(*from.byte[a + i], *to.byte[b + i]);
			assert_int_equal(*from.byte[a + i], dense[i]);
		}
	}
}

/* Two ranks in one process; rank 1 has layouts, rank 0 moves bytes by the mock mechanism. */
struct pair {
	struct oci_team team, peer;
	struct oci_member member[2];
	struct oci_peer process; /* of both */
	struct oci_region *region[2];
};

static void pair_open(struct pair *pair, const struct sample *theirs)
{
	struct oci_segment_id id;

	memset(pair, 0, sizeof(*pair));
	assert_int_equal(oci_segment_self(&id, 1), 0);
	pair->process.base = pair->process.front = oci_segment_base();
	for (int i = 0; i < 2; i++) {
		pair->region[i] = aligned_alloc(128, sizeof(struct oci_region));
		memset(pair->region[i], 0, sizeof(struct oci_region));
		pair->member[i].peer = &pair->process;
		pair->member[i].region = pair->region[i];
		pair->member[i].mechanism = OCI_MECH_CMA;
	}
	pair->team = (struct oci_team){ .size = 2, .member = pair->member };
	pair->peer.layouts[SEQ % OCI_LANES] =
		(struct oci_layouts){ .send = theirs->layout, .recv = theirs->layout };
	oci_team_lane(&pair->team, 1, SEQ)->ack.layouts =
		(uintptr_t)&pair->peer.layouts[SEQ % OCI_LANES];
}

static void pair_close(struct pair *pair)
{
	free(pair->region[0]);
	free(pair->region[1]);
}

TEST(transfers_cross_layouts_of_both_ends)
{
	static struct sample mine, theirs;
	static struct pair pair;

	oci_mock = (struct oci_mock){ .enabled = true };
	for (int round = 0; round < 1000; round++) {
		struct oci_foreign foreign = { 0 };
		struct oci_transfer t = { .seq = SEQ, .peer = 1, .foreign = &foreign };
		size_t bytes;

		sample_make(&mine);
		sample_make(&theirs);
		pair_open(&pair, &theirs);
		oci_mock.short_bytes = draw(2) ? 1 + draw(100) : 0;
		pair.team.layouts[SEQ % OCI_LANES].send = mine.layout;
		bytes = mine.bytes < theirs.bytes ? mine.bytes : theirs.bytes;
		t.direction = draw(2) ? OCI_PULL : OCI_PUSH;
		t.local = OCI_LAID_OUT;
		t.remote = OCI_LAID_OUT | (draw(2) ? OCI_LAID_OUT_RECV : 0);
		t.bytes = bytes;
		assert_int_equal(oci_transfer_run(&pair.team, &t, false), OCI_TRANSFER_DONE);
		assert_false(t.recovered);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(*mine.byte[i], *theirs.byte[i]);
		oci_foreign_free(&foreign);
		pair_close(&pair);
	}
	oci_mock = (struct oci_mock){ 0 };
}

TEST(a_layout_that_cannot_be_read_is_an_error)
{
	static struct sample theirs;
	static struct pair pair;
	struct oci_foreign foreign = { 0 };
	const struct oc_layout *layout;

	sample_make(&theirs);
	pair_open(&pair, &theirs);
	oci_mock = (struct oci_mock){ .enabled = true, .fail_every = 2, .fail_with = EPERM };
	/* The card is read, its list is not. */
	assert_int_equal(oci_foreign_get(&pair.team, &foreign, 1, SEQ, OCI_LAID_OUT, &layout),
			 -EPERM);
	oci_mock.fail_every = 0;
	assert_int_equal(oci_foreign_get(&pair.team, &foreign, 1, SEQ, OCI_LAID_OUT, &layout), 0);
	assert_int_equal(layout->pieces[layout->count].at, theirs.bytes);
	oci_foreign_free(&foreign);
	pair_close(&pair);
}
