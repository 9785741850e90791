/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/cgroup.h"
#include "os/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* Of place_for(): a large page, so that mappings can have them. */
#define STEP ((uintptr_t)2 << 20)
#define COLOURS 128
#define FAR ((uintptr_t)64 << 30)

/* Memory that can be had without swapping, MemAvailable; SIZE_MAX when /proc does not say. */
static size_t memory_available(void)
{
	char text[4096], *line;
	uint64_t kib;

	if (oci_os_read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return SIZE_MAX;
	line = strstr(text, "MemAvailable:");
	if (!line || sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
		return SIZE_MAX;
	return (size_t)kib << 10;
}

static size_t group_left(void)
{
	return oci_cgroup_memory_left("/sys/fs/cgroup", oci_cgroup_self());
}

/* Is there much more free memory than that, by a call that costs less than /proc/meminfo? */
static bool is_plain(size_t bytes)
{
	struct sysinfo info;

	return !sysinfo(&info) && (uint64_t)info.freeram * info.mem_unit / 16 > bytes;
}

size_t oci_os_memory_left(void)
{
	size_t machine = memory_available(), group = group_left();

	return machine < group ? machine : group;
}

/*
 * What the kernel would answer with a signal (SIGXFSZ past ulimit -f) or with the OOM killer (it
 * overcommits memfd pages, and so does a cgroup) is refused here instead.
 */
static int room_for(size_t offset, size_t bytes)
{
	struct rlimit limit;

	if (!bytes)
		return -EINVAL;
	if (offset + bytes < bytes || offset + bytes > INT64_MAX)
		return -EFBIG;
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    offset + bytes > limit.rlim_cur)
		return -EFBIG;
	return bytes > (is_plain(bytes) ? group_left() : oci_os_memory_left()) ? -ENOMEM : 0;
}

int oci_os_shared_file_grow(int fd, size_t offset, size_t bytes)
{
	int error = room_for(offset, bytes);

	if (error)
		return error;
	/*
	 * In pieces: a signal makes tmpfs undo the whole call, and a program with a fast interval
	 * timer would never finish a large one.
	 */
	while (bytes) {
		size_t piece = bytes < (size_t)4 << 20 ? bytes : (size_t)4 << 20;

		if (!fallocate(fd, 0, (off_t)offset, (off_t)piece)) {
			offset += piece;
			bytes -= piece;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/* A file in /dev/shm that has no name by the time anyone else could look. */
static int open_shm(void)
{
	uint64_t nonce;
	char name[64];
	int fd, error = oci_os_random(&nonce, sizeof(nonce));

	if (error)
		return error;
	snprintf(name, sizeof(name), "/onecopy-%d-%016" PRIx64, (int)getpid(), nonce);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	shm_unlink(name);
	return fd;
}

int oci_os_shared_file(const char *name, size_t bytes)
{
	int error, fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return -errno; /* shm_open needs a descriptor as well */
	if (fd < 0)
		fd = open_shm();
	if (fd < 0)
		return fd;
	error = oci_os_shared_file_grow(fd, 0, bytes);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

int oci_os_open_peer_fd(pid_t pid, int fd)
{
	struct stat file;
	char path[64];
	int opened;

	if (pid <= 0 || fd < 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	/* The peer, or another process with its number, may have anything there by now, and to open
	 * a terminal, a pipe or a device does something to it. */
	if (stat(path, &file))
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EBADF;
	opened = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (opened < 0)
		return -errno;
	if (fstat(opened, &file) || !S_ISREG(file.st_mode)) {
		close(opened);
		return -EBADF;
	}
	return opened;
}

int oci_os_find_peer_fd(pid_t pid, const char *link, int least)
{
	size_t length = strlen(link);
	char path[64], text[128];
	int found = -ENOENT;
	struct dirent *entry;
	DIR *all;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	all = opendir(path);
	if (!all)
		return -errno;
	while (length < sizeof(text) && found < 0 && (entry = readdir(all)))
		if (atoi(entry->d_name) >= least &&
		    readlinkat(dirfd(all), entry->d_name, text, sizeof(text)) == (ssize_t)length &&
		    !memcmp(text, link, length))
			found = atoi(entry->d_name);
	closedir(all);
	return found;
}

/*
 * Where to map a file of so many bytes, if there is room; NULL: anywhere. AMD's cores find the way
 * of a line in the nearest cache by a hash of bits 12 to 27 of its address (Lipp et al., "Take A
 * Way", 2020), so two mappings that lie a multiple of 256 MiB apart, as the kernel lays large files
 * of one size side by side, throw each other's lines out: a flag of ours and the peer's flag at the
 * same offset, which are used at the same time. A barrier between far CPUs took 0.58 us so, and
 * 0.46 with other addresses (docs/results.md). So each mapping differs from the 127 before it in
 * bits 21 to 27: they lie side by side, from a place downwards that is far from where the kernel
 * puts others'. If something is there, the kernel takes another place.
 */
static void *place_for(size_t bytes)
{
	static uintptr_t last;
	/* Relaxed, here and below: a place of its own for each is all that is asked. */
	uintptr_t from, place, before = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (bytes < STEP || bytes > SIZE_MAX / 2)
		return NULL;
	do {
		from = before / 2 > bytes ? before : (uintptr_t)&errno - FAR;
		place = (from - bytes) & ~(STEP - 1);
		place -= ((place / STEP - (from / STEP - 1)) % COLOURS) * STEP;
	} while (!__atomic_compare_exchange_n(&last, &before, place, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return (void *)place;
}

/*
 * A child of fork(2) that lives on would keep the memory when the job is gone. A core dump counts a
 * file without a name as private memory: it would hold all of the mapping, and fault in each page
 * that nobody has used. 0 or -errno.
 */
static int keep_out(void *address, size_t bytes)
{
	madvise(address, bytes, MADV_DONTDUMP);
	return madvise(address, bytes, MADV_DONTFORK) ? -errno : 0;
}

void *oci_os_map_shared(int fd, size_t bytes, int *error)
{
	void *address = mmap(place_for(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (address == MAP_FAILED) {
		*error = -errno;
		return NULL;
	}
	keep_out(address, bytes);
	return address;
}

static void *map_peer(int fd, size_t bytes, int protection, int *error)
{
	void *address = mmap(NULL, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (address == MAP_FAILED) {
		*error = -errno;
		return NULL;
	}
	*error = keep_out(address, bytes);
	if (*error) {
		munmap(address, bytes);
		return NULL;
	}
	/* After mlockall(MCL_FUTURE) it would count as ours to lock, whole. */
	munlock(address, bytes);
	return address;
}

void *oci_os_map_peer(int fd, size_t bytes, int *error)
{
	return map_peer(fd, bytes, PROT_NONE, error);
}

void *oci_os_map_front(int fd, size_t bytes, int *error)
{
	return map_peer(fd, bytes, PROT_READ, error);
}

void *oci_os_page_of_process(void)
{
	size_t bytes = oci_os_page_bytes();
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, bytes, MADV_WIPEONFORK)) {
		munmap(page, bytes);
		return NULL;
	}
	return page;
}

int oci_os_open_mapped(void *address, size_t bytes)
{
	return mprotect(address, bytes, PROT_READ | PROT_WRITE) ? -errno : 0;
}

void oci_os_touch(void *address, size_t bytes)
{
	madvise(address, bytes, MADV_POPULATE_WRITE);
}

size_t oci_os_address_space_left(void)
{
	struct rlimit limit;
	char text[128];
	uint64_t pages, used;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	if (oci_os_read_file("/proc/self/statm", text, sizeof(text)) < 0 ||
	    sscanf(text, "%" SCNu64, &pages) != 1)
		return SIZE_MAX;
	used = pages * oci_os_page_bytes();
	return used < limit.rlim_cur ? limit.rlim_cur - used : 0;
}

int oci_os_unmap(void *address, size_t bytes)
{
	return munmap(address, bytes) ? -errno : 0;
}

size_t oci_os_page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}
