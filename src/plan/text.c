/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

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
