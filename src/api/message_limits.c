/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a message changes its way, by the model's terms:
 *
 *   eager       through the ring: bytes at the rate of copies through shared memory, whose two ends
 *               overlap but for the first chunk; one flag
 *   rendezvous  one single copy, between the flags that announce it and that tell the sender; from
 *               SHARE_BYTES on each end copies half, for one flag more
 *
 * The largest power of two for which the first costs no more is the eager limit. Both at the
 * closest distance.
 */
#include <string.h>

#include "api/engine.h"
#include "base/options.h"

#define PIECE_BYTES ((size_t)1 << 20)
/* Of an eager message: chosen, not measured. Smaller ones cost their cells, larger ones let the
 * receiver wait. */
#define CHUNK_BYTES ((size_t)8 << 10)
/* From two chunks of share.c on. */
#define SHARE_BYTES ((size_t)32 << 10)
/* The limit lies between these. In one interleaved run on a machine that was not quiet (AMD EPYC of
 * family 25, 2 cores, 2026-11-21) 32 KiB took 6.6 us where both ends copy and 8.7 through the ring,
 * 16 KiB 3.8 through the ring and 8.8 by one end's copy. To measure again, in turns:
 * onecopy-pingpong
 * --bytes 16384,32768 --cpus 0,1 with ONECOPY_P2P_EAGER=1K and =32K. */
#define EAGER_LEAST ((size_t)1 << 10)
#define EAGER_MOST ((size_t)16 << 10)
/* Where no single copy is to be had: half of the ring. */
#define STREAM_EAGER_BYTES ((size_t)OCI_P2P_RING_BYTES / 2)

/* Of large messages, where an option asks for a way; a pipe is never chosen by itself. */
static enum oci_p2p_method method(void)
{
	const char *name = oci_options()->p2p;

	if (!strcmp(name, "shm"))
		return OCI_P2P_STREAM;
	if (!strcmp(name, "vmsplice"))
		return OCI_P2P_VMSPLICE;
	return !strcmp(name, "writev") ? OCI_P2P_WRITEV : OCI_P2P_COPY;
}

static double ring_s(const struct oci_model *model, size_t bytes)
{
	if (!oci_model_knows(model, OCI_MODEL_SHM))
		return 2 * oci_model_memcpy_s(model, bytes);
	return oci_model_bytes_s(model, OCI_MODEL_SHM, OCI_MODEL_PULL, bytes, OCI_MODEL_CACHE);
}

static double eager_s(const struct oci_model *model, size_t bytes)
{
	size_t first = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;

	return ring_s(model, bytes) + ring_s(model, first) +
	       oci_model_flag_s(model, OCI_MODEL_CACHE);
}

static double rendezvous_s(const struct oci_model *model, size_t bytes)
{
	unsigned int ends = bytes < SHARE_BYTES ? 1 : 2;

	return oci_model_copy_s(model, OCI_MODEL_CMA, bytes / ends, ends) +
	       (1 + ends) * oci_model_flag_s(model, OCI_MODEL_CACHE);
}

static size_t eager_limit(const struct oci_model *model)
{
	size_t bytes = EAGER_LEAST;

	while (bytes < EAGER_MOST && eager_s(model, 2 * bytes) <= rendezvous_s(model, 2 * bytes))
		bytes *= 2;
	return bytes;
}

void oci_message_limits(const struct oci_model *model, struct oci_p2p_limits *limits)
{
	const struct oci_options *o = oci_options();

	*limits = (struct oci_p2p_limits){ .eager_bytes = eager_limit(model),
					   .stream_eager_bytes = STREAM_EAGER_BYTES,
					   .chunk_bytes = CHUNK_BYTES,
					   .share_bytes = SHARE_BYTES,
					   .piece_bytes = PIECE_BYTES,
					   .method = method(),
					   .never_mapped = !strcmp(o->p2p, "cma"),
					   .never_by_kernel = !strcmp(o->p2p, "map") };
	if (!strcmp(o->p2p, "eager"))
		limits->eager_bytes = limits->stream_eager_bytes = SIZE_MAX;
	if (o->p2p_eager != SIZE_MAX)
		limits->eager_bytes = limits->stream_eager_bytes = o->p2p_eager;
}
