/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes and operations that outstanding operations use, and that the program may free.
 *
 * An MPI_Op cannot be duplicated, and a duplicated datatype would be another one to the functions
 * of the program that see it (a user's operation, attribute functions). So what is in use is noted,
 * and MPI_Type_free and MPI_Op_free put off the MPI's until the last use is over.
 */
#include "pmpi.h"

#include <errno.h>
#include <stdlib.h>

struct kept {
	struct kept *next;
	bool is_op, freed;
	MPI_Datatype type;
	MPI_Op op;
	uint32_t users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *list;
static uint32_t count; /* of the list; atomic, so that frees look cheaply */

/* With the lock. */
static struct kept **find(bool is_op, MPI_Datatype type, MPI_Op op)
{
	struct kept **at = &list;

	while (*at && !((*at)->is_op == is_op && (is_op ? (*at)->op == op : (*at)->type == type)))
		at = &(*at)->next;
	return at;
}

static int keep(bool is_op, MPI_Datatype type, MPI_Op op)
{
	struct kept **at, *kept;

	pthread_mutex_lock(&lock);
	at = find(is_op, type, op);
	kept = *at;
	if (!kept) {
		kept = calloc(1, sizeof(*kept));
		if (!kept) {
			pthread_mutex_unlock(&lock);
			return MPI_ERR_NO_MEM;
		}
		kept->is_op = is_op;
		kept->type = type;
		kept->op = op;
		kept->next = list;
		list = kept;
		__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
	}
	kept->users++;
	pthread_mutex_unlock(&lock);
	return MPI_SUCCESS;
}

static void release(bool is_op, MPI_Datatype type, MPI_Op op)
{
	struct kept **at, *kept;

	pthread_mutex_lock(&lock);
	at = find(is_op, type, op);
	kept = *at;
	if (kept && !--kept->users) {
		*at = kept->next;
		__atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
	} else {
		kept = NULL;
	}
	pthread_mutex_unlock(&lock);
	/* Outside of the lock: attributes of a type have functions of the program's. */
	if (kept && kept->freed && is_op)
		PMPI(Op_free)(&op);
	if (kept && kept->freed && !is_op)
		PMPI(Type_free)(&type);
	free(kept);
}

/* True: it will be freed later. */
static bool put_off(bool is_op, MPI_Datatype type, MPI_Op op)
{
	struct kept *kept;
	bool off = false;

	if (OCI_LIKELY(!__atomic_load_n(&count, __ATOMIC_RELAXED)))
		return false;
	pthread_mutex_lock(&lock);
	kept = *find(is_op, type, op);
	if (kept && !kept->freed)
		off = kept->freed = true;
	pthread_mutex_unlock(&lock);
	return off;
}

int oci_port_type_retain(MPI_Datatype *type)
{
	return oci_pmpi_type_predefined(*type) ? MPI_SUCCESS : keep(false, *type, MPI_OP_NULL);
}

void oci_port_type_release(MPI_Datatype type)
{
	if (!oci_pmpi_type_predefined(type))
		release(false, type, MPI_OP_NULL);
}

int oci_port_op_retain(MPI_Op *op)
{
	return oci_port_op_id(*op) ? MPI_SUCCESS : keep(true, MPI_DATATYPE_NULL, *op);
}

void oci_port_op_release(MPI_Op op)
{
	if (!oci_port_op_id(op))
		release(true, MPI_DATATYPE_NULL, op);
}

int oci_pmpi_Type_free(MPI_Datatype *type)
{
	if (!type || !put_off(false, *type, MPI_OP_NULL))
		return PMPI(Type_free)(type);
	*type = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

int oci_pmpi_Op_free(MPI_Op *op)
{
	if (!op || !put_off(true, MPI_DATATYPE_NULL, *op))
		return PMPI(Op_free)(op);
	*op = MPI_OP_NULL;
	return MPI_SUCCESS;
}
