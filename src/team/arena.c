/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/options.h"
#include "os/os.h"
#include "team/segment.h"

/* mapping of a peer that has none and never will; distinct from NULL, which means: ask again. */
static struct oci_mapping refused;

#define STEP OCI_MAPPING_STEP

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by lock, as are the users of each mapping. */
static struct oci_mapping_counts counts;
static struct oci_mapping *mappings; /* of other processes' arenas */
/* What we told; `there` is set last, with release: pairs with the acquire in oci_arena_published().
 */
static struct oci_arena_id self;
static uint64_t there;

void oci_arena_publish(const struct oci_arena_id *id)
{
	pthread_mutex_lock(&lock);
	if (!there) {
		self = *id;
		oci_store_release(&there, 1);
	}
	pthread_mutex_unlock(&lock);
	oci_segment_tell_arena();
}

bool oci_arena_published(void)
{
	/* Acquire: pairs with the release in oci_arena_publish(). */
	return oci_load_acquire(&there);
}

const struct oci_arena_id *oci_arena_self_id(void)
{
	return oci_arena_published() ? &self : NULL;
}

bool oci_arena_holds(uint64_t address)
{
	return oci_arena_published() && address - self.base < self.bytes;
}

void oci_arena_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
	there = 0;
	mappings = NULL;
	counts = (struct oci_mapping_counts){ 0 };
}

struct oci_mapping_counts oci_mapping_counts(void)
{
	struct oci_mapping_counts now;

	pthread_mutex_lock(&lock);
	now = counts;
	pthread_mutex_unlock(&lock);
	return now;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* `range`, and what has these bytes. */
static uint64_t around(uint64_t range, uint64_t offset, uint64_t bytes)
{
	uint64_t from = offset / STEP, to = (offset + bytes + STEP - 1) / STEP;

	if (range) {
		from = least_of(from, range & UINT32_MAX);
		to = to > range >> 32 ? to : range >> 32;
	}
	return to << 32 | from;
}

bool oci_mapping_open(struct oci_mapping *mapping, uint64_t offset, uint64_t bytes)
{
	uint64_t range = oci_load_acquire(&mapping->range), more, from, to;

	/* Each opens all that it then says is open, so it does not matter who is first. Release:
	 * pairs with the acquire in oci_mapping_is_open(). */
	do {
		more = around(range, offset, bytes);
		from = (more & UINT32_MAX) * STEP;
		to = least_of((more >> 32) * STEP, mapping->bytes);
		if (oci_os_open_mapped(mapping->at + from, to - from))
			return false;
	} while (!oci_compare_exchange(&mapping->range, &range, more));
	return true;
}

/* Opens and maps the file, and makes sure that it is the one. 0 or -errno. */
static int map_file(struct oci_mapping *mapping, pid_t pid, const struct oci_arena_id *id)
{
	int error = 0, fd = oci_os_open_peer_fd(pid, id->fd);
	uint8_t nonce[sizeof(id->nonce)];
	struct stat file;

	if (fd < 0)
		return fd;
	/* Another file may have the number by now; a shorter one would be SIGBUS. */
	if (fstat(fd, &file) || file.st_size < (off_t)id->bytes ||
	    pread(fd, nonce, sizeof(nonce), 0) != sizeof(nonce) ||
	    memcmp(nonce, id->nonce, sizeof(nonce)))
		error = -EPROTO;
	else
		mapping->at = oci_os_map_peer(fd, id->bytes, &error);
	close(fd);
	if (!error) {
		error = oci_os_open_mapped(mapping->at, oci_os_page_bytes());
		if (error)
			oci_os_unmap(mapping->at, id->bytes);
	}
	return error;
}

static const char *remedy(int error)
{
	switch (error) {
	case -ENOMEM:
		return "; raise the limit of the address space (ulimit -v), or make the arenas "
		       "smaller";
	case -ENOSPC:
		return ": the mapped arenas would take more than ONECOPY_MAP_BYTES; raise it";
	case -EACCES:
	case -EPERM:
		return "; non-dumpable processes and other user namespaces forbid it";
	default:
		return "";
	}
}

/* The caller holds the lock. 0 or -errno. */
static int mapping_make(struct oci_mapping **made, pid_t pid, const struct oci_arena_id *id,
			bool own)
{
	struct oci_mapping *mapping = calloc(1, sizeof(*mapping));
	uint64_t limit = oci_options()->map_bytes;
	int error = 0;

	if (!mapping)
		return -ENOMEM;
	mapping->base = id->base;
	mapping->bytes = id->bytes;
	mapping->own = own;
	mapping->users = 1;
	memcpy(mapping->nonce, id->nonce, sizeof(mapping->nonce));
	if (own) {
		mapping->at = (uint8_t *)(uintptr_t)id->base;
		mapping->range = around(0, 0, id->bytes);
		*made = mapping;
		return 0;
	}
	if (id->bytes > limit || counts.bytes > limit - id->bytes)
		error = -ENOSPC;
	else if (id->bytes > oci_os_address_space_left() / 2)
		error = -ENOMEM; /* the program has a use for what is left, and would fail */
	else
		error = map_file(mapping, pid, id);
	if (error) {
		free(mapping);
		return error;
	}
	mapping->next = mappings;
	mappings = mapping;
	counts.bytes += id->bytes;
	counts.made++;
	*made = mapping;
	return 0;
}

/* The same, or the one that is there already. */
static int mapping_share(struct oci_mapping **shared, pid_t pid, const struct oci_arena_id *id,
			 bool own)
{
	struct oci_mapping *mapping = own ? NULL : mappings;
	int error;

	while (mapping && memcmp(mapping->nonce, id->nonce, sizeof(id->nonce)))
		mapping = mapping->next;
	if (mapping) {
		mapping->users++;
		*shared = mapping;
		return 0;
	}
	error = mapping_make(shared, pid, id, own);
	if (error)
		oci_info("cannot map the shared heap of process %d (%zu bytes): %s%s; its buffers "
			 "are reached as without one",
			 (int)pid, (size_t)id->bytes, strerror(-error), remedy(error));
	return error;
}

struct oci_mapping *oci_mapping_share(pid_t pid, const struct oci_arena_id *id, int *error)
{
	struct oci_mapping *mapping = NULL;

	*error = -EAGAIN;
	if (pthread_mutex_trylock(&lock))
		return NULL;
	*error = mapping_share(&mapping, pid, id, false);
	pthread_mutex_unlock(&lock);
	return mapping;
}

static struct oci_mapping *mapping_find(struct oci_peer *peer)
{
	const struct oci_arena_id *id = oci_peer_arena(peer);
	struct oci_mapping *mapping;

	if (!id)
		return NULL;
	pthread_mutex_lock(&lock);
	mapping = peer->mapping;
	if (!mapping) {
		if (mapping_share(&mapping, peer->id.pid, id, peer->base == oci_segment_base()))
			mapping = &refused;
		/* Release: pairs with the acquire in oci_mapping_get(). */
		__atomic_store_n(&peer->mapping, mapping, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return mapping;
}

struct oci_mapping *oci_mapping_get(struct oci_peer *peer)
{
	/* Acquire: the mapping is complete. Pairs with the release in mapping_find(). */
	struct oci_mapping *mapping = __atomic_load_n(&peer->mapping, __ATOMIC_ACQUIRE);

	if (!mapping)
		mapping = mapping_find(peer);
	return mapping == &refused ? NULL : mapping;
}

bool oci_mapping_refused(const struct oci_peer *peer)
{
	/* Relaxed: only the pointer is looked at. */
	return __atomic_load_n(&peer->mapping, __ATOMIC_RELAXED) == &refused;
}

void oci_mapping_free(struct oci_mapping *mapping)
{
	struct oci_mapping **at = &mappings;
	bool last;

	if (!mapping || mapping == &refused)
		return;
	pthread_mutex_lock(&lock);
	last = !--mapping->users;
	if (last && !mapping->own) {
		while (*at != mapping)
			at = &(*at)->next;
		*at = mapping->next;
		counts.bytes -= mapping->bytes;
	}
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (!mapping->own)
		oci_os_unmap(mapping->at, mapping->bytes);
	free(mapping);
}
