/* SPDX-License-Identifier: BSD-3-Clause */
/* Where our Open MPI component lies, and how Open MPI is told. */
#ifndef ONECOPY_COMPONENT_H
#define ONECOPY_COMPONENT_H

#include <limits.h>
#include <stdbool.h>

#define COMPONENT_FILE "mca_coll_onecopy.so"
#define COMPONENT_DIR_VARIABLE "ONECOPY_COMPONENT_DIR"

struct component {
	char dir[PATH_MAX]; /* where it is, or where it should be */
	bool found;
	const char *built_for; /* "4.1.4", the Open MPI that this build was made with; "" if none */
};

/* Reads ONECOPY_COMPONENT_DIR and takes it out of the environment. To be called first. */
void component_take_variable(void);

/* ONECOPY_COMPONENT_DIR, else the build tree or the installation that this executable is in. */
void component_find(struct component *component);

/*
 * Puts dir at the front of Open MPI's component path in this process's environment, behind it what
 * the user had set there, and always Open MPI's own directories: a path without them leaves no
 * component at all. 0 or -ENOMEM.
 */
int component_export(const char *dir);

#endif
