/* SPDX-License-Identifier: BSD-3-Clause */
/* The arguments of any collective, and the three forms in which MPI takes them. */
#ifndef ONECOPY_TESTS_FORM_H
#define ONECOPY_TESTS_FORM_H

#include "case.h"

enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORMS };
extern const char *const form_names[FORMS];

struct arguments {
	enum case_collective collective;
	const void *send; /* a Bcast's buffer is `recv` */
	void *recv;
	int send_count, recv_count; /* of one block; of a reduction recv_count */
	const int *send_counts, *send_places, *recv_counts, *recv_places;
	const MPI_Aint *send_addresses, *recv_addresses; /* the places, of a Neighbor_alltoallw */
	MPI_Datatype send_type, recv_type;		 /* of a reduction recv_type */
	const MPI_Datatype *send_types, *recv_types;	 /* of those with a w */
	MPI_Op op;
	int root;
	MPI_Comm comm;
};

/* MPI's return codes. */
int form_call(const struct arguments *a);
int form_start(const struct arguments *a, MPI_Request *request);
int form_init(const struct arguments *a, MPI_Request *request);

#endif
