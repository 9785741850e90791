/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <string.h>

#include "lab/check/op_text.h"
#include "support/test.h"

TEST(plan_names_are_known_and_never_null)
{
	for (unsigned int i = 0; i <= OC_COLLECTIVES; i++)
		assert_int_equal(!strcmp(oci_collective_name(i), "?"), i == OC_COLLECTIVES);
	for (unsigned int i = 0; i <= OCI_BUF_COUNT; i++)
		assert_int_equal(!strcmp(oci_buf_name(i), "?"), i == OCI_BUF_COUNT);
	for (unsigned int i = 0; i <= OCI_OP_COUNT; i++)
		assert_int_equal(!strcmp(oci_opcode_name(i), "?"), i == OCI_OP_COUNT);
}

TEST(op_text_says_what_is_where)
{
	struct oci_op op = { .code = OCI_OP_PULL,
			     .peer = 3,
			     .local = oci_blocks(OCI_BUF_RECV, 1, 4),
			     .remote = oci_segmented(oci_part(OCI_BUF_SEND, 2, 1)) };
	char text[OCI_OP_TEXT];

	assert_string_equal(oci_op_text(text, sizeof(text), &op),
			    "PULL RECV[1..5) <- v3 SEND[0]{2..3)/seg");
	op = (struct oci_op){ .code = OCI_OP_WAIT_ACK,
			      .peer = 1,
			      .peers = 4,
			      .step = 2,
			      .step_loop = 1 };
	assert_string_equal(oci_op_text(text, sizeof(text), &op), "WAIT_ACK v1+4 step 2+1*segment");
	op = (struct oci_op){ .code = OCI_OP_HELP,
			      .by_peer = 1,
			      .peer = 1,
			      .peers = 2,
			      .local = oci_block(OCI_BUF_SEND, 0),
			      .remote = oci_block_rel(OCI_BUF_RECV, 1) };
	assert_string_equal(oci_op_text(text, sizeof(text), &op),
			    "HELP SEND[0] by peer -> v1+2 RECV[root+1]");
	assert_string_equal(oci_op_text(text, 5, &op), "HELP");
	op = (struct oci_op){ .code = OCI_OP_COPY,
			      .local = oci_blocks(OCI_BUF_WORK, 1, 2),
			      .second = oci_slot_half() };
	assert_string_equal(oci_op_text(text, sizeof(text), &op),
			    "COPY WORK[1..3) -> SLOT[0]/half");
}
