/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the preload library share.
 *
 *   entry.S        the exported symbols: jumps that decide nothing and touch nothing
 *   resolve.c      which MPI this process has, and its functions
 *   life.c         MPI_Init, MPI_Finalize, messages to the user
 *   comm.c         one object per communicator: is it served
 *   blocking.c     blocking collectives, and the functions of all three forms
 *   nonblocking.c  nonblocking and persistent ones; MPI_Start
 *   request.c      what the program holds for outstanding operations: carriers; drive
 *   completion.c   Wait, Test, Request_free
 *   messages.c     blocking point-to-point calls as nonblocking ones
 *   helper.c       a thread that drives the engine while the program's is inside the MPI
 *   passed_on.c    calls inside of which it drives: of communicators, windows, files
 *   memory.c       MPI_Alloc_mem gives memory that other ranks can map
 *   worker.c       UCX's progress and its reads of large messages, so that both ends copy these
 *   port.c, refcount.c what mpi/common asks of the MPI
 *   forced.c       algorithms that info keys ask for, and the functions that bring such keys
 *
 * Two rules keep programs from waiting for ever:
 *   - While an operation of ours is outstanding here (oci_pmpi_attention), it is driven in every
 *     call that may wait: most messages, Wait and Test run as their nonblocking twins, in a loop
 *     that drives us; inside all others a helper thread drives.
 *   - Blocking and nonblocking collectives do not match each other in MPICH, so which of the two
 *     stands for a call is decided from what all members see alike, never from what is outstanding.
 */
#ifndef OC_PMPI_PMPI_H
#define OC_PMPI_PMPI_H

#include "real.h"

#include "base/log.h"
#include "common/request.h"

#include <onecopy/onecopy.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Our functions have the MPI's own prototypes, but for those that only pass arguments on. */
typedef int oci_pmpi_any(long, long, long, long, long, long, long, long, long, long);
#define OCI_DECLARE(name) extern __typeof__(MPI_##name) oci_pmpi_##name;
#define OCI_DECLARE_ANY(name) extern oci_pmpi_any oci_pmpi_##name;
OCI_TYPED(OCI_DECLARE)
OCI_PASSED_ON(OCI_DECLARE_ANY)
#undef OCI_DECLARE
#undef OCI_DECLARE_ANY

/* Those that there are for each kind of count: OCI_NAME(Bcast) is Bcast or Bcast_c. */
#define OCI_PASTE(a, b) a##b
#define OCI_OURS_OF(name) OCI_PASTE(oci_pmpi_, name)
#define OCI_OURS(name) OCI_OURS_OF(OCI_NAME(name))
#define OCI_THEIRS(name) PMPI(OCI_NAME(name))

#define OCI_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* ---- resolve.c --------------------------------------------------------------------------------
 */

/* A function that not every MPI has, by its whole name; NULL: this one lacks it. */
void *oci_pmpi_extension(const char *name);

/* ---- worker.c ---------------------------------------------------------------------------------
 */

/* When the MPI has begun. */
void oci_pmpi_worker_start(void);

/* ---- life.c -----------------------------------------------------------------------------------
 */

/* Set in MPI_Init and cleared in MPI_Finalize, in one thread. */
struct oci_pmpi_job {
	bool begun;
	bool active;   /* begun, and not switched off in this process */
	bool together; /* all processes of MPI_COMM_WORLD are on this node and switched on */
	/* Nonblocking collectives are served: all processes are together, or are switched on and
	 * have MPI_THREAD_MULTIPLE. Else one of them could be without progress: what goes on
	 * between nodes moves by calls of the MPI, which our thread makes while the program's is
	 * inside another one. */
	bool starts;
	bool threads;	 /* MPI_THREAD_MULTIPLE */
	MPI_Comm self;	 /* a private duplicate; errors return */
	MPI_Group group; /* of world */
	int rank, size;
	/* size: where each process is and what it has to do with it; see life.c */
	struct oci_pmpi_place {
		uint64_t node;	 /* oc_node(); 0: it takes part in nothing */
		uint64_t levels; /* oc_levels() */
		uint64_t threads;
	} * place;
	uint32_t node_ranks;
	int tags; /* MPI_TAG_UB + 1 */
};
extern struct oci_pmpi_job oci_pmpi_job;

/* ---- comm.c -----------------------------------------------------------------------------------
 */

struct oci_pmpi_comm {
	struct oci_mpi_comm mpi; /* mpi.comm: MPI_COMM_NULL once it has been freed */
	const char *reason;	 /* why it stays with the MPI; NULL: it is served */
	bool known; /* all its processes are of MPI_COMM_WORLD, so they have this library */
	bool inter;
	uint32_t outstanding;		 /* operations; atomic */
	LIST_ENTRY(oci_pmpi_comm) alive; /* among those that are */
	struct oci_pmpi_comm *next;	 /* among the freed ones */
};

/* Finds the object of a communicator by its handle, which the MPI recycles: see comm.c. */
#define OCI_CACHE_SLOTS 8
struct oci_comm_cache {
	MPI_Comm comm;
	uint32_t generation;
	struct oci_pmpi_comm *state;
};
extern OCI_TLS struct oci_comm_cache oci_comm_cache[OCI_CACHE_SLOTS];
extern uint32_t oci_comm_generation;

struct oci_pmpi_comm *oci_pmpi_comm_find(MPI_Comm comm);
/* Behind what may have freed a communicator that no call of the program's frees. */
void oci_pmpi_comm_look_anew(void);
/* Of a duplicate of `of` that may not be ready yet. */
struct oci_pmpi_comm *oci_pmpi_comm_duplicate(MPI_Comm comm, MPI_Comm of);

/* NULL: leave the communicator alone (before MPI_Init, after MPI_Finalize, not a communicator). */
static inline struct oci_pmpi_comm *oci_pmpi_comm_get(MPI_Comm comm)
{
	uintptr_t handle = (uintptr_t)comm;
	const struct oci_comm_cache *c = &oci_comm_cache[(handle ^ handle >> 26) % OCI_CACHE_SLOTS];

	/* Acquire: pairs with the release in comm.c of whoever freed a communicator. */
	if (OCI_LIKELY(c->comm == comm &&
		       c->generation == __atomic_load_n(&oci_comm_generation, __ATOMIC_ACQUIRE)))
		return c->state;
	return oci_pmpi_comm_find(comm);
}

int oci_pmpi_comm_start(void); /* in MPI_Init: the key of the attribute */
void oci_pmpi_comm_stop(void); /* in MPI_Finalize: frees what is left */
void oci_pmpi_comm_reap(void); /* destroys teams of communicators that were freed */
/* ---- blocking.c, nonblocking.c ----------------------------------------------------------------
 */

/* The MPI's own function of the same call. */
typedef int oci_native_blocking(const struct oci_mpi_call *call, MPI_Comm comm);
typedef int oci_native(const struct oci_mpi_call *call, MPI_Comm comm, MPI_Request *request);
typedef int oci_native_init(const struct oci_mpi_call *call, MPI_Comm comm, MPI_Info info,
			    MPI_Request *request);

int oci_pmpi_start(const struct oci_mpi_call *call, oci_native *native, MPI_Comm comm,
		   MPI_Request *request);
int oci_pmpi_persist(const struct oci_mpi_call *call, oci_native_init *native_init, MPI_Comm comm,
		     MPI_Info info, MPI_Request *request);
/* Is the call one that the engine can take at its word? Else the MPI says what is wrong with it. */
bool oci_pmpi_sane(const struct oci_mpi_call *call, struct oci_pmpi_comm *state);

/* ---- request.c --------------------------------------------------------------------------------
 */

/* An operation of the engine, seen by the program as its carrier. */
struct oci_pmpi_request {
	struct oci_mpi_request mpi;
	struct oci_pmpi_request *next;	 /* of those to be used again */
	struct oci_pmpi_request *bucket; /* of the persistent ones with this hash */
	struct oci_pmpi_request *made;	 /* of all that there are */
	int tag;			 /* of the carrier's message; this request's for ever */
	MPI_Request carrier;
	MPI_Request anchor; /* of a persistent one: keeps the communicator */
	bool ending;	    /* its team is still to be destroyed */
};

/*
 * Not 0: something of ours is outstanding here (operations, freed communicators), or a failure
 * waits to be told; with MPI_THREAD_MULTIPLE always from the first operation on, as another thread
 * may start something while this one is inside the MPI. A thread sees its own starts; so relaxed.
 */
extern uint32_t oci_pmpi_attention_count;
/* This thread has been here (helper.c). */
extern OCI_TLS uint8_t oci_pmpi_is_known;
/* The same for all cases. */
bool oci_pmpi_look(void);

static inline bool oci_pmpi_attention(void)
{
	if (OCI_LIKELY(!__atomic_load_n(&oci_pmpi_attention_count, __ATOMIC_RELAXED) &&
		       oci_pmpi_is_known))
		return false;
	return oci_pmpi_look();
}

static inline void oci_pmpi_attend(int change)
{
	__atomic_fetch_add(&oci_pmpi_attention_count, (uint32_t)change, __ATOMIC_RELAXED);
}

/* Moves everything of ours that is outstanding. Not from inside the engine. */
void oci_pmpi_drive(void);
/* What the engine calls while it waits. Not 0: others may need this process at any moment. */
int oci_pmpi_drive_from_engine(void);
/* Before the first team is made; in MPI_Finalize. */
void oci_pmpi_mover_start(void);
void oci_pmpi_mover_stop(void);
/* One unsuccessful turn of a loop around oci_pmpi_drive(). */
void oci_pmpi_pause(uint32_t *turns);
/* A call of the MPI again and again, until it fails or is done; the engine goes on meanwhile. */
#define OCI_UNTIL(done, error, call)                          \
	for (uint32_t turns_ = 0;; oci_pmpi_pause(&turns_)) { \
		oci_pmpi_drive();                             \
		(error) = call;                               \
		if ((error) || (done))                        \
			break;                                \
	}
/* PMPI_Wait() that drives us too. */
int oci_pmpi_await(MPI_Request *request, MPI_Status *status);

/* NULL: no memory. */
struct oci_pmpi_request *oci_pmpi_request_get(struct oci_pmpi_comm *state, bool persistent);
/* Instead of giving it to the program. */
void oci_pmpi_request_discard(struct oci_pmpi_request *request);
/* From now on the program has it: a persistent one. */
void oci_pmpi_request_keep(struct oci_pmpi_request *request);
/* The persistent operation of ours of a handle, or NULL. */
struct oci_pmpi_request *oci_pmpi_request_of(MPI_Request handle);
/* The program has freed it. */
void oci_pmpi_request_free(struct oci_pmpi_request *request);
/* Is it the carrier of an operation under way, and on which communicator? */
bool oci_pmpi_request_is_active(MPI_Request handle, MPI_Comm *comm);
void oci_pmpi_requests_stop(void); /* in MPI_Finalize */

/* ---- completion.c -----------------------------------------------------------------------------
 */

/* Calls the communicator's error handler; the code. */
int oci_pmpi_raise(MPI_Comm comm, int code);
/* Errors of the communicator return; then they are raised again by the program's handler. */
MPI_Errhandler oci_pmpi_hush(MPI_Comm comm);
void oci_pmpi_unhush(MPI_Comm comm, MPI_Errhandler handler);
/* MPICH raises the errors of requests on MPI_COMM_WORLD: is that another thing than on `comm`? */
bool oci_pmpi_raises_elsewhere(MPI_Comm comm);
/* An operation has failed; whoever completes its request is to be told. */
void oci_pmpi_failed(MPI_Request request, MPI_Comm comm, int code);
void oci_pmpi_failure_comm_gone(MPI_Comm comm);

/* ---- helper.c, passed_on.c -------------------------------------------------------------------
 */

/* A call that may wait for others and has no nonblocking form: its error. */
#define OCI_HELPED_AS(begins, call)                 \
	({                                          \
		bool oci_helped_ = begins;          \
                                                    \
		oci_pmpi_helped(oci_helped_, call); \
	})
#define OCI_HELPED(call) OCI_HELPED_AS(oci_pmpi_attention() && oci_pmpi_help(), call)
/* One that calls functions of the program before it waits, which may start an operation. */
#define OCI_HELPED_CALLBACKS(call) OCI_HELPED_AS(oci_pmpi_help_callbacks(), call)
/* False: nothing is outstanding any more. */
bool oci_pmpi_help(void);
bool oci_pmpi_help_callbacks(void);
int oci_pmpi_helped(bool helped, int error); /* the error */
/* False: no thread is to be had. */
bool oci_pmpi_helper_wake(void);
/* Something has begun: perhaps inside a call, of another thread or in a function of the program. */
void oci_pmpi_helper_begun(void);
void oci_pmpi_helper_stop(void); /* in MPI_Finalize */
/* This thread is one: below MPI_THREAD_MULTIPLE it may not call what moves the MPI. */
extern OCI_TLS bool oci_pmpi_is_helper;
static inline bool oci_pmpi_may_call(void)
{
	return !oci_pmpi_is_helper || oci_pmpi_job.threads;
}

extern uint32_t oci_pmpi_windows; /* how many there are; atomic */

/* ---- the others -------------------------------------------------------------------------------
 */

int oci_pmpi_port_start(void);
void oci_pmpi_port_stop(void);
bool oci_pmpi_type_predefined(MPI_Datatype type);
/* Else MPI_Reduce_local() would raise it, of no communicator: the program is gone. */
bool oci_pmpi_op_fits(MPI_Op op, MPI_Datatype type);

#endif
