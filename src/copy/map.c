/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapped memory (docs/adr/0011).
 *
 * The page tables of a mapping are filled by its faults. A load of a page that the file has brings
 * its neighbours in the 64 KiB around it along, writable: 15 times fewer faults than stores take,
 * which come one page at a time. So a copy into mapped memory loads a byte of each 64 KiB first.
 * With that a first use costs what a single copy by the kernel does, a later one a third to a
 * quarter (docs/results/experiments.md has the figures), and nobody needs to remember which pages
 * were used.
 */
#include "copy/map.h"

#include <string.h>

#include "base/options.h"
#include "copy/layout.h"
#include "copy/memcpy.h"
#include "heap/heap.h"
#include "team/arena.h"

/* What Linux maps around a fault by default, fault_around_bytes. */
#define AROUND_BYTES ((uintptr_t)64 << 10)

/* Threads of one process count together; nothing is ordered by it. */
static uint64_t moved_bytes;
static struct oci_map_misses misses[OCI_MISSES];

const struct oci_copy oci_copy_map = {
	.name = "map",
	.what = "plain loads and stores in peers' shared heaps, mapped here",
};

bool oci_map_is_allowed(void)
{
	return oci_options()->mechanism == OCI_WAY_AUTO || oci_options()->mechanism == OCI_WAY_MAP;
}

void oci_map_publish(void)
{
	const struct oci_arena *arena;
	struct oci_arena_id id = { .fd = -1 };

	if (!oci_map_is_allowed() || oci_arena_published())
		return;
	arena = oci_arena_self(false);
	if (!arena || arena->fd < 0)
		return;
	id.base = (uintptr_t)arena->base;
	id.bytes = arena->bytes;
	id.fd = arena->fd;
	memcpy(id.nonce, arena->nonce, sizeof(id.nonce));
	oci_arena_publish(&id);
}

static struct oci_mapping *mapping_of(struct oci_team *team, uint32_t peer)
{
	return oci_mapping_get(team->member[peer].peer);
}

uint8_t *oci_map_at(struct oci_mapping *mapping, uint64_t address, size_t bytes)
{
	const struct oci_arena_front *front = (const void *)mapping->at;
	uint64_t offset = address - mapping->base;

	/* Relaxed: the owner's message that we act upon came after what it mapped, and orders this.
	 */
	if (offset >= mapping->bytes || bytes > mapping->bytes - offset ||
	    __atomic_load_n(&front->foreign, __ATOMIC_RELAXED))
		return NULL;
	if (!oci_mapping_is_open(mapping, offset, bytes) &&
	    !oci_mapping_open(mapping, offset, bytes))
		return NULL;
	return mapping->at + offset;
}

uint8_t *oci_map_reach(struct oci_team *team, uint32_t peer, uint64_t address, size_t bytes)
{
	struct oci_mapping *mapping = mapping_of(team, peer);

	return mapping ? oci_map_at(mapping, address, bytes) : NULL;
}

bool oci_map_covers(struct oci_team *team, uint32_t peer, uint64_t place, size_t bytes)
{
	return oci_is_laid_out(place) ? mapping_of(team, peer) != NULL :
					oci_map_reach(team, peer, place, bytes) != NULL;
}

/* Lets page tables be filled by loads, before stores would do it page by page. */
static void touch(const uint8_t *at, size_t bytes)
{
	uintptr_t next = (uintptr_t)at, end = next + bytes;

	for (; next < end; next = next / AROUND_BYTES * AROUND_BYTES + AROUND_BYTES)
		*(const volatile uint8_t *)next;
}

static size_t shorter(struct oci_cursor *a, struct oci_cursor *b)
{
	size_t rest_a = oci_cursor_rest(a), rest_b = oci_cursor_rest(b);

	return rest_a < rest_b ? rest_a : rest_b;
}

size_t oci_map_move(struct oci_mapping *mapping, enum oci_direction direction,
		    const struct iovec *local, unsigned int locals, const struct iovec *remote,
		    unsigned int remotes, size_t whole)
{
	struct oci_cursor mine = { local, locals, 0 }, theirs = { remote, remotes, 0 };
	size_t moved = 0, length;

	while ((length = shorter(&mine, &theirs))) {
		uint8_t *here = oci_map_at(mapping, (uintptr_t)oci_cursor_byte(&theirs), length);
		uint8_t *own = oci_cursor_byte(&mine);

		if (!here)
			break;
		if (direction == OCI_PULL) {
			oci_memcpy(own, here, length, whole);
		} else {
			touch(here, length);
			oci_memcpy(here, own, length, whole);
		}
		mine.at += length;
		theirs.at += length;
		moved += length;
	}
	return moved;
}

size_t oci_map_copy(struct oci_team *team, uint32_t peer, enum oci_direction direction,
		    const struct iovec *local, unsigned int locals, const struct iovec *remote,
		    unsigned int remotes, size_t whole)
{
	struct oci_mapping *mapping = mapping_of(team, peer);
	size_t moved =
		!mapping ? 0 :
			   oci_map_move(mapping, direction, local, locals, remote, remotes, whole);

	if (moved)
		oci_map_count(moved);
	return moved;
}

void oci_map_missed(struct oci_team *team, uint32_t peer, ssize_t bytes)
{
	struct oci_map_misses *miss;

	if (bytes <= 0)
		return;
	if (oci_mapping_refused(team->member[peer].peer))
		miss = &misses[OCI_MISS_REFUSED];
	else if (mapping_of(team, peer))
		miss = &misses[OCI_MISS_OUTSIDE];
	else if (oci_arena_published())
		miss = &misses[OCI_MISS_NO_HEAP];
	else
		return;
	__atomic_fetch_add(&miss->copies, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&miss->bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
}

struct oci_map_misses oci_map_misses(enum oci_map_miss why)
{
	return (struct oci_map_misses){
		.copies = __atomic_load_n(&misses[why].copies, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&misses[why].bytes, __ATOMIC_RELAXED),
	};
}

const char *oci_map_miss_text(enum oci_map_miss why)
{
	static const char *const text[] = {
		[OCI_MISS_OUTSIDE] = ("the buffer is not memory of malloc (stack, static data, "
				      "another mapping), the heap was full, or the program has "
				      "mapped over it"),
		[OCI_MISS_REFUSED] = ("the other rank's heap could not be mapped "
				      "(ONECOPY_LOG=info says why)"),
		[OCI_MISS_NO_HEAP] = "the other rank has no shared heap",
	};

	return text[why];
}

void oci_map_count(size_t bytes)
{
	__atomic_fetch_add(&moved_bytes, bytes, __ATOMIC_RELAXED);
}

uint64_t oci_map_moved_bytes(void)
{
	return __atomic_load_n(&moved_bytes, __ATOMIC_RELAXED);
}
