/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong between two ranks, whatever sends: the loop that oc_bench_p2p and its twins over the
 * MPIs share, so that they differ by the calls alone.
 */
#ifndef BENCH_PINGPONG_H
#define BENCH_PINGPONG_H

#include <stdbool.h>
#include <stddef.h>

struct pingpong {
	const char *program;
	int rank; /* 0 or 1 */
	/* Returns when it is over; a failure ends the program. */
	void (*send)(void *context, const void *buffer, size_t bytes);
	void (*receive)(void *context, void *buffer, size_t bytes);
	/* Of the two buffers; NULL: malloc and free. */
	void *(*alloc)(size_t bytes);
	void (*free)(void *memory);
	void *context;
};

/* Sizes from `least` to `most` by factors of two. */
struct pingpong_options {
	size_t least, most;
	unsigned int batches; /* medians are over so many */
	bool quick;	      /* a look: few rounds */
	bool touch;	      /* the receiver reads what it got */
	const char *name;     /* of the column */
};

/* 0, or 2 after a sentence on standard error. argv without what is not of these is the caller's. */
int pingpong_parse(int argc, char **argv, struct pingpong_options *options);
/*
 * Runs all sizes. Rank 0 prints, for each: bytes, the median over batches of half a round trip in
 * microseconds, and MiB/s. 0, or 1 when bytes were wrong.
 */
int pingpong_run(const struct pingpong *p, const struct pingpong_options *options);

#endif
