/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large pages for large blocks, and for segments that mimalloc begins to use.
 *
 * A page of a shared file costs more to fault in than a private one, and the kernel gives such
 * files large pages only where shmem_enabled says so, which is never by default. MADV_COLLAPSE
 * (Linux 6.1) does not ask that setting, unless it is deny: a large block is touched once in every
 * 2 MiB and made of large pages at once, 0.16 s a GiB against 1.6 s for faulting 4 KiB pages
 * (2-core EPYC virtual machine, Linux 6.18, 2026-11-21, one-off; oc_bench_heap's "touch" has what
 * comes of it). That backs the block with memory before it
 * is used, so it is bounded, done for processes of one NUMA node alone (elsewhere the first touch
 * places a page), and not done where transparent huge pages are switched off for everybody.
 *
 * mimalloc takes memory for small blocks by the MiB, from a segment that each thread has. The first
 * 2 MiB of that of each thread but the first, which has a whole one at once, are made a large page
 * when it begins with the second and half of the first is there: a program that allocates all the
 * time touches most of them, and 512 pages one by one take it four times as long. Not before, as
 * threads of an MPI do not come so far, and the call waits until each CPU has run something for it:
 * 0.2 ms of CPU time, and 11 to 48 ms while programs run on all of them (2-core EPYC guest,
 * 2026-11-25, one-off). What follows stays with small pages: much of a large one would be zeroed
 * for nothing.
 */
#include "dso.h"
#include "os/cgroup.h"
#include "os/os.h"
#include "raw.h"

#include <errno.h>
#include <string.h>

#define HUGE ((uintptr_t)2 << 20)
#define SEGMENT ((uintptr_t)32 << 20)
/* Below that many bytes in use a whole segment for small blocks is filled page by page, too. */
#define SMALL_HEAP ((uint64_t)64 << 20)

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { UNKNOWN, OFF, ON };
static atomic_int state;
static _Atomic(uint64_t) most; /* bytes of the arena in use, up to which blocks are backed */

/* What the process's memory group has left when the arena is made: beyond it the kernel kills. Read
 * by who has seen the arena made, which orders it. */
static uint64_t group = UINT64_MAX;

void heap_note_group(void)
{
	group = oci_cgroup_memory_left("/sys/fs/cgroup", oci_cgroup_self());
}

/* A quarter of the memory that can be had, shared by as many processes as there are CPUs. */
static uint64_t budget(void)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (memory > group)
		memory = group;
	return memory / 4 / (uint64_t)(cpus > 0 ? cpus : 1);
}

static OC_COLD int look(void)
{
	char enabled[128], shmem[128], nodes[64];

	oci_os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", enabled, sizeof(enabled));
	oci_os_read_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled", shmem, sizeof(shmem));
	oci_os_read_file("/sys/devices/system/node/online", nodes, sizeof(nodes));
	atomic_store_explicit(&most, budget(), memory_order_relaxed);
	if (!*enabled || strstr(enabled, "[never]") || !*shmem || strstr(shmem, "[deny]") ||
	    (*nodes && strcmp(nodes, "0\n")))
		return OFF;
	return ON;
}

static bool allowed(size_t bytes)
{
	/* Relaxed: whoever looks at the settings finds the same. */
	int now = atomic_load_explicit(&state, memory_order_relaxed);

	if (now == UNKNOWN) {
		now = look();
		atomic_store_explicit(&state, now, memory_order_relaxed);
	}
	return now == ON &&
	       heap_used() + bytes <= atomic_load_explicit(&most, memory_order_relaxed);
}

/* False: the kernel does not know how, or not for this memory. */
static bool collapse(uintptr_t first, uintptr_t last)
{
	if (last <= first)
		return true;
	if (raw_madvise((void *)first, last - first, MADV_COLLAPSE))
		return errno != EINVAL;
	heap_count_large(last - first);
	return true;
}

/* The pieces of 2 MiB that nobody has touched yet, neighbours by one call. */
static bool back(uintptr_t first, uintptr_t last)
{
	uintptr_t begin = first;
	bool can = true;
	unsigned char resident;

	for (uintptr_t piece = first; piece < last; piece += HUGE) {
		if (mincore((void *)piece, 1, &resident) || resident & 1) {
			can &= collapse(begin, piece);
			begin = piece + HUGE;
		} else {
			/* Reading makes the page, and changes nothing. */
			(void)*(volatile char *)piece;
		}
	}
	return collapse(begin, last) && can;
}

void heap_back(void *address, size_t bytes)
{
	uintptr_t start = (uintptr_t)address;
	uintptr_t first = (start + HUGE - 1) & ~(HUGE - 1), last = (start + bytes) & ~(HUGE - 1);
	int error = errno;

	if (bytes >= HEAP_LARGE && last > first && allowed(bytes) && !back(first, last))
		atomic_store_explicit(&state, OFF, memory_order_relaxed); /* an older kernel */
	errno = error;
}

/* Is half of the MiB before `second` there, and nothing behind it, as where that is a large page or
 * was used page by page? Threads of Open MPI take their second MiB with little of the first. */
static bool first_is_used(uintptr_t second)
{
	unsigned char resident[HUGE / 2 / 4096 + 1];
	size_t there = 0, half = sizeof(resident) - 1;

	if (mincore((void *)(second - HUGE / 2), HUGE / 2 + 4096, resident) || resident[half] & 1)
		return false;
	for (size_t i = 0; i < half; i++)
		there += resident[i] & 1;
	return there >= half / 2;
}

void heap_back_segment(void *address, size_t bytes)
{
	uintptr_t first = (uintptr_t)address;
	int error = errno;

	/* Or a program's own mprotect(), so a refusal says nothing. */
	if (first % SEGMENT == HUGE / 2 && bytes < SEGMENT && allowed(HUGE)) {
		if (first_is_used(first))
			collapse(first - HUGE / 2, first + HUGE / 2);
	} else if (first % SEGMENT == 0 && bytes == SEGMENT && heap_used() >= SMALL_HEAP) {
		/* More than a whole one is for a single block, which comes by heap_back() without
		 * the rest. */
		heap_back(address, bytes);
	}
	errno = error;
}
