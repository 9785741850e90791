/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes that the memory of a team and the plans over it must agree on. */
#ifndef OC_BASE_LIMITS_H
#define OC_BASE_LIMITS_H

/* A flag is operation number * OCI_STEPS + step: 48 bits count operations, for 325 days at one
 * operation in 100 ns. */
#define OCI_STEP_BITS 16
#define OCI_STEPS (1u << OCI_STEP_BITS)

/* Payload that rides behind a POST flag: eight cache lines less flag and signature. At 256 B,
 * 2 ranks: 0.35 us, against 0.6 us through a slot, whose lines nobody fetches ahead
 * (docs/results.md, "Tried and not kept"). */
#define OCI_INLINE_BYTES 496
/* A bounce buffer in shared memory: two turns of 32 KiB, which a level-1 cache holds. */
#define OCI_SLOT_BYTES 65536
/* That of two ranks which are near each other (team/distance.c): 128 and 256 KiB gain by it too, 1
 * MiB does not (docs/results.md, "How far two CPUs are"). */
#define OCI_NEAR_SLOT_BYTES 262144

#endif
