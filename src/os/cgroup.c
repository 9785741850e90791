/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/cgroup.h"

#include "os/os.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Called with the folder of each group from ours up to the mount's root; in version 1's tree or in
 * version 2's, which have other files. */
typedef void visit_fn(const char *folder, bool v1, void *context);

static bool names_controller(const char *list, const char *end, const char *controller)
{
	size_t length = strlen(controller);

	while (list < end) {
		size_t item = strcspn(list, ",:");

		if (item == length && !memcmp(list, controller, length))
			return true;
		list += item + 1;
	}
	return false;
}

/*
 * Our path in the hierarchy of `controller` (version 1), or in the unified one (controller NULL).
 * A line of /proc/self/cgroup, `text`, is "number:controllers:path", "0::path" for version 2.
 */
static bool find_path(const char *text, const char *controller, char *path, size_t bytes)
{
	for (const char *line = text; *line; line += strspn(line, "\n")) {
		const char *list = strpbrk(line, ":\n"), *end;

		end = list && *list == ':' ? strpbrk(list + 1, ":\n") : NULL;
		line += strcspn(line, "\n");
		if (!end || *end != ':')
			continue;
		list++;
		if (controller ? !names_controller(list, end, controller) : list != end)
			continue;
		return (size_t)snprintf(path, bytes, "%.*s", (int)(line - end - 1), end + 1) <
		       bytes;
	}
	return false;
}

static void walk(const char *root, const char *path, bool v1, visit_fn *visit, void *context)
{
	char folder[PATH_MAX];
	size_t floor = strlen(root);

	/* The root of the mount is looked at once. */
	if ((size_t)snprintf(folder, sizeof(folder), "%s%s", root, strcmp(path, "/") ? path : "") >=
	    sizeof(folder))
		return;
	for (;;) {
		char *slash;

		visit(folder, v1, context);
		slash = strrchr(folder, '/');
		if (!slash || (size_t)(slash - folder) < floor)
			return;
		*slash = '\0';
	}
}

/* A controller is in one tree: in that of version 1 that names it, or in version 2's. */
static void walk_all(const char *mount, const char *membership, const char *controller,
		     visit_fn *visit, void *context)
{
	char path[PATH_MAX], root[PATH_MAX];

	if (find_path(membership, controller, path, sizeof(path))) {
		/* Where controllers are mounted together, distributions link each name to the
		 * folder. */
		snprintf(root, sizeof(root), "%s/%s", mount, controller);
		walk(root, path, true, visit, context);
	} else if (find_path(membership, NULL, path, sizeof(path))) {
		walk(mount, path, false, visit, context);
		/* systemd's hybrid layout */
		snprintf(root, sizeof(root), "%s/unified", mount);
		walk(root, path, false, visit, context);
	}
}

static bool read_text(const char *folder, const char *name, char *text, size_t bytes)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return oci_os_read_file(path, text, bytes) >= 0;
}

/* false: no such file, or "max", which is not a number either. */
static bool read_number(const char *folder, const char *name, int64_t *value)
{
	char text[64];

	return read_text(folder, name, text, sizeof(text)) && sscanf(text, "%" SCNd64, value) == 1;
}

static void visit_cpu(const char *folder, bool v1, void *context)
{
	int64_t quota = 0, period = 0;
	double *least = context, cpus;
	char text[64];

	if (v1) {
		if (!read_number(folder, "cpu.cfs_quota_us", &quota) || quota <= 0 ||
		    !read_number(folder, "cpu.cfs_period_us", &period))
			return;
	} else if (!read_text(folder, "cpu.max", text, sizeof(text)) ||
		   sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) != 2) {
		return;
	}
	if (quota <= 0 || period <= 0)
		return;
	cpus = (double)quota / (double)period;
	if (!*least || cpus < *least)
		*least = cpus;
}

double oci_cgroup_cpus(const char *mount, const char *membership)
{
	double least = 0;

	walk_all(mount, membership, "cpu", visit_cpu, &least);
	return least;
}

/* File pages that nobody has used lately: charged to the group, dropped before it runs out. */
static int64_t droppable(const char *folder, const char *key)
{
	char text[8192], *line;
	int64_t bytes = 0;

	if (!read_text(folder, "memory.stat", text, sizeof(text)))
		return 0;
	line = strstr(text, key);
	if (line)
		sscanf(line + strlen(key), "%" SCNd64, &bytes);
	return bytes;
}

static void visit_memory(const char *folder, bool v1, void *context)
{
	size_t *least = context;
	int64_t limit, used, left;

	/* Version 1 says "no limit" with a number close to the largest. */
	if (!read_number(folder, v1 ? "memory.limit_in_bytes" : "memory.max", &limit) ||
	    (v1 && limit >= INT64_MAX / 2) ||
	    !read_number(folder, v1 ? "memory.usage_in_bytes" : "memory.current", &used))
		return;
	left = limit - used + droppable(folder, v1 ? "\ntotal_inactive_file " : "\ninactive_file ");
	if (left < 0)
		left = 0;
	if ((uint64_t)left < *least)
		*least = (size_t)left;
}

size_t oci_cgroup_memory_left(const char *mount, const char *membership)
{
	size_t least = SIZE_MAX;

	walk_all(mount, membership, "memory", visit_memory, &least);
	return least;
}

static char self[8192];

static void read_self(void)
{
	if (oci_os_read_file("/proc/self/cgroup", self, sizeof(self)) < 0)
		*self = '\0';
}

const char *oci_cgroup_self(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_self);
	return self;
}
