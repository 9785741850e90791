/* SPDX-License-Identifier: BSD-3-Clause */
#include "parts.h"

#include "lab/harness/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_VARIABLE "OMPI_MCA_mca_base_component_path"
/* The same parameter's older name; Open MPI warns when both are set. */
#define OLD_PATH_VARIABLE "OMPI_MCA_mca_component_path"
/* What the dynamic linker takes for the end of a name in LD_PRELOAD. */
#define PRELOAD_SEPARATORS ": "

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
static bool tell_others(enum part_kind kind)
{
	if (kind == PART_HEAP)
		return !setenv("UCX_MEM_EVENTS", "n", 0);
	return kind != PART_OPEN_MPI || !*OC_PMIX_COMPONENTS ||
	       !setenv("PMIX_MCA_mca_base_component_path", OC_PMIX_COMPONENTS, 0);
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
	done = done && !setenv(variable, list, 1) && tell_others(part->kind);
	free(list);
	return done ? 0 : -ENOMEM;
}
