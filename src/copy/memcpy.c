/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streaming stores win from about the size that memcpy.h names, and whoever reads the result
 * afterwards takes as long either way: EPYC, 2026-11-21, one-off, "Streaming stores" in
 * docs/results/experiments.md.
 */
#include "copy/memcpy.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "topo/sysfs.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif
#define TURN 128 /* bytes: two lines at a time keep the write-combining buffers full */

/* `to` is aligned to a line, bytes to TURN. */
__attribute__((target("avx2"))) static void stream(uint8_t *to, const uint8_t *from, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += TURN) {
		const __m256i *source = (const __m256i *)(from + at);
		__m256i *target = (__m256i *)(to + at);
		__m256i a = _mm256_loadu_si256(source), b = _mm256_loadu_si256(source + 1);
		__m256i c = _mm256_loadu_si256(source + 2), d = _mm256_loadu_si256(source + 3);

		_mm256_stream_si256(target, a);
		_mm256_stream_si256(target + 1, b);
		_mm256_stream_si256(target + 2, c);
		_mm256_stream_si256(target + 3, d);
	}
	/* x86 does not order streaming stores with the flag that the caller raises next; whoever
	 * acquires that flag sees them. */
	_mm_sfence();
}

/*
 * glibc (2.33 and later) has asked the CPU before main(). gcc's __builtin_cpu_supports() asks again
 * wherever the library is loaded, launchers and shells among them: some ten cpuid, each of which a
 * hypervisor answers, 50 us in all (EPYC guest, 2026-11-25, one-off).
 */
static bool can_stream(void)
{
#ifdef CPU_FEATURE_ACTIVE
	return CPU_FEATURE_ACTIVE(AVX2);
#else
	return __builtin_cpu_supports("avx2");
#endif
}

static void move_past(uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t head = -(uintptr_t)to % 64, body;

	if (head > bytes)
		head = bytes;
	body = (bytes - head) / TURN * TURN;
	memcpy(to, from, head);
	stream(to + head, from + head, body);
	memcpy(to + head + body, from + head + body, bytes - head - body);
}
#else
static bool can_stream(void)
{
	return false;
}

static void move_past(uint8_t *to, const uint8_t *from, size_t bytes)
{
	memcpy(to, from, bytes);
}
#endif

static size_t dma_min = SIZE_MAX;
static bool streams;

size_t oci_memcpy_dma_min(const char *sysfs)
{
	size_t share = oci_sysfs_cache_share(sysfs);

	return share ? share / 2 : SIZE_MAX;
}

static void look_up(void)
{
	dma_min = oci_memcpy_dma_min(OCI_SYSFS);
	streams = can_stream();
}

size_t oci_memcpy_dma_min_here(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_up);
	return dma_min;
}

/* Below it nothing is looked up: Xeon Phi's 1 MiB of two cores is the smallest cache that one of
 * tests/topologies has. */
#define NEVER_PAST ((size_t)256 << 10)

/* Pieces of a layout that are shorter than a page would wait for their fence, or their engine, more
 * than they copy. */
#define PIECE_PAST ((size_t)4096)

bool oci_memcpy_goes_past(size_t bytes, size_t whole)
{
	return bytes >= PIECE_PAST && whole >= NEVER_PAST && whole > oci_memcpy_dma_min_here();
}

void oci_memcpy(void *to, const void *from, size_t bytes, size_t whole)
{
	if (oci_memcpy_goes_past(bytes, whole) && streams)
		move_past(to, from, bytes);
	else
		memcpy(to, from, bytes);
}
