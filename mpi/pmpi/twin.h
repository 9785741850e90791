/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives, with counts of OCI_COUNT and names as OCI_NAME makes them; included once for
 * each kind of count.
 */
#define OCI_PASTE(a, b) a##b
#define OCI_FUNCTION_OF(name) OCI_PASTE(oci_pmpi_, name)
#define OCI_FUNCTION(name) OCI_FUNCTION_OF(OCI_NAME(name))
#define PMPI_OF(name) PMPI(OCI_NAME(name))

#define SEND(name, twin)                                                                         \
	int OCI_FUNCTION(name)(const void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, \
			       int tag, MPI_Comm comm)                                           \
	{                                                                                        \
		MPI_Request request;                                                             \
		int error;                                                                       \
                                                                                                 \
		if (!oci_pmpi_attention())                                                       \
			return PMPI_OF(name)(buffer, count, type, peer, tag, comm);              \
		error = PMPI_OF(twin)(buffer, count, type, peer, tag, comm, &request);           \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE);              \
	}

SEND(Send, Isend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)

int OCI_FUNCTION(Recv)(void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, int tag,
		       MPI_Comm comm, MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI_OF(Recv)(buffer, count, type, peer, tag, comm, status);
	error = PMPI_OF(Irecv)(buffer, count, type, peer, tag, comm, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

int OCI_FUNCTION(Mrecv)(void *buffer, OCI_COUNT count, MPI_Datatype type, MPI_Message *message,
			MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI_OF(Mrecv)(buffer, count, type, message, status);
	error = PMPI_OF(Imrecv)(buffer, count, type, message, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

int OCI_FUNCTION(Sendrecv)(const void *sbuf, OCI_COUNT scount, MPI_Datatype stype, int to, int stag,
			   void *rbuf, OCI_COUNT rcount, MPI_Datatype rtype, int from, int rtag,
			   MPI_Comm comm, MPI_Status *status)
{
	MPI_Request send, receive;
	int error, also;

	if (!oci_pmpi_attention())
		return PMPI_OF(Sendrecv)(sbuf, scount, stype, to, stag, rbuf, rcount, rtype, from,
					 rtag, comm, status);
	error = PMPI_OF(Irecv)(rbuf, rcount, rtype, from, rtag, comm, &receive);
	if (error)
		return error;
	error = PMPI_OF(Isend)(sbuf, scount, stype, to, stag, comm, &send);
	if (error) {
		PMPI(Cancel)(&receive);
		PMPI(Request_free)(&receive);
		return error;
	}
	error = oci_pmpi_await(&receive, status);
	also = oci_pmpi_await(&send, MPI_STATUS_IGNORE);
	return error ? error : also;
}

int OCI_FUNCTION(Sendrecv_replace)(void *buffer, OCI_COUNT count, MPI_Datatype type, int to,
				   int stag, int from, int rtag, MPI_Comm comm, MPI_Status *status)
{
	MPI_Request request;
	int error;

	if (!oci_pmpi_attention())
		return PMPI_OF(Sendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm,
						 status);
	error = PMPI_OF(Isendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm,
					   &request);
	return error ? error : oci_pmpi_await(&request, status);
}
