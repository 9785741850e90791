/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a message changes its way, by the model's terms:
 *
 *   eager       through the ring: bytes at the rate of copies through shared memory, whose two ends
 *               overlap but for the first chunk; one flag
 *   rendezvous  one single copy, between the flags that announce it and that tell the sender; from
 *               OCI_P2P_SHARE_BYTES on each end copies half, for one flag more; or one copy out
 *               of mapped memory
 *
 * The largest power of two for which the first costs no more is the eager limit between ranks that
 * share a cache, where the model was calibrated; else the limits below count.
 */
#include "base/options.h"
#include "p2p/p2p.h"

/*
 * Of ranks that share a cache, and of others. AMD EPYC of family 25, 2 CPUs, 2026-11-22, us one
 * way, eager and rendezvous: near (a token takes 35 ns) 8 KiB 0.88 and 2.21, 16 KiB 2.06 and 2.85,
 * 32 KiB 4.18 and 4.02; far (160 ns) 8 KiB 3.83 and 2.60, 16 KiB 7.78 and 3.29. To measure again,
 * in turns: onecopy-pingpong --bytes 4096,8192,16384,32768 --cpus 0,1 with ONECOPY_P2P_EAGER=1K and
 * =64K.
 */
#define EAGER_NEAR ((size_t)16 << 10)
#define EAGER_FAR ((size_t)4 << 10)
/*
 * Where the receiver can map the buffer, and copies from it with no system call: as above with
 * --shared, near, ONECOPY_P2P_EAGER of 64K and of 64 bytes: 1 KiB 0.15 and 0.20, 2 KiB 0.25 and
 * 0.21, 8 KiB 0.75 and 0.26, 16 KiB 1.99 and 0.42.
 */
#define MAPPED_EAGER ((size_t)1 << 10)
/* The limit by the model lies between these. */
#define EAGER_LEAST ((size_t)1 << 10)
#define EAGER_MOST ((size_t)16 << 10)
/* Where no single copy is to be had: half of the ring. */
#define STREAM_EAGER_BYTES ((size_t)OCI_P2P_RING_BYTES / 2)
/* And through a pipe, if that is quicker, where no cache is shared either: paper 001, section 4.1,
 * whose authors saw no gain below. */
#define PIPE_BYTES ((size_t)64 << 10)

/* Of large messages, where an option asks for a way. */
static enum oci_p2p_method method(void)
{
	switch (oci_options()->p2p) {
	case OCI_WAY_SHM:
		return OCI_P2P_STREAM;
	case OCI_WAY_VMSPLICE:
		return OCI_P2P_VMSPLICE;
	case OCI_WAY_WRITEV:
		return OCI_P2P_WRITEV;
	default:
		return OCI_P2P_COPY;
	}
}

static double ring_s(const struct oci_model *model, size_t bytes)
{
	double beyond = oci_model_beyond(model, bytes, 0);

	if (!oci_model_knows(model, OCI_MODEL_SHM))
		return 2 * oci_model_memcpy_of_s(model, bytes, beyond);
	return oci_model_bytes_of_s(model, OCI_MODEL_SHM, OCI_MODEL_PULL, bytes, OCI_MODEL_CACHE,
				    beyond);
}

static double eager_s(const struct oci_model *model, size_t bytes)
{
	size_t first = bytes < OCI_P2P_EAGER_CHUNK_BYTES ? bytes : OCI_P2P_EAGER_CHUNK_BYTES;

	return ring_s(model, bytes) + ring_s(model, first) +
	       oci_model_flag_s(model, OCI_MODEL_CACHE);
}

static double rendezvous_s(const struct oci_model *model, size_t bytes)
{
	unsigned int ends = bytes < OCI_P2P_SHARE_BYTES ? 1 : 2;

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

void oci_p2p_limits(const struct oci_model *model, struct oci_p2p_limits *limits)
{
	const struct oci_options *o = oci_options();
	bool forced = o->p2p == OCI_WAY_EAGER || o->p2p_eager != SIZE_MAX;
	size_t near = model->calibrated ? eager_limit(model) : EAGER_NEAR;

	*limits = (struct oci_p2p_limits){ .eager_bytes = near < EAGER_FAR ? near : EAGER_FAR,
					   .near_eager_bytes = near,
					   .mapped_eager_bytes = MAPPED_EAGER,
					   .stream_eager_bytes = STREAM_EAGER_BYTES,
					   .method = method(),
					   .pipe_bytes = SIZE_MAX,
					   .never_mapped = o->p2p == OCI_WAY_CMA,
					   .never_by_pair = o->p2p == OCI_WAY_MAP };
	if (limits->never_mapped || limits->method != OCI_P2P_COPY || forced)
		limits->mapped_eager_bytes = SIZE_MAX;
	/* Who asks for two copies gets them. */
	if (o->p2p == OCI_WAY_AUTO && o->mechanism == OCI_WAY_AUTO)
		limits->pipe_bytes = PIPE_BYTES;
	if (forced)
		limits->eager_bytes = limits->near_eager_bytes = limits->stream_eager_bytes =
			o->p2p_eager;
}
