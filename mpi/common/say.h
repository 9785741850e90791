/* SPDX-License-Identifier: BSD-3-Clause */
/* What the front ends tell the user: one line on standard error, at the levels of ONECOPY_LOG; and
 * the one thing that they ask. */
#ifndef OC_MPI_COMMON_SAY_H
#define OC_MPI_COMMON_SAY_H

#include <stdbool.h>

/* At ONECOPY_LOG=info or debug. */
void oci_mpi_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* At every level but error. */
void oci_mpi_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ONECOPY says that this process does not take part. */
bool oci_mpi_switched_off(void);

#endif
