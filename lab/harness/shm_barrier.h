/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The benchmark's own shared memory: a barrier that aligns the calls, and the place where each rank
 * leaves its times. No MPI in it, so it is the same code whichever library is being measured, and a
 * faster MPI_Barrier can neither help nor hurt another collective's numbers. Of ranks on several
 * nodes each node has one, and these meet by a function of the caller's.
 */
#ifndef HARNESS_SHM_BARRIER_H
#define HARNESS_SHM_BARRIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHM_BARRIER_NAME_CHARS = 64 };

struct shm_segment;

struct shm_barrier {
	struct shm_segment *segment;
	size_t bytes;
	int rank;
	int ranks;
	bool tells; /* the first rank of the first node, whose words count */
	int cpus;   /* that the ranks have between them */
	bool yield; /* more ranks than CPUs: give the CPU away while waiting */
	/*
	 * Called about every millisecond of waiting, or NULL. A rank that waits here is outside of
	 * its MPI; if a peer's call still needs this rank's progress, this is where it happens.
	 */
	void (*idle)(void);
	/*
	 * Of ranks on several nodes, else NULL: called by each node's first rank in each wait, with
	 * a word that it passes on to the others'. Returns what any of them gave, when all have
	 * called it. To be set behind shm_barrier_meet(), with `tells`.
	 */
	uint32_t (*meet_others)(void *context, uint32_t word);
	void *context;
};

/* A name that no other barrier has, for one rank to tell the others. */
void shm_barrier_name(char name[SHM_BARRIER_NAME_CHARS]);
/*
 * All ranks call it with the same name: the first one makes the segment, with room for @samples
 * times of each rank. They learn from their CPU masks whether they outnumber the CPUs they may run
 * on. The name is gone when it returns. 0 or -errno, -ETIMEDOUT when the first rank does not come.
 */
int shm_barrier_meet(struct shm_barrier *barrier, const char *name, int rank, int ranks,
		     size_t samples);
void shm_barrier_close(struct shm_barrier *barrier);

/* Returns when all ranks have called it. */
void shm_barrier_wait(struct shm_barrier *barrier);

/*
 * The same, and then all return at one instant. A release reaches one waiter after the other, as
 * far apart as a small message takes, and a late starter finds its message already there; so the
 * last to arrive names an instant a little ahead. Ranks that outnumber the CPUs just wait.
 */
void shm_barrier_align(struct shm_barrier *barrier);

/* The times of a rank of this node, @samples long. Others may read them after a wait. */
double *shm_barrier_times(const struct shm_barrier *barrier, int rank);

/*
 * A flag that the rank that `tells` sets before a wait. All read it alike after that wait and
 * before their next one; later the setter may already have changed it again.
 */
void shm_barrier_set_stop(struct shm_barrier *barrier, bool stop);
bool shm_barrier_stop(const struct shm_barrier *barrier);
/* All ranks call it: the word of the one that `tells`, on all. By the flag and two waits. */
bool shm_barrier_tell(struct shm_barrier *barrier, bool word);

/* A count of failures, which other nodes know after the next wait. One rank may forget them between
 * two waits, if it alone looks there. */
void shm_barrier_add_failure(struct shm_barrier *barrier);
bool shm_barrier_failed(const struct shm_barrier *barrier);
void shm_barrier_forget_failures(struct shm_barrier *barrier);

/*
 * Proof that MPI_Barrier is one: mark my entry into call @call before it, look for a rank that had
 * not entered after it, of this node. Returns that rank, or -1.
 */
void shm_barrier_mark(struct shm_barrier *barrier, uint64_t call);
int shm_barrier_find_absent(const struct shm_barrier *barrier, uint64_t call);

#endif
