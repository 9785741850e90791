/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI's ompi/op/op.h includes this header, but Debian's libopenmpi-dev does not install it.
 * op.h needs one macro of it, for INTEGERs that are as wide as int (checked here).
 */
#ifndef OC_OMPI_FINT_2_INT_H
#define OC_OMPI_FINT_2_INT_H

#include <mpi.h>

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "a Fortran INTEGER is as wide as an int");
#define OMPI_INT_2_FINT(value) ((MPI_Fint)(value))

#endif
