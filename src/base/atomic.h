/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads and stores of words that other processes read and write.
 *
 * Every word in a segment is accessed through these and nothing else, so that the compiler can
 * neither tear nor repeat an access. acquire pairs with the release of the word's one writer.
 */
#ifndef OC_BASE_ATOMIC_H
#define OC_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

/* Builds with OC_STALL stop now and then before such an access, for longer than any wait between
 * two of them is meant to take: base/stall.c. */
#ifdef OC_STALL
void oci_stall(void);
#else
static inline void oci_stall(void)
{
}
#endif

static inline uint64_t oci_load_acquire(const uint64_t *word)
{
	oci_stall();
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline uint64_t oci_load_relaxed(const uint64_t *word)
{
	oci_stall();
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void oci_store_release(uint64_t *word, uint64_t value)
{
	oci_stall();
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static inline void oci_store_relaxed(uint64_t *word, uint64_t value)
{
	oci_stall();
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Acquire and release on success, acquire on failure; *expected receives what was found. */
static inline bool oci_compare_exchange(uint64_t *word, uint64_t *expected, uint64_t desired)
{
	oci_stall();
	return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/*
 * What was loaded before this was loaded before what is loaded after it. x86 keeps the order of
 * loads, so there only the compiler must (and ThreadSanitizer knows no fences).
 */
static inline void oci_loads_in_order(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__asm__ __volatile__("" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

/* Tells the core that this is a spin loop: less power, and no mis-speculation on leaving it. */
static inline void oci_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#else
	__asm__ __volatile__("" ::: "memory");
#endif
}

/*
 * Fetches a line for writing, in the background, so that a store to it later need not wait until
 * its readers' copies are taken away. The instruction itself, as compilers emit it only for newer
 * targets; processors that lack it do nothing.
 */
static inline void oci_prefetch_write(const void *line)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

#endif
