/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An environment without onecopy, for programs that run others with and without it: if they were
 * started under onecopy themselves, the side without would silently have it too. A header, as such
 * programs (bench, demo, tests of the MPI) share no library.
 */
#ifndef HARNESS_STOCK_ENVIRONMENT_H
#define HARNESS_STOCK_ENVIRONMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline bool stock_environment_is_folder(const char *element)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/mca_coll_onecopy.so", element);
	return access(file, F_OK) == 0;
}

static inline bool stock_environment_is_library(const char *element)
{
	const char *slash = strrchr(element, '/');

	return strncmp(slash ? slash + 1 : element, "libonecopy-", 11) == 0;
}

/* Takes what is ours from a list whose elements one of the separators parts. True: there was some.
 */
static inline bool stock_environment_list(const char *variable, const char *separators,
					  bool (*is_ours)(const char *element))
{
	const char *set = getenv(variable);
	char *rest = set ? strdup(set) : NULL, *all = rest, *element;
	char *kept = set ? calloc(1, strlen(set) + 1) : NULL;
	bool dropped = false;

	while (kept && (element = strsep(&rest, separators))) {
		if (is_ours(element))
			dropped = true;
		else
			strcat(strcat(kept, *kept ? ":" : ""), element);
	}
	if (dropped && *kept)
		setenv(variable, kept, 1);
	else if (dropped)
		unsetenv(variable);
	free(kept);
	free(all);
	return dropped;
}

/* Options of onecopy; parameters of Open MPI's coll framework that name it. */
static inline bool stock_environment_is_ours(const char *entry, size_t length)
{
	if (length >= 7 && strncmp(entry, "ONECOPY", 7) == 0)
		return length == 7 || entry[7] == '_';
	return strncmp(entry, "OMPI_MCA_coll", 13) == 0 && strstr(entry, "onecopy");
}

static inline void stock_environment_say(char *dropped, size_t chars, const char *name)
{
	size_t used = strlen(dropped);

	snprintf(dropped + used, chars - used, "%s%s", used ? ", " : "", name);
}

/*
 * Takes onecopy out of this process's environment. What went is listed in @dropped, to be said
 * once; true: something did.
 */
static inline bool stock_environment(char *dropped, size_t chars)
{
	static const char *const paths[] = { "OMPI_MCA_mca_base_component_path",
					     "OMPI_MCA_mca_component_path" };
	char name[256];
	size_t i = 0;

	dropped[0] = '\0';
	while (environ[i]) {
		size_t length = strcspn(environ[i], "=");

		if (length < sizeof(name) && stock_environment_is_ours(environ[i], length)) {
			memcpy(name, environ[i], length);
			name[length] = '\0';
			unsetenv(name);
			stock_environment_say(dropped, chars, name);
		} else {
			i++;
		}
	}
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (stock_environment_list(paths[i], ":", stock_environment_is_folder))
			stock_environment_say(dropped, chars, paths[i]);
	if (stock_environment_list("LD_PRELOAD", ": ", stock_environment_is_library))
		stock_environment_say(dropped, chars, "LD_PRELOAD");
	return dropped[0];
}

#endif
