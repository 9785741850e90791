/* SPDX-License-Identifier: BSD-3-Clause */
/* Large copies go the way that the team has learned to be quicker: team/learned.h. */
#include "base/clock.h"
#include "base/options.h"
#include "copy/map.h"
#include "plan/exec.h"
#include "team/learned.h"

static uint8_t *word_at(const struct oci_exec *x, unsigned int index)
{
	return &x->team->member[0].region->card.ways[index];
}

/*
 * Only in blocking calls: the owner of the buffer waits in the call then, so it can help. Where
 * ranks outnumber the CPUs it may not run. All ranks of a team agree about all of this but the
 * pair's mechanism, and of that both ends; and but for what is mapped, which is copied by whoever
 * has it mapped, and which no slot would make quicker.
 */
static bool may_choose(const struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes)
{
	return bytes >= OCI_LEARNED_LEAST_BYTES && !x->polled && !x->team->oversubscribed &&
	       x->team->member[peer].mechanism == OCI_MECH_CMA &&
	       oci_options()->mechanism == OCI_WAY_AUTO &&
	       !oci_map_covers(x->team, peer, remote, bytes);
}

void oci_exec_way_choose(struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes)
{
	unsigned int index = oci_learned_index(x->record.collective, bytes);

	x->way.slots = x->way.tries = false;
	if (!may_choose(x, peer, remote, bytes))
		return;
	x->way.slots =
		oci_learned_way(&x->team->learned[index], word_at(x, index), x->seq, &x->way.tries);
	if (!x->way.tries)
		return;
	if (!x->way_tried) {
		x->way_tried = true;
		x->way.index = (uint8_t)index;
		x->way.gone = 0;
		x->way.bytes = 0;
		x->way.since = oci_clock_ns();
	}
	/* Copies of another length go their own way meanwhile. */
	if (x->way.index == index)
		x->way.bytes += bytes;
}

void oci_exec_way_tell(const struct oci_exec *x)
{
	uint8_t *word = word_at(x, x->way.index);

	/* Not of what was mapped in part. */
	if (!(x->way.gone & ~(1u << OCI_MECH_SHM | 1u << OCI_MECH_CMA)))
		oci_learned_tell(&x->team->learned[x->way.index], word,
				 oci_learned_look(word, x->seq), x->way.bytes,
				 oci_clock_ns() - x->way.since);
}

bool oci_exec_way_by_slots(const struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes)
{
	unsigned int index = oci_learned_index(x->record.collective, bytes);

	return may_choose(x, peer, remote, bytes) && oci_learned_look(word_at(x, index), x->seq);
}
