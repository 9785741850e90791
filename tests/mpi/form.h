/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of any collective, and the forms in which MPI takes them, with int counts and with
 * large ones (MPI_..._c, where the MPI has them). */
#ifndef ONECOPY_TESTS_FORM_H
#define ONECOPY_TESTS_FORM_H

#include "case.h"

enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORMS };
extern const char *const form_names[FORMS];

#if MPI_VERSION >= 4
enum { LARGE_COUNTS = 1 };
#else
enum { LARGE_COUNTS = 0 };
#endif

struct arguments {
	enum case_collective collective;
	int large;	  /* by the function with large counts; a Barrier has none */
	const void *send; /* a Bcast's buffer is `recv` */
	void *recv;
	int send_count, recv_count; /* of one block; of a reduction recv_count */
	const int *send_counts, *send_places, *recv_counts, *recv_places;
	/* The same numbers. A Neighbor_alltoallw has such places whatever its counts are. */
	const MPI_Count *send_counts_c, *recv_counts_c;
	const MPI_Aint *send_places_c, *recv_places_c;
	MPI_Datatype send_type, recv_type;	     /* of a reduction recv_type */
	const MPI_Datatype *send_types, *recv_types; /* of those with a w */
	MPI_Op op;
	int root;
	MPI_Comm comm;
};

/* MPI's return codes. */
int form_call(const struct arguments *a);
int form_start(const struct arguments *a, MPI_Request *request);
int form_init(const struct arguments *a, MPI_Request *request);
/* In this form; a persistent one is not started, and a blocking one leaves MPI_REQUEST_NULL. */
int form_begin(const struct arguments *a, enum form form, MPI_Request *request);

#endif
