/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

const char *oci_collective_name(enum oci_collective collective)
{
	static const char *const names[OCI_COLLECTIVES] = {
		[OCI_BARRIER] = "barrier",
		[OCI_BCAST] = "bcast",
		[OCI_SCATTER] = "scatter",
		[OCI_GATHER] = "gather",
		[OCI_ALLGATHER] = "allgather",
		[OCI_ALLTOALL] = "alltoall",
		[OCI_REDUCE] = "reduce",
		[OCI_ALLREDUCE] = "allreduce",
		[OCI_SCATTERV] = "scatterv",
		[OCI_GATHERV] = "gatherv",
		[OCI_ALLGATHERV] = "allgatherv",
		[OCI_ALLTOALLV] = "alltoallv",
		[OCI_REDUCE_SCATTER_BLOCK] = "reduce_scatter_block",
		[OCI_REDUCE_SCATTER] = "reduce_scatter",
		[OCI_SCAN] = "scan",
		[OCI_EXSCAN] = "exscan",
	};

	return (unsigned int)collective < OCI_COLLECTIVES ? names[collective] : "?";
}

const char *oci_buf_name(enum oci_buf buf)
{
	static const char *const names[OCI_BUF_COUNT] = {
		[OCI_BUF_SEND] = "SEND",     [OCI_BUF_RECV] = "RECV", [OCI_BUF_SLOT] = "SLOT",
		[OCI_BUF_WORK] = "WORK",     [OCI_BUF_TEMP] = "TEMP", [OCI_BUF_ACC] = "ACC",
		[OCI_BUF_INLINE] = "INLINE",
	};

	return (unsigned int)buf < OCI_BUF_COUNT ? names[buf] : "?";
}

const char *oci_opcode_name(enum oci_opcode code)
{
	static const char *const names[OCI_OP_COUNT] = {
		[OCI_OP_END] = "END",		[OCI_OP_POST] = "POST",
		[OCI_OP_SIGNAL] = "SIGNAL",	[OCI_OP_WAIT_POST] = "WAIT_POST",
		[OCI_OP_WAIT_ACK] = "WAIT_ACK", [OCI_OP_PULL] = "PULL",
		[OCI_OP_PUSH] = "PUSH",		[OCI_OP_SHARE] = "SHARE",
		[OCI_OP_HELP] = "HELP",		[OCI_OP_COPY] = "COPY",
		[OCI_OP_REDUCE] = "REDUCE",	[OCI_OP_REDUCE_FROM] = "REDUCE_FROM",
		[OCI_OP_OFFER] = "OFFER",	[OCI_OP_TAKE] = "TAKE",
		[OCI_OP_GIVE] = "GIVE",		[OCI_OP_TRADE] = "TRADE",
		[OCI_OP_LOOP] = "LOOP",		[OCI_OP_NEXT] = "NEXT",
	};

	return (unsigned int)code < OCI_OP_COUNT ? names[code] : "?";
}
