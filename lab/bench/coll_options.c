// SPDX-License-Identifier: BSD-3-Clause
#include "coll_options.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_call.h"

enum {
	KEY_COLLECTIVES = 256,
	KEY_SIZES,
	KEY_MIN_BYTES,
	KEY_MAX_BYTES,
	KEY_ITERATIONS,
	KEY_CELL_SECONDS,
	KEY_TOKEN,
	KEY_CACHED,
	KEY_COLD,
	KEY_CHECK,
	KEY_NO_CHECK,
	KEY_MEMCPY,
	KEY_ROOT,
	KEY_LOOP,
	KEY_FORM,
	KEY_FIRST,
};

static const struct argp_option option_table[] = {
	{ "collectives", KEY_COLLECTIVES, "LIST", 0,
	  "What to measure: some of " COLLECTIVE_WORDS
	  "with commas between them (default: those before scatterv)",
	  0 },
	{ "sizes", KEY_SIZES, "LIST", 0,
	  "Bytes of the message (bcast, reduce, allreduce, scan, exscan) or of one rank's block (the "
	  "others), as in 4,1K,64K,1M (default: the powers of four from 4 B to 4 MiB)",
	  0 },
	{ "min-bytes", KEY_MIN_BYTES, "SIZE", 0, "Smallest of the powers of four", 0 },
	{ "max-bytes", KEY_MAX_BYTES, "SIZE", 0, "Largest of the powers of four", 0 },
	{ "iterations", KEY_ITERATIONS, "N", 0,
	  "Timed calls of each cell (default: from 10000 for small messages to 60 for 4 MiB)", 0 },
	{ "cell-seconds", KEY_CELL_SECONDS, "S", 0,
	  "Stop a cell after this time, once it has 10 calls (default: 0.3)", 0 },
	{ "token-ns", KEY_TOKEN, "LOW:HIGH", 0,
	  "Count only calls made while a token took so long from one rank's CPU to the next one's: "
	  "for virtual machines whose host moves their CPUs; a cell may take 10 times as long",
	  0 },
	{ "cached", KEY_CACHED, NULL, 0,
	  "Use the same buffers for each call and do not rewrite them, as OSU does", 1 },
	{ "cold", KEY_COLD, NULL, 0, "Allocate the buffers of each call, use them once, free them",
	  1 },
	{ "check", KEY_CHECK, NULL, 0,
	  "Verify delivered bytes, outside of the timed part (default)", 2 },
	{ "no-check", KEY_NO_CHECK, NULL, 0, "Do not verify", 2 },
	{ "memcpy", KEY_MEMCPY, NULL, 0,
	  "Time memcpy instead, of the bytes that the collective has to move, each rank its share, "
	  "with no waiting: the physical limit",
	  2 },
	{ "loop", KEY_LOOP, "NAME", 0,
	  "aligned: all ranks begin a call at one instant, by our own barrier (default); osu: the "
	  "same buffers and MPI_Barrier behind each call, and the mean of the ranks counts",
	  1 },
	{ "form", KEY_FORM, "NAME", 0,
	  "blocking (default); nonblocking: begun and waited for at once; persistent: a kept "
	  "request is started, the same buffers each time",
	  1 },
	{ "first", KEY_FIRST, "N", 0,
	  "The mean of the first N calls of each cell, with nothing before them", 1 },
	{ "root", KEY_ROOT, "RANK", 0, "Root of bcast, scatter, gather and reduce (default: 0)",
	  3 },
	{ 0 },
};

#define PLACE(member) offsetof(struct coll_options, member)
#define SIZES "--min-bytes and --max-bytes take a size above 0, as in 4, 64K or 1M."

/* The options that are no more than a value. */
static const struct plain_option plain[] = {
	{ KEY_MIN_BYTES, PLAIN_SIZE, PLACE(min_bytes), 0, 0, SIZES },
	{ KEY_MAX_BYTES, PLAIN_SIZE, PLACE(max_bytes), 0, 0, SIZES },
	{ KEY_ITERATIONS, PLAIN_COUNT, PLACE(iterations), 1, 10000000,
	  "--iterations takes a whole number from 1 to 10000000." },
	{ KEY_FIRST, PLAIN_COUNT, PLACE(first), 1, 10000000,
	  "--first takes a whole number from 1 to 10000000." },
	{ KEY_CELL_SECONDS, PLAIN_FRACTION, PLACE(cell_seconds), 0.001, 3600,
	  "--cell-seconds takes seconds from 0.001 to 3600." },
	{ KEY_ROOT, PLAIN_COUNT, PLACE(root), 0, INT_MAX,
	  "--root takes the number of a rank, from 0." },
	{ KEY_MEMCPY, PLAIN_FLAG, PLACE(memcpy), 0, 0, NULL },
	{ 0 },
};

static error_t parse_list(int key, const char *arg, struct argp_state *state,
			  struct coll_options *o)
{
	char error[TEXT_ERROR_CHARS];
	int err;

	if (key == KEY_COLLECTIVES) {
		err = collective_list_parse(arg, &o->collectives, error);
	} else {
		err = size_list_parse(arg, &o->sizes, error);
		o->sizes_given = true;
	}
	return err ? args_fail(state, error) : 0;
}

/* What only the options together show. */
static error_t check_all(struct argp_state *state, struct coll_options *o)
{
	int c, i;

	/* A kept request has kept buffers, and so has OSU's loop. */
	if (o->osu || o->form == FORM_PERSISTENT) {
		o->mode = BUFFERS_CACHED;
	}
	/* Then nothing is delivered. */
	o->check = o->check && !o->memcpy;
	if (!o->sizes_given) {
		size_list_powers_of_4(&o->sizes, o->min_bytes, o->max_bytes);
	}
	if (o->sizes.n == 0) {
		return args_fail(state,
				 "No power of four lies between --min-bytes and --max-bytes: widen "
				 "them, or name the sizes with --sizes.");
	}
	for (c = 0; c < o->collectives.n; c++) {
		for (i = 0; i < o->sizes.n; i++) {
			if (oci_is_reduction(o->collectives.at[c]) && o->sizes.bytes[i] % 4) {
				return args_fail(state,
						 "Reductions add floats: their sizes are multiples "
						 "of 4. Leave them out, or the odd sizes.");
			}
			if (o->sizes.bytes[i] > INT_MAX) {
				return args_fail(
					state, "MPI counts bytes in an int: sizes must stay below "
					       "2 GiB.");
			}
		}
	}
	return 0;
}

/* Which of the words it is, or -1 after saying what is valid. */
static int word_of(struct argp_state *state, const char *arg, const char *const words[3],
		   const char *sentence)
{
	int i = 0;

	while (words[i] && strcmp(arg, words[i]) != 0) {
		i++;
	}
	if (!words[i]) {
		args_fail(state, sentence);
		return -1;
	}
	return i;
}

static error_t parse_way(int key, const char *arg, struct argp_state *state, struct coll_options *o)
{
	static const char *const loops[] = { "aligned", "osu", NULL };
	static const char *const forms[] = { "blocking", "nonblocking", "persistent", NULL };
	int word;

	word = key == KEY_LOOP ? word_of(state, arg, loops, "--loop takes aligned or osu.") :
				 word_of(state, arg, forms,
					 "--form takes blocking, nonblocking or persistent.");
	if (word < 0) {
		return EINVAL;
	}
	if (key == KEY_LOOP) {
		o->osu = word;
	} else {
		o->form = word;
	}
	return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct coll_options *o = state->input;

	switch (key) {
	case KEY_COLLECTIVES:
	case KEY_SIZES:
		return parse_list(key, arg, state, o);
	case KEY_TOKEN:
		return range_parse(arg, 1e6, &o->token_ns) ? args_fail(state, TOKEN_SENTENCE) : 0;
	case KEY_CACHED:
	case KEY_COLD:
		if (o->mode != BUFFERS_ROTATED) {
			return args_fail(state, CACHED_SENTENCE);
		}
		o->mode = key == KEY_CACHED ? BUFFERS_CACHED : BUFFERS_COLD;
		return 0;
	case KEY_CHECK:
	case KEY_NO_CHECK:
		o->check = key == KEY_CHECK;
		return 0;
	case KEY_LOOP:
	case KEY_FORM:
		return parse_way(key, arg, state, o);
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not an option; this program takes no other arguments.",
			   arg);
		return EINVAL;
	case ARGP_KEY_SUCCESS:
		return check_all(state, o);
	default:
		return plain_parse(plain, key, arg, state);
	}
}

/* Before MPI_Init there is no rank to ask for; the launchers tell it in the environment. */
static bool first_rank_by_launcher(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
					     "SLURM_PROCID" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *rank = getenv(names[i]);

		if (rank) {
			return strcmp(rank, "0") == 0;
		}
	}
	return true;
}

int coll_options_parse(int argc, char **argv, struct coll_options *options)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.doc = "Time MPI collectives between the ranks of one node.\v"
		       "Run it under mpirun. Printed is, behind '=', collective and bytes, the median "
		       "over calls of the slowest rank's time in microseconds, and their 10 % and "
		       "90 % quantiles; last, what a token took from rank to rank in ns. Calls are aligned by this program's own barrier in "
		       "shared memory, never by MPI_Barrier.\n\nExit status: 0 done, 1 wrong bytes or "
		       "a failure, 2 wrong options.",
	};

	*options = (struct coll_options){
		.min_bytes = 4,
		.max_bytes = 4 << 20,
		.cell_seconds = 0.3,
		.check = true,
	};
	collective_list_default(&options->collectives);
	return args_parse(&argp, argc, argv, options, !first_rank_by_launcher());
}

/*
 * So that a run of all cells on 2 ranks takes about 10 s on our machine and no size takes most of
 * it. The same for every library measured: the count must not depend on what it is to judge.
 */
static const struct {
	size_t up_to_bytes;
	long iterations;
} iteration_table[] = {
	{ 4 << 10, 10000 }, { 16 << 10, 6000 }, { 64 << 10, 3000 },	     { 256 << 10, 1000 },
	{ 1 << 20, 250 },   { 4 << 20, 60 },	{ (size_t)INT_MAX + 1, 15 },
};

long coll_options_iterations(const struct coll_options *options, size_t bytes)
{
	size_t i = 0;

	if (options->first || options->iterations) {
		return options->first ? options->first : options->iterations;
	}
	while (bytes > iteration_table[i].up_to_bytes) {
		i++;
	}
	return iteration_table[i].iterations;
}

long coll_options_max_iterations(const struct coll_options *options)
{
	return options->first	   ? options->first :
	       options->iterations ? options->iterations :
				     iteration_table[0].iterations;
}
