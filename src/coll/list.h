/* SPDX-License-Identifier: BSD-3-Clause */
/* The algorithms of each collective, in the order of their lists: a word here declares one, as
 * oci_<word>, and lists it. */
#ifndef OC_COLL_LIST_H
#define OC_COLL_LIST_H

#include "coll/coll.h"

/* clang-format off */
#define OCI_ALGORITHMS_BARRIER(A) A(barrier_flat) A(barrier_dissemination) A(barrier_tree)
#define OCI_ALGORITHMS_BCAST(A) \
	A(bcast_inline) A(bcast_cico) A(bcast_direct_read) A(bcast_knomial) \
	A(bcast_scatter_allgather) A(bcast_cooperative) A(bcast_direct_write) \
	A(bcast_hierarchical) A(bcast_scatter_ring_neighbor) A(bcast_scatter_ring_write) \
	A(bcast_scatter_doubling) A(bcast_scatter_bruck) A(bcast_scatter_write_allgather) \
	A(bcast_scatter_throttled_allgather) A(bcast_scatter_ring_near) A(bcast_shm)
#define OCI_ALGORITHMS_SCATTER(A) \
	A(scatter_inline) A(scatter_cico) A(scatter_throttled_read) A(scatter_cooperative) \
	A(scatter_parallel_read) A(scatter_sequential_write)
#define OCI_ALGORITHMS_GATHER(A) \
	A(gather_inline) A(gather_cico) A(gather_throttled_write) A(gather_cooperative) \
	A(gather_parallel_write) A(gather_sequential_read)
#define OCI_ALGORITHMS_ALLGATHER(A) \
	A(allgather_inline) A(allgather_cico) A(allgather_ring_source_read) \
	A(allgather_ring_neighbor) A(allgather_ring_source_write) \
	A(allgather_recursive_doubling) A(allgather_bruck) A(allgather_gather_bcast) \
	A(allgather_gather_hierarchical) A(allgather_ring_near)
#define OCI_ALGORITHMS_ALLTOALL(A) \
	A(alltoall_inline) A(alltoall_cico) A(alltoall_pairwise) A(alltoall_bruck) \
	A(alltoall_shm) A(alltoall_point_to_point)
#define OCI_ALGORITHMS_REDUCE(A) \
	A(reduce_inline) A(reduce_cico) A(reduce_cico_sliced) A(reduce_sliced) \
	A(reduce_tree) A(reduce_hierarchical)
#define OCI_ALGORITHMS_ALLREDUCE(A) \
	A(allreduce_inline) A(allreduce_cico) A(allreduce_cico_sliced) A(allreduce_direct_read) \
	A(allreduce_sliced) A(allreduce_tree) A(allreduce_hierarchical)
#define OCI_ALGORITHMS_SCATTERV(A) A(scatterv_throttled_read)
#define OCI_ALGORITHMS_GATHERV(A) A(gatherv_throttled_write)
#define OCI_ALGORITHMS_ALLGATHERV(A) A(allgatherv_ring_source_read)
#define OCI_ALGORITHMS_ALLTOALLV(A) A(alltoallv_pairwise)
/* An Alltoallv waits for nobody who gives nothing. */
#define OCI_ALGORITHMS_NEIGHBOR_ALLTOALLV(A) OCI_ALGORITHMS_ALLTOALLV(A)
#define OCI_ALGORITHMS_REDUCE_SCATTER_BLOCK(A) \
	A(reduce_scatter_inline) A(reduce_scatter_cico) A(reduce_scatter_sliced)
#define OCI_ALGORITHMS_REDUCE_SCATTER(A) \
	A(reduce_scatter_inline) A(reduce_scatter_cico) A(reduce_scatter_sliced)
#define OCI_ALGORITHMS_SCAN(A) A(scan_inline) A(scan_cico) A(scan_chain)
#define OCI_ALGORITHMS_EXSCAN(A) A(scan_inline) A(scan_cico) A(exscan_chain)
/* clang-format on */

#define OCI_ALGORITHM_DECLARE(name) extern const struct oci_algorithm oci_##name;
#define OCI_ALGORITHMS_DECLARE(X, ID, ...) OCI_ALGORITHMS_##ID(OCI_ALGORITHM_DECLARE)
OC_COLLECTIVE_ROWS(OCI_ALGORITHMS_DECLARE, )
#undef OCI_ALGORITHMS_DECLARE
#undef OCI_ALGORITHM_DECLARE

#endif
