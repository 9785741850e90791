/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Buffer_detach waits until the messages in the buffer have been taken, and has no nonblocking
 * twin. So a message of our own is tried first, to ourselves, which has room only in an empty
 * buffer: as long as the MPI refuses it, others are in there, and we drive. MPI_BSEND_OVERHEAD is
 * what MPI says a message needs beyond its bytes. Its elements all lie at one place, here and where
 * they are received. A buffer of more than 2 GiB, which one such message does not fill,
 * is left to the MPI.
 */
#include "pmpi.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MPI_Count attached; /* bytes of the buffer that is attached */

static void note(int error, MPI_Count bytes)
{
	pthread_mutex_lock(&lock);
	if (!error)
		attached = bytes;
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

/* True: it is empty, or the MPI says something else against our message. */
static bool is_empty(int bytes)
{
	int tag = oci_pmpi_job.tags - 1, error, class = MPI_SUCCESS;
	MPI_Request request;
	char any = 0;

	error = PMPI(Bsend)(&any, bytes, oci_pmpi_sink, 0, tag, oci_pmpi_job.self);
	if (error) {
		PMPI(Error_class)(error, &class);
		return class != MPI_ERR_BUFFER;
	}
	if (PMPI(Irecv)(&any, bytes, oci_pmpi_sink, 0, tag, oci_pmpi_job.self, &request) ==
	    MPI_SUCCESS)
		oci_pmpi_await(&request, MPI_STATUS_IGNORE);
	return true;
}

static void await_empty(void)
{
	MPI_Count bytes = noted() - MPI_BSEND_OVERHEAD;
	uint32_t turns = 0;

	/* Else no message has room in it, or none of ours fills it. */
	if (!oci_pmpi_job.active || bytes <= 0 || bytes > INT32_MAX)
		return;
	while (oci_pmpi_attention() && !is_empty((int)bytes)) {
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Buffer_detach(void *buffer, int *bytes)
{
	int error;

	await_empty();
	error = PMPI(Buffer_detach)(buffer, bytes);
	note(error, 0);
	return error;
}

int oci_pmpi_Buffer_detach_c(void *buffer, MPI_Count *bytes)
{
	int error;

	await_empty();
	error = PMPI(Buffer_detach_c)(buffer, bytes);
	note(error, 0);
	return error;
}
