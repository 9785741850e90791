/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives, with counts of OCI_COUNT and names as OCI_NAME makes them; included once for
 * each kind of count.
 */
#define TWIN(name, parameters, arguments, begin, status)                 \
	int OCI_OURS(name)(OCI_LIST parameters)                          \
	{                                                                \
		MPI_Request request;                                     \
		int error;                                               \
                                                                         \
		if (!oci_pmpi_attention())                               \
			return OCI_THEIRS(name)(OCI_LIST arguments);     \
		error = begin;                                           \
		return error ? error : oci_pmpi_await(&request, status); \
	}
#define SEND(name, twin)                                                                 \
	TWIN(name,                                                                       \
	     (const void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, int tag, \
	      MPI_Comm comm),                                                            \
	     (buffer, count, type, peer, tag, comm),                                     \
	     OCI_THEIRS(twin)(buffer, count, type, peer, tag, comm, &request), MPI_STATUS_IGNORE)

SEND(Send, Isend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)
TWIN(Recv,
     (void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
      MPI_Status *status),
     (buffer, count, type, peer, tag, comm, status),
     OCI_THEIRS(Irecv)(buffer, count, type, peer, tag, comm, &request), status)
TWIN(Mrecv,
     (void *buffer, OCI_COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
     (buffer, count, type, message, status),
     OCI_THEIRS(Imrecv)(buffer, count, type, message, &request), status)
TWIN(Sendrecv_replace,
     (void *buffer, OCI_COUNT count, MPI_Datatype type, int to, int stag, int from, int rtag,
      MPI_Comm comm, MPI_Status *status),
     (buffer, count, type, to, stag, from, rtag, comm, status),
     OCI_THEIRS(Isendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm, &request),
     status)

int OCI_OURS(Sendrecv)(const void *sbuf, OCI_COUNT scount, MPI_Datatype stype, int to, int stag,
		       void *rbuf, OCI_COUNT rcount, MPI_Datatype rtype, int from, int rtag,
		       MPI_Comm comm, MPI_Status *status)
{
	MPI_Request send, receive;
	int error, also;

	if (!oci_pmpi_attention())
		return OCI_THEIRS(Sendrecv)(sbuf, scount, stype, to, stag, rbuf, rcount, rtype,
					    from, rtag, comm, status);
	error = OCI_THEIRS(Irecv)(rbuf, rcount, rtype, from, rtag, comm, &receive);
	if (error)
		return error;
	error = OCI_THEIRS(Isend)(sbuf, scount, stype, to, stag, comm, &send);
	if (error) {
		PMPI(Cancel)(&receive);
		PMPI(Request_free)(&receive);
		return error;
	}
	error = oci_pmpi_await(&receive, status);
	also = oci_pmpi_await(&send, MPI_STATUS_IGNORE);
	return error ? error : also;
}

#undef TWIN
#undef SEND
