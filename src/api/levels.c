/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which calls of ranks on several nodes go in two levels. The front ends do them (mpi/common);
 * here is what all ranks must decide alike, before any of them has heard of another.
 */
#include "base/hash.h"
#include "base/options.h"

#include <string.h>

/* The program's words ONECOPY_NAME=mpi mean all of a call. */
static bool is_mpis(enum oc_collective collective)
{
	return !strcmp(oci_options()->algorithm[collective], "mpi");
}

/* Grows when what goes in two levels, or how (mpi/common/levels), is decided otherwise than before:
 * builds of one version may be mixed by mistake. */
enum { WAYS = 2 };

uint64_t oc_levels(void)
{
	uint64_t hash = oci_hash(OCI_HASH_START, OC_VERSION, sizeof(OC_VERSION));
	enum oci_levels levels = oci_options()->levels;
	uint32_t ways = WAYS;

	if (levels == OCI_LEVELS_OFF)
		return 0;
	hash = oci_hash(hash, &levels, sizeof(levels));
	hash = oci_hash(hash, &ways, sizeof(ways));
	for (int c = 0; c < OC_COLLECTIVES; c++) {
		bool mpis = is_mpis((enum oc_collective)c);

		hash = oci_hash(hash, &mpis, sizeof(mpis));
	}
	return hash ? hash : 1;
}

/*
 * Up to how many bytes of a message or block two levels gain. Stock's time or HAN's, whichever is
 * less, by two levels' (docs/results/nodes-forced.csv: Open MPI 4.1.4, 2 hosts of 2 ranks on two
 * CPUs):
 * - Gather up to 64 KiB 0.96 to 1.84, of 256 KiB and 1 MiB 0.57 and 0.91;
 * - Scatter 0.48 to 1.26, as each block crosses the network once either way; a Scatterv, whose
 * blocks go straight to their ranks, 0.87 to 1.39 (and a Gatherv: oc_levels_together());
 * - Alltoall 0.96 to 1.57 up to 4 KiB, 0.43 to 1.14 above;
 * - Scan and Exscan 0.35 to 1.13, mostly below 1.
 */
#define KIB ((size_t)1 << 10)
#define GATHERED (64 * KIB)

static size_t largest(enum oc_collective collective)
{
	switch (collective) {
	case OC_GATHER:
		return GATHERED;
	case OC_SCATTER:
	case OC_SCAN:
	case OC_EXSCAN:
		return 0;
	case OC_ALLTOALL:
		return 4 * KIB;
	default:
		return SIZE_MAX;
	}
}

/*
 * The same of calls that return before they are over, waited for at once: stock's time by two
 * levels' (docs/results/nodes-started.csv: Open MPI 4.1.4, 2 hosts of 2 and of 4 ranks on two
 * CPUs).
 */
static bool gains_started(enum oc_collective collective, size_t bytes)
{
	switch (collective) {
	case OC_BARRIER:
	case OC_BCAST:
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
		return true;
	case OC_ALLREDUCE: /* above it 1.03 to 1.23; on a Xeon (nodes-shares.csv) 0.52 to 1.23 */
		return bytes <= 256 * KIB;
	case OC_REDUCE:
		return bytes <= 64 * KIB;
	case OC_ALLTOALL:
		return bytes <= 4 * KIB;
	default:
		return false;
	}
}

/*
 * The same under MPICH (docs/results/nodes-started-mpich.csv: 4.0.2 with MPI_THREAD_MULTIPLE, 2
 * hosts of 2 and of 4 ranks): Bcasts gain where MPICH asks before it sends and nobody has pieces
 * yet; an Allreduce above 16 KiB was at 0.56 to 0.79, an Alltoall above 1 KiB mostly at 0.31 to
 * 0.79.
 */
static bool gains_started_mpich(enum oc_collective collective, size_t bytes)
{
	switch (collective) {
	case OC_BARRIER:
	case OC_REDUCE:
	case OC_ALLGATHER:
	case OC_SCAN:
		return true;
	case OC_BCAST:
		return bytes > 8 * KIB && bytes <= 64 * KIB;
	case OC_ALLREDUCE:
		return bytes <= 16 * KIB;
	case OC_ALLTOALL:
		return bytes <= KIB;
	default:
		return false;
	}
}

static bool gains(enum oc_collective collective, size_t bytes, enum oc_levels_form form)
{
	switch (form) {
	case OC_LEVELS_OPENMPI:
		return gains_started(collective, bytes);
	case OC_LEVELS_MPICH:
		return gains_started_mpich(collective, bytes);
	default:
		return bytes <= largest(collective);
	}
}

static bool are_on(void)
{
	return oci_options()->levels == OCI_LEVELS_ON || oci_options()->levels == OCI_LEVELS_SHARES;
}

const char *oc_levels_refusal(enum oc_collective collective, size_t bytes, enum oc_levels_form form)
{
	if (is_mpis(collective))
		return OC_LEFT_TO_MPI;
	if (!are_on() && !gains(collective, bytes, form))
		return "on several nodes two levels were not quicker for this size";
	return NULL;
}

/*
 * The more ranks a node has, the longer they wait for a leader that has all of it. On two hosts of
 * 2 and 4 ranks, whose two CPUs do the work of the network too, shares gain from some 512 KiB on,
 * and Allgathers nothing (docs/results/nodes-shares.csv). On nodes with a core for each rank
 * leaders take, by the model, with 4 and 16 ranks 1.2 times as long for an Allreduce of 16 KiB,
 * with 16 ranks 1.8 times for an Allgather of 1 KiB (`onecopy model --nodes 16 --ranks N --profile
 * knl`, and so with ONECOPY_LEVELS=shares), to which their ranks' meeting costs nothing. Blocks are
 * exchanged node by node, so that a node's are to be more than that.
 */
enum { MANY_RANKS = 16 };

/*
 * Of few ranks the blocks of a Gatherv go straight to the root, too, so that its members need not
 * learn each other's sizes. On two hosts of 2, 4 and 8 ranks the MPI's time by ours was, in the
 * mean over 8 B to 1 MiB, 0.97 to 1.04 under Open MPI and 0.98 to 1.20 under MPICH; in one message
 * for a node 0.92 to 1.00 and 0.89 to 1.01, and 0.40 to 0.86 of 16 KiB
 * (docs/results/nodes-gatherv.csv). Of many ranks one message gains by the model, as an Allgather
 * does. So go those of a Gather that the MPI sends at once while it would ask before it sends all
 * of a node's: under MPICH, whose limit lies between 16 and 24 KiB over TCP, in 0.4 to 0.5 of the
 * time of one message; under Open MPI it is all the same (docs/results/nodes-at-once.csv). An
 * Alltoall whose leaders' messages are larger loses under MPICH: of 4 ranks from 2 KiB on, of 8
 * from 512 bytes on, 0.58 to 0.95 (ditto).
 */
#define AT_ONCE (16 * KIB)

size_t oc_levels_together(enum oc_collective collective, uint32_t ranks, size_t bytes)
{
	bool many = ranks >= MANY_RANKS || are_on();

	switch (collective) {
	case OC_GATHER:
		return !many && bytes <= AT_ONCE && bytes * ranks > AT_ONCE ? 0 : bytes;
	case OC_SCATTER:
		return bytes;
	case OC_ALLTOALL:
		return many || bytes * ranks * ranks <= AT_ONCE ? bytes : 0;
	case OC_GATHERV:
		return many ? GATHERED : 0;
	default:
		return 0;
	}
}

size_t oc_levels_shared(enum oc_collective collective, uint32_t ranks, int started)
{
	size_t least = 64 * KIB, wanted = 1024 * KIB / ranks;

	if (oci_options()->levels == OCI_LEVELS_SHARES)
		return 0;
	if (started)
		return SIZE_MAX;
	switch (collective) {
	case OC_BCAST:
		return 512 * KIB;
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
		return ranks < MANY_RANKS ? SIZE_MAX : least;
	case OC_REDUCE:
	case OC_ALLREDUCE:
		least = 16 * KIB;
		break;
	default:
		break;
	}
	return wanted > least ? wanted : least;
}
