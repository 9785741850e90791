/* SPDX-License-Identifier: BSD-3-Clause */
/* A collective as a call of MPI. */
#ifndef BENCH_MPI_CALL_H
#define BENCH_MPI_CALL_H

#include <mpi.h>

#include "collective.h"
#include "ways.h"

struct mpi_call {
	const struct collective_call *call;
	int *counts; /* of a v-variant, else NULL: elements of each rank's block */
	int *displs; /* and where it begins */
	enum mpi_form form;
	MPI_Request kept; /* of FORM_PERSISTENT, made in the first call, whose buffers it keeps */
	MPI_Comm comm;	  /* of the neighborhood, one where all are neighbors, in their order, */
	bool own_comm;	  /* which the call made */
};

/*
 * Makes ready what the calls of a cell have in common. @call must outlive it. Returns 0, -ENOMEM,
 * or -EOVERFLOW where MPI's ints cannot say where the last block begins. Undone by
 * mpi_call_destroy, also after a failure.
 */
int mpi_call_create(struct mpi_call *mpi, const struct collective_call *call, enum mpi_form form,
		    MPI_Comm comm);
void mpi_call_destroy(struct mpi_call *mpi);

/* The nonblocking form, whatever the call's is: begun. */
void mpi_call_begin(struct mpi_call *mpi, void *send, void *recv, MPI_Request *request);
void mpi_call_run(struct mpi_call *mpi, void *send, void *recv);

#endif
