/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of any collective, of any layout and form, whose whole receive buffer is held against an
 * image that this process computes by itself: every int at its place, and every byte in the gaps
 * and around as it was. The send buffer must come back unchanged.
 *
 * Several may be outstanding at a time: open, start, (other things,) wait for `request`, verify.
 */
#ifndef ONECOPY_TESTS_CHECKED_H
#define ONECOPY_TESTS_CHECKED_H

#include "form.h"
#include "layout.h"

enum { CHECKED_RANKS = 64 };

struct checked_spec {
	enum case_collective collective;
	int elements; /* of a block; the v-variants have blocks of 0 to that many */
	int root;
	int in_place; /* MPI_IN_PLACE where the collective has it */
	int plain;    /* 1 + an enum plain, alike on all ranks; 0: it goes by `layout` */
	int layout;   /* a number of a layout; alike on all ranks */
	int differ;   /* ranks take different layouts, except in reductions */
	int maps;     /* reductions: the operation that does not commute, where the layout has it */
	unsigned int shape; /* other block sizes and places in the v-variants for other values,
			     * negative ones for one in three */
	uint64_t salt;	    /* other data for other values */
	int stock;	    /* the MPI itself may serve it; see also OC_TEST_STOCK in README.md */
	int bottom;	    /* addresses are in the types, the buffers are MPI_BOTTOM */
	int large;	    /* by the function with large counts, where there is one; on any rank */
};

/* A buffer of a call. */
struct checked_side {
	const struct layout *layout[CHECKED_RANKS]; /* of each block */
	int many;				    /* a block a rank */
	int blocks, elements[CHECKED_RANKS];
	size_t origin;		      /* in `memory` and `expected` */
	size_t offset[CHECKED_RANKS]; /* bytes behind the origin */
	size_t begin;		      /* likewise, of what `places` count from */
	int counts[CHECKED_RANKS], places[CHECKED_RANKS];
	MPI_Count counts_c[CHECKED_RANKS]; /* the same */
	MPI_Aint places_c[CHECKED_RANKS];
	MPI_Datatype types[CHECKED_RANKS];
	unsigned char *memory, *expected; /* margin, the buffer, margin */
	size_t bytes;			  /* with the margins */
};

struct checked {
	struct checked_spec spec;
	MPI_Comm comm;
	int rank, ranks;
	struct checked_side send, recv;
	struct arguments arguments;
	MPI_Request request;
	enum form form;	     /* the last one used */
	MPI_Op own_op;	     /* MPI_OP_NULL: the layout's */
	int own_types;	     /* the types in `arguments` are this call's */
	int had_own_handles; /* and were, though they are freed */
	int keep_handles;    /* until the end, because the MPI by itself does not */
};

/* `call` lies where it lies until it is closed: the MPI keeps addresses of what is in it. */
void checked_open(struct checked *call, MPI_Comm comm, const struct checked_spec *spec);
/* Types and an operation that only this call has; before it is started. */
void checked_own_handles(struct checked *call);
/* Frees them, which MPI allows while the call is pending. */
void checked_free_handles(struct checked *call);
/* Other data in the same buffers, for the next start of a persistent call. */
void checked_fill(struct checked *call, uint64_t salt);
/* Blocking. MPI's return code. */
int checked_call(struct checked *call);
/* These end the job if the MPI says that it failed. */
void checked_start(struct checked *call);
void checked_init(struct checked *call);
void checked_restart(struct checked *call);
/* In that form, a persistent one started once. */
void checked_begin(struct checked *call, enum form form);
/* To count a start by MPI_Start() or MPI_Startall(). */
void checked_count(const struct checked *call);
void checked_verify(const struct checked *call);
/* Whether the bytes are there, where nobody waited. */
int checked_is_right(const struct checked *call);
void checked_close(struct checked *call);
/* Waits for it by MPI_Wait(), frees a persistent one, and these two. */
void checked_end(struct checked *call);
/* All of it, waiting with MPI_Wait(). */
void checked_run(MPI_Comm comm, const struct checked_spec *spec, enum form form);

int checked_is_reduction(enum case_collective collective);

#endif
