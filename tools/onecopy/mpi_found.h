/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI installations whose launchers are on PATH. */
#ifndef ONECOPY_MPI_FOUND_H
#define ONECOPY_MPI_FOUND_H

#include <limits.h>

struct mpi_found {
	char launcher[PATH_MAX];
	char name[64];	   /* "Open MPI", "MPICH", or "unknown" */
	char version[128]; /* "4.1.4", or what the launcher says of itself */
};

/* Asks each launcher once (a few ms); how many were found, at most `room`. */
int mpi_find(struct mpi_found *found, int room);

#endif
