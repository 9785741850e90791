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

/* Takes the elements that have our component from one of Open MPI's paths. True: there were some.
 */
static inline bool stock_environment_path(const char *variable)
{
	const char *set = getenv(variable);
	char *rest = set ? strdup(set) : NULL, *all = rest, *element;
	char *kept = set ? calloc(1, strlen(set) + 1) : NULL;
	bool dropped = false;

	while (kept && (element = strsep(&rest, ":"))) {
		char file[PATH_MAX];

		snprintf(file, sizeof(file), "%s/mca_coll_onecopy.so", element);
		if (access(file, F_OK) == 0) {
			dropped = true;
			continue;
		}
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

/* Takes our library from the names in LD_PRELOAD, which blanks or colons part. True: it was there.
 */
static inline bool stock_environment_preload(void)
{
	const char *set = getenv("LD_PRELOAD");
	char *rest = set ? strdup(set) : NULL, *all = rest, *element;
	char *kept = set ? calloc(1, strlen(set) + 1) : NULL;
	bool dropped = false;

	while (kept && (element = strsep(&rest, ": "))) {
		const char *slash = strrchr(element, '/');

		if (strncmp(slash ? slash + 1 : element, "libonecopy-", 11) == 0) {
			dropped = true;
			continue;
		}
		strcat(strcat(kept, *kept ? ":" : ""), element);
	}
	if (dropped && *kept)
		setenv("LD_PRELOAD", kept, 1);
	else if (dropped)
		unsetenv("LD_PRELOAD");
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

/*
 * Takes onecopy out of this process's environment. What went is listed in @dropped, to be said
 * once; true: something did.
 */
static inline bool stock_environment(char *dropped, size_t chars)
{
	static const char *const paths[] = { "OMPI_MCA_mca_base_component_path",
					     "OMPI_MCA_mca_component_path" };
	char name[256];
	size_t i = 0, used = 0;

	dropped[0] = '\0';
	while (environ[i]) {
		size_t length = strcspn(environ[i], "=");

		if (length < sizeof(name) && stock_environment_is_ours(environ[i], length)) {
			memcpy(name, environ[i], length);
			name[length] = '\0';
			unsetenv(name);
			snprintf(dropped + used, chars - used, "%s%s", used ? ", " : "", name);
			used = strlen(dropped);
		} else {
			i++;
		}
	}
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (stock_environment_path(paths[i])) {
			snprintf(dropped + used, chars - used, "%s%s", used ? ", " : "", paths[i]);
			used = strlen(dropped);
		}
	}
	if (stock_environment_preload()) {
		snprintf(dropped + used, chars - used, "%sLD_PRELOAD", used ? ", " : "");
		used = strlen(dropped);
	}
	return used > 0;
}

#endif
