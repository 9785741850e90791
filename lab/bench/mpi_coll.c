// SPDX-License-Identifier: BSD-3-Clause
/* onecopy-collectives: times the collectives of the MPI below it, whichever that is. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "lab/harness/stats.h"
#include "mpi_cell.h"

/* Of first calls the longest of the chosen ways is run: it begins as the others do. */
static void run_first(struct bench *b, struct bench_cell cell)
{
	const struct bench_way *shorter = NULL, *longest = NULL;
	unsigned int longest_at = 0;

	for (cell.way = 0; cell.way < BENCH_WAYS; cell.way++) {
		const struct bench_way *way = &bench_ways[cell.way];

		if (!way->first || !b->options.ways[cell.way] ||
		    !bench_has_cell(&b->options.cells, cell))
			continue;
		shorter = longest;
		longest = way;
		longest_at = cell.way;
	}
	cell.way = longest_at;
	if (longest)
		run_cell(b, cell, shorter);
}

static void run_steady(struct bench *b, struct bench_cell cell)
{
	if (bench_has_cell(&b->options.cells, cell))
		run_cell(b, cell, NULL);
}

static void run_overlapped(struct bench *b, struct bench_cell cell)
{
	run_overlap(b, cell.collective, cell.bytes);
}

/* Each collective and size, in the way given. False: it failed. */
static bool run_sizes(struct bench *b, unsigned int way,
		      void (*run)(struct bench *b, struct bench_cell cell))
{
	const struct coll_options *o = &b->options;

	for (int c = 0; c < o->collectives.n; c++) {
		enum oc_collective collective = o->collectives.at[c];
		unsigned int sizes = collective == OC_BARRIER ? 1 : o->sizes.count;

		for (unsigned int i = 0; i < sizes; i++) {
			size_t bytes = collective == OC_BARRIER ? 0 : o->sizes.at[i];

			run(b, (struct bench_cell){ way, collective, bytes });
			if (shm_barrier_failed(&b->barrier))
				return false;
		}
	}
	return true;
}

/* On a communicator of its own: elsewhere it would be a program of its own, and what a communicator
 * has learned from other buffers is not to count. */
static bool run_way(struct bench *b, unsigned int way)
{
	bool right;

	if (bench_ways[way].first || !b->options.ways[way])
		return true;
	MPI_Comm_dup(MPI_COMM_WORLD, &b->comm);
	/* As benchmarks have one first; under MPICH onecopy serves nonblocking calls behind it. */
	MPI_Barrier(b->comm);
	right = run_sizes(b, way, run_steady);
	MPI_Comm_free(&b->comm);
	return right;
}

/* First calls come first, as nothing is to be before them. */
static int run_all(struct bench *b)
{
	bool right;

	b->comm = MPI_COMM_WORLD;
	right = run_sizes(b, 0, b->options.overlap ? run_overlapped : run_first);
	for (unsigned int way = 0; way < BENCH_WAYS && right && !b->options.overlap; way++)
		right = run_way(b, way);
	return right ? STATUS_OK : STATUS_FAILED;
}

/* A rank that waits long in our barrier drives its MPI all the same; see shm_barrier.h. */
static void drive_mpi(void)
{
	int flag;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* Each step doubles the number of those that a rank has heard of. */
static uint32_t meet_others(void *context, uint32_t word)
{
	const struct bench *b = context;
	int node;

	MPI_Comm_rank(b->leaders, &node);
	for (int step = 1; step < b->nodes; step *= 2) {
		int to = (node + step) % b->nodes, from = (node + b->nodes - step) % b->nodes;
		uint32_t theirs;

		MPI_Sendrecv(&word, 1, MPI_UINT32_T, to, 1, &theirs, 1, MPI_UINT32_T, from, 1,
			     b->leaders, MPI_STATUS_IGNORE);
		word |= theirs;
	}
	return word;
}

/* Give the ranks of each node the shared segment. The only use of MPI outside of what is measured,
 * but for meetings between nodes. */
static void join_segment(struct bench *b, MPI_Comm on_node)
{
	size_t samples = b->options.overlap ? overlap_samples() :
					      (size_t)coll_options_max_iterations(&b->options);
	char name[SHM_BARRIER_NAME_CHARS];
	int rank, ranks, err;

	MPI_Comm_rank(on_node, &rank);
	MPI_Comm_size(on_node, &ranks);
	if (!rank)
		shm_barrier_name(name);
	MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, b->nodes > 1 ? on_node : MPI_COMM_WORLD);
	err = shm_barrier_meet(&b->barrier, name, rank, ranks, samples);
	b->barrier.idle = drive_mpi;
	b->barrier.meet_others = b->nodes > 1 ? meet_others : NULL;
	b->barrier.context = b;
	b->barrier.tells = !b->rank;
	if (err)
		die(b,
		    "The barrier's shared memory could not be made or opened; is /dev/shm full, and do "
		    "all ranks see the same one?",
		    err);
}

/* How many nodes there are, on all ranks. */
static void count_nodes(struct bench *b, MPI_Comm on_node)
{
	int rank, here;

	MPI_Comm_size(on_node, &here);
	MPI_Comm_rank(on_node, &rank);
	b->nodes = 1;
	b->leaders = MPI_COMM_NULL;
	if (here == b->ranks)
		return;
	MPI_Comm_split(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : 0, 0, &b->leaders);
	if (!rank)
		MPI_Comm_size(b->leaders, &b->nodes);
	MPI_Bcast(&b->nodes, 1, MPI_INT, 0, on_node);
}

/* What can be asked only of a running MPI. Returns 0, or 2 after rank 0 said what is wrong. */
static int check_job(const struct bench *b)
{
	if (b->nodes == b->options.nodes)
		return STATUS_OK;
	if (b->rank == 0)
		fprintf(stderr,
			"onecopy-collectives: The ranks are on %d nodes, not on %ld: have the launcher "
			"put them there, or say --nodes %d.\n",
			b->nodes, b->options.nodes, b->nodes);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	static struct bench b;
	int length, status;
	MPI_Comm on_node;
	char *tab;

	/* First, so that --help and a wrong option need no MPI job. */
	coll_options_parse(argc, argv, &b.options);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.ranks);
	MPI_Get_library_version(version, &length);
	version[strcspn(version, "\n,")] = '\0';
	/* MPICH has a tab behind its name. */
	for (tab = version; (tab = strchr(tab, '\t')); *tab = ' ') {
	}
	if (b.rank == 0)
		printf("# %s\n", version);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_node);
	count_nodes(&b, on_node);
	status = check_job(&b);
	if (status == STATUS_OK) {
		join_segment(&b, on_node);
		MPI_Comm_free(&on_node);
		status = run_all(&b);
		shm_barrier_close(&b.barrier);
	}
	if (b.leaders != MPI_COMM_NULL)
		MPI_Comm_free(&b.leaders);
	MPI_Finalize();
	return status;
}
