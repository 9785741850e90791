/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes from one of my buffers to another, past the cache when they are many.
 *
 * A block that is only handed to the program is written with streaming stores: the old contents of
 * the destination need not be read first, which is a third of the traffic of a copy.
 */
#include "copy/local.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64

__attribute__((target("avx512f"))) static void stream_avx512(uint8_t *to, const uint8_t *from,
							     size_t lines)
{
	for (; lines; lines--, to += LINE, from += LINE)
		_mm512_stream_si512((__m512i *)to, _mm512_loadu_si512(from));
}

__attribute__((target("avx"))) static void stream_avx(uint8_t *to, const uint8_t *from,
						      size_t lines)
{
	for (; lines; lines--, to += LINE, from += LINE) {
		__m256i a = _mm256_loadu_si256((const __m256i *)from);
		__m256i b = _mm256_loadu_si256((const __m256i *)(from + 32));

		_mm256_stream_si256((__m256i *)to, a);
		_mm256_stream_si256((__m256i *)(to + 32), b);
	}
}

static void stream_sse2(uint8_t *to, const uint8_t *from, size_t lines)
{
	for (; lines; lines--, to += LINE, from += LINE) {
		for (int i = 0; i < LINE; i += 16)
			_mm_stream_si128((__m128i *)(to + i),
					 _mm_loadu_si128((const __m128i *)(from + i)));
	}
}

static void stream(uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t head = -(uintptr_t)to % LINE, lines = (bytes - head) / LINE;
	size_t body = lines * LINE;

	memcpy(to, from, head);
	if (__builtin_cpu_supports("avx512f"))
		stream_avx512(to + head, from + head, lines);
	else if (__builtin_cpu_supports("avx"))
		stream_avx(to + head, from + head, lines);
	else
		stream_sse2(to + head, from + head, lines);
	memcpy(to + head + body, from + head + body, bytes - head - body);
	/* Streaming stores are not ordered with the flag that follows: made so here. Pairs with the
	 * acquire of whoever waits for that flag. */
	_mm_sfence();
}

void oci_copy_local(void *to, const void *from, size_t bytes)
{
	if (bytes < OCI_STREAM_BYTES)
		memcpy(to, from, bytes);
	else
		stream(to, from, bytes);
}

#else

void oci_copy_local(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

#endif
