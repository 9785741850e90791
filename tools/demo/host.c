// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

void demo_first_line(const char *command, char *line, size_t size)
{
	FILE *pipe = popen(command, "r");

	line[0] = '\0';
	if (!pipe)
		return;
	if (fgets(line, (int)size, pipe))
		line[strcspn(line, "\n")] = '\0';
	while (fgetc(pipe) != EOF)
		;
	pclose(pipe);
}

static void read_cpu_model(char *model, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char *line = NULL;
	size_t capacity = 0;

	snprintf(model, size, "unknown CPU");
	if (!file)
		return;
	while (getline(&line, &capacity, file) > 0) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		colon += 1 + strspn(colon + 1, " ");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(model, size, "%s", colon);
		break;
	}
	free(line);
	fclose(file);
}

/* The lowest hardware thread of a CPU's core, or the CPU itself where the kernel does not say. */
static int first_sibling(int cpu)
{
	char path[96];
	int first = cpu;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);

	FILE *file = fopen(path, "r");

	if (!file)
		return cpu;
	if (fscanf(file, "%d", &first) != 1)
		first = cpu;
	fclose(file);
	return first;
}

static void count_cpus(struct demo_host *host)
{
	cpu_set_t allowed, cores;

	CPU_ZERO(&cores);
	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		host->cpus = 1;
		host->cores = 1;
		return;
	}
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			CPU_SET(first_sibling(cpu), &cores);
	host->cpus = CPU_COUNT(&allowed);
	host->cores = CPU_COUNT(&cores);
}

int demo_host_read(struct demo_host *host)
{
	struct utsname os;

	read_cpu_model(host->cpu_model, sizeof(host->cpu_model));
	count_cpus(host);
	if (uname(&os))
		return -1;
	snprintf(host->kernel, sizeof(host->kernel), "%s %s", os.sysname, os.release);
	return 0;
}
