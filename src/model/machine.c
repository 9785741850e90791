/* SPDX-License-Identifier: BSD-3-Clause */
/* What a tuning file belongs to: host, processor, number of CPUs, page size. */
#include "model/model.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The value of "key<blanks>: value" at the start of a line. */
static bool find_line(const char *text, const char *key, char *value, size_t bytes)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		size_t length;

		line += *line == '\n';
		length = strlen(key);
		if (strncmp(line, key, length))
			continue;
		line += length;
		line += strspn(line, " \t");
		if (*line != ':')
			continue;
		line += 1 + strspn(line + 1, " \t");
		length = strcspn(line, "\n");
		if (length >= bytes)
			length = bytes - 1;
		memcpy(value, line, length);
		value[length] = '\0';
		return true;
	}
	return false;
}

void oci_machine_cpu_name(const char *cpuinfo, char *name, size_t bytes)
{
	char implementer[16], part[16];

	/* x86, then POWER; arm64 has numbers alone. */
	if (find_line(cpuinfo, "model name", name, bytes) || find_line(cpuinfo, "cpu", name, bytes))
		return;
	*name = '\0';
	if (find_line(cpuinfo, "CPU implementer", implementer, sizeof(implementer)) &&
	    find_line(cpuinfo, "CPU part", part, sizeof(part)))
		snprintf(name, bytes, "ARM %s %s", implementer, part);
}

static void read_cpu(char *name, size_t bytes)
{
	char text[4096]; /* the first CPU's lines; the others have the same name */
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	oci_machine_cpu_name(text, name, bytes);
}

void oci_machine_self(struct oci_machine *machine)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), page = sysconf(_SC_PAGESIZE);
	struct utsname name;

	memset(machine, 0, sizeof(*machine));
	if (!uname(&name)) {
		snprintf(machine->host, sizeof(machine->host), "%.*s",
			 (int)sizeof(machine->host) - 1, name.nodename);
		snprintf(machine->kernel, sizeof(machine->kernel), "%s", name.release);
	}
	read_cpu(machine->cpu, sizeof(machine->cpu));
	machine->cpus = cpus > 0 ? (uint32_t)cpus : 0;
	machine->page_bytes = page > 0 ? (size_t)page : 0;
}

const char *oci_machine_differs(const struct oci_machine *file, const struct oci_machine *here,
				char *expected, size_t expected_bytes, char *found,
				size_t found_bytes)
{
	if (strcmp(file->cpu, here->cpu)) {
		snprintf(expected, expected_bytes, "\"%s\"", here->cpu);
		snprintf(found, found_bytes, "\"%s\"", file->cpu);
		return "cpu";
	}
	if (file->cpus != here->cpus) {
		snprintf(expected, expected_bytes, "%u", here->cpus);
		snprintf(found, found_bytes, "%u", file->cpus);
		return "cpus";
	}
	if (file->page_bytes != here->page_bytes) {
		snprintf(expected, expected_bytes, "%zu", here->page_bytes);
		snprintf(found, found_bytes, "%zu", file->page_bytes);
		return "page_bytes";
	}
	if (fnmatch(file->host, here->host, 0)) {
		snprintf(expected, expected_bytes, "\"%s\" or a pattern of it", here->host);
		snprintf(found, found_bytes, "\"%s\"", file->host);
		return "host";
	}
	return NULL;
}
