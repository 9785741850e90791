/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * References to datatypes and operations that outstanding operations use, and that the program may
 * free.
 *
 * An MPI_Op cannot be duplicated, and a duplicated datatype would be another one to the functions
 * of the program that see it (a user's operation, attribute functions). So what is in use is noted,
 * and MPI_Type_free and MPI_Op_free put off the MPI's until the last use is over. MPICH's handles
 * are numbers that say of what kind they are.
 */
#include "pmpi.h"

#include <stdlib.h>

struct used {
	struct used *next;
	int handle;
	bool freed;
	uint32_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct used *list;
static uint32_t count; /* of the list; atomic, so that frees look cheaply */

/* With the lock. */
static struct used **find(int handle)
{
	struct used **at = &list;

	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	return at;
}

static int retain(int handle)
{
	struct used *used;

	pthread_mutex_lock(&lock);
	used = *find(handle);
	if (!used && (used = calloc(1, sizeof(*used)))) {
		*used = (struct used){ .handle = handle, .next = list };
		list = used;
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	}
	if (used)
		used->users++;
	pthread_mutex_unlock(&lock);
	return used ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* True: it is to be freed now, outside of the lock, as attributes of a type have functions of the
 * program's. */
static bool release(int handle)
{
	struct used **at, *used;
	bool freed = false;

	pthread_mutex_lock(&lock);
	at = find(handle);
	used = *at;
	if (used && !--used->users) {
		*at = used->next;
		freed = used->freed;
		free(used);
		__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return freed;
}

/* True: it will be freed later. */
static bool put_off(int handle)
{
	struct used *used;
	bool off = false;

	if (OCI_LIKELY(!__atomic_load_n(&count, __ATOMIC_RELAXED)))
		return false;
	pthread_mutex_lock(&lock);
	used = *find(handle);
	if (used && !used->freed)
		off = used->freed = true;
	pthread_mutex_unlock(&lock);
	return off;
}

int oci_port_type_retain(MPI_Datatype *type)
{
	return oci_pmpi_type_predefined(*type) ? MPI_SUCCESS : retain(*type);
}

void oci_port_type_release(MPI_Datatype type)
{
	if (!oci_pmpi_type_predefined(type) && release(type))
		PMPI(Type_free)(&type);
}

int oci_port_op_retain(MPI_Op *op)
{
	return oci_port_op_id(*op) ? MPI_SUCCESS : retain(*op);
}

void oci_port_op_release(MPI_Op op)
{
	if (!oci_port_op_id(op) && release(op))
		PMPI(Op_free)(&op);
}

int oci_pmpi_Type_free(MPI_Datatype *type)
{
	if (!type || !put_off(*type))
		return PMPI(Type_free)(type);
	*type = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

int oci_pmpi_Op_free(MPI_Op *op)
{
	if (!op || !put_off(*op))
		return PMPI(Op_free)(op);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}
