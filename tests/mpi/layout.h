/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes described twice: to MPI, and as a list of places from which a test finds the address of
 * the k-th int by itself. One element of every layout is six ints, so that ranks of one call can
 * use different layouts of the same signature.
 */
#ifndef ONECOPY_TESTS_LAYOUT_H
#define ONECOPY_TESTS_LAYOUT_H

#include <mpi.h>
#include <stddef.h>

enum {
	LAYOUT_INTS = 6,     /* of one element of every layout */
	LAYOUT_MARGIN = 256, /* more than any layout reaches before its origin */
	LAYOUT_COLUMN = 256, /* bytes; elements of the column layout interleave up to it */
	LAYOUT_MOST = 16,
};

/* Numbers one behind the other: blocks of any number of bytes, and the MPI's own operations. */
enum plain { PLAIN_BYTES, PLAIN_INTS, PLAIN_DOUBLES, PLAIN_INTS_MOST, PLAIN_DOUBLES_MOST, PLAINS };

struct layout {
	const char *name;
	MPI_Datatype type;
	int per_element; /* counts of `type` that make up one element */
	int offset[LAYOUT_INTS];
	int extent; /* from one element to the next, in bytes */
	int plain;  /* one element is one number, at its origin */
	MPI_User_function *sum_function, *maps_function; /* what the two below were made of */
	MPI_Op sum;					 /* of each int; commutes */
	MPI_Op maps; /* composes three maps x -> a * x + b modulo 2^32; does not commute.
		      * MPI_OP_NULL for plain ints, of which a piece need not begin at a map. */
};

extern struct layout layouts[LAYOUT_MOST];
extern int layout_count;

/* Made by layouts_make(), too. */
extern struct layout layout_plain[PLAINS];

void layouts_make(void);
void layouts_free(void);
/* `number` modulo their count; one that does not overlap itself with as many elements. */
const struct layout *layout_choose(int number, int elements);
/* Bytes that so many elements may reach behind the origin. */
size_t layout_bytes(const struct layout *layout, int elements);
/* The k-th int behind the origin `at`. */
void layout_put(unsigned char *at, const struct layout *layout, int k, int value);
/* (a, b) = (a, b) then (c, d), of maps x -> a * x + b. */
void layout_compose(unsigned int *a, unsigned int *b, unsigned int c, unsigned int d);

#endif
