/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the preload library share.
 *
 *   entry.S        the exported symbols: jumps that decide nothing and touch nothing
 *   resolve.c      which MPI this process has, and its functions
 *   life.c         MPI_Init, MPI_Finalize, messages to the user
 *   comm.c         one object per communicator: is it served, its team
 *   bootstrap.c    creates a team: its members reach each other by collectives of the MPI
 *   calls.h        each collective's parameters, and how they become a struct oci_mpi_call
 *   blocking.c     blocking collectives
 *   request.c      outstanding operations: records, carriers, drive
 *   started.c      nonblocking collectives
 *   persistent.c   persistent collectives, each with a team of its own; MPI_Start
 *   completion.c   Wait, Test, Request_free
 *   twin.c         blocking point-to-point calls as nonblocking ones
 *   neighbor.c     neighbourhood collectives, which are not served
 *   helper.c       a thread that drives the engine while the program's is inside the MPI
 *   passed_on.c    calls inside of which it drives: of communicators, windows, files
 *   memory.c       MPI_Alloc_mem gives memory that other ranks can map
 *   port.c, refcount.c what mpi/common asks of the MPI
 *   forced.c       algorithms that info keys ask for, and the functions that bring such keys
 *   failure.c      an engine's error as an MPI error code with the sentence
 *
 * Two rules keep programs from waiting for ever:
 *   - While an operation of ours is outstanding here (oci_pmpi_attention), it is driven in every
 *     call that may wait: messages, Wait and Test run as their nonblocking twins, in a loop that
 *     drives us; inside all others a helper thread drives.
 *   - Blocking and nonblocking collectives do not match each other in MPICH, so which of the two
 *     stands for a call is decided from what all members see alike, never from what is outstanding.
 */
#ifndef OC_PMPI_PMPI_H
#define OC_PMPI_PMPI_H

#include "real.h"

#include "common/operation.h"
#include "common/say.h"

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
#define OCI_LIST(...) __VA_ARGS__
#define OCI_PASTE(a, b) a##b
#define OCI_OURS_OF(name) OCI_PASTE(oci_pmpi_, name)
#define OCI_OURS(name) OCI_OURS_OF(OCI_NAME(name))
#define OCI_THEIRS(name) PMPI(OCI_NAME(name))

#define OCI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OCI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OCI_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* ---- resolve.c --------------------------------------------------------------------------------
 */

/* A function that not every MPI has, by its whole name; NULL: this one lacks it. */
void *oci_pmpi_extension(const char *name);

/* ---- life.c -----------------------------------------------------------------------------------
 */

/* Set in MPI_Init and cleared in MPI_Finalize, in one thread. */
struct oci_pmpi_job {
	bool begun;
	bool active; /* begun, and not switched off in this process */
	/* All processes of MPI_COMM_WORLD are on this node and switched on. Then nonblocking
	 * collectives are served; else a blocking call that is handed back, on a communicator
	 * across nodes, could leave one of them without progress. */
	bool together;
	bool threads;	/* MPI_THREAD_MULTIPLE */
	MPI_Comm world; /* private duplicates; errors return */
	MPI_Comm self;
	MPI_Group group; /* of world */
	int rank, size;
	bool *here; /* size: on this node, switched on, of our version */
	uint32_t node_ranks;
	int tags; /* MPI_TAG_UB + 1 */
};
extern struct oci_pmpi_job oci_pmpi_job;

/* ---- comm.c -----------------------------------------------------------------------------------
 */

struct oci_pmpi_comm {
	MPI_Comm comm;	    /* MPI_COMM_NULL once it has been freed */
	const char *reason; /* why it stays with the MPI; NULL: it is served */
	bool known;	    /* all its processes are of MPI_COMM_WORLD, so they have this library */
	bool inter;
	bool refused; /* its team was: there will be none */
	uint32_t rank, size;
	struct oc_team *team;			       /* ready; NULL: see oci_pmpi_team() */
	uint32_t outstanding;			       /* operations; atomic */
	char forced[OC_COLLECTIVES][OCI_FORCED_BYTES]; /* the words of info keys; "": none */
	LIST_ENTRY(oci_pmpi_comm) alive;	       /* among those that are */
	struct oci_pmpi_comm *next;		       /* among the freed ones */
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
/*
 * The team, which the first call makes: so only from what may wait for all members (a blocking
 * collective, the _init call of a persistent one). NULL: it was refused, on all alike. Others look
 * at state->team, which is there or not on all members alike, at one place of their collectives.
 */
struct oc_team *oci_pmpi_team(struct oci_pmpi_comm *state);

/* ---- bootstrap.c ------------------------------------------------------------------------------
 */

/* A new team of its members, that is ready; by all of them. NULL: refused, on all alike. */
struct oc_team *oci_pmpi_team_create(struct oci_pmpi_comm *state);
/* Instead, where there is no memory for what the team is for. */
void oci_pmpi_team_abstain(struct oci_pmpi_comm *state);

/* ---- request.c, started.c, persistent.c -------------------------------------------------------
 */

/* Where there is no engine that could count it. */
#define OCI_NO_TEAM "the ranks could not form a team"

typedef int oci_native(const struct oci_mpi_call *call, MPI_Comm comm, MPI_Request *request);

/* An operation of the engine, seen by the program as its carrier. */
struct oci_record {
	/* Among the active ones, in the order of their starts, then among those to be told. */
	struct oci_record *next, **link;
	struct oci_record *bucket; /* of the persistent ones with this hash */
	struct oci_record *made;   /* of all that there are */
	int tag;		   /* of the carrier's message; this record's for ever */
	MPI_Request carrier;
	MPI_Request anchor; /* of a persistent one: keeps the communicator */
	struct oci_pmpi_comm *state;
	struct oc_request *engine;
	struct oc_team *team; /* a persistent operation's own, or the communicator's */
	bool persistent, active, freed;
	bool nothing;	  /* to do: no rank has any bytes */
	int error;	  /* of the operation that has ended */
	uint32_t telling; /* how many are telling the carrier of an end, with request.c's lock */
	struct oci_mpi_operation operation;
};

/*
 * Not 0: something of ours is outstanding here (operations, freed communicators), or a failure
 * waits to be told; with MPI_THREAD_MULTIPLE always, as another thread
 * may start something while this one is inside the MPI. A thread sees its own starts; so relaxed.
 */
extern uint32_t oci_pmpi_attention_count;

static inline bool oci_pmpi_attention(void)
{
	return OCI_UNLIKELY(__atomic_load_n(&oci_pmpi_attention_count, __ATOMIC_RELAXED) != 0);
}

static inline void oci_pmpi_attend(int change)
{
	__atomic_fetch_add(&oci_pmpi_attention_count, (uint32_t)change, __ATOMIC_RELAXED);
}

/* Operations have begun here whose requests have not been told yet that they are over. */
bool oci_pmpi_outstanding(void);
/* Moves everything of ours that is outstanding. Not from inside the engine. */
void oci_pmpi_drive(void);
/* What the engine calls while it waits. Not 0: others may need this process at any moment. */
int oci_pmpi_drive_from_engine(void);
/* One unsuccessful turn of a loop around oci_pmpi_drive(). */
void oci_pmpi_pause(uint32_t *turns);
/* PMPI_Wait() that drives us too. */
int oci_pmpi_await(MPI_Request *request, MPI_Status *status);

struct oci_record *oci_record_get(void);
void oci_record_put(struct oci_record *record);
void oci_record_activate(struct oci_record *record);
/* The record of a persistent operation of ours, or NULL. */
struct oci_record *oci_record_of(MPI_Request request);
void oci_record_keep(struct oci_record *record);
/* Persistent and inactive: gives back what it has; its team goes later. */
void oci_record_end(struct oci_record *record);
/* Its request is freed: it is over with it now, or when the operation ends. */
void oci_record_free(struct oci_record *record);
extern uint32_t oci_record_persistents; /* how many there are; atomic */
/* Is it the carrier of an operation under way, and on which communicator? */
bool oci_record_is_active(MPI_Request request, MPI_Comm *comm);
/* The operation has ended here: tells the carrier. error: MPI_SUCCESS or a code. */
void oci_record_finish(struct oci_record *record, int error);
/* Starts (again) what is open. 1 over, 0 outstanding, OC_HAND_BACK, or *code is an MPI error. */
int oci_record_launch(struct oci_record *record, int *code);
void oci_record_stop(void); /* in MPI_Finalize */

/* ---- failure.c --------------------------------------------------------------------------------
 */

/* -errno of the engine as an MPI error code. */
int oci_pmpi_failure(const struct oc_team *team, int error);
/* Calls the communicator's error handler; the code. */
int oci_pmpi_raise(MPI_Comm comm, int code);
/* An operation has failed; whoever completes its request is to be told. */
void oci_pmpi_failed(MPI_Request request, struct oci_pmpi_comm *state, int code);
/* Takes the failure of a request that was completed: its code, or MPI_SUCCESS. */
int oci_pmpi_failure_take(MPI_Request request, MPI_Comm *comm);
extern uint32_t oci_pmpi_failures; /* how many wait to be told; atomic */
void oci_pmpi_failure_comm_gone(MPI_Comm comm);

/* ---- helper.c, passed_on.c -------------------------------------------------------------------
 */

/* A call that may wait for others and has no nonblocking form: its error. */
#define OCI_HELPED(call)                                                    \
	({                                                                  \
		bool oci_helped_ = oci_pmpi_attention() && oci_pmpi_help(); \
                                                                            \
		oci_pmpi_helped(oci_helped_, call);                         \
	})
/* False: nothing is outstanding any more. */
bool oci_pmpi_help(void);
int oci_pmpi_helped(bool helped, int error); /* the error */
/* Something has begun, perhaps while another thread is inside such a call. False: no thread is to
 * be had. */
bool oci_pmpi_helper_wake(void);
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

/* Is the call one that the engine can take at its word? Else the MPI says what is wrong with it. */
bool oci_pmpi_sane(const struct oci_mpi_call *call, const struct oci_pmpi_comm *state);

void oci_pmpi_forced_take(struct oci_pmpi_comm *state, MPI_Info info);
void oci_pmpi_forced_apply(struct oci_pmpi_comm *state);
void oci_pmpi_forced_copy(const struct oci_pmpi_comm *state, struct oc_team *team);

int oci_pmpi_port_start(void);
void oci_pmpi_port_stop(void);
bool oci_pmpi_type_predefined(MPI_Datatype type);
/* Else MPI_Reduce_local() would raise it, of no communicator: the program is gone. */
bool oci_pmpi_op_fits(MPI_Op op, MPI_Datatype type);

#endif
