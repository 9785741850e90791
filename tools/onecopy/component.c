/* SPDX-License-Identifier: BSD-3-Clause */
#include "component.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_VARIABLE "OMPI_MCA_mca_base_component_path"
/* The same parameter's older name; Open MPI warns when both are set. */
#define OLD_PATH_VARIABLE "OMPI_MCA_mca_component_path"

/* Relative to the executable's directory: the build tree, then an installation's bin. */
static const char *const places[] = { "../../mpi/ompi", OC_COMPONENT_FROM_BIN };

/* What the variable said; absolute, as the ranks may start elsewhere. "" if it said nothing. */
static char given[PATH_MAX];

void component_take_variable(void)
{
	const char *text = getenv(COMPONENT_DIR_VARIABLE);

	if (text && *text && !realpath(text, given))
		snprintf(given, sizeof(given), "%s", text);
	unsetenv(COMPONENT_DIR_VARIABLE);
}

static bool has_component(const char *dir)
{
	char path[PATH_MAX + sizeof(COMPONENT_FILE) + 1];

	snprintf(path, sizeof(path), "%s/" COMPONENT_FILE, dir);
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

void component_find(struct component *component)
{
	char own[PATH_MAX];

	*component = (struct component){ .built_for = OC_OMPI_VERSION };
	if (*given) {
		snprintf(component->dir, sizeof(component->dir), "%s", given);
		component->found = has_component(component->dir);
		return;
	}
	if (!own_directory(own, sizeof(own)))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !component->found; i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", own, places[i]);
		if (!realpath(path, component->dir))
			snprintf(component->dir, sizeof(component->dir), "%.*s", PATH_MAX - 1,
				 path);
		component->found = has_component(component->dir);
	}
}

/* Whether `word` is one of the colon-separated words of `path`. */
static bool path_has(const char *path, const char *word)
{
	size_t length = strlen(word);

	while (*path) {
		size_t next = strcspn(path, ":");

		if (next == length && !memcmp(path, word, length))
			return true;
		path += next;
		path += *path == ':';
	}
	return false;
}

int component_export(const char *dir)
{
	static const char *const defaults[] = { "SYSTEM_DEFAULT", "USER_DEFAULT" };
	const char *set = getenv(PATH_VARIABLE);
	char *path;
	int length;

	if (!set || !*set)
		set = getenv(OLD_PATH_VARIABLE);
	if (!set)
		set = "";
	length = path_has(set, dir) ? asprintf(&path, "%s", set) :
				      asprintf(&path, "%s%s%s", dir, *set ? ":" : "", set);
	for (size_t i = 0; i < 2 && length >= 0; i++) {
		char *longer;

		if (path_has(path, defaults[i]))
			continue;
		length = asprintf(&longer, "%s:%s", path, defaults[i]);
		free(path);
		path = longer;
	}
	if (length < 0)
		return -ENOMEM;
	unsetenv(OLD_PATH_VARIABLE);
	length = setenv(PATH_VARIABLE, path, 1);
	free(path);
	return length ? -ENOMEM : 0;
}
