/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the libraries that programs preload lie, and how programs are told to load them. */
#ifndef ONECOPY_PRELOAD_H
#define ONECOPY_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

#define PRELOAD_FILE "libonecopy-pmpi.so"
#define PRELOAD_DIR_VARIABLE "ONECOPY_PRELOAD_DIR"
#define HEAP_FILE "libonecopy-heap.so"
#define HEAP_DIR_VARIABLE "ONECOPY_HEAP_DIR"

struct preload {
	char dir[PATH_MAX];	  /* where it is, or where it should be */
	char file[PATH_MAX + 32]; /* in dir */
	bool found;
	const char *built_for; /* "4.0.2", the MPICH that this build was made with; "" if none */
};

/* Reads ONECOPY_PRELOAD_DIR and ONECOPY_HEAP_DIR and takes them out of the environment. To be
 * called first. */
void preload_take_variable(void);

/* ONECOPY_PRELOAD_DIR, else the build tree or the installation that this executable is in. */
void preload_find(struct preload *preload);
/* The shared heap, likewise, by ONECOPY_HEAP_DIR. */
void preload_find_heap(struct preload *heap);

/* Why the dynamic linker cannot take this file as LD_PRELOAD has it; NULL: it can. */
const char *preload_trouble(const struct preload *preload);

/* What the dynamic linker says when it loads the file into this process; NULL: it can. */
const char *preload_load_trouble(const struct preload *preload);

/*
 * Appends the file to LD_PRELOAD in this process's environment. What is there stays, and stays in
 * front: a sanitizer's runtime must be the first, and a profiler calls on to who comes behind it.
 * 0 or -ENOMEM.
 */
int preload_export(const char *file);

#endif
