/* SPDX-License-Identifier: BSD-3-Clause */
#include "heap/heap.h"

#include "base/log.h"
#include "base/options.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "libonecopy-heap.so"

/* From the folder of what this code is linked into: an installation (the library; the component;
 * the command and programs), then the build tree, likewise. */
static const char *const places[] = {
	"onecopy/",
	"",
	"../",
	"../lib/onecopy/",
	"../lib/x86_64-linux-gnu/onecopy/",
	"heap/dso/",
	"../src/heap/dso/",
	"../../src/heap/dso/",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static oci_arena_fn *arena_of; /* under the lock: found or loaded */
static bool looked, tried;     /* under the lock */

static oci_arena_fn *symbol(void *where)
{
	union {
		void *data;
		oci_arena_fn *function;
	} found = { .data = dlsym(where, OCI_ARENA_SYMBOL) };

	return found.function;
}

static bool malloc_is_in(const struct oci_arena *arena)
{
	void *volatile memory = malloc(1);
	bool is = (uint64_t)((uint8_t *)memory - arena->base) < arena->bytes;

	free(memory);
	return is;
}

void oci_arena_allocator(const struct oci_arena *arena, char *text, size_t bytes)
{
	int version = arena->mimalloc;

	snprintf(text, bytes, "mimalloc %d.%d.%d; onecopy is tested with 2.0.9 and 3.0.1",
		 version / 100, version / 10 % 10, version % 10);
}

static void find_preloaded(void)
{
	const struct oci_arena *arena;
	char allocator[100];

	looked = true;
	arena_of = symbol(RTLD_DEFAULT);
	if (!arena_of)
		return;
	arena = arena_of();
	if (arena->abi != OCI_ARENA_ABI) {
		oci_log(oci_option_warning_level(),
			"the preloaded " FILE_NAME " is of another version of onecopy (ABI %u, "
			"expected %u) and is not used; preload the one of this installation",
			arena->abi, OCI_ARENA_ABI);
		arena_of = NULL;
	} else if (arena->fd >= 0 && !malloc_is_in(arena)) {
		oci_log(oci_option_warning_level(),
			"the program has a malloc of its own, which it keeps: of the shared heap it "
			"has memory of MPI_Alloc_mem alone");
	} else if (arena->fd < 0) {
		oci_log(oci_option_warning_level(), "the shared heap is private memory: %s",
			arena->why);
	} else {
		oci_arena_allocator(arena, allocator, sizeof(allocator));
		oci_info("shared heap: up to %zu MiB, by %s", (size_t)(arena->bytes >> 20),
			 allocator);
	}
}

static void load_from(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		oci_debug("%s cannot be loaded: %s", path, dlerror());
		return;
	}
	arena_of = symbol(library);
	if (arena_of && arena_of()->abi != OCI_ARENA_ABI)
		arena_of = NULL;
}

static void find_beside(void)
{
	char path[PATH_MAX], program[PATH_MAX];
	const char *slash;
	Dl_info self;
	ssize_t length;

	tried = true;
	if (!dladdr((const void *)&places, &self) || !self.dli_fname)
		return;
	/* A program's name is argv[0], which has no folder where a shell found it on PATH. */
	if (!strchr(self.dli_fname, '/')) {
		length = readlink("/proc/self/exe", program, sizeof(program) - 1);
		if (length > 0) {
			program[length] = '\0';
			self.dli_fname = program;
		}
	}
	slash = strrchr(self.dli_fname, '/');
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !arena_of; i++) {
		int bytes = snprintf(path, sizeof(path), "%.*s%s" FILE_NAME,
				     slash ? (int)(slash + 1 - self.dli_fname) : 0, self.dli_fname,
				     places[i]);

		/* Without a slash the dynamic linker would search its own path. */
		if (slash && bytes > 0 && (size_t)bytes < sizeof(path))
			load_from(path);
	}
	if (!arena_of)
		oci_info("no shared memory for oc_alloc: " FILE_NAME " is not beside %s; build or "
			 "install it (it needs libmimalloc-dev)",
			 self.dli_fname);
}

void oci_arena_self_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

const struct oci_arena *oci_arena_self(bool load)
{
	oci_arena_fn *found;

	pthread_mutex_lock(&lock);
	if (!looked)
		find_preloaded();
	if (!arena_of && load && !tried)
		find_beside();
	found = arena_of;
	pthread_mutex_unlock(&lock);
	return found ? found() : NULL;
}
