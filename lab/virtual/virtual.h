/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `model` executor: runs the plans of all ranks of one call in virtual time.
 *
 * Nothing is copied and nobody waits: each operation takes the time that the model's terms say, and
 * ranks meet at flags as they would. What the closed forms of the algorithms leave out is in it:
 * copies that overlap by chance, ranks that arrive late, pipelines that fill and drain.
 *
 *   flag       raising takes `op` alone; who awaits it goes on the flag's latency after the raise
 *              or after his first look, whatever is later, once for each value that he sees; the
 *              flags of a row are looked at one after the other, those that are up already at
 *              flag.more each
 *   copy       PULL, PUSH, chunks; a write goes by push_alpha and push_beta:
 *              alpha, then n beta + ceil(n / page) l gamma(c), c = copies that lock pages of the
 *              same process at that moment: the rate changes whenever c does
 *   domain     the k tasks that read or write one memory domain at a moment take at least
 *              k times `domain` a byte; single copies of what the caches hold k times domain.cache,
 *              other touches of that are alone; what the ranks of a cache touch together
 *              (`working`) decides which part of each copy the caches hold
 *   COPY       memcpy; out of the cache its domain is shared
 *   COPY into a slot   at least memcpy.slot a byte, as a peer has read what was in it before
 *   slots, payloads   what is read of a peer's goes as by a mapping of his memory (map.beta), or,
 *              where the model does not know that, as a COPY
 *   REDUCE     the same, at least `reduce` a byte
 *   SHARE      both ends claim chunks, each chunk is a copy of its own
 *
 * Left out: that copiers of one process whose blocks lie far apart meet at no lock (lock_span,
 * which the closed forms go by); the owner's part in a copy by the mechanism shm, which is taken to
 * be at hand; ranks that share a core; first touches.
 *
 * Times are seconds, as doubles; sizes are bytes.
 */
#ifndef OC_MODEL_VIRTUAL_H
#define OC_MODEL_VIRTUAL_H

#include "model/model.h"
#include "plan/plan.h"

struct oci_virtual_call {
	const struct oci_plan *const *plans; /* [v] */
	uint32_t size, root;
	size_t bytes, unit; /* of a block, of an element; v-variants: each block has `bytes` */
	const struct oci_model *model;
	enum oci_model_mechanism mechanism; /* of single copies, between all pairs */
	const uint32_t *cores;		    /* [rank]: where it sits; NULL: rank r on core r */
	const double *start_s;		    /* [rank]: when it calls; NULL: all at 0 */
	size_t working; /* what the ranks under one cache touch in all; 0: not known */
};

struct oci_virtual_result {
	double end_s;	       /* of the last rank */
	double first_s;	       /* of the first one */
	uint64_t copies;       /* single copies, chunks included */
	uint64_t bytes;	       /* that they moved */
	uint32_t most_copiers; /* of one process at a moment */
	double delayed_s;      /* sum over tasks: what others made them wait */
};

/* 0, -ENOMEM, or -EPROTO with a sentence: the plans wait for each other for ever. */
int oci_virtual_run(const struct oci_virtual_call *call, struct oci_virtual_result *result,
		    char *why, size_t n);

#endif
