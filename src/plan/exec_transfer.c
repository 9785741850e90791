/* SPDX-License-Identifier: BSD-3-Clause */
/* The user executor's single copies: peers' buffers, and transfers under way. */
#include <errno.h>
#include <stdlib.h>

#include "copy/layout.h"
#include "plan/exec.h"

int oci_exec_remote(struct oci_exec *x, uint32_t peer, const struct oci_range *range, size_t bytes,
		    uint64_t *address)
{
	const struct oci_lane *lane = oci_team_lane(x->team, peer, x->seq);
	size_t offset, length;

	oci_range_eval(range, &x->params, x->segment, &offset, &length);
	/* A zero-length buffer may be NULL; nothing will be touched. */
	*address = lane->post.address[range->buf] + offset;
	if (length < bytes)
		return oci_team_fail(x->team, -EPROTO, -1,
				     "a plan of %s moves %zu bytes where rank %u has %zu: this is "
				     "an error in onecopy, please report it",
				     oci_collective_name(x->record.collective), bytes,
				     oci_team_name(x->team, peer), length);
	return 0;
}

uint8_t oci_exec_moved_by(uint32_t mechanisms)
{
	static const uint8_t moved[OCI_MECHANISMS] = { [OCI_MECH_CMA] = OCI_MOVED_CMA,
						       [OCI_MECH_KMOD] = OCI_MOVED_KMOD,
						       [OCI_MECH_SHM] = OCI_MOVED_SHM,
						       [OCI_MECH_MAP] = OCI_MOVED_MAP };
	uint8_t all = 0;

	for (; mechanisms; mechanisms &= mechanisms - 1)
		all |= moved[__builtin_ctz(mechanisms)];
	return all;
}

struct oci_foreign *oci_exec_foreign(struct oci_exec *x, uint64_t place)
{
	if (oci_is_laid_out(place) && !x->foreign)
		x->foreign = calloc(1, sizeof(*x->foreign));
	return x->foreign;
}

int oci_exec_gave_up(struct oci_exec *x, uint32_t peer)
{
	struct oci_awaited never = { .word = &x->team->own->progress.done,
				     .target = UINT64_MAX,
				     .peer = peer };

	return oci_team_look(x->team, &never);
}

static bool is_near(const void *team, uint32_t rank)
{
	return oci_near_peer(team, rank);
}

/*
 * The mix of paper 004, section 4.2: what an engine copies does not fill the caches, so they serve
 * the CPU's copies longer. Engines get those of ranks that share no cache first: as soon as the
 * caches do not hold all of a call. The others are the CPU's until they alone are too much.
 */
size_t oci_exec_by_cpu(struct oci_exec *x, uint32_t peer, size_t bytes)
{
	size_t load;

	/* Nobody else asks. */
	if (x->team->member[peer].mechanism != OCI_MECH_KMOD || !oci_registrations_channels())
		return bytes;
	if (!x->is_loaded) {
		x->load = oci_plan_load(x->plan, &x->params, is_near, x->team);
		x->is_loaded = true;
	}
	load = oci_near_peer(x->team, peer) ? x->load.near : x->load.all;
	/* What this rank helps others with is not in it. */
	return load > bytes ? load : bytes;
}

int oci_exec_transfer(struct oci_exec *x, uint32_t peer, enum oci_direction direction,
		      uint8_t *local, uint64_t remote, size_t bytes, size_t whole)
{
	int result;

	if (!x->in_transfer) {
		x->transfer = (struct oci_transfer){ .seq = x->seq,
						     .peer = peer,
						     .direction = direction,
						     .local = (uintptr_t)local,
						     .remote = remote,
						     .bytes = bytes,
						     .whole = whole };
		x->transfer.by_cpu = oci_exec_by_cpu(x, peer, whole);
		x->transfer.foreign = oci_exec_foreign(x, remote);
		if (!x->in_share)
			oci_exec_way_choose(x, peer, remote, bytes);
		x->transfer.never_by_pair = x->way.slots;
		if (x->way.slots && x->polled)
			x->transfer.patience = oci_exec_way_patience(x, remote, bytes);
		x->in_transfer = true;
	}
	result = oci_transfer_run(x->team, &x->transfer, x->polled);
	x->moved |= oci_exec_moved_by(x->transfer.moved_by);
	if (result == OCI_TRANSFER_DONE) {
		if (x->way.tries)
			x->way.gone |= x->transfer.moved_by;
		x->recovered += x->transfer.recovered;
		x->in_transfer = false;
		return 1;
	}
	if (result == -ECANCELED)
		return oci_exec_gave_up(x, peer);
	if (result < 0)
		return oci_exec_no_slot(x, result);
	oci_transfer_awaited(x->team, &x->transfer, &x->awaited);
	return 0;
}
