/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel module's device (kernel/uapi/linux/onecopy.h has the calls and their errors). */
#include <errno.h>
#include <fcntl.h>
#include <linux/onecopy.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/os.h"

_Static_assert(sizeof(struct onecopy_piece) == sizeof(struct iovec), "the same to the kernel");

int oci_os_kmod_open(void)
{
	int fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	struct oci_os_kmod_counters counters;
	int error;

	if (fd < 0)
		return -errno;
	error = oci_os_kmod_count(fd, &counters);
	if (!error)
		return fd;
	close(fd);
	return error;
}

int oci_os_kmod_count(int fd, struct oci_os_kmod_counters *counters)
{
	struct onecopy_counters call = { .size = sizeof(call) };

	if (ioctl(fd, ONECOPY_COUNTERS, &call))
		return -errno;
	if (call.version != ONECOPY_VERSION)
		return -EPROTO;
	*counters = (struct oci_os_kmod_counters){ .version = call.version,
						   .regions_created = call.regions_created,
						   .regions_now = call.regions_now,
						   .regions_gone = call.regions_gone,
						   .pages_pinned_now = call.pages_pinned_now,
						   .copies = call.copies,
						   .copies_by_thread = call.copies_by_thread,
						   .bytes = call.bytes,
						   .failures = call.failures,
						   .maps = call.maps,
						   .maps_now = call.maps_now,
						   .copies_by_engine = call.copies_by_engine,
						   .bytes_by_engine = call.bytes_by_engine,
						   .engines_busy = call.engines_busy,
						   .engine_failures = call.engine_failures,
						   .channels = call.channels };
	return 0;
}

const uint32_t *oci_os_kmod_words(int fd, unsigned int count, int *error)
{
	void *words = mmap(NULL, count * sizeof(uint32_t), PROT_READ, MAP_SHARED, fd, 0);

	*error = words == MAP_FAILED ? -errno : 0;
	return words == MAP_FAILED ? NULL : words;
}

int oci_os_kmod_register(int fd, uint64_t address, size_t bytes, bool may_write, uint32_t word,
			 uint64_t *cookie)
{
	struct onecopy_piece piece = { .addr = address, .len = bytes };
	struct onecopy_region_create call = {
		.size = sizeof(call),
		.flags = ONECOPY_REGION_READ | (may_write ? ONECOPY_REGION_WRITE : 0),
		.pieces = (uintptr_t)&piece,
		.piece_count = 1,
		.word = word,
	};

	if (ioctl(fd, ONECOPY_REGION_CREATE, &call))
		return -errno;
	*cookie = call.cookie;
	return 0;
}

void oci_os_kmod_unregister(int fd, uint64_t cookie)
{
	struct onecopy_region_destroy call = { .size = sizeof(call), .cookie = cookie };

	/* It may have ended with its memory. */
	ioctl(fd, ONECOPY_REGION_DESTROY, &call);
}

ssize_t oci_os_kmod_copy(int fd, uint64_t cookie, uint64_t offset, const struct iovec *local,
			 unsigned int locals, size_t bytes, unsigned int flags)
{
	struct onecopy_copy call = { .size = sizeof(call),
				     .flags = (flags & OCI_OS_KMOD_WRITE ? ONECOPY_COPY_WRITE : 0) |
					      (flags & OCI_OS_KMOD_DMA ? ONECOPY_COPY_DMA : 0),
				     .cookie = cookie,
				     .offset = offset,
				     .length = bytes,
				     .pieces = (uintptr_t)local,
				     .piece_count = locals };

	return ioctl(fd, ONECOPY_COPY, &call) ? -errno : (ssize_t)call.copied;
}
