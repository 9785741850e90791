/* SPDX-License-Identifier: BSD-3-Clause */
#include "preload.h"

#include "place.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the dynamic linker takes for the end of a name. */
#define SEPARATORS ": "

/* Relative to the executable's directory: the build tree, then an installation's bin. */
static const char *const places[2] = { "../../mpi/pmpi", OC_PRELOAD_FROM_BIN };
static const char *const heap_places[2] = { "../../src/heap/dso", OC_PRELOAD_FROM_BIN };

static char given[PATH_MAX], given_heap[PATH_MAX];

void preload_take_variable(void)
{
	place_take_variable(PRELOAD_DIR_VARIABLE, given);
	place_take_variable(HEAP_DIR_VARIABLE, given_heap);
}

void preload_find(struct preload *preload)
{
	*preload = (struct preload){ .built_for = OC_MPICH_VERSION };
	preload->found = place_find(PRELOAD_FILE, given, places, preload->dir);
	snprintf(preload->file, sizeof(preload->file), "%s/" PRELOAD_FILE, preload->dir);
}

void preload_find_heap(struct preload *heap)
{
	*heap = (struct preload){ .built_for = "" };
	heap->found = place_find(HEAP_FILE, given_heap, heap_places, heap->dir);
	snprintf(heap->file, sizeof(heap->file), "%s/" HEAP_FILE, heap->dir);
}

const char *preload_trouble(const struct preload *preload)
{
	/* A dollar sign begins the linker's own variables: $LIB, $ORIGIN. */
	if (strpbrk(preload->file, SEPARATORS "$"))
		return "its path has a blank, a colon or a dollar sign in it, which LD_PRELOAD "
		       "cannot express";
	return NULL;
}

const char *preload_load_trouble(const struct preload *preload)
{
	static char text[1024];
	void *library = dlopen(preload->file, RTLD_LAZY | RTLD_LOCAL);

	if (!library) {
		snprintf(text, sizeof(text), "%s", dlerror());
		return text;
	}
	dlclose(library);
	return NULL;
}

/* Whether `file` is one of the names in `list`. */
static bool list_has(const char *list, const char *file)
{
	size_t length = strlen(file);

	while (*list) {
		size_t next = strcspn(list, SEPARATORS);

		if (next == length && !memcmp(list, file, length))
			return true;
		list += next + strspn(list + next, SEPARATORS);
	}
	return false;
}

int preload_export(const char *file)
{
	const char *set = getenv("LD_PRELOAD");
	char *list;
	int err;

	if (set && list_has(set, file))
		return 0;
	if (asprintf(&list, "%s%s%s", set ? set : "", set && *set ? ":" : "", file) < 0)
		return -ENOMEM;
	err = setenv("LD_PRELOAD", list, 1);
	free(list);
	return err ? -ENOMEM : 0;
}
