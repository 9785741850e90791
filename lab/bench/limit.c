// SPDX-License-Identifier: BSD-3-Clause
#include "limit.h"

/* Blocks read and written by all ranks together, of call->bytes each. */
static size_t blocks_touched(const struct collective_call *call)
{
	size_t p = (size_t)call->ranks;

	switch (call->collective) {
	case OC_BCAST:
		return 2 * (p - 1);
	case OC_SCATTER:
	case OC_SCATTERV:
	case OC_GATHER:
	case OC_GATHERV:
		return 2 * p;
	case OC_ALLGATHER:
	case OC_ALLGATHERV:
	case OC_ALLTOALL:
	case OC_ALLTOALLV:
		return 2 * p * p;
	case OC_REDUCE:
		return p + 1;
	case OC_ALLREDUCE:
		/* A Reduce, and the result to the others. */
		return p + 1 + 2 * (p - 1);
	case OC_REDUCE_SCATTER:
	case OC_REDUCE_SCATTER_BLOCK:
		return p * (p + 1);
	case OC_SCAN:
		/* The first rank copies; each other reads the sum before it and its own. */
		return 2 + 3 * (p - 1);
	case OC_EXSCAN:
		return p > 1 ? 2 + 3 * (p - 2) : 0;
	default:
		return 0;
	}
}

size_t limit_share(const struct collective_call *call, int cpus)
{
	size_t helpers = (size_t)(call->ranks < cpus ? call->ranks : cpus);

	if ((size_t)call->rank >= helpers) {
		return 0;
	}
	return (blocks_touched(call) * call->bytes / 2 + helpers - 1) / helpers;
}
