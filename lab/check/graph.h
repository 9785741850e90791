/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker of graphs: runs the graphs of all ranks in one process, in a random order of steps,
 * and proves that they end, and that every byte sent is received.
 *
 * It is the weakest executor that oc_graph(3) allows: a link holds `room` bytes, 0 at the worst,
 * where a byte moves only while the SEND and the RECV are both there; of nodes that could go on any
 * one is taken. It shares nothing with the executors but the packed form. What is found, as a
 * sentence:
 *
 *   - ranks that wait for each other for ever: the order of steps does not change whether they do,
 *     where links hold nothing, as a node that can go on can still do so after any other step; that
 *     is confirmed by trying;
 *   - a rank that sends another more, or less, than that one receives;
 *   - two nodes of a rank that touch a byte, one of them to write it, and neither waits for the
 * other.
 */
#ifndef OC_LAB_CHECK_GRAPH_H
#define OC_LAB_CHECK_GRAPH_H

#include <onecopy/graph.h>

struct oci_graph_rank {
	const void *packed;
	size_t bytes;
	const struct oc_graph_buffer *buffers;
	uint32_t buffer_count;
};

/* 0; -EINVAL and the sentence; or -ENOMEM. The bytes of the buffers move as the graphs say. */
int oci_graph_prove(const struct oci_graph_rank *ranks, uint32_t size, size_t room, uint64_t seed,
		    char *sentence, size_t n);

#endif
