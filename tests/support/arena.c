/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/arena.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap/arena.h"
#include "os/os.h"
#include "team/arena.h"

int oct_arena_create(struct oct_arena *arena, size_t bytes)
{
	struct oci_arena_id id = { .bytes = bytes };
	int error = oci_os_random(id.nonce, sizeof(id.nonce));

	if (error)
		return error;
	id.fd = memfd_create("arena of a test", MFD_CLOEXEC);
	if (id.fd < 0)
		return -errno;
	if (ftruncate(id.fd, (off_t)bytes)) {
		close(id.fd);
		return -errno;
	}
	arena->base = oci_os_map_shared(id.fd, bytes, &error);
	if (!arena->base) {
		close(id.fd);
		return error;
	}
	memcpy(arena->base, id.nonce, sizeof(id.nonce));
	arena->bytes = bytes;
	arena->used = OCI_ARENA_FIRST;
	arena->fd = id.fd;
	id.base = (uintptr_t)arena->base;
	oci_arena_publish(&id);
	return 0;
}

void *oct_arena_take(struct oct_arena *arena, size_t bytes)
{
	uint8_t *memory = arena->base + arena->used;

	bytes = (bytes + 4095) / 4096 * 4096;
	if (bytes > arena->bytes - arena->used)
		return NULL;
	arena->used += bytes;
	return memory;
}
