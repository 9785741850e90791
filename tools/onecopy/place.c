/* SPDX-License-Identifier: BSD-3-Clause */
#include "place.h"

#include "lab/harness/host.h"

#include <stdio.h>
#include <stdlib.h>
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

bool place_find(const char *file, const char *given, const char *const places[2],
		char dir[PATH_MAX])
{
	char own[PATH_MAX];

	if (*given) {
		snprintf(dir, PATH_MAX, "%s", given);
		return has_file(dir, file);
	}
	dir[0] = '\0';
	if (!host_program_folder(own))
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
