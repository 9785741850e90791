/* SPDX-License-Identifier: BSD-3-Clause */
#include "form.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
/* Open MPI 4.1 has the persistent forms as extensions. */
#define PERSISTENT(name) MPIX_##name
#else
#define PERSISTENT(name) MPI_##name
#endif

const char *const form_names[FORMS] = { "blocking", "nonblocking", "persistent" };

/* What the arguments of MPI's functions are here. */
#define GIVEN_buffer a->recv
#define GIVEN_count a->recv_count
#define GIVEN_type a->recv_type
#define GIVEN_sbuf a->send
#define GIVEN_scount a->send_count
#define GIVEN_scounts a->send_counts
#define GIVEN_sdispls a->send_places
#define GIVEN_sadispls a->send_addresses
#define GIVEN_radispls a->recv_addresses
#define GIVEN_stype a->send_type
#define GIVEN_stypes a->send_types
#define GIVEN_rbuf a->recv
#define GIVEN_rcount a->recv_count
#define GIVEN_rcounts a->recv_counts
#define GIVEN_rdispls a->recv_places
#define GIVEN_rtype a->recv_type
#define GIVEN_rtypes a->recv_types
#define GIVEN_op a->op
#define GIVEN_root a->root
#define GIVEN(name) GIVEN_##name,

#define CALL_CASE(X, ID, name, Name, key, first, second, root, ...) \
	case CASE_##name:                                           \
		return MPI_##Name(OC_SIGNATURE(GIVEN, first, second, root) a->comm);
#define START_CASE(X, ID, name, Name, key, first, second, root, ...) \
	case CASE_##name:                                            \
		return MPI_I##name(OC_SIGNATURE(GIVEN, first, second, root) a->comm, request);
#define INIT_CASE(X, ID, name, Name, key, first, second, root, ...)                              \
	case CASE_##name:                                                                        \
		return PERSISTENT(Name##_init)(OC_SIGNATURE(GIVEN, first, second, root) a->comm, \
					       MPI_INFO_NULL, request);
int form_call(const struct arguments *a)
{
	switch (a->collective) {
		OC_FUNCTION_ROWS(CALL_CASE, )
	default:
		case_fail("no collective has number %d", a->collective);
	}
}

int form_start(const struct arguments *a, MPI_Request *request)
{
	switch (a->collective) {
		OC_FUNCTION_ROWS(START_CASE, )
	default:
		case_fail("no collective has number %d", a->collective);
	}
}

int form_init(const struct arguments *a, MPI_Request *request)
{
	switch (a->collective) {
		OC_FUNCTION_ROWS(INIT_CASE, )
	default:
		case_fail("no collective has number %d", a->collective);
	}
}
