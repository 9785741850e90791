/* SPDX-License-Identifier: BSD-3-Clause */
/* The network's terms, measured by an MPI between two hosts. */
#ifndef ONECOPY_TUNE_NETWORK_H
#define ONECOPY_TUNE_NETWORK_H

#include "lab/tune/tune.h"

/* `mpi`: "openmpi" or "mpich", whose launcher is on PATH, or `mpirun`, its words with options
 * (NULL: that one). Gives the model the terms: 0, or 1 and says why not. */
int tune_network(const char *mpi, const char *mpirun, struct oci_model *model);

#endif
