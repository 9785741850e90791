/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of our own that measure together: forked for one experiment, each on a CPU, joined by
 * shared memory. What a child finds out it leaves there as points; the parent never measures.
 */
#ifndef OC_TUNE_WORLD_H
#define OC_TUNE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OCI_TUNE_POINTS 32
#define OCI_TUNE_SAMPLES 16384
/* A flag or counter alone on two cache lines, as in the engine's segments. */
#define OCI_TUNE_LINE 128

/* A measured value: the first quartile of its samples, and half the distance of the quartiles over
 * their median. */
struct oci_tune_point {
	double value, residual;
	uint32_t samples;
};

struct oci_tune_line {
	uint64_t word;
	uint8_t pad[OCI_TUNE_LINE - sizeof(uint64_t)];
};

#define OCI_TUNE_LINES 32

struct oci_tune_shared {
	struct oci_tune_line line[OCI_TUNE_LINES]; /* an experiment's own flags */
	struct oci_tune_line arrived, released;	   /* of the barrier */
	struct oci_tune_line round_arrived, round_released, another[2]; /* of rounds */
	/* of each rank */
	struct {
		pid_t pid;
		int error; /* -errno; the sentence is in `why` */
		uint64_t address, cookie;
		struct oci_tune_point point[OCI_TUNE_POINTS];
		char why[256];
	} rank[];
};

struct oci_tune_rank {
	struct oci_tune_shared *shared;
	uint32_t rank, ranks;
	uint64_t barriers, rounds;
	double clock_s; /* what reading the clock adds to a sample */
	double seconds; /* of an experiment's point: until then samples are taken */
	const void *arg;
	uint8_t *memory; /* shared between the ranks, zeroed; NULL when none was asked for */
	double *sample;	 /* private: OCI_TUNE_SAMPLES */
	double begun_s;	 /* of the point under way */
};

struct oci_tune_world {
	const unsigned int *cpus; /* [cpu_count]: where rank r sits, r modulo their number */
	unsigned int cpu_count;	  /* 0: wherever the scheduler puts them */
	double seconds;
	double limit_s; /* ranks that take longer have failed */
	struct oci_tune_shared *shared;
	uint32_t most_ranks;
};

/* 0 or -errno. */
int oci_tune_world_create(struct oci_tune_world *world, const unsigned int *cpus,
			  unsigned int cpu_count, double seconds, uint32_t most_ranks);
void oci_tune_world_destroy(struct oci_tune_world *world);

/*
 * Runs `body` on `ranks` processes, which share `memory_bytes`. 0; or -errno and a sentence of the
 * first rank that failed, was killed, or did not end within the limit, which is two minutes.
 */
int oci_tune_run(struct oci_tune_world *world, uint32_t ranks, size_t memory_bytes,
		 int (*body)(struct oci_tune_rank *me), const void *arg, char *why, size_t n);
/* The same, and takes the `count` points that rank 0 has left. */
int oci_tune_take(struct oci_tune_world *world, uint32_t ranks, size_t memory_bytes,
		  int (*body)(struct oci_tune_rank *me), const void *arg,
		  struct oci_tune_point *point, unsigned int count, char *why, size_t n);

/* ---- in a child -------------------------------------------------------------------------------
 */

/* All ranks; spins, then yields, so that ranks that share a CPU get on. */
void oci_tune_barrier(struct oci_tune_rank *me);
/* Raises a line; waits for one. Release and acquire pair with each other. */
void oci_tune_raise(struct oci_tune_line *line, uint64_t value);
void oci_tune_await(const struct oci_tune_line *line, uint64_t value);

/* The samples of a point: begin, then as long as there are more to take, sample[n++]. */
void oci_tune_begin(struct oci_tune_rank *me);
bool oci_tune_more(const struct oci_tune_rank *me, uint32_t n);
/* Is there another round of the ranks from 0 to `ranks` - 1? Rank 0 decides for all, by its
 * samples; they begin it together. */
bool oci_tune_another(struct oci_tune_rank *me, uint32_t ranks, uint32_t samples);
/* Leaves the samples as point `index` of this rank, each less the clock's part and divided by how
 * many things it timed. */
void oci_tune_leave(struct oci_tune_rank *me, uint32_t index, uint32_t samples, double things);
/* The statistics of a point alone; orders the samples. */
struct oci_tune_point oci_tune_point_of(double *samples, uint32_t count);
/* Sets the rank's sentence and returns `error`. */
int oci_tune_fail(struct oci_tune_rank *me, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
