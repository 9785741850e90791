/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "copy/kmod.h"
#include "copy/layout.h"
#include "copy/map.h"
#include "copy/shm.h"

/* What one copy takes of the front of a transfer. */
struct front {
	struct iovec local[OCI_LAYOUT_CUT], remote[OCI_LAYOUT_CUT];
	unsigned int locals, remotes;
};

/* 0 or -errno. Where one list is the shorter, the copy ends with it. */
static int take_front(struct oci_team *team, const struct oci_transfer *t, struct front *f)
{
	size_t bytes = t->bytes < OCI_COPY_PIECE_BYTES ? t->bytes : OCI_COPY_PIECE_BYTES;
	const struct oc_layout *mine = t->mine, *theirs = t->theirs;
	int error = 0;

	if (oci_is_laid_out(t->local))
		mine = oci_place_layout(team, t->seq, t->local);
	if (oci_is_laid_out(t->remote))
		error = oci_foreign_get(team, t->foreign, t->peer, t->seq, t->remote, &theirs);
	if (error)
		return error;
	f->locals = oci_place_cut(mine, t->local, bytes, f->local, OCI_LAYOUT_CUT);
	bytes = oci_pieces_bytes(f->local, f->locals);
	f->remotes = oci_place_cut(theirs, t->remote, bytes, f->remote, OCI_LAYOUT_CUT);
	return 0;
}

/* Is the peer's buffer the operation's still, before a copy and after it? */
static bool begin_copy(struct oci_team *team, const struct oci_transfer *t)
{
	return !t->seq || t->direction == OCI_PULL || oci_write_begin(team, t->seq, t->peer);
}

static bool end_copy(struct oci_team *team, const struct oci_transfer *t)
{
	if (!t->seq)
		return true;
	if (t->direction == OCI_PULL)
		return oci_read_holds(team, t->peer);
	oci_write_end(team, t->seq);
	return true;
}

static ssize_t copy_by(unsigned int mechanism, const struct oci_transfer *t,
		       const struct oci_member *member, const struct front *f)
{
	const struct oci_copy *copy = oci_copy_mechanism(mechanism);
	struct oci_end end = { member->pid, oci_peer_registrations(member->peer), t->whole,
			       t->by_cpu };
	int error;

	if (t->never_by_pair || !copy->pull)
		return -EOPNOTSUPP;
	/* A cookie names its process, a number may be another's by now. */
	error = mechanism == OCI_MECH_KMOD ? 0 : oci_peer_check(member->peer);
	return error ?:
		       (t->direction == OCI_PULL ? copy->pull : copy->push)(
			       &end, f->local, f->locals, f->remote, f->remotes);
}

/* By the mechanism that the pair agreed on, or by the one instead, which *mechanism is then. */
static ssize_t copy_by_pair(const struct oci_transfer *t, const struct oci_member *member,
			    const struct front *f, unsigned int *mechanism)
{
	ssize_t moved;

	*mechanism = member->mechanism;
	moved = copy_by(*mechanism, t, member, f);
	if (moved > 0 || moved == -EINTR || *mechanism != OCI_MECH_KMOD)
		return moved;
	oci_kmod_missed();
	if (member->instead == *mechanism)
		return moved;
	*mechanism = member->instead;
	return copy_by(*mechanism, t, member, f);
}

static void advance(struct oci_transfer *t, size_t bytes, unsigned int mechanism)
{
	t->moved_by |= 1u << mechanism;
	t->local += bytes;
	t->remote += bytes;
	t->bytes -= bytes;
}

/* Time enough for one who waits to look at its operation again. */
#define LOOK_NS 1000

/* Does the peer look at this operation now and then? At first it is given time to show that. */
static bool is_there(const struct oci_team *team, struct oci_transfer *t)
{
	const uint64_t *looks = &oci_team_lane(team, t->peer, t->seq)->ack.looks;
	uint64_t seen = t->seen, until;

	/* Relaxed: a hint. */
	t->seen = oci_load_relaxed(looks);
	if (seen)
		return t->seen != seen;
	for (until = oci_clock_ns() + LOOK_NS; oci_clock_ns() < until; oci_cpu_relax())
		if (oci_load_relaxed(looks) != t->seen)
			return true;
	return false;
}

/* The peer did not come for so many looks in a row: what remains is copied without it. */
static bool is_given_up(struct oci_team *team, struct oci_transfer *t)
{
	size_t done;

	if (is_there(team, t)) {
		t->missed = 0;
		return false;
	}
	if (++t->missed < t->patience)
		return false;
	t->missed = 0;
	if (!t->by_shm)
		return true;
	done = oci_shm_withdraw(team, t);
	if (done == SIZE_MAX)
		return false;
	t->by_shm = false;
	if (done)
		advance(t, done, OCI_MECH_SHM);
	return true;
}

static int run_by_shm(struct oci_team *team, struct oci_transfer *t)
{
	uint64_t turn = t->turn;
	int error;

	if (!t->by_shm) {
		/* Nobody is asked before it has shown itself. */
		if (t->patience && is_given_up(team, t))
			return -EAGAIN;
		if (t->patience && t->missed)
			return OCI_TRANSFER_BLOCKED;
		error = oci_shm_request(team, t);
		if (error)
			return error;
		t->moved_by |= 1u << OCI_MECH_SHM;
		if (t->never_by_pair && !t->never_mapped)
			oci_map_missed(team, t->peer, (ssize_t)t->bytes);
	}
	if (oci_shm_step(team, t))
		return OCI_TRANSFER_DONE;
	if (t->turn != turn)
		t->missed = 0;
	return t->patience && is_given_up(team, t) ? -EAGAIN : OCI_TRANSFER_BLOCKED;
}

/* Then nobody needs to know the peer's pieces here. */
static bool is_for_shm(const struct oci_team *team, const struct oci_transfer *t)
{
	return t->by_shm || (t->never_by_pair && !t->alone &&
			     (t->never_mapped || !oci_mapping_get(team->member[t->peer].peer)));
}

static int run(struct oci_team *team, struct oci_transfer *t, bool polled)
{
	const struct oci_member *member = &team->member[t->peer];
	struct front f;

	while (t->bytes && !is_for_shm(team, t)) {
		ssize_t moved = take_front(team, t, &f);
		unsigned int mechanism = OCI_MECH_MAP;

		if (!moved && !begin_copy(team, t))
			return -ECANCELED;
		if (!moved) {
			if (!t->never_mapped)
				moved = (ssize_t)oci_map_copy(team, t->peer, t->direction, f.local,
							      f.locals, f.remote, f.remotes,
							      t->whole);
			if (moved <= 0) {
				moved = copy_by_pair(t, member, &f, &mechanism);
				if (!t->never_mapped)
					oci_map_missed(team, t->peer, moved);
			}
			if (!end_copy(team, t))
				return -ECANCELED;
		}
		if (moved > 0) {
			advance(t, (size_t)moved, mechanism);
			if (polled && t->bytes)
				return OCI_TRANSFER_BLOCKED;
			continue;
		}
		if (moved == -EINTR)
			continue;
		if (moved == -ECANCELED || t->alone)
			return moved ? (int)moved : -EFAULT;
		if (!t->never_by_pair &&
		    (moved != -EOPNOTSUPP || member->mechanism != OCI_MECH_SHM)) {
			/* The pair agreed on this mechanism, so the failure is this buffer's (a
			 * page that the kernel does not read for us) or came later (lost
			 * permission). */
			oci_debug("single copy with rank %u failed (%s): it copies for us", t->peer,
				  strerror(moved ? (int)-moved : EFAULT));
			t->recovered = true;
		}
		break;
	}
	return t->bytes ? run_by_shm(team, t) : OCI_TRANSFER_DONE;
}

int oci_transfer_run(struct oci_team *team, struct oci_transfer *t, bool polled)
{
	int result = run(team, t, polled);

	if (result != -EAGAIN || !t->never_by_pair)
		return result;
	t->never_by_pair = false;
	t->patience = 0;
	return run(team, t, polled);
}

void oci_transfer_awaited(struct oci_team *team, const struct oci_transfer *t,
			  struct oci_awaited *awaited)
{
	struct oci_lane *lane = oci_team_lane(team, team->rank, t->seq);

	awaited->word = &lane->aux.served;
	awaited->waiters = NULL;
	awaited->peer = t->peer;
	/* The next turn that moves us on. */
	if (t->direction == OCI_PULL)
		awaited->target = oci_shm_served(t, t->turn + 1);
	else
		awaited->target = oci_shm_served(t, t->turn < t->turns ? t->turn - 1 : t->turns);
}
