/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of packed copies, kept for the next call: malloc gives large blocks back to the kernel,
 * and the next call would fault in every page anew, which takes longer than to copy what is on it.
 */
#ifndef OC_MPI_COPIES_H
#define OC_MPI_COPIES_H

#include <stddef.h>

/* By any thread. NULL where there is no memory. */
void *oci_mpi_copy_get(size_t bytes);
void oci_mpi_copy_put(void *copy);

#endif
