/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective with an MPI that says that it moves device memory, as one that was built for
 * GPUs does, or has chosen a component for them: where OC_TEST_DEVICE is set. The symbols of a
 * program come before those of its libraries. Debian's MPIs have no code for device memory, so
 * nothing would ever ask a CUDA, be it a real one or one made for a test; all that is ours, to
 * decline, runs here.
 */
#include "case.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
/* What Open MPI has chosen, the component for none, gets another name, which is what we look at. */
EXPORTED int opal_accelerator_base_select(void);

EXPORTED int opal_accelerator_base_select(void)
{
	union {
		void *data;
		int (*function)(void);
	} next = { .data = dlsym(RTLD_NEXT, "opal_accelerator_base_select") };
	char *chosen = dlsym(RTLD_DEFAULT, "opal_accelerator_base_selected_component"), *name;
	int result = next.function();

	/* It begins with the names of project, framework and component. */
	name = getenv("OC_TEST_DEVICE") ? memmem(chosen, 256, "null", 5) : NULL;
	if (name)
		memcpy(name, "test", 5);
	return result;
}
#elif defined(OPEN_MPI)
/* What the default of the parameter opal_cuda_support is taken from. */
EXPORTED bool opal_built_with_cuda_support;
/* As Open MPI 5 has it with --with-ft ulfm. */
EXPORTED bool ompi_ftmpi_enabled;

__attribute__((constructor)) static void build(void)
{
	opal_built_with_cuda_support = getenv("OC_TEST_DEVICE") != NULL;
	ompi_ftmpi_enabled = getenv("OC_TEST_FT") != NULL;
}
#else
EXPORTED int MPIX_GPU_query_support(int kind, int *supported)
{
	*supported = kind == MPIX_GPU_SUPPORT_HIP && getenv("OC_TEST_DEVICE");
	return MPI_SUCCESS;
}
#endif

static void nonblocking(MPI_Comm comm, int rank, int ranks)
{
	MPI_Request request;
	int sum = 0;

	MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
	case_count(CASE_ALLREDUCE, 1);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (sum != ranks * (ranks - 1) / 2)
		case_fail("Iallreduce of %d ranks gave %d", ranks, sum);
}

int main(int argc, char **argv)
{
	static const size_t bytes[] = { 64, 100000 };
	int rank, ranks;
	MPI_Comm comm;

	case_begin(&argc, &argv, &rank, &ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int collective = 0; collective < CASE_COLLECTIVES; collective++)
		for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
			case_run(comm, &(struct case_call){ .collective = collective,
							    .bytes = bytes[i] });
	nonblocking(comm, rank, ranks);
	MPI_Comm_free(&comm);
	return case_end("device: %d ranks, every byte right\n", ranks);
}
