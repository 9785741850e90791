/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded behind onecopy's library for MPICH: an MPI that does as OC_TEST_BEHIND says.
 *
 * slow      MPI_Comm_set_attr takes its time before and after: other threads, which have not found
 *           the attribute either, set it meanwhile
 * returns   MPI_Finalize is over at once, whoever of the job has died
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOW_US = 500 };

static int is(const char *word)
{
	const char *asked = getenv("OC_TEST_BEHIND");

	return asked && !strcmp(asked, word);
}

int PMPI_Comm_set_attr(MPI_Comm comm, int key, void *value)
{
	int (*next)(MPI_Comm, int, void *) =
		(int (*)(MPI_Comm, int, void *))dlsym(RTLD_NEXT, "PMPI_Comm_set_attr");
	int error;

	if (is("slow"))
		usleep(SLOW_US);
	error = next(comm, key, value);
	if (is("slow"))
		usleep(SLOW_US);
	return error;
}

int PMPI_Finalize(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "PMPI_Finalize");

	return is("returns") ? MPI_SUCCESS : next();
}
