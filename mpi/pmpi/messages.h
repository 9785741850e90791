/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends and receives, with counts of OCI_COUNT and names as OCI_NAME makes them; included once for
 * each kind of count.
 */
#define SEND(name, twin)                                                                     \
	int OCI_OURS(name)(const void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, \
			   int tag, MPI_Comm comm)                                           \
	{                                                                                    \
		MPI_Request request;                                                         \
		int error;                                                                   \
                                                                                             \
		if (!oci_pmpi_attention() || peer == MPI_PROC_NULL)                          \
			return OCI_THEIRS(name)(buffer, count, type, peer, tag, comm);       \
		error = OCI_THEIRS(twin)(buffer, count, type, peer, tag, comm, &request);    \
		return error ? error : oci_pmpi_await(&request, MPI_STATUS_IGNORE);          \
	}

SEND(Send, Isend)
SEND(Ssend, Issend)
SEND(Rsend, Irsend)

/* What is wrong with a receive, before it waits: the MPI says so without a peer, too. */
static int OCI_NAME(check_receive)(void *buffer, OCI_COUNT count, MPI_Datatype type, int peer,
				   int tag, MPI_Comm comm)
{
	int found, error = OCI_THEIRS(Recv)(buffer, count, type, MPI_PROC_NULL, tag, comm,
					    MPI_STATUS_IGNORE);

	return error ? error : PMPI(Iprobe)(peer, tag, comm, &found, MPI_STATUS_IGNORE);
}

/* Where the error of a request would be raised on the wrong communicator, the call is the MPI's own
 * once the message is there; a thread of ours drives, as another one may receive it before. */
int OCI_OURS(Recv)(void *buffer, OCI_COUNT count, MPI_Datatype type, int peer, int tag,
		   MPI_Comm comm, MPI_Status *status)
{
	MPI_Request request;
	int error;

	/* From nobody the nonblocking twin would have no status. */
	if (!oci_pmpi_attention() || peer == MPI_PROC_NULL)
		return OCI_THEIRS(Recv)(buffer, count, type, peer, tag, comm, status);
	if (oci_pmpi_raises_elsewhere(comm)) {
		error = OCI_NAME(check_receive)(buffer, count, type, peer, tag, comm);
		if (!error)
			error = oci_pmpi_Probe(peer, tag, comm, MPI_STATUS_IGNORE);
		return error ? error :
			       OCI_HELPED(OCI_THEIRS(Recv)(buffer, count, type, peer, tag, comm,
							   status));
	}
	error = OCI_THEIRS(Irecv)(buffer, count, type, peer, tag, comm, &request);
	return error ? error : oci_pmpi_await(&request, status);
}

/* One of two messages at a time where there is no peer for the other. */
int OCI_OURS(Sendrecv)(const void *sbuf, OCI_COUNT scount, MPI_Datatype stype, int to, int stag,
		       void *rbuf, OCI_COUNT rcount, MPI_Datatype rtype, int from, int rtag,
		       MPI_Comm comm, MPI_Status *status)
{
	MPI_Request send, receive;
	bool elsewhere;
	int error, also;

	if (!oci_pmpi_attention())
		return OCI_THEIRS(Sendrecv)(sbuf, scount, stype, to, stag, rbuf, rcount, rtype,
					    from, rtag, comm, status);
	if (from == MPI_PROC_NULL) {
		error = OCI_OURS(Send)(sbuf, scount, stype, to, stag, comm);
		return error ? error :
			       OCI_THEIRS(Recv)(rbuf, rcount, rtype, from, rtag, comm, status);
	}
	elsewhere = oci_pmpi_raises_elsewhere(comm);
	error = elsewhere ? OCI_NAME(check_receive)(rbuf, rcount, rtype, from, rtag, comm) :
			    OCI_THEIRS(Irecv)(rbuf, rcount, rtype, from, rtag, comm, &receive);
	if (error)
		return error;
	error = OCI_THEIRS(Isend)(sbuf, scount, stype, to, stag, comm, &send);
	if (error && !elsewhere) {
		PMPI(Cancel)(&receive);
		PMPI(Request_free)(&receive);
	}
	if (error)
		return error;
	error = elsewhere ? OCI_OURS(Recv)(rbuf, rcount, rtype, from, rtag, comm, status) :
			    oci_pmpi_await(&receive, status);
	also = oci_pmpi_await(&send, MPI_STATUS_IGNORE);
	return error ? error : also;
}

/*
 * What is sent is kept as bytes. MPI_Isendrecv_replace is no twin: MPICH (4.0.2 to 5.0.1) sends
 * what it has packed by the type of the user's buffer, and tells neither source, tag and count nor
 * that the message was cut short.
 */
int OCI_OURS(Sendrecv_replace)(void *buffer, OCI_COUNT count, MPI_Datatype type, int to, int stag,
			       int from, int rtag, MPI_Comm comm, MPI_Status *status)
{
	struct oci_port_type shape;
	void *bytes = NULL;
	size_t length;
	int error;

	if (!oci_pmpi_attention() || count < 0 || type == MPI_DATATYPE_NULL ||
	    (to == MPI_PROC_NULL && from == MPI_PROC_NULL))
		return OCI_THEIRS(Sendrecv_replace)(buffer, count, type, to, stag, from, rtag, comm,
						    status);
	oci_port_type_get(type, &shape);
	if (!__builtin_mul_overflow((size_t)count, shape.size, &length))
		bytes = malloc(length + !length);
	if (!bytes)
		return oci_pmpi_raise(comm, MPI_ERR_NO_MEM);
	/* Of no elements there may be no buffer either. */
	error = count ? oci_port_pack(bytes, buffer, (size_t)count, type) : 0;
	if (error)
		error = oci_pmpi_raise(comm, error);
	else
		error = oci_pmpi_Sendrecv_c(bytes, (MPI_Count)length, MPI_BYTE, to, stag, buffer,
					    count, type, from, rtag, comm, status);
	free(bytes);
	return error;
}

#undef SEND
