/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations in words: for the checker's sentences and the graph of plans. */
#ifndef OC_LAB_OP_TEXT_H
#define OC_LAB_OP_TEXT_H

#include "plan/plan.h"

/* Room for the longest text of an operation. */
#define OCI_OP_TEXT 160

/*
 * "PULL RECV[0]/seg <- v3 SEND[root+0]{1..2)/seg": blocks in brackets, [a..b) for several,
 * root+n for relative ones; parts in braces; /seg for a segmented range; vN is a peer. Cut to n
 * bytes; returns text.
 */
const char *oci_op_text(char *text, size_t n, const struct oci_op *op);

#endif
