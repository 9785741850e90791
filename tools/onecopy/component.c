/* SPDX-License-Identifier: BSD-3-Clause */
#include "component.h"

#include "place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_VARIABLE "OMPI_MCA_mca_base_component_path"
/* The same parameter's older name; Open MPI warns when both are set. */
#define OLD_PATH_VARIABLE "OMPI_MCA_mca_component_path"

/* Relative to the executable's directory: the build tree, then an installation's bin. */
static const char *const places[2] = { "../../mpi/ompi", OC_COMPONENT_FROM_BIN };

static char given[PATH_MAX];

void component_take_variable(void)
{
	place_take_variable(COMPONENT_DIR_VARIABLE, given);
}

void component_find(struct component *component)
{
	*component = (struct component){ .built_for = OC_OMPI_VERSION };
	component->found = place_find(COMPONENT_FILE, given, places, component->dir);
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
