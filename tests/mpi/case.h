/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One checked call of a collective: what the test programs are made of.
 *
 * Every byte that a call should deliver is a pure function of (call, source rank, place), so each
 * rank computes what to expect by itself (checked.h). What is wrong is said and ends the job.
 *
 * The calls are counted where onecopy can serve them; case_report() prints the sums for the driver,
 * which holds them against onecopy's own statistics.
 */
#ifndef ONECOPY_TESTS_CASE_H
#define ONECOPY_TESTS_CASE_H

#include <mpi.h>
#include <onecopy/collectives.h>
#include <stddef.h>
#include <stdint.h>

/* MPI's functions; those of the neighborhood come last, as they need a topology. */
#define CASE_FUNCTION(X, ID, name, ...) CASE_##name,
#define CASE_ID(X, ID, name, ...) CASE_##ID = CASE_##name,
enum case_collective {
	OC_FUNCTION_ROWS(CASE_FUNCTION, ) CASE_FUNCTIONS,
	OC_WHOLE_ROWS(CASE_ID, ) CASE_ALLTOALLW = CASE_alltoallw,
	CASE_COLLECTIVES = CASE_neighbor_alltoallv
};
#undef CASE_FUNCTION
#undef CASE_ID

extern const char *const case_names[CASE_FUNCTIONS];
/* The info key that forces its algorithm on a communicator. */
void case_info_key(char *key, size_t bytes, enum case_collective collective);
/* The collective of that name; ends the job if there is none. */
enum case_collective case_parse(const char *name, size_t length);

/* Kinds of elements: five of plain numbers, one whose operation does not commute, other layouts. */
enum { CASE_KINDS = 7 };

struct case_call {
	enum case_collective collective;
	size_t bytes; /* as in onecopy.h: the message, or the block of one rank */
	int root;
	int in_place; /* MPI_IN_PLACE where the collective has it */
	int kind;
	uint64_t salt; /* other bytes for other values; alike on all ranks of the call */
};

/* MPI_Init(), and this rank's number and how many there are; or NULL. */
void case_begin(int *argc, char ***argv, int *rank, int *ranks);
/* For hundreds of calls that have buffers of their own: what was freed is used again, as to give
 * its pages back and to clear others takes longer than the call. */
void case_keep_memory(void);
/* With MPI_THREAD_MULTIPLE, or the job ends. */
void case_begin_threads(int *argc, char ***argv, int *rank, int *ranks);
/* case_report(), the one line of what was done, by rank 0, and MPI_Finalize(): 0. */
int case_end(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* MPI's return code when the communicator returns errors; what was delivered is checked only on
 * MPI_SUCCESS. */
int case_run(MPI_Comm comm, const struct case_call *call);
/* As onecopy has it: an Alltoallw is an Alltoallv. */
static inline enum oc_collective case_of(enum case_collective collective)
{
#define CASE_IS(X, ID, ...) OC_##ID,
	static const enum oc_collective is[] = { OC_FUNCTION_ROWS(CASE_IS, ) };
#undef CASE_IS

	return is[collective];
}
static inline enum oci_function case_function(enum case_collective collective)
{
	return (enum oci_function)collective;
}
/* A duplicate in which all ranks are neighbors, in their order: there, those of the neighborhood
 * do what the others do. */
void case_all_neighbors(MPI_Comm comm, MPI_Info info, MPI_Comm *graph);
/* Whether MPI_IN_PLACE or a root make a difference in this collective. */
int case_has_in_place(enum case_collective collective);
int case_has_root(enum case_collective collective);
/* MPI_Barrier(), counted. Behind it nonblocking calls are served: their team is there. */
void case_barrier(MPI_Comm comm);
/* Bytes of the largest buffer of the call. */
size_t case_buffer_bytes(const struct case_call *call, int ranks);
/*
 * Rank 0 prints "expect COLLECTIVE CALLS", "besides COLLECTIVE CALLS" (that may have been served on
 * top), summed over ranks, and "checksum X"; no collective.
 */
void case_report(void);
/* A call that onecopy must serve, or, where the MPI may end it by itself, can serve. */
void case_count(enum case_collective collective, int must);
/* Received bytes become part of the checksum. */
void case_add_checksum(const void *bytes, size_t length);
/* From here on calls are not counted; from here on they are, from 0. */
void case_stop_counting(void);
void case_start_counting(void);
/* Calls of this rank that onecopy must serve, or those that it can, of whatever function. */
unsigned long case_counted(enum case_collective collective, int must);

/* What a word like "bcast=knomial:2@496" says: an algorithm, forced on a communicator of its own.
 */
struct case_forced {
	enum case_collective collective;
	char algorithm[64];
	unsigned long most; /* bytes of the largest buffer that it serves */
	MPI_Comm comm;
};
/* A collective; calls are counted from here. Without "@", buffers may have any size. */
void case_force(const char *word, struct case_forced *forced);
/*
 * Frees the communicator. Rank 0 prints "forced bcast=knomial:2 CALLS BESIDES", as case_report()
 * means them; all ranks have to have made as many. No calls are counted from here on.
 */
void case_forced_end(struct case_forced *forced);

/* A sentence on standard error with the world rank, and the end of the job. */
void case_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

double case_seconds(void); /* CLOCK_MONOTONIC: one clock for all ranks of the node */

#endif
