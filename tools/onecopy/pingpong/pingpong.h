/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `onecopy bench p2p` runs: one loop, linked with one of three transports. The C API's
 * (transport_oc.c) forks its ranks, that of an MPI (transport_mpi.c) is started by its launcher.
 */
#ifndef ONECOPY_PINGPONG_H
#define ONECOPY_PINGPONG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct transport {
	uint32_t rank, ranks;
};

/* ---- transport_*.c; what fails there says so and ends the program ----------------------------
 */

void transport_open(struct transport *me, int *argc, char ***argv);
/* Ends the program. */
void transport_close(int status) __attribute__((noreturn));
void transport_send(uint32_t peer, const void *buffer, size_t bytes);
void transport_recv(uint32_t peer, void *buffer, size_t bytes);
/* Messages that are under way at once: to whom, from whom, each from the same buffer and into the
 * place behind the one before, or all into one place. */
struct window {
	unsigned int sends, receives;
	const uint32_t *to, *from;
	const void *send;
	uint8_t *recv;
	bool one_place;
};
/* Done when all are. Of MPIs alone. */
void transport_window(const struct window *window, size_t bytes);
/* A block to and from each rank. Of MPIs alone. */
void transport_alltoall(const void *send, void *recv, size_t bytes);
/* What rank 0 does to rank 1's window; of MPIs alone. */
enum operation { OPERATION_NONE, OPERATION_PUT, OPERATION_GET, OPERATION_ACCUMULATE };
/* A window over this memory, NULL: the MPI's own memory, which is returned. */
void *transport_expose(void *memory, size_t bytes);
/* Both ranks: what lies in the window is seen by both. */
void transport_meet(void);
/* Done on both sides when it returns. To accumulate is MPI_BXOR. */
void transport_operate(enum operation operation, void *origin, size_t bytes);
/* Zeroed, page aligned; `shared`: that peers can map, which an MPI's ranks get from their heap as
 * it is. NULL: there is none. */
void *transport_memory(size_t bytes, bool shared);

/* ---- misses.c: the processor's counter of last-level cache misses ------------------------------
 */

/* Counts from here on in this thread, the kernel's part too. False: it cannot be read. */
bool misses_open(char *why, size_t n);
/* Since misses_open(). */
uint64_t misses_read(void);

#endif
