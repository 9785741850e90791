/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators of some members of one, for two levels.
 *
 * Open MPI 4.1 lets the members of a new communicator agree on its number (the context id), and of
 * those that are being made in a process one goes on until it has its own. Where one member has
 * begun an MPI_Comm_idup and then a collective, which others call before they come to the
 * MPI_Comm_idup, a communicator that is made in the collective would wait for the MPI_Comm_idup,
 * and that for the others. So parts have numbers above those that programs come to, on which the
 * members agree by themselves.
 *
 * Each has a reference from here, as MPI_Finalize takes what is left in the order of numbers, and
 * the communicator may live on behind that: in a request that the program has freed and that waits
 * for its end.
 */
#include "component.h"

#include "ompi/group/group.h"
#include "ompi/mca/pml/pml.h"

#include "common/comm.h"

#if OMPI_MAJOR_VERSION < 5

enum { FIRST = 4096 };

/* Alike on all ranks. Some networks have few numbers. */
static long first_number(void)
{
	long half = (long)(mca_pml.pml_max_contextid / 2);

	return half < FIRST ? half : FIRST;
}

static long next_free(long number)
{
	while (opal_pointer_array_get_item(&ompi_mpi_communicators, (int)number))
		number++;
	return number;
}

/* OMPI_EXISTS: another communicator has the number. Nobody sends to it yet. */
static int prepare(oci_ompi_comm *comm, ompi_group_t *group, int number, oci_ompi_comm **made)
{
	int error = ompi_comm_set(made, comm, 0, NULL, 0, NULL, NULL, &ompi_mpi_errors_return.eh,
				  false, group, NULL);

	if (error != OMPI_SUCCESS)
		return error;
	if (opal_pointer_array_test_and_set_item(&ompi_mpi_communicators, number, *made)) {
		(*made)->c_contextid = (uint32_t)number;
		error = MCA_PML_CALL(add_comm(*made));
		if (error == OMPI_SUCCESS) {
			OMPI_COMM_SET_PML_ADDED(*made);
			return OMPI_SUCCESS;
		}
	} else {
		error = OMPI_EXISTS;
	}
	OBJ_RELEASE(*made);
	*made = MPI_COMM_NULL;
	return error;
}

/* By all members: this rank is in a part of this group, or in none; `error`: or it has no memory
 * for it. OMPI_SUCCESS on all of them or on none. */
static int make(struct oci_mpi_comm *comm, ompi_group_t *group, int error, oci_ompi_comm **made)
{
	long above = (long)comm->comm->c_contextid + 1, start = first_number();
	long own[2], least[2];
	int failed;

	for (;;) {
		own[0] = group ? -next_free(start) : 0;
		own[1] = error == OMPI_SUCCESS;
		failed = oci_port_least(comm, own, least);
		if (failed != OMPI_SUCCESS)
			return failed;
		start = -least[0];
		if (least[1] != 1 || start > (long)mca_pml.pml_max_contextid || start > INT32_MAX)
			return OMPI_ERR_OUT_OF_RESOURCE;
		if (group)
			error = prepare(comm->comm, group, (int)start, made);
		own[0] = error == OMPI_SUCCESS;
		own[1] = error == OMPI_SUCCESS || error == OMPI_EXISTS;
		/* Behind this all are ready for what others send. */
		failed = oci_port_least(comm, own, least);
		if (failed == OMPI_SUCCESS && least[0] == 1)
			return OMPI_SUCCESS;
		if (*made != MPI_COMM_NULL)
			OBJ_RELEASE(*made);
		*made = MPI_COMM_NULL;
		if (failed != OMPI_SUCCESS || least[1] != 1)
			return failed != OMPI_SUCCESS ? failed : OMPI_ERR_OUT_OF_RESOURCE;
		/* Another thread that makes a part of another communicator may have been the first
		 * here and the second elsewhere: each goes on with a number of its own. */
		start += above;
		error = OMPI_SUCCESS;
	}
}

int oci_port_part(struct oci_mpi_comm *comm, const uint32_t *ranks, uint32_t count, MPI_Comm *part)
{
	ompi_group_t *all = comm->comm->c_local_group, *group = ranks ? NULL : all;
	int error = OMPI_SUCCESS;

	*part = MPI_COMM_NULL;
	if (count)
		error = ompi_group_incl(all, (int)count, (const int *)ranks, &group);
	error = make(comm, group, error, part);
	if (count && group)
		OBJ_RELEASE(group);
	if (error != OMPI_SUCCESS || *part == MPI_COMM_NULL)
		return error;
	error = mca_coll_base_comm_select(*part);
	if (error == OMPI_SUCCESS) {
		OBJ_RETAIN(*part);
	} else {
		OBJ_RELEASE(*part);
		*part = MPI_COMM_NULL;
	}
	return error;
}

void oci_port_free(MPI_Comm *part)
{
	oci_ompi_comm *comm = *part;
	int number = (int)comm->c_contextid;

	ompi_comm_free(part);
	/* Before MPI_Finalize has taken it, and so one of the two references. */
	if (opal_pointer_array_get_item(&ompi_mpi_communicators, number) == comm)
		OBJ_RELEASE(comm);
	*part = MPI_COMM_NULL;
}

#else

/* Communicators over nodes are Open MPI's own there (spans_known() in modex.c). */
int oci_port_part(struct oci_mpi_comm *comm, const uint32_t *ranks, uint32_t count, MPI_Comm *part)
{
	(void)comm;
	(void)ranks;
	(void)count;
	*part = MPI_COMM_NULL;
	return OMPI_ERR_NOT_SUPPORTED;
}

void oci_port_free(MPI_Comm *part)
{
	*part = MPI_COMM_NULL;
}

#endif
