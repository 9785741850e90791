/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/inspect/large.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)
#define THP "/sys/kernel/mm/transparent_hugepage/"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

const char *oci_large_text(const struct oci_large_settings *s)
{
	if (!*s->enabled || !*s->shmem)
		return "none: this kernel has no transparent huge pages for shared memory, or " THP
		       " cannot be read";
	if (strstr(s->shmem, "[always]") || strstr(s->shmem, "[within_size]") ||
	    strstr(s->shmem, "[force]"))
		return "all memory, by the kernel (shmem_enabled)";
	if (strstr(s->enabled, "[never]"))
		return "none, as transparent huge pages are switched off; write madvise to " THP
		       "enabled";
	if (strstr(s->shmem, "[deny]"))
		return "none, as shared memory is denied them; write never or advise to " THP
		       "shmem_enabled";
	if (*s->nodes && strcmp(s->nodes, "0\n"))
		return "none, as pages are placed by their first touch on a machine of several "
		       "NUMA nodes; write always to " THP
		       "shmem_enabled, and the kernel makes large ones there";
	if (!s->collapse)
		return "none, as this kernel has no MADV_COLLAPSE (Linux 6.1 has it); write always "
		       "to " THP "shmem_enabled";
	return "blocks of 4 MiB and more, when they are allocated, and what further threads "
	       "begin with";
}

static const char *setting(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? 0 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	return text;
}

static bool can_collapse(void)
{
	/* The page has to be aligned in the file as well as in memory. */
	uint8_t *room = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *large;
	int fd = memfd_create("onecopy", MFD_CLOEXEC);
	struct rlimit files;
	bool can = false;

	/* Beyond that limit a file's growth is a signal, which ends a process. */
	if (room == MAP_FAILED || getrlimit(RLIMIT_FSIZE, &files) || files.rlim_cur < HUGE)
		goto closed;
	large = room + (HUGE - (uintptr_t)room % HUGE) % HUGE;
	if (fd >= 0 && !ftruncate(fd, HUGE) &&
	    mmap(large, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == large) {
		*large = 1;
		/* Without room for a large page now the call fails another way. */
		can = !madvise(large, HUGE, MADV_COLLAPSE) || errno != EINVAL;
	}
closed:
	if (room != MAP_FAILED)
		munmap(room, 2 * HUGE);
	if (fd >= 0)
		close(fd);
	return can;
}

const char *oci_large_pages(void)
{
	char enabled[128], shmem[128], nodes[64];
	struct oci_large_settings settings = {
		.enabled = setting(THP "enabled", enabled, sizeof(enabled)),
		.shmem = setting(THP "shmem_enabled", shmem, sizeof(shmem)),
		.nodes = setting("/sys/devices/system/node/online", nodes, sizeof(nodes)),
		.collapse = can_collapse(),
	};

	return oci_large_text(&settings);
}
