/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs: communication that goes on while the program computes.
 *
 * A graph is what one process does in one collective (or in any exchange): nodes SEND, RECV and
 * CALC, and edges, which say what must be over before what begins. It is made once, prepared for
 * the process's buffers and its sockets to the others, and issued as often as wanted. They are the
 * CADs of KACC (Nomura, Ishikawa, EuroMPI 2010):
 *
 *	InitCAD			oc_graph_create
 *	MakeSendNode		oc_graph_send
 *	MakeRecvNode		oc_graph_recv
 *	MakeCalcNode		oc_graph_calc
 *	ConnectNode(A, B)	oc_graph_connect
 *	IssueCAD		oc_graph_issue
 *	QueryCAD		oc_graph_test
 *
 * Its START and END are implied: a node without an edge to it may begin at once, and a graph is
 * over when all of its nodes are.
 *
 * ORDER. What two processes send each other is a stream: the SENDs of a graph to a peer happen in
 * the order in which their nodes were made, and so do the RECVs from one; graphs on the same links
 * in the order in which they are issued. There are no tags: on both sides of a link the messages
 * must be the same ones in the same order. Nodes that neither an edge nor this orders go on
 * independently, in any order.
 *
 * ERRORS. 0 (or a stated positive value) or -errno; outputs are written only on success. An error
 * of a link ends all graphs on its links and closes the streams, so that the peers get an error,
 * too, and do not wait; oc_graph_links_error() says what happened.
 *
 * THREADS. A graph, and links with all runs on them, are used by one thread at a time. After
 * fork(2) the child must not use them.
 */
#ifndef ONECOPY_GRAPH_H
#define ONECOPY_GRAPH_H

#include <onecopy/onecopy.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a graph ----------------------------------------------------------------------------------
 */

struct oc_graph;

/* Nodes and edges that a graph may have. */
#define OC_GRAPH_NODES_MOST (1 << 20)
#define OC_GRAPH_EDGES_MOST (1 << 22)

enum oc_graph_type {
	OC_GRAPH_INT8,
	OC_GRAPH_UINT8,
	OC_GRAPH_INT16,
	OC_GRAPH_UINT16,
	OC_GRAPH_INT32,
	OC_GRAPH_UINT32,
	OC_GRAPH_INT64,
	OC_GRAPH_UINT64,
	OC_GRAPH_FLOAT,
	OC_GRAPH_DOUBLE,
	OC_GRAPH_TYPES
};

/* to[i] = from[i] (op) to[i]. AND, OR and XOR are bitwise, of integers alone. Sums and products of
 * integers wrap. */
enum oc_graph_op {
	OC_GRAPH_COPY,
	OC_GRAPH_SUM,
	OC_GRAPH_PROD,
	OC_GRAPH_MIN,
	OC_GRAPH_MAX,
	OC_GRAPH_AND,
	OC_GRAPH_OR,
	OC_GRAPH_XOR,
	OC_GRAPH_USER, /* + n: the n-th operation that oc_graph_prepare() is given */
};
#define OC_GRAPH_USERS_MOST 64

/* An empty graph. -ENOMEM. */
OC_API int oc_graph_create(struct oc_graph **graph);
OC_API void oc_graph_free(struct oc_graph *graph);

/*
 * Adds a node, and returns its number (0, 1, ...): `bytes` at `offset` of a buffer are sent to a
 * peer or received from it. Peers and buffers are numbers; what they are is said to
 * oc_graph_prepare(). -EINVAL: no bytes, or the end is beyond 2^63. -E2BIG: OC_GRAPH_NODES_MOST.
 * -ENOMEM.
 */
OC_API int oc_graph_send(struct oc_graph *graph, uint32_t peer, uint32_t buffer, size_t offset,
			 size_t bytes);
OC_API int oc_graph_recv(struct oc_graph *graph, uint32_t peer, uint32_t buffer, size_t offset,
			 size_t bytes);

/* What a CALC does: `count` elements. */
struct oc_graph_calc {
	unsigned int op;	 /* of enum oc_graph_op, or OC_GRAPH_USER + n */
	enum oc_graph_type type; /* not looked at where the operation is the user's */
	uint32_t from, to;	 /* buffers */
	size_t from_offset, to_offset;
	size_t count;
};
/* Adds a CALC node. Results as oc_graph_send(); -EINVAL also where there is no such operation of
 * that type. */
OC_API int oc_graph_calc(struct oc_graph *graph, const struct oc_graph_calc *calc);

/*
 * `after` begins when `before` is over. -EINVAL: there is no such node, or `before` was not made
 * before `after`: make nodes in an order in which they could run, then no graph has a cycle.
 * -E2BIG: OC_GRAPH_EDGES_MOST. -ENOMEM.
 */
OC_API int oc_graph_connect(struct oc_graph *graph, int before, int after);

/*
 * The graph as one array of bytes, without pointers: it may be kept, or given to another process.
 * NULL: out of memory. It lives until the graph is changed or freed.
 */
OC_API const void *oc_graph_pack(struct oc_graph *graph, size_t *bytes);
/* A graph from such an array, whoever made it. -EINVAL: it is none. -ENOMEM. */
OC_API int oc_graph_unpack(struct oc_graph **graph, const void *packed, size_t bytes);

/* ---- ready-made graphs -------------------------------------------------------------------------
 *
 * Of rank `rank` of `size`, whose peers are ranks. Trees are of ranks relative to the root:
 * chain (each hands on to the next: the paper's pipeline), binary and binomial tree. A message goes
 * in segments of `segment` bytes (0: in one), each handed on as soon as it is there.
 */
enum oc_graph_tree { OC_GRAPH_CHAIN, OC_GRAPH_BINARY, OC_GRAPH_BINOMIAL, OC_GRAPH_TREES };

/* The `bytes` of buffer 0 of the root come into buffer 0 of all. -EINVAL, -E2BIG, -ENOMEM. */
OC_API int oc_graph_bcast(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank,
			  uint32_t size, uint32_t root, size_t bytes, size_t segment);
/*
 * `count` elements in buffer 0 of each rank are combined into buffer 0 of the root; those of the
 * others hold parts of the result afterwards. Buffer 1 of each has oc_graph_scratch() bytes. Which
 * operands are combined in which order depends on tree, size and root alone. A user's operation
 * (whose elements have `type`'s size) must commute.
 */
OC_API int oc_graph_reduce(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank,
			   uint32_t size, uint32_t root, size_t count, enum oc_graph_type type,
			   unsigned int op, size_t segment);
/*
 * The same, and the result is in buffer 0 of each rank: the sums go to rank 0 and back over the
 * same tree, segment by segment. Scratch is oc_graph_scratch() of root 0. All ranks have the same
 * result, bit for bit.
 */
OC_API int oc_graph_allreduce(struct oc_graph **graph, enum oc_graph_tree tree, uint32_t rank,
			      uint32_t size, size_t count, enum oc_graph_type type, unsigned int op,
			      size_t segment);
/* Bytes that buffer 1 has in it: those of each child. */
OC_API size_t oc_graph_scratch(enum oc_graph_tree tree, uint32_t rank, uint32_t size, uint32_t root,
			       size_t bytes);

/* ---- links ------------------------------------------------------------------------------------
 */

struct oc_graph_links;

/*
 * Connected stream sockets to `count` peers, -1 where there is none (to oneself, say): TCP between
 * hosts; TCP or a socketpair(AF_UNIX, SOCK_STREAM) inside a node. On success the sockets belong to
 * the links, which close them. They must be blocking ones (no O_NONBLOCK). -EINVAL: a descriptor
 * that is no such socket. -ENOMEM, -EMFILE.
 */
OC_API int oc_graph_links_create(struct oc_graph_links **links, const int *sockets, uint32_t count);

/*
 * The same from addresses, "10.77.0.1:7000", one for each rank, known alike to all: connects TCP
 * among all of them, each rank listening at its own. Blocks until all are connected, at most
 * `timeout_ms`. `key`: a number that only this job's processes know, so that no other gets in.
 * -EINVAL: an address that is none. -ETIMEDOUT: not all came. Or what the system says.
 */
OC_API int oc_graph_links_connect(struct oc_graph_links **links, uint32_t rank, uint32_t size,
				  const char *const *addresses, uint64_t key, int timeout_ms);
/* -EBUSY: a run is left; nothing was done. */
OC_API int oc_graph_links_free(struct oc_graph_links *links);
/* Why the links cannot be used any more, as a sentence; "": they can. */
OC_API const char *oc_graph_links_error(const struct oc_graph_links *links);

/* ---- running ----------------------------------------------------------------------------------
 */

struct oc_graph_run;

struct oc_graph_buffer {
	void *base;
	size_t bytes;
};

/*
 * Binds a graph to links, buffers and, if it has any, the user's operations. All of it is checked:
 * -EINVAL where a node lies outside of its buffer, is not aligned to its type, or has no such peer,
 * buffer or operation. The graph may be freed at once; buffers and operations must live as long as
 * the run. An operation must not call oc_graph_* on these links; one without `any_thread` is called
 * in this process's calls alone, so that `thread` is `caller` then. -ENOMEM.
 */
OC_API int oc_graph_prepare(struct oc_graph_run **run, const struct oc_graph *graph,
			    struct oc_graph_links *links, const struct oc_graph_buffer *buffers,
			    uint32_t buffer_count, const struct oc_op *ops, uint32_t op_count);

/*
 * Who moves the bytes:
 *   caller  this process, in oc_graph_test() and oc_graph_wait() of any run on these links
 *   thread  a thread of the links' own, which sleeps while nothing can move. It calls operations
 *           with a lock of the links': they must not wait for a thread that calls oc_graph_*
 *           of these
 *   uring   the kernel, by chains of io_uring requests made when the graph is issued: it moves and
 *           completes all that no CALC comes before, while the program computes. What comes behind
 *           a CALC goes on when the program tests or waits. Each completion interrupts the thread
 *           that issued the graph, as a signal whose handler has SA_RESTART: see oc_graph(3)
 *   kmod    the kernel module, where it is loaded: all of it goes on while the program computes,
 *           CALCs of integers too. It takes graphs over TCP, of predefined operations on integers.
 *   auto    what ONECOPY_ASYNC names; where it names none, thread, or caller where few bytes are to
 *           be moved
 * Where there is no module, or it does not take the graph, kmod is uring; where the system forbids
 * io_uring, or has no descriptors for it, uring is thread, and where no thread can be made, that is
 * caller: a line in the log says what is forbidden, and oc_graph_executor() who it is.
 */
enum oc_graph_executor {
	OC_GRAPH_AUTO,
	OC_GRAPH_CALLER,
	OC_GRAPH_THREAD,
	OC_GRAPH_URING,
	OC_GRAPH_KMOD,
	OC_GRAPH_EXECUTORS
};

/*
 * Starts a prepared graph, and moves what can be moved at once: of peers that send all the time
 * that may be much. 0; -EBUSY: it has been issued and is not over; or the error that made the
 * links unusable.
 */
OC_API int oc_graph_issue(struct oc_graph_run *run, enum oc_graph_executor executor);
/* 1: over, and it may be issued again; 0: not yet; -errno: failed. */
OC_API int oc_graph_look(struct oc_graph_run *run);

/* What a run begins with: while the word is as it was seen, oc_graph_look() would return 0. */
struct oc_graph_watch {
	const uint32_t *word;
	uint32_t seen;
};

/*
 * As oc_graph_look(). Costs two loads and a comparison while the kernel has not completed anything
 * (uring, if no other run on these links is under way but those of `thread`; kmod, if none is), or
 * while a thread moves the bytes.
 */
static inline int oc_graph_test(struct oc_graph_run *run)
{
	const struct oc_graph_watch *watch = (const struct oc_graph_watch *)(const void *)run;

	/* Relaxed: who finds the word changed looks again, with what that needs. */
	if (__atomic_load_n(watch->word, __ATOMIC_RELAXED) ==
	    __atomic_load_n(&watch->seen, __ATOMIC_RELAXED))
		return 0;
	return oc_graph_look(run);
}

/* Returns when it is over: 0 or -errno. */
OC_API int oc_graph_wait(struct oc_graph_run *run);
/* Who moves (or moved) its bytes: never OC_GRAPH_AUTO once it has been issued. */
OC_API enum oc_graph_executor oc_graph_executor(const struct oc_graph_run *run);
/* A run that is not over is cancelled: its links cannot be used any more, as nobody knows which
 * bytes were sent. When this returns its buffers are touched no more. */
OC_API void oc_graph_run_free(struct oc_graph_run *run);

/* Why graphs cannot be run by io_uring here, as a sentence with its remedy; NULL: they can. */
OC_API const char *oc_graph_uring_refusal(void);
/* The same of the kernel module. */
OC_API const char *oc_graph_kmod_refusal(void);

#ifdef __cplusplus
}
#endif

#endif
