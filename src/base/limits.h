/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes that the memory of a team and the plans over it must agree on. */
#ifndef OC_BASE_LIMITS_H
#define OC_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* A flag is operation number * OCI_STEPS + step: 48 bits count operations, for 325 days at one
 * operation in 100 ns. */
#define OCI_STEP_BITS 16
#define OCI_STEPS (1u << OCI_STEP_BITS)

/* Payload that rides behind a POST flag: eight cache lines less flag and signature. At 256 B,
 * 2 ranks: 0.35 us, against 0.6 us through a slot, whose lines nobody fetches ahead
 * (docs/results/experiments.md, "Tried and not kept"). */
#define OCI_INLINE_BYTES 496
/* A bounce buffer in shared memory: two turns of 32 KiB, which a level-1 cache holds. */
#define OCI_SLOT_BYTES 65536
/* Of what needs no more, a page: one is made whenever none is free, up to one a lane, before the
 * peers are asked. */
#define OCI_SMALL_SLOT_BYTES 4096
/* That of two ranks that share a cache (team/near.c): 128 and 256 KiB gain by it too, 1 MiB does
 * not (docs/results/experiments.md, "Slots of 1 MiB"). */
#define OCI_NEAR_SLOT_BYTES 262144

/*
 * Bytes of a chunk of a copy with two ends (copy/chunks.h), which has so many `chunks` where they
 * are within [32 KiB, 512 KiB]; the last may be shorter. Each is a system call that begins by
 * pinning pages, a copy of less is mostly its start; above 512 KiB a peer's request would wait too
 * long. Claims count chunks in 32 bits.
 *
 * Ends that begin together and take as long end together after an even number of chunks: so do
 * those of a message. Of a collective one is ahead, as the root copies its own block first. AMD
 * EPYC of family 25, 2026-11-23, us in 4, 5, 6 and 8 chunks: a message of 256 KiB 21.9, 24.7, 24.1,
 * 26.5, of 512 KiB 37.9, 40.7, 39.5, 42.9; a cooperative Gather of 2 ranks, 512 KiB 51.2, 44.0,
 * 56.2, 53.3, 1 MiB 96.9, 84.5, 102.0, 93.8. A one-off: onecopy-pingpong --cpus 0,1 --seconds 0.1,
 * and MPI_Gather under Open MPI, each on a build with that number.
 */
#define OCI_CHUNKS_MESSAGE 4
#define OCI_CHUNKS_SHARE 5
#define OCI_CHUNK_LEAST ((size_t)32 << 10)
#define OCI_CHUNK_MOST ((size_t)512 << 10)

static inline size_t oci_chunk_bytes(size_t bytes, unsigned int chunks)
{
	size_t size = (bytes / chunks + 4095) / 4096 * 4096;

	if (size < OCI_CHUNK_LEAST)
		size = OCI_CHUNK_LEAST;
	if (size > OCI_CHUNK_MOST)
		size = OCI_CHUNK_MOST;
	while ((bytes + size - 1) / size > UINT32_MAX)
		size *= 2;
	return size;
}

#endif
