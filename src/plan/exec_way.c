/* SPDX-License-Identifier: BSD-3-Clause */
/* Large copies go the way that the team has learned to be quicker: team/learned.h. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/options.h"
#include "copy/layout.h"
#include "copy/map.h"
#include "plan/exec.h"
#include "team/learned.h"

/* A program that comes to its operation as often as that waits for it. */
#define AWAY_NS 10000
/* Looks of a waiting rank, of 0.2 to 0.5 us each, in which a single copy of so many bytes would be
 * done (EPYC, 2026-11-25); where that was measured, in twice the time. A peer that comes back
 * during that copy waits for all of it ("Giving up too early" in docs/results/experiments.md). With
 * gaps, whose pieces the kernel looks up one by one, such a copy takes longer. */
#define BYTES_PER_LOOK 2048
#define GAPS_TAKE_LONGER 4
#define LOOK_PS 300000

static unsigned int index_of(const struct oci_exec *x, size_t bytes)
{
	return oci_learned_index(x->record.collective, bytes, x->polled);
}

static uint8_t *word_at(const struct oci_exec *x, unsigned int index)
{
	return &x->team->member[0].region->card.ways[index];
}

/*
 * Where ranks outnumber the CPUs, the owner of the buffer may not run, so it cannot help. All ranks
 * of a team agree about all of this but the pair's mechanism, of which both ends do, and threads;
 * and but for what is mapped, which is copied by whoever has it mapped, and which no slot would
 * make quicker.
 */
static bool may_choose(const struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes)
{
	return bytes >= OCI_LEARNED_LEAST_BYTES && !x->unlocked && !x->team->oversubscribed &&
	       x->team->member[peer].mechanism == OCI_MECH_CMA &&
	       oci_options()->mechanism == OCI_WAY_AUTO &&
	       !oci_map_covers(x->team, peer, remote, bytes);
}

/* Without memory for it copies go at once, whatever the others do. */
static bool has_learned(struct oci_team *team)
{
	if (!team->learned)
		team->learned = calloc(OCI_LEARNED_WORDS, sizeof(*team->learned));
	return team->learned;
}

void oci_exec_way_choose(struct oci_exec *x, uint32_t peer, uint64_t remote, size_t bytes)
{
	unsigned int index = index_of(x, bytes);

	x->way.slots = x->way.tries = false;
	if (!may_choose(x, peer, remote, bytes) || !has_learned(x->team))
		return;
	x->way.slots = oci_learned_way(&x->team->learned[index], word_at(x, index),
				       oci_learned_length_of(index), x->seq,
				       oci_is_laid_out(remote), &x->way.tries);
	if (!x->way.tries)
		return;
	if (!x->way_tried) {
		x->way_tried = true;
		x->way.index = (uint8_t)index;
		x->way.gone = 0;
		x->way.bytes = 0;
		x->way.ns = 0;
		x->way.last = oci_clock_ns();
	}
	/* Copies of another length go their own way meanwhile. */
	if (x->way.index == index)
		x->way.bytes += bytes;
}

void oci_exec_way_begin(struct oci_exec *x)
{
	uint64_t now = oci_clock_ns();

	if (now - x->way.last < AWAY_NS)
		x->way.ns += now - x->way.last;
	x->way.last = now;
}

void oci_exec_way_end(struct oci_exec *x)
{
	uint64_t now = oci_clock_ns();

	x->way.ns += now - x->way.last;
	x->way.last = now;
}

void oci_exec_way_tell(struct oci_exec *x)
{
	uint8_t *word = word_at(x, x->way.index);
	unsigned int length = oci_learned_length_of(x->way.index);

	oci_exec_way_end(x);
	/* Not of what was mapped in part. */
	if (!(x->way.gone & ~(1u << OCI_MECH_SHM | 1u << OCI_MECH_CMA)))
		oci_learned_tell(&x->team->learned[x->way.index], word, length,
				 oci_learned_look(word, length, x->seq, false), x->way.bytes,
				 x->way.ns);
}

bool oci_exec_way_by_slots(const struct oci_exec *x, uint32_t peer, uint64_t mine, uint64_t remote,
			   size_t bytes)
{
	unsigned int index = index_of(x, bytes);

	return may_choose(x, peer, remote, bytes) &&
	       oci_learned_look(word_at(x, index), oci_learned_length_of(index), x->seq,
				oci_is_laid_out(mine));
}

uint32_t oci_exec_way_patience(const struct oci_exec *x, uint64_t remote, size_t bytes)
{
	const struct oci_learned *learned = x->team->learned;
	uint32_t ps = learned ? learned[index_of(x, bytes)].best[false] : 0;
	uint64_t looks = bytes / BYTES_PER_LOOK, measured;

	if (oci_is_laid_out(remote))
		looks *= GAPS_TAKE_LONGER;
	/* 0: never yet; UINT32_MAX: not since a look began. */
	if (ps && ps != UINT32_MAX && !__builtin_mul_overflow((uint64_t)bytes * 2, ps, &measured) &&
	    measured / LOOK_PS > looks)
		looks = measured / LOOK_PS;
	return looks < UINT32_MAX ? (uint32_t)looks : UINT32_MAX;
}
