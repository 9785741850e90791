/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The executable's directory into dir; false when /proc does not say. */
static bool own_directory(char *dir, size_t bytes)
{
	ssize_t length = readlink("/proc/self/exe", dir, bytes - 1);
	char *slash;

	if (length <= 0)
		return false;
	dir[length] = '\0';
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
	if (!own_directory(own, sizeof(own)))
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
