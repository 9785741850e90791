// SPDX-License-Identifier: BSD-3-Clause
#include "limit.h"

/* The same of a reduction: whoever computes a part reads what all give to it. */
static size_t blocks_reduced(enum oc_collective c, size_t p)
{
	/* The first rank copies; each other reads the sum before it and its own. */
	if (oci_is_exclusive(c))
		return p > 1 ? 2 + 3 * (p - 2) : 0;
	if (oci_is_prefix(c))
		return 2 + 3 * (p - 1);
	if (oci_sends_each(c))
		return p * (p + 1);
	/* Of an Allreduce, the result to the others as well. */
	return p + 1 + (oci_row_all_receive(c) ? 2 * (p - 1) : 0);
}

/* Blocks read and written by all ranks together, of call->bytes each. */
static size_t blocks_touched(const struct collective_call *call)
{
	enum oc_collective c = call->collective;
	size_t p = (size_t)call->ranks;

	if (oci_is_reduction(c))
		return blocks_reduced(c, p);
	if (!oci_is_rooted(c))
		return oci_receives_each(c) ? 2 * p * p : 0;
	/* The root of a Bcast has its block already. */
	return 2 * (oci_sends_each(c) || oci_receives_each(c) ? p : p - 1);
}

size_t limit_share(const struct collective_call *call, int cpus)
{
	size_t helpers = (size_t)(call->ranks < cpus ? call->ranks : cpus);

	if ((size_t)call->rank >= helpers)
		return 0;
	return (blocks_touched(call) * call->bytes / 2 + helpers - 1) / helpers;
}
