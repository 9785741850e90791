/* SPDX-License-Identifier: BSD-3-Clause */
/* What is put under programs: where it lies, and how programs are told to load it. */
#ifndef ONECOPY_PARTS_H
#define ONECOPY_PARTS_H

#include <limits.h>
#include <stdbool.h>

enum part_kind { PART_OPEN_MPI, PART_MPICH, PART_HEAP, PARTS };

struct part {
	const char *name;      /* "MPICH library" */
	const char *file;      /* "libonecopy-pmpi.so" */
	const char *mpi;       /* "MPICH", whose programs it serves; NULL: it goes with either */
	const char *built_for; /* "4.0.2", the version of it that this build was made with, "5.0" of
				* another build's component, or "" */
	const char *needs;     /* the package to build it with */
	const char *variable;  /* that says its directory: ONECOPY_PRELOAD_DIR */
	enum part_kind kind;
	bool found, asked;	  /* asked: its variable says where it is */
	char dir[PATH_MAX];	  /* where it is, or where it should be */
	char path[PATH_MAX + 32]; /* file in dir */
};

/* Reads the variables and takes them out of the environment. To be called first. */
void parts_take_variables(void);

/* In the directory of its variable, else in the build tree or the installation that this executable
 * is in. */
void part_find(enum part_kind kind, struct part *part);

/* Is the inner layout of these versions of Open MPI one? It stays within 4.1.x and within 5.0.x. */
bool part_is_same_minor(const char *a, const char *b);
/*
 * Of an installation with components of several builds: that for `version` of Open MPI, if it is
 * there, instead of this build's. True: `part` is for that version.
 */
bool part_take(struct part *part, const char *version);
/* The same for the launcher `command`, or the first one on PATH where it is none of Open MPI's. It
 * is asked only where there are several components, as that takes some 20 ms. */
void part_take_launchers(struct part *part, const char *command);

/* Why programs cannot be told to load it, as a phrase; NULL: they can. load: tries to load it into
 * this process, too, and it is what the dynamic linker says. */
const char *part_trouble(const struct part *part, bool load);

/*
 * Tells the programs that this process starts, by its environment. Open MPI's component path gets
 * the directory in front, behind it what the user had set there, and always Open MPI's own
 * directories: a path without them leaves no component at all. LD_PRELOAD gets the file behind all
 * else: a sanitizer's runtime must be the first, and a profiler calls on to who comes behind it. 0
 * or -ENOMEM.
 */
int part_export(const struct part *part);

/*
 * Looks for `file` in `given`, or, where that is "", in the two places relative to the executable's
 * directory: of the build tree, of an installation. True: it is in `dir`; false: there it should
 * be ("" where /proc does not say where we are).
 */
bool place_find(const char *file, const char *given, const char *const places[2],
		char dir[PATH_MAX]);

#endif
