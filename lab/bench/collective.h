/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each collective reads and must deliver, without MPI: buffer sizes, the bytes to send and
 * the check of the bytes received. mpi_coll.c makes the calls.
 */
#ifndef BENCH_COLLECTIVE_H
#define BENCH_COLLECTIVE_H

#include <onecopy/collectives.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "barrier, bcast, ..., " for a help text. */
#define COLLECTIVE_WORDS OC_COLLECTIVE_ROWS(COLLECTIVE_WORD, )
#define COLLECTIVE_WORD(X, ID, name, ...) #name ", "

/* Exit statuses of the programs, beside EXIT_USAGE. */
enum { STATUS_OK, STATUS_FAILED, STATUS_GATE = 3 };

/* Of --sizes. */
#define SIZES_USUAL "4,16,64,256,1K,4K,16K,64K,256K,1M,4M"

struct collective_list {
	enum oc_collective at[OC_COLLECTIVES];
	int n;
};

/* One rank's view of one call. @seed differs from call to call, so stale bytes are wrong bytes. */
struct collective_call {
	enum oc_collective collective;
	int rank;
	int ranks;
	int root;
	size_t bytes; /* the message, or one rank's block where the collective has blocks */
	uint64_t seed;
};

/* Where and how delivered bytes differ from the right ones. */
struct collective_error {
	size_t offset;
	unsigned char expected;
	unsigned char found;
};

/* "bcast,gather", each once; "4,1K,64K". Each ends the program where it is wrong. */
void take_collectives(void *list, const char *text);
void take_sizes(void *list, const char *text);
/* "allreduce" or "MPI_Allreduce". */
enum oc_collective collective_take(const char *word);
/* Is it the name of a nonblocking form, "iallreduce" or "MPI_Iallreduce"? Then of which collective.
 */
bool collective_is_nonblocking(const char *word, enum oc_collective *collective);
/* One more, if it is not there. */
void collective_list_add(struct collective_list *list, enum oc_collective collective);
/* Those that are measured unless others are named. */
void collective_list_default(struct collective_list *list);

/* Bytes of this rank's send and receive buffer; 0 where the rank has none. */
size_t collective_send_bytes(const struct collective_call *call);
size_t collective_recv_bytes(const struct collective_call *call);

/* Write what this rank sends. */
void collective_fill(const struct collective_call *call, void *send);

/* Compare what this rank received. Returns 0, or -EBADMSG with the first wrong byte in @error. */
int collective_verify(const struct collective_call *call, const void *recv,
		      struct collective_error *error);

#endif
