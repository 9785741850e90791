/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank's part of a call of any collective: its buffers between guards, what it gives, and
 * whether it got what it had to. What is in a buffer is what oct_byte() says.
 */
#ifndef OC_TESTS_CALL_H
#define OC_TESTS_CALL_H

#include "support/blocks.h"

/* Alike on all ranks. */
struct oct_spec {
	enum oc_collective collective;
	unsigned int n; /* other data, and of a v-variant other sizes, for other numbers */
	size_t bytes;	/* of a block or message; v-variants draw theirs from n */
	uint32_t root;
	const struct oc_op *op; /* of a reduction */
	bool in_place;		/* where the collective has it */
	bool uneven;		/* Reduce_scatter: parts of 0 to 3 times `bytes`, else equal ones */
	bool by_request;	/* of oct_call_run(): started and waited for */
};

/* Buffers for one call after the other. They grow as it needs, unless the caller has put there
 * what is large enough (oct_memory_bytes()), and his own. */
struct oct_memory {
	uint8_t *send, *recv;
	size_t bytes; /* of each */
};

/* For blocks of `bytes` on `size` ranks. */
size_t oct_memory_bytes(size_t bytes, uint32_t size);
void oct_memory_free(struct oct_memory *memory);

/* Lies where it lies: it has addresses of itself. */
struct oct_call {
	struct oc_call call; /* to be passed */
	struct oct_spec spec;
	uint32_t rank, size;
	struct oct_memory *memory;
	struct oc_block parts[OCT_BLOCKS_RANKS]; /* the blocks of a side that has several */
	size_t send_bytes, recv_bytes;		 /* what lies between the guards */
	struct oct_blocks blocks;		 /* of a v-variant */
};

void oct_call_make(struct oct_call *c, struct oct_memory *memory, const struct oct_spec *spec,
		   uint32_t rank, uint32_t size);
/* What was to arrive is there, and what was not to be written is as it was. */
bool oct_call_right(const struct oct_call *c);
void oct_call_free(struct oct_call *c);

/* All of it, on this rank of the team. 0; else what is wrong has been said. */
int oct_call_run(struct oc_team *team, struct oct_memory *memory, const struct oct_spec *spec);

#endif
