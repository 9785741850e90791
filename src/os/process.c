/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER /* <linux/prctl.h> has had it since 3.4; libc headers may lack it */
#define PR_SET_PTRACER 0x59616d61
#endif

ssize_t oci_os_read_file(const char *path, char *text, size_t bytes)
{
	size_t used = 0;
	ssize_t done;
	int fd;

	if (!bytes)
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		done = TEMP_FAILURE_RETRY(read(fd, text + used, bytes - 1 - used));
		used += done > 0 ? (size_t)done : 0;
	} while (done > 0);
	if (done < 0)
		done = -errno;
	close(fd);
	if (done < 0)
		return done;
	text[used] = '\0';
	return (ssize_t)used;
}

/*
 * Field `number` (3 and up, numbered as in proc(5)) of what /proc/PID/stat says; NULL: it has none.
 * The command name in field 2 may hold spaces and parentheses, so fields count from the last ')'.
 */
static const char *stat_field(const char *text, int number)
{
	const char *field = strrchr(text, ')');

	for (int i = 2; field && i < number; i++)
		field = strchr(field + 1, ' ');
	return field ? field + 1 : NULL;
}

static uint64_t stat_number(const char *text, int number)
{
	const char *field = stat_field(text, number);

	return field ? strtoull(field, NULL, 10) : 0;
}

static bool read_stat(pid_t pid, char *text, size_t bytes)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return pid > 0 && oci_os_read_file(path, text, bytes) > 0;
}

/* Is /proc that of our PID namespace? A program may have changed its mounts. */
static bool proc_is_ours(void)
{
	char text[16] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == (int)getpid();
}

/*
 * Of where the program and its stack lie. The stack alone does not do where addresses are not
 * randomised: it begins where the arguments and the environment end.
 */
static uint64_t program_of(const char *text)
{
	/* startcode, endcode, startstack; start_data, end_data, start_brk */
	static const int fields[] = { 26, 27, 28, 45, 46, 47 };
	uint64_t mixed = 0;

	if (!stat_number(text, 28))
		return 0;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		mixed = mixed * 0x9e3779b97f4a7c15 + stat_number(text, fields[i]);
	return mixed | 1;
}

/* 0: the kernel has but one. */
static uint64_t time_namespace(void)
{
	struct stat space;

	return stat("/proc/self/ns/time", &space) ? 0 : space.st_ino;
}

struct oci_os_image oci_os_image(pid_t pid)
{
	char text[1024];

	if (!proc_is_ours() || !read_stat(pid, text, sizeof(text)))
		return (struct oci_os_image){ 0 };
	return (struct oci_os_image){ .start = stat_number(text, 22),
				      .clock = time_namespace(),
				      .program = program_of(text) };
}

/* By what /proc/PID/stat says. A main thread that has left by pthread_exit is a zombie, too, while
 * the process has other threads. */
static bool stat_ended(const char *text, const struct oci_os_image *image)
{
	const char *state = stat_field(text, 3);
	struct oci_os_image now = { .start = stat_number(text, 22), .program = program_of(text) };

	if (state && (*state == 'Z' || *state == 'X'))
		return stat_number(text, 20) <= 1;
	return (image->start && now.start && now.start != image->start &&
		image->clock == time_namespace()) ||
	       (image->program && now.program && now.program != image->program);
}

static bool is_reaped(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* Without a descriptor: a process that has ended has no program, and no thread but the zombie. */
static bool left_nothing(pid_t pid)
{
	char path[48], program[8];
	struct stat task;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (stat(path, &task) || task.st_nlink > 2 + 1) /* ".", "..", one a thread */
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, program, sizeof(program)) < 0 && errno == ENOENT;
}

bool oci_os_process_ended(pid_t pid, const struct oci_os_image *image)
{
	char text[1024];

	if (is_reaped(pid))
		return true;
	if ((read_stat(pid, text, sizeof(text)) ? stat_ended(text, image) : left_nothing(pid)) &&
	    proc_is_ours())
		return true;
	/* Its parent may have reaped it meanwhile, so that /proc has nothing of it. */
	return is_reaped(pid);
}

pid_t oci_os_parent(pid_t pid)
{
	char text[1024];

	return read_stat(pid, text, sizeof(text)) ? (pid_t)stat_number(text, 4) : 0;
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
		ssize_t done = TEMP_FAILURE_RETRY(getrandom(next, count, 0));

		if (done < 0)
			return -errno;
		next += done;
		count -= (size_t)done;
	}
	return 0;
}

static struct oci_os_node node;

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_boot_id(uint8_t id[16])
{
	char text[64], *next = text;
	ssize_t done = oci_os_read_file("/proc/sys/kernel/random/boot_id", text, sizeof(text));

	if (done < 0)
		return (int)done;
	for (size_t i = 0; i < 16; i++, next += 2) {
		next += *next == '-';
		if (digit(next[0]) < 0 || digit(next[1]) < 0)
			return -EPROTO;
		id[i] = (uint8_t)(digit(next[0]) << 4 | digit(next[1]));
	}
	return 0;
}

static uint8_t boot_id[16];
static int boot_id_error;

static void read_boot(void)
{
	boot_id_error = read_boot_id(boot_id);
}

int oci_os_boot_id(uint8_t id[16])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_boot);
	memcpy(id, boot_id, sizeof(boot_id));
	return boot_id_error;
}

static void read_node(void)
{
	struct stat status;

	node.error = oci_os_boot_id(node.boot_id);
	if (!node.error && stat("/proc/self/ns/pid", &status))
		node.error = -errno;
	else if (!node.error)
		node.pid_namespace = (uint64_t)status.st_ino;
}

const struct oci_os_node *oci_os_node(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_node);
	return &node;
}
