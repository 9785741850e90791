// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_call.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
/* Open MPI 4.1 has the persistent forms as extensions. */
#define PERSISTENT(name) MPIX_##name
#else
#define PERSISTENT(name) MPI_##name
#endif

/* Elements of one rank's block, or of the message: floats where they are added, else bytes. */
static int elements(const struct collective_call *call)
{
	size_t each = oci_is_reduction(call->collective) ? sizeof(float) : 1;

	return (int)(call->bytes / each);
}

static int make_neighbors(struct mpi_call *mpi)
{
	int ranks = mpi->call->ranks, rank;
	int *all = malloc(2 * (size_t)ranks * sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (rank = 0; rank < ranks; rank++) {
		all[rank] = rank;
		all[ranks + rank] = 1; /* weights: not looked at */
	}
	MPI_Dist_graph_create_adjacent(mpi->comm, ranks, all, all + ranks, ranks, all, all + ranks,
				       MPI_INFO_NULL, 0, &mpi->comm);
	mpi->own_comm = true;
	free(all);
	return 0;
}

int mpi_call_create(struct mpi_call *mpi, const struct collective_call *call, enum mpi_form form,
		    MPI_Comm comm)
{
	int n = elements(call), rank;

	*mpi = (struct mpi_call){ .call = call,
				  .form = form,
				  .comm = comm,
				  .kept = MPI_REQUEST_NULL };
	if (!oci_has_counts(call->collective))
		return 0;
	if (n > 0 && call->ranks - 1 > INT_MAX / n)
		return -EOVERFLOW;
	mpi->counts = malloc((size_t)call->ranks * sizeof(*mpi->counts));
	mpi->displs = malloc((size_t)call->ranks * sizeof(*mpi->displs));
	if (!mpi->counts || !mpi->displs)
		return -ENOMEM;
	for (rank = 0; rank < call->ranks; rank++) {
		mpi->counts[rank] = n;
		mpi->displs[rank] = rank * n;
	}
	return oci_is_neighbor(call->collective) ? make_neighbors(mpi) : 0;
}

void mpi_call_destroy(struct mpi_call *mpi)
{
	if (mpi->kept != MPI_REQUEST_NULL)
		MPI_Request_free(&mpi->kept);
	free(mpi->counts);
	free(mpi->displs);
	if (mpi->own_comm)
		MPI_Comm_free(&mpi->comm);
}

/* What the arguments of MPI's functions are here. */
#define GIVEN_buffer (call->rank == call->root ? send : recv)
#define GIVEN_count n
#define GIVEN_type type
#define GIVEN_sbuf send
#define GIVEN_scount n
#define GIVEN_scounts mpi->counts
#define GIVEN_sdispls mpi->displs
#define GIVEN_stype type
#define GIVEN_rbuf recv
#define GIVEN_rcount n
#define GIVEN_rcounts mpi->counts
#define GIVEN_rdispls mpi->displs
#define GIVEN_rtype type
#define GIVEN_op MPI_SUM
#define GIVEN_root call->root
#define GIVEN(name) GIVEN_##name,

#define CALL_CASE(form, ID, name, Name, key, first, second, root, ...) \
	case OC_##ID:                                                  \
		CALL_##form(name, Name, first, second, root);          \
		break;
#define CALL_BLOCKING(name, Name, first, second, root) \
	MPI_##Name(OC_SIGNATURE(GIVEN, first, second, root) mpi->comm)
#define CALL_NONBLOCKING(name, Name, first, second, root) \
	MPI_I##name(OC_SIGNATURE(GIVEN, first, second, root) mpi->comm, request)
#define CALL_PERSISTENT(name, Name, first, second, root) \
	PERSISTENT(Name##_init)                          \
	(OC_SIGNATURE(GIVEN, first, second, root) mpi->comm, MPI_INFO_NULL, &mpi->kept)
#define CALL_ALL(form)                              \
	switch (call->collective) {                 \
		OC_COLLECTIVE_ROWS(CALL_CASE, form) \
	default:                                    \
		break;                              \
	}

static MPI_Datatype type_of(const struct collective_call *call)
{
	return oci_is_reduction(call->collective) ? MPI_FLOAT : MPI_BYTE;
}

/* Rank 0 gets nothing from an exclusive one, but MPICH wants an address of it. */
static void *address_of(const struct collective_call *call, void *recv)
{
	static float nothing;

	return oci_is_exclusive(call->collective) && !recv ? &nothing : recv;
}

void mpi_call_begin(struct mpi_call *mpi, void *send, void *recv, MPI_Request *request)
{
	const struct collective_call *call = mpi->call;
	MPI_Datatype type = type_of(call);
	int n = elements(call);

	*request = MPI_REQUEST_NULL;
	recv = address_of(call, recv);
	CALL_ALL(NONBLOCKING)
}

void mpi_call_run(struct mpi_call *mpi, void *send, void *recv)
{
	const struct collective_call *call = mpi->call;
	MPI_Datatype type = type_of(call);
	MPI_Request request;
	int n = elements(call);

	recv = address_of(call, recv);
	switch (mpi->form) {
	case FORM_BLOCKING:
		CALL_ALL(BLOCKING)
		break;
	case FORM_NONBLOCKING:
		mpi_call_begin(mpi, send, recv, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		break;
	default:
		if (mpi->kept == MPI_REQUEST_NULL) {
			CALL_ALL(PERSISTENT)
		}
		MPI_Start(&mpi->kept);
		MPI_Wait(&mpi->kept, MPI_STATUS_IGNORE);
	}
}
