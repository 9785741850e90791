/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers after a failure.
 *
 * Peers know the addresses of an operation's buffers and copy from and to them by themselves. When
 * it fails on one rank, because a third one died perhaps, the call returns there and the program
 * does with the buffer what it likes, while others have not noticed yet. So the rank that fails
 * poisons its word first and then waits for writers; a writer says which rank it writes to, then
 * looks at that rank's poison, and writes only where there is none. A reader looks afterwards, and
 * does not believe what it has read if there is one.
 *
 * A writer that is stopped in the middle of a copy (a debugger, SIGSTOP) holds the failing rank's
 * call for as long: it would write on when it goes on. One that is dead holds nobody.
 *
 * Both words are of their owner's lines, so nothing here needs a reset: a team fails once, and a
 * lane has one operation at a time.
 */
#include "os/os.h"
#include "team/team.h"

static uint64_t *poison_of(const struct oci_team *team, uint32_t peer)
{
	return &team->member[peer].region->progress.poison;
}

bool oci_write_begin(struct oci_team *team, uint64_t seq, uint32_t peer)
{
	uint64_t *writing = &oci_team_lane(team, team->rank, seq)->ack.writing;

	/* Sequentially consistent, both, as are the store in oci_team_fail() and the load in
	 * oci_team_revoke() of the peer, which come in the other order: one of the two sees the
	 * other's word. */
	__atomic_store_n(writing, (uint64_t)peer + 1, __ATOMIC_SEQ_CST);
	if (__builtin_expect(!__atomic_load_n(poison_of(team, peer), __ATOMIC_SEQ_CST), 1))
		return true;
	oci_write_end(team, seq);
	return false;
}

void oci_write_end(struct oci_team *team, uint64_t seq)
{
	/* Release: what was written comes first. Pairs with the load in oci_team_revoke(). */
	oci_store_release(&oci_team_lane(team, team->rank, seq)->ack.writing, 0);
}

bool oci_read_holds(const struct oci_team *team, uint32_t peer)
{
	oci_loads_in_order();
	/* Acquire: pairs with the store in oci_team_fail(), which comes before the peer's call
	 * returns, and so before its program writes to what we have read. */
	return !oci_load_acquire(poison_of(team, peer));
}

void oci_team_revoke(struct oci_team *team, uint64_t seq)
{
	for (uint32_t rank = 0; rank < team->size; rank++) {
		const uint64_t *writing = &oci_team_lane(team, rank, seq)->ack.writing;

		if (rank == team->rank)
			continue;
		/* Sequentially consistent: see oci_write_begin(). One copy at a time is under way,
		 * of OCI_COPY_PIECE_BYTES at most. */
		while (__atomic_load_n(writing, __ATOMIC_SEQ_CST) == (uint64_t)team->rank + 1 &&
		       !oci_peer_dead(team->member[rank].peer))
			oci_os_yield();
	}
}
