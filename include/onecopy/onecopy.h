/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy: collectives among processes of one node that move every byte once.
 *
 * CAVEATS, read first
 *   - A team belongs to the processes that created it. After fork(2) the child must not use it.
 *   - All members call the same collectives on a team in the same order, as in MPI, and alike by
 *     oc_collective() or by oc_start(). A call with other arguments than the peers' is an error
 *     that names both ranks, where it is noticed.
 *   - A member that dies makes the others' calls fail with -EOWNERDEAD within about 100 ms (4 ms
 * for each of a chain of ranks that wait for each other); from then on every call on that team
 * fails with the same error at once. One that dies before the others know it (in the allgather of
 * its team's creation) only the bootstrap notices.
 *   - A buffer handed to a started operation belongs to it until the operation completes or fails.
 *     After a failure too no member writes to it any more.
 *
 * THREADS. Different threads may use different teams at the same time. One team is used by one
 * thread at a time. oc_progress() may be called by any thread at any time.
 *
 * ERRORS. Functions return 0 (or a stated positive value) or -errno. Outputs are written only on
 * success. oc_team_error() gives the last error of a team as a sentence with cause and remedy.
 */
#ifndef ONECOPY_H
#define ONECOPY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OC_VERSION "0.3.0"
#define OC_API __attribute__((visibility("default")))

/* Version of the library that is running, such as "0.3.0". */
OC_API const char *oc_version(void);

/*
 * Where this process is: equal in processes of one version of onecopy on one node, which may form a
 * team; in others it differs, but for one pair in 2^64, of which a team's creation tells. 0: it
 * cannot be known, and this process is in no team.
 */
OC_API uint64_t oc_node(void);
/*
 * What processes on several nodes must have in common to work in two levels, on each node by its
 * team and between nodes by the MPI: the version, and the options that decide which calls go so.
 * 0: none do (ONECOPY_LEVELS=off).
 */
OC_API uint64_t oc_levels(void);

/* ---- bootstrap ------------------------------------------------------------------------------
 *
 * How the members of a future team reach each other before they share memory: one nonblocking
 * allgather at a time, called from oc_team_progress(). onecopy never blocks in it.
 */
struct oc_bootstrap {
	uint32_t rank; /* 0 .. size-1 */
	uint32_t size; /* >= 1 */
	/* Processes of this job on this node (>= size): tells whether CPUs are oversubscribed by
	 * ranks outside of the team. 0: size. */
	uint32_t node_ranks;
	void *context;
	/*
	 * Starts an allgather of `bytes` from every member into recv (size * bytes, in rank order).
	 * Both buffers stay valid until it has completed. 0 or -errno.
	 */
	int (*allgather_start)(void *context, const void *send, size_t bytes, void *recv);
	/* 1 completed, 0 not yet, -errno failed. Called only while one is under way. */
	int (*allgather_test)(void *context);
	/* Called once, when the team needs the bootstrap no more (ready, refused or destroyed). */
	void (*release)(void *context);
	/* What sentences call each rank, `size` numbers, which are copied; NULL: its rank. For the
	 * team of a part of a larger group. */
	const uint32_t *names;
};

/* ---- team ----------------------------------------------------------------------------------- */

struct oc_team;

/*
 * Begins to create a team; never blocks and sends nothing. Every member calls it, then brings the
 * team up by oc_team_progress(), or by its first call on the team, also a nonblocking one, which
 * waits until all members have done so: teams are brought up in one order on all members. The
 * bootstrap is copied, its context must live until release is called (also when this function
 * fails).
 * -EINVAL: a malformed bootstrap. -ENOMEM.
 */
OC_API int oc_team_create(struct oc_team **team, const struct oc_bootstrap *bootstrap);

/*
 * Drives creation. 1: ready; 0: under way; -errno: refused, on all members alike, and every
 * collective returns OC_HAND_BACK for ever (oc_team_error() says why).
 */
OC_API int oc_team_progress(struct oc_team *team);

/*
 * Leaves the team; local, does not synchronise. Memory that peers may still read is given back
 * when all members have left. -EBUSY: an operation is still outstanding, or the team is being
 * brought up (oc_team_progress()); nothing was done.
 */
OC_API int oc_team_destroy(struct oc_team *team);

OC_API uint32_t oc_team_rank(const struct oc_team *team);
OC_API uint32_t oc_team_size(const struct oc_team *team);
/* Sentence on the last error or refusal; "" when there was none. Valid until the next call. */
OC_API const char *oc_team_error(const struct oc_team *team);
/* The rank whose death an -EOWNERDEAD reported, else -1. */
OC_API int oc_team_dead_rank(const struct oc_team *team);

/*
 * Forces the algorithm of a collective on this team: "knomial:4", "auto" (the selector again) or
 * "mpi" (hand back). At any time, also before the team is ready; all members, with the same words,
 * at the same place among their collectives.
 * -EINVAL: unknown collective or algorithm, oc_team_error() lists the valid ones; or one that
 * cannot run on so many ranks (allgather=ring-neighbor:2 on 4), oc_team_error() says what it needs.
 */
OC_API int oc_team_force(struct oc_team *team, const char *collective, const char *algorithm);

/*
 * Calls that a word or a tuning file leaves to the MPI are run by this team after all, by the
 * algorithm that measurements or the model name: for teams whose calls are parts of others. Alike
 * on all members, before the first call.
 */
OC_API void oc_team_serve_all(struct oc_team *team);

/*
 * 1: the team is ready and runs such calls; 0: they are handed back. Alike on all members, at the
 * same place among their calls. The call's buffers are not looked at.
 */
struct oc_call;
OC_API int oc_team_serves(struct oc_team *team, const struct oc_call *call);

/* ---- collectives ----------------------------------------------------------------------------- */

/* As a send (or, for the root of a Scatter, receive) buffer: MPI_IN_PLACE's meaning. */
#define OC_IN_PLACE ((void *)-1)

/*
 * Positive result of a collective: onecopy does not serve this call, on any member alike (the team
 * is refused, or the selector says that the caller's own algorithm is faster). Nothing was read,
 * written or sent.
 */
#define OC_HAND_BACK 2
/* Its reason where it is none of the call's own, as oc_count_handed_back() takes them. */
#define OC_LEFT_TO_MPI "an option, or the tuning file for this size, leaves it to the MPI"

/*
 * A reduction operation: inout[i] = in[i] (op) inout[i] for `count` elements of `bytes` bytes. Both
 * hold whole elements, aligned to 16 bytes or to the element's size where that is a power of two
 * below. Called on parts of a message, in any thread that drives the operation, with no lock of
 * onecopy's held: it may call onecopy, but not wait for the operation that it is part of.
 */
struct oc_op {
	void (*apply)(void *context, const void *in, void *inout, size_t count);
	void *context;
	size_t bytes;	 /* of an element; 1 .. OC_OP_MAX_BYTES */
	int commutative; /* 0: operands are combined in rank order */
	uint32_t id; /* compared between the ranks to notice mismatched calls; 0: not compared */
	/* Not 0: a thread of onecopy's own may call it, beside yours (ONECOPY_ASYNC). Else it is
	 * called in your calls alone. */
	int any_thread;
};
#define OC_OP_MAX_BYTES 4096

enum oc_collective {
	OC_BARRIER,
	OC_BCAST,
	OC_SCATTER,
	OC_GATHER,
	OC_ALLGATHER,
	OC_ALLTOALL,
	OC_REDUCE,
	OC_ALLREDUCE,
	OC_SCATTERV,
	OC_GATHERV,
	OC_ALLGATHERV,
	OC_ALLTOALLV,
	OC_REDUCE_SCATTER_BLOCK,
	OC_REDUCE_SCATTER,
	OC_SCAN,
	OC_EXSCAN,
	OC_NEIGHBOR_ALLTOALLV,
	OC_COLLECTIVES
};

/*
 * One rank's block of a v-variant: `bytes` at `offset` from the call's send or recv pointer. The
 * sum is taken modulo 2^64, so blocks may lie anywhere in the address space.
 */
struct oc_block {
	size_t offset, bytes;
};

/*
 * A buffer with gaps: its dense bytes from pieces[i].at up to pieces[i + 1].at lie at
 * pieces[i].address. pieces[0].at is 0; pieces[count] has only `at`, the bytes in all.
 */
struct oc_piece {
	size_t at;
	void *address;
};

struct oc_layout {
	const struct oc_piece *pieces; /* count + 1 */
	size_t count;
};

/*
 * One call of a collective.
 *   bytes  Bcast, Reduce, Allreduce: the whole message; Scatter, Gather, Allgather, Alltoall: the
 *          block of one rank. 0 is allowed. Alike on all members.
 *   send   Bcast: the buffer on every rank (recv is ignored). Scatter: size * bytes on the root.
 *          Gather, Reduce, Allreduce, Allgather: OC_IN_PLACE as MPI allows it. Alltoall:
 *          size * bytes, or OC_IN_PLACE on all members.
 *   recv   Gather, Allgather, Alltoall: size * bytes (Gather: on the root). Scatter: bytes, or
 *          OC_IN_PLACE on the root. Reduce (root), Allreduce: bytes.
 *   op     reductions: alike on all members; bytes is a multiple of op->bytes.
 *   send_blocks, recv_blocks   of the v-variants: one for each rank, alive until the call is over.
 *   send_layout, recv_layout   instead of send and recv (which are then not looked at, unless they
 *          are OC_IN_PLACE) where a buffer has gaps; not of a reduction. One rank's own: others
 *          need not have one. With blocks, those are offsets in the dense bytes. Worth it for
 *          pieces of some KiB; pack smaller ones. Alive until the call is over.
 * Buffers must not overlap, unless OC_IN_PLACE says so.
 *
 * The later ones:
 *   Scatterv       root: send + send_blocks; everyone: recv (OC_IN_PLACE on the root), `bytes` =
 *                  its own block, as long as the root has it.
 *   Gatherv        root: recv + recv_blocks; everyone: send (OC_IN_PLACE on the root), `bytes`.
 *   Allgatherv     send (or OC_IN_PLACE), `bytes`; recv + recv_blocks, whose bytes are alike on all
 *                  members.
 *   Alltoallv      send + send_blocks (or OC_IN_PLACE on all members), recv + recv_blocks; `bytes`
 *                  is not used.
 *                  What i sends to j is as long as what j expects from i.
 *   Reduce_scatter_block   send: size * bytes, recv: bytes. OC_IN_PLACE: the input is in recv.
 *   Reduce_scatter send: dense, in rank order; recv: this rank's part; recv_blocks: offset and
 *                  bytes of each part in send, alike on all members. OC_IN_PLACE: the input is in
 *                  recv.
 *   Scan, Exscan   as Allreduce; rank 0 gets nothing from Exscan: its recv is not touched.
 *   Neighbor_alltoallv   as Alltoallv, without OC_IN_PLACE. Blocks of no bytes stand where there is
 *                  no neighbor; no member waits for one from whom it gets no bytes.
 */
struct oc_call {
	enum oc_collective collective;
	const void *send;
	void *recv;
	size_t bytes;
	uint32_t root;
	const struct oc_op *op;
	const struct oc_block *send_blocks, *recv_blocks;
	const struct oc_layout *send_layout, *recv_layout;
};

/*
 * Runs a collective; returns when this rank's part is over.
 *   0              done
 *   OC_HAND_BACK   not served, by all members alike
 *   -EINVAL        malformed call (unknown collective, root >= size, missing buffer, bytes not a
 *                  multiple of the element); nothing was sent: correct the call
 *   -EMSGSIZE      the root of a Bcast or Scatter gave another length than this member, who was to
 *                  read it from shared memory: nothing is received, and the team goes on
 *   -EOWNERDEAD    a member died; -EPROTO: the members' calls do not match; the team is unusable
 *   -EFAULT        a peer's buffer cannot be read or written, by any mechanism; likewise
 *   -ENOMEM        no memory for a plan or a temporary buffer; likewise
 */
OC_API int oc_collective(struct oc_team *team, const struct oc_call *call);

/*
 * Instead of oc_collective() on a member that cannot take part, as it lacks memory for the buffers:
 * so that the others do not wait for it. The call's buffers are not looked at. OC_HAND_BACK where
 * oc_collective() returns that: nothing is lost. Else the team is unusable for all members:
 * their calls return `error` (-errno), and so does this function.
 */
OC_API int oc_team_abandon(struct oc_team *team, const struct oc_call *call, int error);

struct oc_request;

/*
 * Starts a collective and returns at once, also when more operations are outstanding than the
 * team has lanes. The call is copied, op->context and the buffers must live until completion.
 * Results as oc_collective; on 0 *request is set. The first call on a team waits for it.
 */
OC_API int oc_start(struct oc_team *team, const struct oc_call *call, struct oc_request **request);
/* 0 not yet; else the request is freed: 1 completed; -errno failed. Drives progress. */
OC_API int oc_test(struct oc_request *request);
/* As oc_test, but drives nothing: for whoever has many requests and calls oc_progress() once. */
OC_API int oc_peek(struct oc_request *request);
/* As oc_test, but returns only when it is over: 0 or -errno. */
OC_API int oc_wait(struct oc_request *request);

/* ---- messages --------------------------------------------------------------------------------
 *
 * Point-to-point, between two ranks of a team or of a rank to itself. They and collectives may be
 * mixed freely.
 *
 * MATCHING is as MPI's: by source and tag; messages of one sender that fit the same receive are
 * received in the order of their sends, and a message goes to the first posted receive that it
 * fits. Tags are 0 or more.
 * COMPLETION. A send is over when its buffer may be used again. Small messages are so at once, as
 * long as the receiver has not left too much unreceived (256 KiB of one sender's); all others when
 * the receiver has them: a program whose ranks all send before they receive must not rely on
 * buffers, and uses oc_isend. Memory for messages that nobody has asked for is bounded by that.
 * CREATION. A first message brings the team up, as every first call does: all members take part.
 * RESULTS: 0, or -EINVAL (no such rank, a negative tag, no buffer); -EMSGSIZE: the message was
 * longer than the receive, which got the bytes that fit; -EDEADLK: a blocking call of a rank to
 * itself that nothing before it has matched; -ENOMEM, -ENOSPC: no memory for the message, which was
 * not sent; -EOWNERDEAD: a member died; -EPIPE: the peer destroyed its team; or why the team was
 * refused or has failed before: from the last three on the team cannot be used any more.
 * A team is destroyed when all its messages have been received; what has not is lost.
 */
#define OC_ANY_SOURCE UINT32_MAX
#define OC_ANY_TAG (-1)

/* What was received. */
struct oc_status {
	uint32_t source;
	int32_t tag;
	size_t bytes; /* of the message as it was sent: more than received where -EMSGSIZE */
};

OC_API int oc_send(struct oc_team *team, uint32_t destination, int32_t tag, const void *buffer,
		   size_t bytes);
/* source may be OC_ANY_SOURCE, tag OC_ANY_TAG; status NULL. */
OC_API int oc_recv(struct oc_team *team, uint32_t source, int32_t tag, void *buffer, size_t bytes,
		   struct oc_status *status);
/* Completed by oc_wait(), oc_test() or oc_peek(); *status is written before that. The buffer must
 * live, and a receive's must not be looked at, until then. */
OC_API int oc_isend(struct oc_team *team, uint32_t destination, int32_t tag, const void *buffer,
		    size_t bytes, struct oc_request **request);
OC_API int oc_irecv(struct oc_team *team, uint32_t source, int32_t tag, void *buffer, size_t bytes,
		    struct oc_status *status, struct oc_request **request);

/* The same where the buffer has gaps. The pieces must live until completion; those of a receive
 * must not overlap. The other side need not have the same. */
OC_API int oc_sendv(struct oc_team *team, uint32_t destination, int32_t tag,
		    const struct oc_layout *layout);
OC_API int oc_recvv(struct oc_team *team, uint32_t source, int32_t tag,
		    const struct oc_layout *layout, struct oc_status *status);
OC_API int oc_isendv(struct oc_team *team, uint32_t destination, int32_t tag,
		     const struct oc_layout *layout, struct oc_request **request);
OC_API int oc_irecvv(struct oc_team *team, uint32_t source, int32_t tag,
		     const struct oc_layout *layout, struct oc_status *status,
		     struct oc_request **request);

/* 1: there is a message that such a receive would get next, *status (or NULL) says which; 0: not
 * yet; -EOWNERDEAD: it cannot come any more, as its source died. */
OC_API int oc_iprobe(struct oc_team *team, uint32_t source, int32_t tag, struct oc_status *status);

/* ---- progress --------------------------------------------------------------------------------
 */

/*
 * Drives every outstanding operation of this process; returns how many have ended. Front ends call
 * it from the MPI's progress engine.
 */
OC_API int oc_progress(void);
/*
 * For a loop that looks for several things, one of them oc_progress(): behind a turn in which none
 * had come. Gives the CPU away; for some 100 us where ranks outnumber CPUs and for 0.8 ms no turn
 * took more than 2 us, so moved anything. Where others may ask something of the loop at any moment
 * (`needed`), not so: only where ranks outnumber CPUs and none has asked for 25 ms, for some 250
 * us. Any thread.
 */
OC_API void oc_idle(int needed);
/*
 * Whether threads of this process may be inside onecopy at the same time; before the first team is
 * created. Without this call they may. 0: never, so nothing is locked (what MPI calls
 * MPI_THREAD_SERIALIZED and below).
 */
OC_API void oc_set_threads(int many);
/*
 * What a waiting onecopy calls now and then, so that the caller's own communication moves (an
 * outstanding MPI_Isend, say). NULL: nothing. Process-wide; may be called from any thread that is
 * inside onecopy. Must not call a collective.
 *
 * It returns 0, or not 0 while others may need this process at any moment for something that is
 * done in there alone, such as remote atomics. Then a wait does not yield and leaves it to the
 * function to give up the CPU. Where ranks outnumber CPUs, waits sleep between its calls, for an
 * eighth of the time at most since one that took longer than 2 us, which has moved a message: so it
 * must not yield when it returns 0. Where it returns 2, as it yields itself when it finds nothing
 * to do, waits of collectives never sleep; where it returns anything else, when for 25 ms no three
 * calls within 40 us took longer than 0.4 us each.
 */
OC_API void oc_set_progress(int (*progress)(void));

/*
 * Large messages that the MPI copies by process_vm_readv() or process_vm_writev() are copied by
 * mapped memory from now on, where both buffers lie in shared heaps of `onecopy run --shared-heap`;
 * ONECOPY_MESSAGES and ONECOPY_MECHANISM may forbid it. Without such a heap nothing happens. Called
 * by front ends at the beginning; calls after the first do nothing. Thread safe.
 */
OC_API void oc_serve_messages(void);
/*
 * Without such a heap: large messages that a loaded object of the MPI reads by process_vm_readv()
 * are copied from both ends from now on, by this process and, where it only waits, by the sender:
 * where its MPI's progress calls oc_share_turn() again and again. `library`: how the name of the
 * object's file begins. In a job of so many ranks on this node. ONECOPY_MESSAGES and
 * ONECOPY_MECHANISM may forbid it. Called by front ends at the beginning. 1; 0: they are not.
 */
OC_API int oc_share_messages(const char *library, uint32_t node_ranks);
/* A turn of the MPI's progress, however it goes: some nanoseconds, or a part of a message that
 * another rank reads. Thread safe. */
OC_API void oc_share_turn(void);
/* Calls of `name` in that object lead to `ours` from now on; what they led to before is for the
 * caller to find. Was there such a call? */
OC_API int oc_bind(const char *library, const char *name, void (*ours)(void));

/*
 * 1: a process that this one has a team with has ended, as far as can be seen now; 0: none. For who
 * waits for all of them, but not in a collective of onecopy. Thread safe; some system calls for
 * each process.
 */
OC_API int oc_peer_ended(void);

/* ---- memory -----------------------------------------------------------------------------------
 */

/*
 * Memory that the other ranks of the node can map, so that copies from and to it need no system
 * call: aligned to 64 bytes, not zeroed. It comes from libonecopy-heap.so, loaded at the first call
 * from beside this library. Where that is missing or the heap is exhausted, it is ordinary memory,
 * and everything works as with malloc's. Under `onecopy run --shared-heap` malloc gives the same
 * memory. Thread safe. NULL: there is none.
 * A block lives until oc_free(); after a fork the child has a private copy. The block of 4 to 64
 * MiB that was freed last keeps its memory, for the next one of about its length.
 */
OC_API void *oc_alloc(size_t bytes);
/* Of oc_alloc() in this process or in a parent that forked it; NULL is allowed. */
OC_API void oc_free(void *memory);
/*
 * Whether peers can be given this address to map: 1 for blocks of oc_alloc() that are no ordinary
 * memory (and under `onecopy run --shared-heap` for malloc's), else 0. A peer whom the system
 * forbids to map it copies otherwise.
 */
OC_API int oc_is_shared(const void *memory);

/* ---- what was done ----------------------------------------------------------------------------
 */

/*
 * Counts a call that the front end handed to the MPI without asking a team, with the reason in
 * words; both strings must live for ever (literals).
 */
OC_API void oc_count_handed_back(const char *collective, const char *reason);
/*
 * Whether a call of ranks on several nodes goes in two levels; `bytes`: of the message, or
 * of a block where each rank has its own; `form`: a blocking one, or a nonblocking or persistent
 * one under that MPI, whose own differ in what they lose to. Alike where oc_levels() is. NULL: it
 * does; else the reason, a literal.
 */
enum oc_levels_form { OC_LEVELS_BLOCKING, OC_LEVELS_OPENMPI, OC_LEVELS_MPICH };
OC_API const char *oc_levels_refusal(enum oc_collective collective, size_t bytes,
				     enum oc_levels_form form);
/* Bytes of a piece of such a Bcast, and from how many on it goes in pieces; what a node's ranks may
 * send together in an Alltoall. */
#define OC_LEVELS_PIECE ((size_t)512 << 10)
#define OC_LEVELS_IN_PIECES (4 * OC_LEVELS_PIECE)
#define OC_LEVELS_ROWS ((size_t)4 << 20)
/*
 * From how many bytes on each rank has a share of a Bcast, Reduce, Allreduce, Allgather(v) or
 * Reduce_scatter(_block), where all nodes have so many ranks: of the message, or of the blocks of a
 * node's ranks; SIZE_MAX: never. `started` is as above.
 */
OC_API size_t oc_levels_shared(enum oc_collective collective, uint32_t ranks, int started);
/*
 * Where the largest node has so many ranks: the mean bytes of a node's blocks up to which they
 * travel together; 0: never, an Alltoall is better left to an MPI that asks the receiver before it
 * sends so much. `bytes`: of a block of a Gather, Scatter or Alltoall.
 */
OC_API size_t oc_levels_together(enum oc_collective collective, uint32_t ranks, size_t bytes);
/* Counts a call that went so; what a node's team did in it counts as the team's, too. */
OC_API void oc_count_levels(enum oc_collective collective, size_t bytes);
/*
 * Writes this process's counters as JSON into ONECOPY_STATS_DIR (nothing when it is not set), as
 * onecopy.HOST.PID.RANK.json, with the process's rank in its job of so many. 0 or -errno; of a
 * failure rank 0 warns, the others say it at ONECOPY_LOG=info. Called by front ends at the end.
 */
OC_API int oc_stats_write(int world_rank, int world_size);

#ifdef __cplusplus
}
#endif

#endif
