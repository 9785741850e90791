/* SPDX-License-Identifier: BSD-3-Clause */
/* This process, as the kernel sees it: its time, memory, descriptors and limits. For programs of an
 * MPI, too. What cannot be read is 0. */
#ifndef OC_TESTS_PROCESS_H
#define OC_TESTS_PROCESS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * What this thread had to wait for a CPU so far, in seconds. A test of how soon something happens
 * takes it off: then a machine that others use is as good as a quiet one.
 */
static inline double oct_waited_s(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ran, waited = 0;

	if (file && fscanf(file, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (file)
		fclose(file);
	return 1e-9 * (double)waited;
}

/*
 * The seconds since the clock said `since_s`, but for what this thread had to wait for a CPU since
 * oct_waited_s() said `waited_s`, before that. What others had to wait is in it: so their limit is
 * some times as long as it takes them to do what is usual there, now.
 */
static inline double oct_given_s(double since_s, double waited_s)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - since_s -
	       (oct_waited_s() - waited_s);
}

/* What a file of /proc says of it, such as "VmPTE: %ld", in its unit. */
static inline long oct_field(const char *path, const char *format)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long value = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

static inline void oct_memory(size_t *address_space, size_t *resident)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!file || fscanf(file, "%zu %zu", address_space, resident) != 2)
		*address_space = *resident = 0;
	if (file)
		fclose(file);
	*address_space *= page;
	*resident *= page;
}

static inline unsigned int oct_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int count = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		count += c == '\n';
	if (file)
		fclose(file);
	return count;
}

static inline unsigned int oct_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static inline int oct_pipes(void)
{
	struct stat status;
	int count = 0;

	for (int fd = 0; fd < 8192; fd++)
		count += !fstat(fd, &status) && S_ISFIFO(status.st_mode);
	return count;
}

static inline void oct_replace_pidfds(int by)
{
	for (int fd = 3; fd < 1024; fd++) {
		char path[48], link[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, "[pidfd]"))
			dup2(by, fd);
	}
}

/* The soft limit; not above the hard one. 0, or -1 with errno. */
static inline int oct_limit(int resource, size_t most)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit))
		return -1;
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &limit);
}

/* No descriptor can be opened any more, but for 0 to 2, or as many as before; those that are open
 * stay. */
static inline void oct_starve(bool starved)
{
	static struct rlimit before;
	struct rlimit none;

	if (!before.rlim_cur)
		getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 3, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, starved ? &none : &before);
}

/* Another user than root, who may have as many pipes as he likes, and who has as many as he may:
 * further ones are small. Dumpable, as programs are. False: it cannot be. */
static inline bool oct_use_up_pipes(void)
{
	struct rlimit many = { 8192, 8192 };
	int ends[2];

	if (setrlimit(RLIMIT_NOFILE, &many) || setgid(65534) || setuid(65534) ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return false;
	for (int i = 0; i < 4000 && !pipe(ends); i++)
		if (fcntl(ends[1], F_GETPIPE_SZ) < 64 << 10)
			return true;
	return false;
}

/* So much more than is in use. */
static inline int oct_limit_address_space(size_t more)
{
	size_t address_space, resident;

	oct_memory(&address_space, &resident);
	return oct_limit(RLIMIT_AS, address_space + more);
}

#endif
