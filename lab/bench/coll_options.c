// SPDX-License-Identifier: BSD-3-Clause
#include "coll_options.h"

#include <limits.h>

#include "lab/harness/options.h"
#include "mpi_call.h"

#define AT(member) .place = offsetof(struct coll_options, member)

static const struct option_set set = {
	.rows =
		(const struct option_row[]){
			{ "collectives", 0, "LIST",
			  "What to measure: some of " COLLECTIVE_WORDS
			  "with commas between them (default: those before scatterv)",
			  .take = take_collectives, AT(collectives) },
			{ "sizes", 0, "LIST",
			  "Bytes of the message (bcast, reduce, allreduce, scan, exscan) or of one "
			  "rank's block (the others), as in 4,1K,64K,1M (default: the powers of four "
			  "from 4 B to 4 MiB)",
			  .take = take_sizes, AT(sizes) },
			{ "iterations", 0, "N",
			  "Timed calls of each cell (default: from 10000 for small messages to 60 for "
			  "4 MiB)",
			  OPTION_COUNT, AT(iterations), 1, 10000000 },
			{ "cell-seconds", 0, "S",
			  "Stop a cell after this time, once it has 10 calls, one of first calls after ten "
			  "times as long (default: 0.3)",
			  OPTION_FRACTION, AT(cell_seconds), 0.001, 3600 },
			{ "cached", 0, NULL,
			  "Use the same buffers for each call and do not rewrite them, as OSU does",
			  .take = take_cached, AT(mode) },
			{ "cold", 0, NULL,
			  "Allocate the buffers of each call, use them once, free them",
			  .take = take_cold, AT(mode) },
			{ "ways", 0, "LIST",
			  "How: some of aligned (all ranks begin a call at one instant, by our own barrier; the "
			  "default), osu (the same buffers and MPI_Barrier behind each call, and the mean of the "
			  "ranks counts), nonblocking (begun and waited for at once), persistent (a kept request "
			  "is started, the same buffers each time), first-10 and first-1000 (the mean of the "
			  "first calls of each cell, with nothing before them), with commas between them, or all",
			  .take = bench_take_ways, AT(ways) },
			{ "cells", 0, "LIST",
			  "Of all these only some, as in osu/bcast/1024,persistent/barrier/0",
			  .take = bench_take_cells, AT(cells) },
			{ "overlap", 0, NULL,
			  "Instead: what nonblocking calls add to a computation, and other figures "
			  "(lab/bench/overlap.c)",
			  AT(overlap) },
			{ "spare", 0, NULL,
			  "With --overlap: odd ranks sleep instead of computing, so that their "
			  "CPUs are idle",
			  AT(spare) },
			{ "no-check", 0, NULL,
			  "Do not verify delivered bytes, which is done outside of the timed part",
			  AT(no_check) },
			{ "tolerate", 0, "WAYS",
			  "Where wrong bytes are delivered in these ways, print nan as the time and go on; "
			  "first-10 and first-1000 share their calls, and the longer one decides",
			  .take = bench_take_ways, AT(tolerant) },
			{ "nodes", 0, "N",
			  "The ranks are on so many nodes, else one: where these meet, they do by messages",
			  OPTION_COUNT, AT(nodes), 1, INT_MAX },
			{ "memcpy", 0, NULL,
			  "Time memcpy instead, of the bytes that the collective has to move, each rank "
			  "its share, with no waiting: the physical limit",
			  AT(memcpy) },
			{ 0 } },
	.about =
		"Time MPI collectives between the ranks of a node, or of several.\v"
		"Run it under mpirun. Printed is, behind '=', collective (behind its way and a dash "
		"where there are several) and bytes, the median "
		"over calls of the slowest rank's time in microseconds, and their 10 % and "
		"90 % quantiles. Calls are aligned "
		"by this program's own barrier in shared memory, never by MPI_Barrier, whose own "
		"calls are verified among the ranks of a node.\n\nExit "
		"status: 0 done, 1 wrong bytes that are not tolerated, or a failure, 2 wrong options.",
};

/* What only the options together show. */
static void check_all(struct coll_options *o)
{
	for (unsigned int way = 0; way < BENCH_WAYS && o->overlap; way++)
		if (o->tolerant[way])
			usage("--tolerate and --overlap exclude each other: what overlaps is not "
			      "tolerated.");
	if (o->nodes > 1 && (o->overlap || o->memcpy))
		usage("--overlap and --memcpy are of the ranks of one node.");
	/* Then nothing is delivered. */
	o->no_check |= o->memcpy;
	for (int c = 0; c < o->collectives.n; c++) {
		for (unsigned int i = 0; i < o->sizes.count; i++) {
			if (oci_is_reduction(o->collectives.at[c]) && o->sizes.at[i] % 4)
				usage("Reductions add floats: their sizes are multiples of 4. Leave "
				      "them out, or the odd sizes.");
			if (o->sizes.at[i] > INT_MAX)
				usage("MPI counts bytes in an int: sizes must stay below 2 GiB.");
		}
	}
}

void coll_options_parse(int argc, char **argv, struct coll_options *options)
{
	*options = (struct coll_options){ .cell_seconds = 0.3, .nodes = 1 };
	collective_list_default(&options->collectives);
	take_sizes(&options->sizes, SIZES_USUAL);
	bench_take_ways(options->ways, "aligned");
	options_parse(&set, argc, argv, options);
	check_all(options);
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

long coll_options_iterations(const struct coll_options *options, const struct bench_way *way,
			     size_t bytes)
{
	size_t i = 0;

	if (way->first || options->iterations)
		return way->first ? way->first : options->iterations;
	while (bytes > iteration_table[i].up_to_bytes)
		i++;
	return iteration_table[i].iterations;
}

long coll_options_max_iterations(const struct coll_options *options)
{
	return options->iterations > iteration_table[0].iterations ? options->iterations :
								     iteration_table[0].iterations;
}
