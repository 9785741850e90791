/* SPDX-License-Identifier: BSD-3-Clause */
/* Where our library for MPICH lies, and how programs are told to load it. */
#ifndef ONECOPY_PRELOAD_H
#define ONECOPY_PRELOAD_H

#include <limits.h>
#include <stdbool.h>

#define PRELOAD_FILE "libonecopy-pmpi.so"
#define PRELOAD_DIR_VARIABLE "ONECOPY_PRELOAD_DIR"

struct preload {
	char dir[PATH_MAX];			    /* where it is, or where it should be */
	char file[PATH_MAX + sizeof(PRELOAD_FILE)]; /* in dir */
	bool found;
	const char *built_for; /* "4.0.2", the MPICH that this build was made with; "" if none */
};

/* Reads ONECOPY_PRELOAD_DIR and takes it out of the environment. To be called first. */
void preload_take_variable(void);

/* ONECOPY_PRELOAD_DIR, else the build tree or the installation that this executable is in. */
void preload_find(struct preload *preload);

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
