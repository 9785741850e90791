// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/host.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lab/harness/child.h"

enum { GIT_TIMEOUT_S = 20 };

static void first_line(char *text)
{
	text[strcspn(text, "\n")] = '\0';
}

static void read_line(const char *path, char *out, int chars)
{
	FILE *file = fopen(path, "r");

	out[0] = '\0';
	if (file) {
		if (fgets(out, chars, file))
			first_line(out);
		fclose(file);
	}
}

static void read_cpu_model(char *out, int chars)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(out, (size_t)chars, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ':');

		if (value && strncmp(line, "model name", 10) == 0) {
			first_line(value);
			snprintf(out, (size_t)chars, "%s", value + 2);
			break;
		}
	}
	if (file)
		fclose(file);
}

/* The hardware threads that this process may use, and the cores behind them, each counted once. */
static void count_cpus(struct host *host)
{
	cpu_set_t allowed, cores;
	int cpu;

	CPU_ZERO(&cores);
	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		host->cpus = host->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
		return;
	}
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		char path[96], siblings[64];

		if (!CPU_ISSET(cpu, &allowed))
			continue;
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
		read_line(path, siblings, sizeof(siblings));
		/*
		 * A core is known by its first thread, which we may not be allowed to use
		 * ourselves. Without the file each CPU is taken for a core.
		 */
		CPU_SET(siblings[0] ? atoi(siblings) : cpu, &cores);
	}
	host->cpus = CPU_COUNT(&allowed);
	host->cores = CPU_COUNT(&cores);
}

static bool git(const char *folder, const char *words, struct child_result *result)
{
	struct child_args args = { .n = 0 };
	bool done;

	child_args_add(&args, "git");
	child_args_add(&args, "-C");
	child_args_add(&args, folder);
	child_args_add_words(&args, words);
	done = child_run(&args, GIT_TIMEOUT_S, result) == 0;
	child_args_destroy(&args);
	return done;
}

/* Not of whatever other repository an installed program happens to lie in. */
static bool is_ours(const char *folder, struct child_result *result)
{
	return git(folder, "ls-tree --name-only --full-tree HEAD lab/harness/host.c", result) &&
	       result->tail[0] && git(folder, "rev-parse HEAD", result);
}

static void read_commit(struct host *host)
{
	struct child_result result;
	char folder[PATH_MAX];

	snprintf(host->commit, sizeof(host->commit), "unknown");
	if (!host_program_folder(folder) || !is_ours(folder, &result)) {
		/* Built outside of the repository: then perhaps called from inside of it. */
		snprintf(folder, sizeof(folder), ".");
		if (!is_ours(folder, &result))
			return;
	}
	first_line(result.tail);
	snprintf(host->commit, sizeof(host->commit), "%.40s", result.tail);
	/* Files git does not know are no part of what was built. */
	host->dirty = !git(folder, "status --porcelain --untracked-files=no", &result) ||
		      result.tail[0] != '\0';
}

bool host_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	const char *called;

	if (n > 0) {
		path[n] = '\0';
		return true;
	}
	/* Without /proc: what the kernel was told to run, from where we still are. */
	called = (const char *)getauxval(AT_EXECFN);
	return called && realpath(called, path);
}

bool host_program_folder(char folder[PATH_MAX])
{
	char *slash = host_program(folder) ? strrchr(folder, '/') : NULL;

	if (slash)
		*slash = '\0';
	return slash;
}

int host_make_folders(const char *path)
{
	char folder[PATH_MAX];

	if (strlen(path) >= sizeof(folder))
		return -ENAMETOOLONG;
	strcpy(folder, path);
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0755) && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

void host_describe(struct host *host)
{
	time_t now = time(NULL);
	struct utsname names;
	struct tm utc;

	memset(host, 0, sizeof(*host));
	uname(&names);
	snprintf(host->name, sizeof(host->name), "%s", names.nodename);
	snprintf(host->kernel, sizeof(host->kernel), "%s", names.release);
	read_cpu_model(host->cpu, sizeof(host->cpu));
	read_line("/sys/kernel/mm/transparent_hugepage/enabled", host->huge_pages,
		  sizeof(host->huge_pages));
	count_cpus(host);
	gmtime_r(&now, &utc);
	strftime(host->date, sizeof(host->date), "%Y-%m-%dT%H:%M:%SZ", &utc);
	read_commit(host);
}
