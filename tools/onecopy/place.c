/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

void place_take_variable(const char *variable, char dir[PATH_MAX])
{
	const char *text = getenv(variable);

	dir[0] = '\0';
	if (text && *text && !realpath(text, dir))
		snprintf(dir, PATH_MAX, "%s", text);
	unsetenv(variable);
}

static bool has_file(const char *dir, const char *file)
{
	char path[PATH_MAX + NAME_MAX + 2];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return access(path, R_OK) == 0;
}

/* The executable's directory into dir; false when nothing says it. */
static bool own_directory(char dir[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	const char *called;
	char *slash;

	if (length > 0) {
		dir[length] = '\0';
	} else {
		/* Without /proc: what the kernel was told to run, from where we still are. */
		called = (const char *)getauxval(AT_EXECFN);
		if (!called || !realpath(called, dir))
			return false;
	}
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

bool place_find(const char *file, const char *given, const char *const places[2],
		char dir[PATH_MAX])
{
	char own[PATH_MAX];

	if (*given) {
		snprintf(dir, PATH_MAX, "%s", given);
		return has_file(dir, file);
	}
	dir[0] = '\0';
	if (!own_directory(own))
		return false;
	for (int i = 0; i < 2; i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", own, places[i]);
		if (!realpath(path, dir))
			snprintf(dir, PATH_MAX, "%.*s", PATH_MAX - 1, path);
		if (has_file(dir, file))
			return true;
	}
	return false;
}
