// SPDX-License-Identifier: BSD-3-Clause
#include "form.h"

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
/* Open MPI 4.1 has the persistent forms as extensions. */
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) NAME(MPI_##name##_init)
#endif

const char *const form_names[FORMS] = { "blocking", "nonblocking", "persistent" };

/* What the arguments of MPI's functions are here. */
#define GIVEN_buffer a->recv
#define GIVEN_count a->recv_count
#define GIVEN_type a->recv_type
#define GIVEN_sbuf a->send
#define GIVEN_scount a->send_count
#define GIVEN_scounts a->NAME(send_counts)
#define GIVEN_sdispls a->NAME(send_places)
#define GIVEN_sadispls a->send_places_c
#define GIVEN_radispls a->recv_places_c
#define GIVEN_stype a->send_type
#define GIVEN_stypes a->send_types
#define GIVEN_rbuf a->recv
#define GIVEN_rcount a->recv_count
#define GIVEN_rcounts a->NAME(recv_counts)
#define GIVEN_rdispls a->NAME(recv_places)
#define GIVEN_rtype a->recv_type
#define GIVEN_rtypes a->recv_types
#define GIVEN_op a->op
#define GIVEN_root a->root
#define GIVEN(name) GIVEN_##name,

#define CALL_CASE(X, ID, name, Name, key, first, second, root, ...) \
	case CASE_##name:                                           \
		return NAME(MPI_##Name)(OC_SIGNATURE(GIVEN, first, second, root) a->comm);
#define START_CASE(X, ID, name, Name, key, first, second, root, ...) \
	case CASE_##name:                                            \
		return NAME(MPI_I##name)(OC_SIGNATURE(GIVEN, first, second, root) a->comm, request);
#define INIT_CASE(X, ID, name, Name, key, first, second, root, ...)                       \
	case CASE_##name:                                                                 \
		return PERSISTENT(Name)(OC_SIGNATURE(GIVEN, first, second, root) a->comm, \
					MPI_INFO_NULL, request);
#define FUNCTION(form, CASES, ROWS, ...)                                         \
	static int NAME(form)(const struct arguments *a, ##__VA_ARGS__)          \
	{                                                                        \
		switch (a->collective) {                                         \
			ROWS(CASES, )                                            \
		default:                                                         \
			case_fail("no collective has number %d", a->collective); \
		}                                                                \
	}

#define NAME(name) name
FUNCTION(call, CALL_CASE, OC_FUNCTION_ROWS)
FUNCTION(start, START_CASE, OC_FUNCTION_ROWS, MPI_Request *request)
FUNCTION(init, INIT_CASE, OC_FUNCTION_ROWS, MPI_Request *request)
#undef NAME
#if MPI_VERSION >= 4
#define NAME(name) name##_c
FUNCTION(call, CALL_CASE, OC_FUNCTION_ROWS_WITH_COUNTS)
FUNCTION(start, START_CASE, OC_FUNCTION_ROWS_WITH_COUNTS, MPI_Request *request)
FUNCTION(init, INIT_CASE, OC_FUNCTION_ROWS_WITH_COUNTS, MPI_Request *request)
#define OF(form) (a->large ? form##_c : form)
#else
#define OF(form) form
#endif

int form_call(const struct arguments *a)
{
	return OF(call)(a);
}

int form_start(const struct arguments *a, MPI_Request *request)
{
	return OF(start)(a, request);
}

int form_init(const struct arguments *a, MPI_Request *request)
{
	return OF(init)(a, request);
}

int form_begin(const struct arguments *a, enum form form, MPI_Request *request)
{
	*request = MPI_REQUEST_NULL;
	return form == FORM_BLOCKING	? form_call(a) :
	       form == FORM_NONBLOCKING ? form_start(a, request) :
					  form_init(a, request);
}
