/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI installations whose launchers are on PATH. */
#ifndef EXPERIMENT_MPI_FOUND_H
#define EXPERIMENT_MPI_FOUND_H

#include <limits.h>
#include <stdbool.h>

struct mpi_found {
	char launcher[PATH_MAX];
	char name[64];	   /* "Open MPI", "MPICH", or "unknown" */
	char version[128]; /* "4.1.4", or what the launcher says of itself */
};

/* Asks each launcher once (a few ms); how many were found, at most `room`. */
int mpi_find(struct mpi_found *found, int room);

/* The same of one launcher, as the shell would find it; false: it is not there, or none by its
 * name. */
bool mpi_ask(struct mpi_found *found, const char *launcher);

/* Would the shell find it? */
bool program_on_path(const char *name);

/* The MPIs that programs are built for, and what differs between their launchers. */
enum launcher { LAUNCH_NONE, LAUNCH_OPENMPI, LAUNCH_MPICH, LAUNCHERS };

struct launcher_info {
	const char *name, *word; /* "Open MPI", "openmpi" */
	const char *two_copies;	 /* the setting by which messages go through shared memory alone */
	const char *bind[3];	 /* options: not bound, a core for each rank, a hardware thread */
	char command[PATH_MAX];	 /* on PATH; "": there is none */
	char version[128];
};

/* Looks for them. */
void launchers_find(void);
/* NULL of LAUNCH_NONE. */
const struct launcher_info *launcher_info(enum launcher launcher);
/* LAUNCH_NONE: it is none. */
enum launcher launcher_of(const char *word);

#endif
