/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* PROCMAP_QUERY of linux/fs.h, from Linux 6.11 on. */
struct query {
	uint64_t size, flags, address;
	uint64_t from, to, vma_flags, page_bytes, offset, inode;
	uint32_t device[2], name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
#define READABLE 1u
#define WRITABLE 2u

bool oci_os_range_asks = true;

_Static_assert(sizeof(struct query) == 104, "as the kernel has it");

/* The mapping with this address. 0, -EFAULT: there is none that allows that, or -errno. */
static int ask(int maps, uint64_t address, bool write, struct oci_os_range *found)
{
	struct query query = { .size = sizeof(query),
			       .flags = READABLE | (write ? WRITABLE : 0),
			       .address = address };

	if (ioctl(maps, QUERY, &query))
		return errno == ENOENT ? -EFAULT : -errno;
	*found = (struct oci_os_range){ query.from, query.to };
	return 0;
}

/* Likewise, by the text: `maps` stands at its beginning, or behind a line before that mapping. */
static int look_up(FILE *maps, uint64_t address, bool write, struct oci_os_range *found)
{
	char line[512], read, writes;
	bool begins, ended = true;

	while (fgets(line, sizeof(line), maps)) {
		begins = ended;
		ended = strchr(line, '\n');
		if (!begins ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %c%c", &found->from, &found->to, &read,
			   &writes) != 4 ||
		    found->to <= address)
			continue;
		if (found->from > address || read != 'r' || (write && writes != 'w'))
			break;
		return 0;
	}
	return -EFAULT;
}

int oci_os_range(const void *address, size_t bytes, bool write, struct oci_os_range *range)
{
	uint64_t at = (uintptr_t)address, end = at + bytes;
	struct oci_os_range found;
	FILE *maps = fopen("/proc/self/maps", "re");
	bool asks = oci_os_range_asks;
	int error;

	if (!maps)
		return -errno;
	*range = (struct oci_os_range){ at, at };
	do {
		error = asks ? ask(fileno(maps), at, write, &found) : -ENOTTY;
		asks = !error || error == -EFAULT;
		if (!asks)
			error = look_up(maps, at, write, &found);
		if (error)
			break;
		range->from = found.from < range->from ? found.from : range->from;
		range->to = at = found.to;
	} while (at < end);
	fclose(maps);
	return error;
}
