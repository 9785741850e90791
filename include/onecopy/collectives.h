/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every collective, once. Names, options, info keys, argument checks, the functions of both front
 * ends, the lists of benchmarks and tests come from these rows. Not installed; docs/adr/0019 says
 * why the public enum is written out in onecopy.h. Before the inline functions it is preprocessor
 * alone, as an assembler file reads it too.
 *
 * ROW(X, ID, name, Name, key, first, second, root, sends, receives, in_place, operands), where X is
 * whatever the user of the rows passes through:
 *   ID        OC_ID of enum oc_collective, in its order
 *   name      as in ONECOPY_<NAME>, files and tables; MPI_I<name> is the nonblocking function
 *   Name      MPI_<Name>, MPI_<Name>_init, and those with _c
 *   key       the info key is onecopy_<key>: Open MPI takes no key of more than 27 characters
 *   first, second, root   the arguments of the MPI functions, before the communicator, as words for
 *             the lists below: OC_SIGNATURE_<word>. In the place of a root, GRAPH: the blocks are
 *             for those alone that the communicator's topology makes neighbors
 *   sends, receives   what a rank's buffers are, as in struct oc_call: NOTHING, ONE block or
 *             message, EACH: a block for each rank; ROOT_ONE, ROOT_EACH: on the root alone. A Bcast
 *             has one buffer, which counts as sent.
 *   in_place  where OC_IN_PLACE may stand: NEVER; ROOT_SEND, ROOT_RECV: for that buffer of the
 *             root; SEND: for the send buffer of any rank; TRADE: of all ranks or of none, and
 *             there are plans of its own for it; APART: as SEND, and as peers read the input until
 *             all is over the result is made apart
 *   operands  MOVES: bytes are moved; else the ranks whose bytes are reduced for a rank: ALL, UP_TO
 *             it, or BELOW it, where rank 0 receives nothing
 */
#ifndef ONECOPY_COLLECTIVES_H
#define ONECOPY_COLLECTIVES_H

/* clang-format off */
/*
 * Arguments, each as A(argument). Buffers, counts and types have s in front where they are sent, r
 * where received, and none where one serves for both; plurals have an element for each rank or
 * neighbor, whose blocks then have their own sizes. `count` is of the message, `rcount` of one rank's
 * block; `sadispls` are MPI_Aint whatever a displacement is elsewhere.
 */
#define OC_SIGNATURE(A, first, second, root) \
	OC_SIGNATURE_##first(A) OC_SIGNATURE_##second(A) OC_SIGNATURE_##root(A)
#define OC_SIGNATURE_NIL(A)
#define OC_SIGNATURE_BUFFER(A) A(buffer) A(count) A(type)
#define OC_SIGNATURE_SEND(A) A(sbuf) A(scount) A(stype)
#define OC_SIGNATURE_SENDV(A) A(sbuf) A(scounts) A(sdispls) A(stype)
#define OC_SIGNATURE_SENDW(A) A(sbuf) A(scounts) A(sdispls) A(stypes)
#define OC_SIGNATURE_SENDA(A) A(sbuf) A(scounts) A(sadispls) A(stypes)
#define OC_SIGNATURE_RECV(A) A(rbuf) A(rcount) A(rtype)
#define OC_SIGNATURE_RECVV(A) A(rbuf) A(rcounts) A(rdispls) A(rtype)
#define OC_SIGNATURE_RECVW(A) A(rbuf) A(rcounts) A(rdispls) A(rtypes)
#define OC_SIGNATURE_RECVA(A) A(rbuf) A(rcounts) A(radispls) A(rtypes)
#define OC_SIGNATURE_REDUCE(A) A(sbuf) A(rbuf) A(count) A(type) A(op)
#define OC_SIGNATURE_REDUCE_BLOCK(A) A(sbuf) A(rbuf) A(rcount) A(type) A(op)
#define OC_SIGNATURE_REDUCEV(A) A(sbuf) A(rbuf) A(rcounts) A(type) A(op)
#define OC_SIGNATURE_ROOT(A) A(root)
#define OC_SIGNATURE_GRAPH(A)

#define OC_COLLECTIVE_ROWS(ROW, X) OC_WHOLE_ROWS(ROW, X) OC_NEIGHBOR_ROW(ROW, X)
/* Between all ranks. */
#define OC_WHOLE_ROWS(ROW, X) \
	ROW(X, BARRIER, barrier, Barrier, barrier, NIL, NIL, NIL, NOTHING, NOTHING, NEVER, MOVES) \
	OC_WHOLE_ROWS_WITH_COUNTS(ROW, X)
#define OC_WHOLE_ROWS_WITH_COUNTS(ROW, X) \
	ROW(X, BCAST, bcast, Bcast, bcast, BUFFER, NIL, ROOT, ONE, NOTHING, NEVER, MOVES) \
	ROW(X, SCATTER, scatter, Scatter, scatter, SEND, RECV, ROOT, ROOT_EACH, ONE, ROOT_RECV, MOVES) \
	ROW(X, GATHER, gather, Gather, gather, SEND, RECV, ROOT, ONE, ROOT_EACH, ROOT_SEND, MOVES) \
	ROW(X, ALLGATHER, allgather, Allgather, allgather, SEND, RECV, NIL, ONE, EACH, SEND, MOVES) \
	ROW(X, ALLTOALL, alltoall, Alltoall, alltoall, SEND, RECV, NIL, EACH, EACH, TRADE, MOVES) \
	ROW(X, REDUCE, reduce, Reduce, reduce, REDUCE, NIL, ROOT, ONE, ROOT_ONE, ROOT_SEND, ALL) \
	ROW(X, ALLREDUCE, allreduce, Allreduce, allreduce, REDUCE, NIL, NIL, ONE, ONE, SEND, ALL) \
	ROW(X, SCATTERV, scatterv, Scatterv, scatterv, SENDV, RECV, ROOT, ROOT_EACH, ONE, ROOT_RECV, MOVES) \
	ROW(X, GATHERV, gatherv, Gatherv, gatherv, SEND, RECVV, ROOT, ONE, ROOT_EACH, ROOT_SEND, MOVES) \
	ROW(X, ALLGATHERV, allgatherv, Allgatherv, allgatherv, SEND, RECVV, NIL, ONE, EACH, SEND, MOVES) \
	ROW(X, ALLTOALLV, alltoallv, Alltoallv, alltoallv, SENDV, RECVV, NIL, EACH, EACH, TRADE, MOVES) \
	ROW(X, REDUCE_SCATTER_BLOCK, reduce_scatter_block, Reduce_scatter_block, reducescatter_block, \
	    REDUCE_BLOCK, NIL, NIL, EACH, ONE, APART, ALL) \
	ROW(X, REDUCE_SCATTER, reduce_scatter, Reduce_scatter, reduce_scatter, \
	    REDUCEV, NIL, NIL, EACH, ONE, APART, ALL) \
	ROW(X, SCAN, scan, Scan, scan, REDUCE, NIL, NIL, ONE, ONE, SEND, UP_TO) \
	ROW(X, EXSCAN, exscan, Exscan, exscan, REDUCE, NIL, NIL, ONE, ONE, APART, BELOW)

/* Between neighbors. The engine has one for all. */
#define OC_NEIGHBOR_ROW(ROW, X) \
	ROW(X, NEIGHBOR_ALLTOALLV, neighbor_alltoallv, Neighbor_alltoallv, neighbor_alltoallv, \
	    SENDV, RECVV, GRAPH, EACH, EACH, NEVER, MOVES)

/*
 * MPI's functions: a row for each collective, and those that the engine has as another one: an
 * Alltoallw is an Alltoallv, and all of the neighborhood are a Neighbor_alltoallv. `sends` is
 * ONE where all neighbors get the same block.
 */
#define OC_FUNCTION_ROWS(ROW, X) \
	OC_WHOLE_ROWS(ROW, X) OC_ALLTOALLW_ROW(ROW, X) OC_NEIGHBOR_FUNCTION_ROWS(ROW, X)
#define OC_FUNCTION_ROWS_WITH_COUNTS(ROW, X) \
	OC_WHOLE_ROWS_WITH_COUNTS(ROW, X) OC_ALLTOALLW_ROW(ROW, X) OC_NEIGHBOR_FUNCTION_ROWS(ROW, X)
#define OC_ALLTOALLW_ROW(ROW, X) \
	ROW(X, ALLTOALLV, alltoallw, Alltoallw, alltoallv, SENDW, RECVW, NIL, EACH, EACH, TRADE, MOVES)
#define OC_NEIGHBOR_FUNCTION_ROWS(ROW, X) \
	OC_NEIGHBOR_ROW(ROW, X) \
	ROW(X, NEIGHBOR_ALLTOALLV, neighbor_alltoallw, Neighbor_alltoallw, neighbor_alltoallv, \
	    SENDA, RECVA, GRAPH, EACH, EACH, NEVER, MOVES) \
	ROW(X, NEIGHBOR_ALLTOALLV, neighbor_alltoall, Neighbor_alltoall, neighbor_alltoallv, \
	    SEND, RECV, GRAPH, EACH, EACH, NEVER, MOVES) \
	ROW(X, NEIGHBOR_ALLTOALLV, neighbor_allgather, Neighbor_allgather, neighbor_alltoallv, \
	    SEND, RECV, GRAPH, ONE, EACH, NEVER, MOVES) \
	ROW(X, NEIGHBOR_ALLTOALLV, neighbor_allgatherv, Neighbor_allgatherv, neighbor_alltoallv, \
	    SEND, RECVV, GRAPH, ONE, EACH, NEVER, MOVES)
/* clang-format on */

#ifndef __ASSEMBLER__

#include <onecopy/onecopy.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rows are those of the public enum, in its order. */
#define OCI_ROW_NUMBER(X, ID, ...) OCI_ROW_##ID,
#define OCI_ROW_CHECK(X, ID, ...) \
	_Static_assert((int)OCI_ROW_##ID == (int)OC_##ID, "the order of enum oc_collective");
enum { OC_COLLECTIVE_ROWS(OCI_ROW_NUMBER, ) OCI_ROW_COUNT };
OC_COLLECTIVE_ROWS(OCI_ROW_CHECK, )
_Static_assert((int)OCI_ROW_COUNT == (int)OC_COLLECTIVES, "a row for each collective");
#undef OCI_ROW_NUMBER
#undef OCI_ROW_CHECK

/* "bcast"; "?" where there is no such collective. */
static inline const char *oci_collective_name(enum oc_collective collective)
{
#define OCI_ROW_NAME(X, ID, name, ...) #name,
	static const char *const names[] = { OC_COLLECTIVE_ROWS(OCI_ROW_NAME, ) };
#undef OCI_ROW_NAME

	return (unsigned int)collective < OC_COLLECTIVES ? names[collective] : "?";
}

/* MPI's functions, by number and by name. */
#define OCI_ROW_FUNCTION(X, ID, name, ...) OCI_FUNCTION_##name,
enum oci_function { OC_FUNCTION_ROWS(OCI_ROW_FUNCTION, ) OCI_FUNCTIONS };
#undef OCI_ROW_FUNCTION

static inline const char *oci_function_name(enum oci_function function)
{
#define OCI_ROW_NAME(X, ID, name, ...) #name,
	static const char *const names[] = { OC_FUNCTION_ROWS(OCI_ROW_NAME, ) };
#undef OCI_ROW_NAME

	return names[function];
}

/* "onecopy_bcast": the info key of a communicator that forces its algorithm. */
#define OCI_ROW_KEY(X, ID, name, Name, key, ...) "onecopy_" #key,
#define OCI_INFO_KEYS                             \
	{                                         \
		OC_COLLECTIVE_ROWS(OCI_ROW_KEY, ) \
	}

/* ---- what a row says ------------------------------------------------------------------------
 *
 * Each question is asked of all rows by the compiler: what is left of it in a running call is a bit
 * of a constant, and of a collective that is known nothing. The collective has to be a valid one.
 */
enum oci_arguments {
	OCI_ARGUMENTS_NIL,
	OCI_ARGUMENTS_BUFFER,
	OCI_ARGUMENTS_SEND,
	OCI_ARGUMENTS_SENDV,
	OCI_ARGUMENTS_SENDW,
	OCI_ARGUMENTS_SENDA,
	OCI_ARGUMENTS_RECV,
	OCI_ARGUMENTS_RECVV,
	OCI_ARGUMENTS_RECVW,
	OCI_ARGUMENTS_RECVA,
	OCI_ARGUMENTS_REDUCE,
	OCI_ARGUMENTS_REDUCE_BLOCK,
	OCI_ARGUMENTS_REDUCEV,
	OCI_ARGUMENTS_ROOT,
	OCI_ARGUMENTS_GRAPH,
};
enum oci_side {
	OCI_SIDE_NOTHING,
	OCI_SIDE_ONE,
	OCI_SIDE_EACH,
	OCI_SIDE_ROOT_ONE,
	OCI_SIDE_ROOT_EACH
};
enum oci_in_place {
	OCI_IN_PLACE_NEVER,
	OCI_IN_PLACE_ROOT_SEND,
	OCI_IN_PLACE_ROOT_RECV,
	OCI_IN_PLACE_SEND,
	OCI_IN_PLACE_TRADE,
	OCI_IN_PLACE_APART,
};
enum oci_operands { OCI_OPERANDS_MOVES, OCI_OPERANDS_ALL, OCI_OPERANDS_UP_TO, OCI_OPERANDS_BELOW };

/* The rows for which ASK(first, second, root, sends, receives, in_place, operands) is true. */
#define OCI_ROW_BIT(ASK, ID, name, Name, key, ...) | (uint32_t)(ASK(__VA_ARGS__)) << OC_##ID
#define OCI_ROWS_WITH(ASK) (0u OC_COLLECTIVE_ROWS(OCI_ROW_BIT, ASK))
#define OCI_PREDICATE(name, ASK)                                       \
	static inline bool name(enum oc_collective collective)         \
	{                                                              \
		return OCI_ROWS_WITH(ASK) >> (unsigned)collective & 1; \
	}

/* The same of functions. */
#define OCI_FUNCTION_BIT(ASK, ID, name, Name, key, ...) \
	| (uint32_t)(ASK(__VA_ARGS__)) << OCI_FUNCTION_##name
#define OCI_FUNCTION_PREDICATE(name, ASK)                                                      \
	static inline bool name(enum oci_function function)                                    \
	{                                                                                      \
		return (0u OC_FUNCTION_ROWS(OCI_FUNCTION_BIT, ASK)) >> (unsigned)function & 1; \
	}

#define OCI_ASK_ROOTED(a, b, root, ...) OCI_ARGUMENTS_##root == OCI_ARGUMENTS_ROOT
#define OCI_ASK_NEIGHBOR(a, b, root, ...) OCI_ARGUMENTS_##root == OCI_ARGUMENTS_GRAPH
#define OCI_ASK_COUNTS_SENT(first, ...) OCI_ARGUMENTS_##first == OCI_ARGUMENTS_SENDV
#define OCI_ASK_COUNTS_RECEIVED(a, second, ...) OCI_ARGUMENTS_##second == OCI_ARGUMENTS_RECVV
#define OCI_ASK_COUNTS(first, second, ...) OCI_ASK_V(first, second) || OCI_ASK_PARTS(first)
#define OCI_ASK_PARTS(first, ...) OCI_ARGUMENTS_##first == OCI_ARGUMENTS_REDUCEV
#define OCI_ASK_ONE_BUFFER(first, ...) OCI_ARGUMENTS_##first == OCI_ARGUMENTS_BUFFER
#define OCI_ASK_V(first, second, ...) \
	OCI_ASK_COUNTS_SENT(first) || OCI_ASK_COUNTS_RECEIVED(first, second)
#define OCI_ASK_UNIFORM(first, second, ...) \
	OCI_ARGUMENTS_##first == OCI_ARGUMENTS_SEND &&OCI_ARGUMENTS_##second == OCI_ARGUMENTS_RECV
#define OCI_ASK_ARRAY_SENT(first, ...) \
	OCI_ARGUMENTS_##first >= OCI_ARGUMENTS_SENDV &&OCI_ARGUMENTS_##first <= OCI_ARGUMENTS_SENDA
#define OCI_ASK_ARRAY_RECEIVED(a, second, ...)                                    \
	OCI_ARGUMENTS_##second >= OCI_ARGUMENTS_RECVV &&OCI_ARGUMENTS_##second <= \
		OCI_ARGUMENTS_RECVA
#define OCI_ASK_SENDS(a, b, c, sends, ...) OCI_SIDE_##sends != OCI_SIDE_NOTHING
#define OCI_ASK_ALL_SEND(a, b, c, sends, ...) \
	OCI_SIDE_##sends == OCI_SIDE_ONE || OCI_SIDE_##sends == OCI_SIDE_EACH
#define OCI_ASK_SENDS_EACH(a, b, c, sends, ...) \
	OCI_SIDE_##sends == OCI_SIDE_EACH || OCI_SIDE_##sends == OCI_SIDE_ROOT_EACH
#define OCI_ASK_RECEIVES(a, b, c, d, receives, ...) OCI_ASK_SENDS(a, b, c, receives)
#define OCI_ASK_ALL_RECEIVE(a, b, c, d, receives, ...) OCI_ASK_ALL_SEND(a, b, c, receives)
#define OCI_ASK_RECEIVES_EACH(a, b, c, d, receives, ...) OCI_ASK_SENDS_EACH(a, b, c, receives)
#define OCI_ASK_EACH_ON_ONE_SIDE(a, b, c, sends, receives, ...) \
	(OCI_ASK_SENDS_EACH(a, b, c, sends)) != (OCI_ASK_SENDS_EACH(a, b, c, receives))
#define OCI_ASK_ROOT_IN_PLACE(a, b, c, d, e, in_place, ...)                        \
	OCI_IN_PLACE_##in_place != OCI_IN_PLACE_NEVER &&OCI_IN_PLACE_##in_place != \
		OCI_IN_PLACE_ROOT_RECV
#define OCI_ASK_ALL_IN_PLACE(a, b, c, d, e, in_place, ...) \
	OCI_IN_PLACE_##in_place >= OCI_IN_PLACE_SEND
#define OCI_ASK_IN_PLACE(a, b, c, d, e, in_place, ...) OCI_IN_PLACE_##in_place != OCI_IN_PLACE_NEVER
#define OCI_ASK_RECV_IN_PLACE(a, b, c, d, e, in_place, ...) \
	OCI_IN_PLACE_##in_place == OCI_IN_PLACE_ROOT_RECV
#define OCI_ASK_TRADES(a, b, c, d, e, in_place, ...) OCI_IN_PLACE_##in_place == OCI_IN_PLACE_TRADE
#define OCI_ASK_APART(a, b, c, d, e, in_place, ...) OCI_IN_PLACE_##in_place == OCI_IN_PLACE_APART
#define OCI_ASK_REDUCES(a, b, c, d, e, f, operands) OCI_OPERANDS_##operands != OCI_OPERANDS_MOVES
#define OCI_ASK_PREFIX(a, b, c, d, e, f, operands) OCI_OPERANDS_##operands >= OCI_OPERANDS_UP_TO
#define OCI_ASK_BELOW(a, b, c, d, e, f, operands) OCI_OPERANDS_##operands == OCI_OPERANDS_BELOW

OCI_PREDICATE(oci_is_rooted, OCI_ASK_ROOTED)
/* Is it between neighbors? */
OCI_PREDICATE(oci_is_neighbor, OCI_ASK_NEIGHBOR)
/* Has the call an operation on elements? */
OCI_PREDICATE(oci_is_reduction, OCI_ASK_REDUCES)
/* Does a rank get the reduction over the ranks before it alone? */
OCI_PREDICATE(oci_is_prefix, OCI_ASK_PREFIX)
/* Without itself: rank 0 gets nothing. */
OCI_PREDICATE(oci_is_exclusive, OCI_ASK_BELOW)
/* Are blocks that are moved of their own sizes, on which nothing may depend? On which side? */
OCI_PREDICATE(oci_is_v, OCI_ASK_V)
/* The same or a reduction's: does it take a count for each rank? */
OCI_PREDICATE(oci_has_counts, OCI_ASK_COUNTS)
/* Of a reduction: is `bytes` the whole input, and does recv_blocks say whose part is where? */
OCI_PREDICATE(oci_has_parts, OCI_ASK_PARTS)
/* Is there one buffer, which the root sends and the others receive? */
OCI_PREDICATE(oci_has_one_buffer, OCI_ASK_ONE_BUFFER)
OCI_PREDICATE(oci_counts_sent, OCI_ASK_COUNTS_SENT)
OCI_PREDICATE(oci_counts_received, OCI_ASK_COUNTS_RECEIVED)
/* Has a buffer, of the root at least, a block for each rank? */
OCI_PREDICATE(oci_sends_each, OCI_ASK_SENDS_EACH)
OCI_PREDICATE(oci_receives_each, OCI_ASK_RECEIVES_EACH)
/* One of both alone? Asked at once, as gcc 12 compares the answers wrongly with -O1. */
OCI_PREDICATE(oci_each_on_one_side, OCI_ASK_EACH_ON_ONE_SIDE)
/* Has it a form in place at all? */
OCI_PREDICATE(oci_has_in_place, OCI_ASK_IN_PLACE)
/* One that has plans of its own, which MPI has all ranks take, or none? */
OCI_PREDICATE(oci_trades, OCI_ASK_TRADES)
/* Must a result in place be made elsewhere? */
OCI_PREDICATE(oci_is_apart, OCI_ASK_APART)
/* Does any rank send? Not in a Barrier. */
OCI_PREDICATE(oci_row_sends, OCI_ASK_SENDS)
OCI_PREDICATE(oci_row_all_send, OCI_ASK_ALL_SEND)
OCI_PREDICATE(oci_row_receives, OCI_ASK_RECEIVES)
OCI_PREDICATE(oci_row_all_receive, OCI_ASK_ALL_RECEIVE)
OCI_PREDICATE(oci_row_root_in_place, OCI_ASK_ROOT_IN_PLACE)
OCI_PREDICATE(oci_row_all_in_place, OCI_ASK_ALL_IN_PLACE)
OCI_PREDICATE(oci_row_recv_in_place, OCI_ASK_RECV_IN_PLACE)

/* Has a function one count for all blocks of a side? Arrays of counts for the sent, the received?
 */
OCI_FUNCTION_PREDICATE(oci_function_is_uniform, OCI_ASK_UNIFORM)
OCI_FUNCTION_PREDICATE(oci_function_array_sent, OCI_ASK_ARRAY_SENT)
OCI_FUNCTION_PREDICATE(oci_function_array_received, OCI_ASK_ARRAY_RECEIVED)
/* Is what a rank sends, the root at least, a block for each of the others? */
OCI_FUNCTION_PREDICATE(oci_function_sends_each, OCI_ASK_SENDS_EACH)

/* Has a rank a send buffer, a receive buffer? Rank 0 of an Exscan has one that is not used. */
static inline bool oci_sends(enum oc_collective collective, bool is_root)
{
	return is_root ? oci_row_sends(collective) : oci_row_all_send(collective);
}

static inline bool oci_receives(enum oc_collective collective, bool is_root)
{
	return is_root ? oci_row_receives(collective) : oci_row_all_receive(collective);
}

/* Do its send arguments say how long the blocks are that are moved? Else the receive arguments do:
 * on the root those of the buffer with a block for each rank, which MPI_IN_PLACE never stands for.
 */
static inline bool oci_size_is_sent(enum oc_collective collective, bool is_root)
{
	return !oci_receives(collective, is_root) ||
	       (is_root && oci_is_rooted(collective) && oci_sends_each(collective));
}

/* May OC_IN_PLACE stand for it? */
static inline bool oci_may_send_in_place(enum oc_collective collective, bool is_root)
{
	return is_root ? oci_row_root_in_place(collective) : oci_row_all_in_place(collective);
}

static inline bool oci_may_receive_in_place(enum oc_collective collective, bool is_root)
{
	return is_root && oci_row_recv_in_place(collective);
}

/* How many blocks it has. */
static inline size_t oci_send_blocks(enum oc_collective collective, size_t ranks, bool is_root)
{
	if (!oci_sends(collective, is_root))
		return 0;
	return oci_sends_each(collective) ? ranks : 1;
}

static inline size_t oci_recv_blocks(enum oc_collective collective, size_t ranks, bool is_root)
{
	if (!oci_receives(collective, is_root))
		return 0;
	return oci_receives_each(collective) ? ranks : 1;
}

#endif
#endif
