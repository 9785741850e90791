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

/* By which more of a mapping is opened: a large page. */
#define STEP ((uint64_t)2 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by lock but for the relaxed loads of the statistics. */
static struct oci_mapping_counts counts;
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

/* The caller holds the lock. 0 or -errno. */
static int open_more(struct oci_mapping *mapping, uint64_t offset, uint64_t bytes)
{
	uint64_t from = offset & ~(STEP - 1);
	uint64_t to = least_of((offset + bytes + STEP - 1) & ~(STEP - 1), mapping->bytes);
	int error;

	if (mapping->to) {
		from = least_of(from, mapping->from);
		to = to > mapping->to ? to : mapping->to;
	}
	error = oci_os_open_mapped(mapping->at + from, to - from);
	if (error)
		return error;
	/* In this order, and with release: pairs with the acquire in oci_mapping_is_open(). */
	oci_store_release(&mapping->from, from);
	oci_store_release(&mapping->to, to);
	return 0;
}

bool oci_mapping_open(struct oci_mapping *mapping, uint64_t offset, uint64_t bytes)
{
	int error;

	pthread_mutex_lock(&lock);
	error = open_more(mapping, offset, bytes);
	pthread_mutex_unlock(&lock);
	return !error;
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

/* The caller holds the lock. */
static int mapping_make(struct oci_mapping **made, const struct oci_peer *peer,
			const struct oci_arena_id *id)
{
	struct oci_mapping *mapping = calloc(1, sizeof(*mapping));
	uint64_t limit = oci_options()->map_bytes;
	int error = 0;

	if (!mapping)
		return -ENOMEM;
	mapping->base = id->base;
	mapping->bytes = id->bytes;
	mapping->own = peer->base == oci_segment_base();
	if (mapping->own) {
		mapping->at = (uint8_t *)(uintptr_t)id->base;
		mapping->to = id->bytes;
		*made = mapping;
		return 0;
	}
	if (id->bytes > limit || counts.bytes > limit - id->bytes)
		error = -ENOSPC;
	else if (id->bytes > oci_os_address_space_left() / 2)
		error = -ENOMEM; /* the program has a use for what is left, and would fail */
	else
		error = map_file(mapping, peer->id.pid, id);
	if (error) {
		free(mapping);
		return error;
	}
	counts.bytes += id->bytes;
	counts.made++;
	*made = mapping;
	return 0;
}

static struct oci_mapping *mapping_find(struct oci_peer *peer)
{
	const struct oci_arena_id *id = oci_peer_arena(peer);
	struct oci_mapping *mapping;
	int error;

	if (!id)
		return NULL;
	pthread_mutex_lock(&lock);
	mapping = peer->mapping;
	if (!mapping) {
		error = mapping_make(&mapping, peer, id);
		if (error) {
			oci_info("cannot map the shared heap of process %d (%zu bytes): %s%s; its "
				 "buffers are reached as without one",
				 (int)peer->id.pid, (size_t)id->bytes, strerror(-error),
				 remedy(error));
			mapping = &refused;
		}
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
	if (!mapping || mapping == &refused)
		return;
	if (!mapping->own) {
		oci_os_unmap(mapping->at, mapping->bytes);
		pthread_mutex_lock(&lock);
		counts.bytes -= mapping->bytes;
		pthread_mutex_unlock(&lock);
	}
	free(mapping);
}
