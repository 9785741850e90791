/* SPDX-License-Identifier: BSD-3-Clause */
#include "parts.h"

#include "lab/experiment/mpi_found.h"
#include "lab/harness/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_VARIABLE "OMPI_MCA_mca_base_component_path"
/* The same parameter's older name; Open MPI warns when both are set. */
#define OLD_PATH_VARIABLE "OMPI_MCA_mca_component_path"
/* What the dynamic linker takes for the end of a name in LD_PRELOAD. */
#define PRELOAD_SEPARATORS ": "
/* Of the folders of an installation that components lie in, in front of the version. */
#define COMPONENT_STEM "/openmpi-"

static const struct part known[PARTS] = {
	[PART_OPEN_MPI] = { .name = "Open MPI component",
			    .file = "mca_coll_onecopy.so",
			    .mpi = "Open MPI",
			    .built_for = OC_OMPI_VERSION,
			    .needs = "libopenmpi-dev",
			    .variable = "ONECOPY_COMPONENT_DIR" },
	[PART_MPICH] = { .name = "MPICH library",
			 .file = "libonecopy-pmpi.so",
			 .mpi = "MPICH",
			 .built_for = OC_MPICH_VERSION,
			 .needs = "libmpich-dev",
			 .variable = "ONECOPY_PRELOAD_DIR" },
	[PART_HEAP] = { .name = "shared heap",
			.file = "libonecopy-heap.so",
			.built_for = "",
			.needs = "libmimalloc-dev",
			.variable = "ONECOPY_HEAP_DIR" },
};

/* Relative to the executable's directory: the build tree, then an installation's bin. */
static const char *const places[PARTS][2] = {
	[PART_OPEN_MPI] = { "../../mpi/ompi", OC_COMPONENT_FROM_BIN },
	[PART_MPICH] = { "../../mpi/pmpi", OC_PRELOAD_FROM_BIN },
	[PART_HEAP] = { "../../src/heap/dso", OC_PRELOAD_FROM_BIN },
};

static char given[PARTS][PATH_MAX];

/*
 * Takes a variable of the command's own out of the environment, since the library would warn of one
 * that it does not know. What it said goes to `dir`: absolute, as the ranks may start elsewhere; ""
 * if it said nothing.
 */
static void take_variable(const char *variable, char dir[PATH_MAX])
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

void parts_take_variables(void)
{
	for (int i = 0; i < PARTS; i++)
		take_variable(known[i].variable, given[i]);
}

void part_find(enum part_kind kind, struct part *part)
{
	*part = known[kind];
	part->kind = kind;
	part->asked = *given[kind];
	part->found = place_find(part->file, given[kind], places[kind], part->dir);
	snprintf(part->path, sizeof(part->path), "%s/%s", part->dir, part->file);
}

bool part_is_same_minor(const char *a, const char *b)
{
	int major[2], minor[2];

	return sscanf(a, "%d.%d", &major[0], &minor[0]) == 2 &&
	       sscanf(b, "%d.%d", &major[1], &minor[1]) == 2 && major[0] == major[1] &&
	       minor[0] == minor[1];
}

/* Of ".../openmpi-4.1" the part before the version; 0: it has no such end, as in a build tree. */
static int stem_of(const struct part *part)
{
	const char *name = strrchr(part->dir, '/');

	if (part->kind != PART_OPEN_MPI || part->asked || !name ||
	    strncmp(name, COMPONENT_STEM, strlen(COMPONENT_STEM)) != 0)
		return 0;
	return (int)(name - part->dir) + (int)strlen(COMPONENT_STEM);
}

bool part_take(struct part *part, const char *version)
{
	static char minor_text[32];
	char dir[PATH_MAX];
	int major, minor, stem = stem_of(part);

	if (part->found && part_is_same_minor(part->built_for, version))
		return true;
	if (!stem || sscanf(version, "%d.%d", &major, &minor) != 2)
		return false;
	snprintf(dir, sizeof(dir), "%.*s%d.%d", stem, part->dir, major, minor);
	if (!has_file(dir, part->file))
		return false;
	snprintf(minor_text, sizeof(minor_text), "%d.%d", major, minor);
	snprintf(part->dir, sizeof(part->dir), "%s", dir);
	snprintf(part->path, sizeof(part->path), "%s/%s", part->dir, part->file);
	part->built_for = minor_text;
	part->found = true;
	return true;
}

static bool are_several(const struct part *part)
{
	char pattern[2 * PATH_MAX];
	int stem = stem_of(part);
	glob_t found = { 0 };
	size_t count;

	if (!stem)
		return false;
	snprintf(pattern, sizeof(pattern), "%.*s*/%s", stem, part->dir, part->file);
	glob(pattern, 0, NULL, &found);
	count = found.gl_pathc;
	globfree(&found);
	return count > !!part->found;
}

void part_take_launchers(struct part *part, const char *command)
{
	struct mpi_found mpi[8];
	int count;

	if (!are_several(part))
		return;
	if (mpi_ask(&mpi[0], command) && !strcmp(mpi[0].name, "Open MPI")) {
		part_take(part, mpi[0].version);
		return;
	}
	count = mpi_find(mpi, sizeof(mpi) / sizeof(mpi[0]));
	for (int i = 0; i < count; i++) {
		if (strcmp(mpi[i].name, "Open MPI") != 0)
			continue;
		part_take(part, mpi[i].version);
		return;
	}
}

const char *part_trouble(const struct part *part, bool load)
{
	static char text[1024];
	void *library;

	if (!part->found) {
		snprintf(text, sizeof(text),
			 "it is not there; build or install it (it needs %s), or %s %s",
			 part->needs, part->asked ? "correct" : "set", part->variable);
		return text;
	}
	if (part->kind == PART_OPEN_MPI)
		return strchr(part->dir, ':') ? "its directory has a colon in its name, which Open "
						"MPI's component path cannot express" :
						NULL;
	/* A dollar sign begins the linker's own variables: $LIB, $ORIGIN. */
	if (strpbrk(part->path, PRELOAD_SEPARATORS "$"))
		return "its path has a blank, a colon or a dollar sign in it, which LD_PRELOAD "
		       "cannot express";
	if (!load)
		return NULL;
	library = dlopen(part->path, RTLD_LAZY | RTLD_LOCAL);
	if (library) {
		dlclose(library);
		return NULL;
	}
	snprintf(text, sizeof(text), "%s", dlerror());
	return text;
}

/* Whether `word` is one of those in `list`. */
static bool has_word(const char *list, const char *word, const char *separators)
{
	size_t length = strlen(word);

	while (*list) {
		size_t next = strcspn(list, separators);

		if (next == length && !memcmp(list, word, length))
			return true;
		list += next + strspn(list + next, separators);
	}
	return false;
}

/* Adds a word to the list in `*list`, which is NULL or allocated, unless it is there: in front or
 * at the end. false: no memory. */
static bool add_word(char **list, const char *word, bool in_front, const char *separators)
{
	char *longer, *old = *list;
	int length;

	if (!old || !*old)
		length = asprintf(&longer, "%s", word);
	else if (has_word(old, word, separators))
		return true;
	else
		length = asprintf(&longer, "%s:%s", in_front ? word : old, in_front ? old : word);
	free(old);
	*list = length < 0 ? NULL : longer;
	return length >= 0;
}

/*
 * What others must be told beside a part; what the user told them stays.
 *
 * mpirun of Open MPI 5 takes Open MPI's path for PMIx's as well, which has another name for its own
 * directory, and says so at length.
 *
 * Where UCX watches mappings, one-sided atomics and accumulations of MPICH 4.0.2 give wrong results
 * with any malloc that is not the C library's (mimalloc and jemalloc preloaded, without us).
 */
static bool tell_others(const struct part *part)
{
	char path[PATH_MAX + 32], components[PATH_MAX] = "";
	FILE *file;

	if (part->kind == PART_HEAP)
		return !setenv("UCX_MEM_EVENTS", "n", 0);
	if (part->kind != PART_OPEN_MPI)
		return true;
	snprintf(path, sizeof(path), "%s/pmix-components", part->dir);
	file = fopen(path, "re");
	if (!file)
		return true; /* of Open MPI 4.1 */
	if (fscanf(file, "%4095[^\n]", components) != 1)
		components[0] = '\0';
	fclose(file);
	return !*components || !setenv("PMIX_MCA_mca_base_component_path", components, 0);
}

int part_export(const struct part *part)
{
	bool component = part->kind == PART_OPEN_MPI, done;
	const char *variable = component ? PATH_VARIABLE : "LD_PRELOAD", *set = getenv(variable);
	char *list;

	if (component && (!set || !*set))
		set = getenv(OLD_PATH_VARIABLE);
	list = strdup(set ? set : "");
	done = list && (component ? add_word(&list, part->dir, true, ":") &&
					    add_word(&list, "SYSTEM_DEFAULT", false, ":") &&
					    add_word(&list, "USER_DEFAULT", false, ":") :
				    add_word(&list, part->path, false, PRELOAD_SEPARATORS));
	if (done && component)
		unsetenv(OLD_PATH_VARIABLE);
	done = done && !setenv(variable, list, 1) && tell_others(part);
	free(list);
	return done ? 0 : -ENOMEM;
}
