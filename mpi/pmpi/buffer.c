/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Buffer_detach waits until the messages in the buffer have been taken, and has no nonblocking
 * twin. So a message of our own is tried first, to ourselves, which has room only in an empty
 * buffer: as long as the MPI refuses it, others are in there, and we drive. MPI_BSEND_OVERHEAD is
 * what MPI says a message needs beyond its bytes. Its blocks all lie at one place, here and where
 * they are received. In a buffer of more than 2 GiB it would write too much memory, so there a
 * helper drives. A buffer that nothing has been sent from is empty.
 */
#include "pmpi.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Count attached; /* bytes of the buffer that is attached */

/*
 * Whether something has been sent from it; relaxed, as a program that sends in one thread and
 * detaches in another has to order the two itself. A persistent send may start at any time and
 * under any buffer, so one of these counts for ever.
 */
static bool used, always_used;

static void use(bool for_ever)
{
	__atomic_store_n(for_ever ? &always_used : &used, true, __ATOMIC_RELAXED);
}

static bool is_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&always_used, __ATOMIC_RELAXED);
}

static void note(int error, MPI_Count bytes)
{
	pthread_mutex_lock(&lock);
	if (!error) {
		attached = bytes;
		__atomic_store_n(&used, false, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
}

static MPI_Count noted(void)
{
	MPI_Count bytes;

	pthread_mutex_lock(&lock);
	bytes = attached;
	pthread_mutex_unlock(&lock);
	return bytes;
}

int oci_pmpi_Buffer_attach(void *buffer, int bytes)
{
	int error = PMPI(Buffer_attach)(buffer, bytes);

	note(error, bytes);
	return error;
}

int oci_pmpi_Buffer_attach_c(void *buffer, MPI_Count bytes)
{
	int error = PMPI(Buffer_attach_c)(buffer, bytes);

	note(error, bytes);
	return error;
}

/*
 * `bytes` bytes in blocks at one place. Blocks, as MPICH copies single bytes one by one: 4 ns each,
 * 0.4 s for a buffer of 100 MiB.
 */
enum { BLOCK = 4096 };
static char any[BLOCK];

static int filling(int bytes, MPI_Datatype *type)
{
	MPI_Datatype parts[2] = { MPI_BYTE, MPI_BYTE };
	MPI_Aint places[2] = { 0, 0 };
	int counts[2] = { 1, bytes % BLOCK }, error;

	error = PMPI(Type_create_hvector)(bytes / BLOCK, BLOCK, 0, MPI_BYTE, &parts[0]);
	if (error)
		return error;
	error = PMPI(Type_create_struct)(2, counts, places, parts, type);
	PMPI(Type_free)(&parts[0]);
	return error ? error : PMPI(Type_commit)(type);
}

/* True: it is empty, or the MPI says something else against our message. */
static bool is_empty(MPI_Datatype type)
{
	int tag = oci_pmpi_job.tags - 1, error, class = MPI_SUCCESS;
	MPI_Request request;

	error = PMPI(Bsend)(any, 1, type, 0, tag, oci_pmpi_job.self);
	if (error) {
		PMPI(Error_class)(error, &class);
		return class != MPI_ERR_BUFFER;
	}
	if (PMPI(Irecv)(any, 1, type, 0, tag, oci_pmpi_job.self, &request) == MPI_SUCCESS)
		oci_pmpi_await(&request, MPI_STATUS_IGNORE);
	return true;
}

static void await_empty(int bytes)
{
	MPI_Datatype type;
	uint32_t turns = 0;

	if (filling(bytes, &type) != MPI_SUCCESS)
		return;
	while (oci_pmpi_attention() && !is_empty(type)) {
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
	PMPI(Type_free)(&type);
}

/* True: a helper drives. */
static bool begin_detach(void)
{
	MPI_Count bytes = noted() - MPI_BSEND_OVERHEAD;

	/* No message has room in a buffer without bytes. */
	if (!oci_pmpi_job.active || bytes <= 0 || !oci_pmpi_attention() || !is_used())
		return false;
	if (bytes > INT32_MAX)
		return oci_pmpi_help();
	await_empty((int)bytes);
	return false;
}

int oci_pmpi_Buffer_detach(void *buffer, int *bytes)
{
	bool helped = begin_detach();
	int error = oci_pmpi_helped(helped, PMPI(Buffer_detach)(buffer, bytes));

	note(error, 0);
	return error;
}

int oci_pmpi_Buffer_detach_c(void *buffer, MPI_Count *bytes)
{
	bool helped = begin_detach();
	int error = oci_pmpi_helped(helped, PMPI(Buffer_detach_c)(buffer, bytes));

	note(error, 0);
	return error;
}

/* ---- what is sent from it ---------------------------------------------------------------------
 */

#define SEND(name, count_type)                                                                 \
	int oci_pmpi_##name(const void *buffer, count_type count, MPI_Datatype type, int peer, \
			    int tag, MPI_Comm comm)                                            \
	{                                                                                      \
		use(false);                                                                    \
		return PMPI(name)(buffer, count, type, peer, tag, comm);                       \
	}
#define SEND_LATER(name, count_type, for_ever)                                                 \
	int oci_pmpi_##name(const void *buffer, count_type count, MPI_Datatype type, int peer, \
			    int tag, MPI_Comm comm, MPI_Request *request)                      \
	{                                                                                      \
		use(for_ever);                                                                 \
		return PMPI(name)(buffer, count, type, peer, tag, comm, request);              \
	}

SEND(Bsend, int)
SEND(Bsend_c, MPI_Count)
SEND_LATER(Ibsend, int, false)
SEND_LATER(Ibsend_c, MPI_Count, false)
SEND_LATER(Bsend_init, int, true)
SEND_LATER(Bsend_init_c, MPI_Count, true)
