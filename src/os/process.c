/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER /* <linux/prctl.h> has had it since 3.4; libc headers may lack it */
#define PR_SET_PTRACER 0x59616d61
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* one number on every architecture */
#endif

ssize_t oci_os_read_file(const char *path, char *text, size_t bytes)
{
	size_t used = 0;
	ssize_t done = 0;
	int fd;

	if (!bytes)
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (used < bytes - 1) {
		done = read(fd, text + used, bytes - 1 - used);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			break;
		used += (size_t)done;
	}
	if (done < 0)
		done = -errno;
	close(fd);
	if (done < 0)
		return done;
	text[used] = '\0';
	return (ssize_t)used;
}

int oci_os_pidfd_open(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

bool oci_os_pidfd_ended(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & POLLIN);
}

/*
 * Copies /proc/PID/stat and returns its field `number` (3 and up, numbered as in proc(5)). The
 * command name in field 2 may hold spaces and parentheses, so fields count from the last ')'.
 */
static char *stat_field(pid_t pid, int number, char *text, size_t bytes)
{
	char path[48], *field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (pid <= 0 || oci_os_read_file(path, text, bytes) < 0)
		return NULL;
	field = strrchr(text, ')');
	for (int i = 2; field && i < number; i++)
		field = strchr(field + 1, ' ');
	return field ? field + 1 : NULL;
}

uint64_t oci_os_process_start(pid_t pid)
{
	char text[1024], *field = stat_field(pid, 22, text, sizeof(text));

	return field ? strtoull(field, NULL, 10) : 0;
}

char oci_os_process_state(pid_t pid)
{
	char text[1024], *field = stat_field(pid, 3, text, sizeof(text));

	return field ? *field : 0;
}

pid_t oci_os_parent(pid_t pid)
{
	char text[1024], *field = stat_field(pid, 4, text, sizeof(text));

	return field ? (pid_t)strtol(field, NULL, 10) : 0;
}

bool oci_os_dumpable(void)
{
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

int oci_os_die_with_parent(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ? -errno : 0;
}

int oci_os_set_ptracer(pid_t tracer)
{
	unsigned long who = tracer == (pid_t)-1 ? (unsigned long)-1 : (unsigned long)tracer;

	return prctl(PR_SET_PTRACER, who, 0, 0, 0) ? -errno : 0;
}

int oci_os_yama_scope(void)
{
	char text[16];
	ssize_t done = oci_os_read_file("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text));

	if (done < 0)
		return (int)done;
	return text[0] >= '0' && text[0] <= '3' ? text[0] - '0' : -EPROTO;
}

int oci_os_random(void *bytes, size_t count)
{
	char *next = bytes;

	while (count) {
		ssize_t done = getrandom(next, count, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		next += done;
		count -= (size_t)done;
	}
	return 0;
}

static int hex_digit(char digit)
{
	return isdigit((unsigned char)digit) ? digit - '0' :
					       tolower((unsigned char)digit) - 'a' + 10;
}

int oci_os_boot_id(uint8_t id[16])
{
	char text[64], digits[32];
	size_t count = 0;
	ssize_t done = oci_os_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (done < 0)
		return (int)done;
	for (const char *next = text; *next && count < sizeof(digits); next++)
		if (isxdigit((unsigned char)*next))
			digits[count++] = *next;
	if (count != sizeof(digits))
		return -EPROTO;
	for (size_t i = 0; i < 16; i++)
		id[i] = (uint8_t)(hex_digit(digits[2 * i]) << 4 | hex_digit(digits[2 * i + 1]));
	return 0;
}

uint64_t oci_os_pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : (uint64_t)status.st_ino;
}
