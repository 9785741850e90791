/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copy in, copy out: the mechanism that always works, and into which every transfer can fall.
 *
 * The rank that runs a transfer (the requester) cannot reach the peer's buffer, so it asks the
 * peer to copy between that buffer and a slot of the requester, in turns of half a slot:
 *
 *   requester, in its ACK line           peer, in the requester's auxiliary line
 *   request        the request's number
 *   request_*      its terms
 *   request_turns  halves emptied/filled  served  halves filled (pull) or emptied (push)
 *
 * Each word has one writer, but for what follows. `served` carries the request's number within the
 * operation above the count, so nothing is reset while a slow peer may still look at an earlier
 * request. Turn i uses half i % 2, so a copy in overlaps with a copy out. The peer serves requests
 * from inside any wait of the same operation; it does come to one, because the owner of a posted
 * address waits for everyone who may touch it before it ends.
 *
 * The peer of an operation that is polled may compute first. Its requester may withdraw a request
 * while the peer does not copy: both sides say what they do by exchanging `served`, the peer that
 * it copies (BUSY), the requester that it has withdrawn (WITHDRAWN), so one of them finds the
 * other's word. A value is not met again before the numbers of 65,535 more requests of the
 * operation.
 */

#include "copy/shm.h"
#include "copy/layout.h"

#define TURN_BYTES ((size_t)OCI_SLOT_BYTES / 2)
/* 38 bits count turns: 2^53 bytes in one request. */
#define SERVED_SHIFT 40
#define SERVED_TURN 4
#define BUSY UINT64_C(1)
#define WITHDRAWN UINT64_C(2)

/* In the word of whom a request names. */
#define WHOM_SHIFT 2
#define WHOM_MAY_WITHDRAW UINT64_C(2)
#define WHOM_PUSH UINT64_C(1)

const struct oci_copy oci_copy_shm = {
	.name = "shm",
	.what = "copy in, copy out through shared memory; needs no permission",
};

static uint64_t turns_of(size_t bytes)
{
	return (bytes + TURN_BYTES - 1) / TURN_BYTES;
}

uint64_t oci_shm_served(const struct oci_transfer *t, uint64_t turns)
{
	return (t->request & (OCI_STEPS - 1)) << SERVED_SHIFT | turns * SERVED_TURN;
}

static uint64_t whom_of(const struct oci_transfer *t)
{
	return (uint64_t)t->peer << WHOM_SHIFT | (t->patience ? WHOM_MAY_WITHDRAW : 0) |
	       (t->direction == OCI_PUSH ? WHOM_PUSH : 0);
}

/* Turns served of the request with this number, by what the word says. */
static uint64_t turns_served(uint64_t word, uint64_t number)
{
	number &= OCI_STEPS - 1;
	return word >> SERVED_SHIFT == number ? (word - (number << SERVED_SHIFT)) / SERVED_TURN : 0;
}

int oci_shm_request(struct oci_team *team, struct oci_transfer *t)
{
	struct oci_lane *lane = oci_team_lane(team, team->rank, t->seq);
	struct oci_ack_line *ack = &lane->ack;
	uint64_t base = t->seq * OCI_STEPS;
	uint64_t last = oci_load_relaxed(&ack->request);
	int64_t slot;

	/* An earlier request of the same operation left its slot to us. */
	slot = last > base ? (int64_t)ack->request_slot :
			     oci_slot_acquire(team, t->seq, OCI_SLOT_BYTES, OCI_SLOT_BYTES);
	if (slot < 0)
		return (int)slot;
	if (last <= base)
		oci_store_relaxed(&lane->aux.served, 0);
	/* More requests than an operation has numbers for begin anew at 1: each is over, on both
	 * sides, when the next one is made. */
	if (last <= base)
		t->request = base + 1;
	else
		t->request = base + 1 + (last - base) % (OCI_STEPS - 1);
	t->turns = turns_of(t->bytes);
	t->turn = 0;
	/* Invalid while the terms change. Release on each: who sees a new term sees that the old
	 * number is gone. Pairs with the acquires in request_read(). */
	oci_store_relaxed(&ack->request, 0);
	/* Numbers begin anew: what the last request left there is above all targets of this one,
	 * so a peer that dies would seem to have served it. Release: as of the terms. */
	if (t->request < last)
		oci_store_release(&lane->aux.served, 0);
	oci_store_release(&ack->request_slot, (uint64_t)slot);
	oci_store_release(&ack->request_address, t->remote);
	oci_store_release(&ack->request_bytes, t->bytes);
	oci_store_release(&ack->request_whom, whom_of(t));
	oci_store_release(&ack->request_turns, 0);
	/* Release: the terms come first. Pairs with the acquire in request_read(). */
	oci_store_release(&ack->request, t->request);
	t->by_shm = true;
	return 0;
}

/* One turn of `bytes` in all, between a place of mine and a half of the slot. */
static void copy_turn(const struct oci_team *team, uint64_t seq, uint64_t place, uint8_t *slot,
		      size_t bytes, uint64_t turn, bool into_slot)
{
	uint64_t mine = place + turn * TURN_BYTES;
	uint64_t half = (uintptr_t)(slot + turn % 2 * TURN_BYTES);
	size_t rest = bytes - turn * TURN_BYTES;

	oci_place_copy(team, seq, into_slot ? half : mine, into_slot ? mine : half,
		       rest < TURN_BYTES ? rest : TURN_BYTES);
}

/* May the side that fills the slot, or the one that empties it, begin this turn, when the other has
 * done so many? */
static bool has_turn(uint64_t turn, uint64_t others, bool fills)
{
	return turn < others + (fills ? 2 : 0);
}

/* My side of a helped transfer, as far as it goes. True when it is complete. */
bool oci_shm_step(struct oci_team *team, struct oci_transfer *t)
{
	struct oci_lane *lane = oci_team_lane(team, team->rank, t->seq);
	uint8_t *slot = (uint8_t *)oci_segment_base() + lane->ack.request_slot;
	bool fills = t->direction == OCI_PUSH;
	/* Acquire: the peer's copy of those turns is done. Pairs with serve_peer()'s release. */
	uint64_t served = turns_served(oci_load_acquire(&lane->aux.served), t->request);

	for (; t->turn < t->turns; t->turn++) {
		if (!has_turn(t->turn, served, fills))
			return false;
		copy_turn(team, t->seq, t->local, slot, t->bytes, t->turn, fills);
		/* Release: the half is emptied (or filled). Pairs with serve_peer()'s acquire. */
		oci_store_release(&lane->ack.request_turns, t->turn + 1);
	}
	return !fills || served == t->turns;
}

size_t oci_shm_withdraw(struct oci_team *team, const struct oci_transfer *t)
{
	struct oci_lane *lane = oci_team_lane(team, team->rank, t->seq);
	/* Acquire: as in oci_shm_step(), for what was served and the slot that is ours again. */
	uint64_t word = oci_load_acquire(&lane->aux.served);
	size_t done;

	/* Relaxed: nothing is told but the word itself; what it stood for was acquired above. Pairs
	 * with claim(), which fails then. */
	if (word & BUSY || !__atomic_compare_exchange_n(
				   &lane->aux.served, &word,
				   oci_shm_served(t, turns_served(word, t->request)) | WITHDRAWN,
				   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return SIZE_MAX;
	done = t->direction == OCI_PULL ? t->turn : turns_served(word, t->request);
	return done * TURN_BYTES < t->bytes ? done * TURN_BYTES : t->bytes;
}

/* A peer's request as it stands: a consistent copy of its terms and of what is served of it. */
struct request {
	uint64_t number, slot, address, bytes, whom, served;
};

/*
 * A rank looks at requests that it has long served, too, and may be stopped at any instruction
 * here: by then the requester may have gone on to its next request, of another rank. So all that
 * is believed is read before the number is read again and is still the same: then the request was
 * this one throughout, and the word `served` nobody's but that of the rank that it names.
 */
static bool request_read(const struct oci_lane *lane, uint64_t seq, struct request *r)
{
	const struct oci_ack_line *ack = &lane->ack;

	/* Acquire: pairs with the release in oci_shm_request(). */
	r->number = oci_load_acquire(&ack->request);
	if (r->number >> OCI_STEP_BITS != seq || !(r->number & (OCI_STEPS - 1)))
		return false;
	/* Acquire, so that the number is read again after the terms: pairs with the releases in
	 * oci_shm_request(). Once the terms are known to belong to an unfinished request that names
	 * us, it cannot change, as its owner waits for us, but by being withdrawn: claim(). */
	r->slot = oci_load_acquire(&ack->request_slot);
	r->address = oci_load_acquire(&ack->request_address);
	r->bytes = oci_load_acquire(&ack->request_bytes);
	r->whom = oci_load_acquire(&ack->request_whom);
	/* Acquire: what the rank of a later request wrote here came after that number, which is
	 * then read below. Pairs with the release in serve_peer(). */
	r->served = oci_load_acquire(&lane->aux.served);
	return oci_load_relaxed(&ack->request) == r->number;
}

/*
 * Before the turns of a request that may be withdrawn: false if it was. Acquire, so that no copy of
 * ours begins before; pairs with the exchange in oci_shm_withdraw().
 */
static bool claim(struct oci_lane *lane, uint64_t was, uint64_t turns)
{
	return __atomic_compare_exchange_n(&lane->aux.served, &was, turns | BUSY, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool serve_peer(struct oci_team *team, uint32_t rank, uint64_t seq)
{
	struct oci_lane *lane = oci_team_lane(team, rank, seq);
	uint64_t none, turn, turns, last, their_turns;
	struct request r;
	bool fills;

	if (!request_read(lane, seq, &r) || r.whom >> WHOM_SHIFT != team->rank)
		return false;
	turns = turns_of(r.bytes);
	fills = !(r.whom & WHOM_PUSH); /* a pull of theirs */
	none = (r.number & (OCI_STEPS - 1)) << SERVED_SHIFT;
	/* Our own last value, or another request's: then none of this one is served. */
	turn = turns_served(r.served, r.number);
	if (turn >= turns)
		return false; /* what follows may be about another request by now */
	if (r.served >> SERVED_SHIFT == none >> SERVED_SHIFT && r.served & WITHDRAWN)
		return false;
	/* Acquire: pairs with the release in oci_shm_step(). */
	their_turns = oci_load_acquire(&lane->ack.request_turns);
	for (last = turn; last < turns && has_turn(last, their_turns, fills);)
		last++;
	if (last == turn)
		return false;
	if (r.whom & WHOM_MAY_WITHDRAW && !claim(lane, r.served, none + turn * SERVED_TURN))
		return false;
	while (turn < last) {
		copy_turn(team, seq, r.address, team->member[rank].peer->base + r.slot, r.bytes,
			  turn, fills);
		turn++;
		/* Release: the copy comes first. Pairs with the acquires in oci_shm_step(),
		 * oci_shm_withdraw() and request_read(). Busy until the last. */
		oci_store_release(&lane->aux.served,
				  none + turn * SERVED_TURN +
					  (r.whom & WHOM_MAY_WITHDRAW && turn < last ? BUSY : 0));
	}
	return true;
}

bool oci_shm_serve(struct oci_team *team, uint64_t seq)
{
	bool moved = false;

	for (uint32_t rank = 0; rank < team->size; rank++) {
		if (rank != team->rank)
			moved |= serve_peer(team, rank, seq);
	}
	return moved;
}
