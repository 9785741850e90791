/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "copy/layout.h"
#include "copy/map.h"
#include "copy/shm.h"

ssize_t oci_copy_by_pair(const struct oci_team *team, uint32_t peer, enum oci_direction direction,
			 const struct iovec *local, unsigned int locals, const struct iovec *remote,
			 unsigned int remotes)
{
	const struct oci_member *member = &team->member[peer];
	const struct oci_copy *copy = oci_copy_mechanism(member->mechanism);
	int error;

	if (!copy->pull)
		return -EOPNOTSUPP;
	error = oci_peer_check(member->peer);
	if (error)
		return error;
	return (direction == OCI_PULL ? copy->pull : copy->push)(member->pid, local, locals, remote,
								 remotes);
}

ssize_t oci_copy_places(struct oci_team *team, const struct oci_transfer *t, size_t bytes,
			enum oci_mechanism *by)
{
	struct iovec local[OCI_LAYOUT_CUT], remote[OCI_LAYOUT_CUT];
	unsigned int locals = 1, remotes = 1;
	const struct oc_layout *layout;
	ssize_t moved;
	int error;

	locals = oci_place_cut(team, t->seq, t->local, bytes, local, OCI_LAYOUT_CUT);
	bytes = oci_pieces_bytes(local, locals);
	if (oci_is_laid_out(t->remote)) {
		error = oci_foreign_get(team, t->foreign, t->peer, t->seq, t->remote, &layout);
		if (error)
			return error;
		remotes = oci_layout_cut(layout, t->remote & OCI_LAID_OUT_OFFSET, bytes, remote,
					 OCI_LAYOUT_CUT);
	} else {
		remote[0] = (struct iovec){ (void *)(uintptr_t)t->remote, bytes };
	}
	if (t->direction == OCI_PUSH && !oci_write_begin(team, t->seq, t->peer))
		return -ECANCELED;
	/* Where one list is the shorter, the copy ends with it. */
	moved = (ssize_t)oci_map_copy(team, t->peer, t->direction, local, locals, remote, remotes,
				      t->whole);
	*by = moved ? OCI_MECH_MAP : team->member[t->peer].mechanism;
	if (!moved)
		moved = oci_copy_by_pair(team, t->peer, t->direction, local, locals, remote,
					 remotes);
	if (*by != OCI_MECH_MAP)
		oci_map_missed(team, t->peer, moved);
	if (t->direction == OCI_PUSH)
		oci_write_end(team, t->seq);
	else if (!oci_read_holds(team, t->peer))
		return -ECANCELED;
	return moved;
}

/* One single copy; the transfer moves on by what was copied. Bytes moved, or -errno. */
static ssize_t single_copy(struct oci_team *team, struct oci_transfer *t)
{
	size_t bytes = t->bytes < OCI_COPY_PIECE_BYTES ? t->bytes : OCI_COPY_PIECE_BYTES;
	enum oci_mechanism by;
	ssize_t moved = oci_copy_places(team, t, bytes, &by);

	if (moved == 0)
		return -EFAULT;
	if (moved > 0) {
		t->moved_by |= 1u << by;
		t->local += (uint64_t)moved;
		t->remote += (uint64_t)moved;
		t->bytes -= (size_t)moved;
	}
	return moved;
}

int oci_transfer_run(struct oci_team *team, struct oci_transfer *t, bool polled, bool *recovered)
{
	int error;

	while (t->bytes && !t->by_shm) {
		ssize_t moved = single_copy(team, t);

		if (moved > 0 && t->bytes && polled)
			return OCI_TRANSFER_BLOCKED;
		if (moved >= 0 || moved == -EINTR)
			continue;
		if (moved == -ECANCELED)
			return (int)moved;
		/* Not mapped, and no single copy was agreed on. */
		if (moved == -EOPNOTSUPP && team->member[t->peer].mechanism == OCI_MECH_SHM)
			break;
		/* The pair agreed on this mechanism, so the failure is this buffer's (a page that
		 * the kernel does not read for us) or came later (lost permission). */
		oci_debug("single copy with rank %u failed (%s): it copies for us", t->peer,
			  strerror((int)-moved));
		*recovered = true;
		break;
	}
	if (!t->bytes)
		return OCI_TRANSFER_DONE;
	if (!t->by_shm) {
		error = oci_shm_request(team, t);
		if (error)
			return error;
		t->moved_by |= 1u << OCI_MECH_SHM;
	}
	return oci_shm_step(team, t) ? OCI_TRANSFER_DONE : OCI_TRANSFER_BLOCKED;
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
