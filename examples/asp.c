// SPDX-License-Identifier: BSD-3-Clause
/*
 * ASP: all-pairs shortest paths by a parallel Floyd-Warshall.
 *
 * The distance matrix is distributed by blocks of rows. In iteration k the owner of row k
 * broadcasts it and every rank relaxes its own rows through vertex k, so a run on N vertices makes
 * N calls of MPI_Bcast with 4 * N bytes each. The application is the one used to judge kernel
 * assisted collectives in "Kernel Assisted Collective Intra-node MPI Communication Among Multi-Core
 * and Many-Core CPUs", section VI-E; the code is our own.
 *
 * What a rank of a larger machine has to do between two calls can be had on few ranks: with --rows
 * the matrix has fewer rows, those of vertices that are spread evenly, and paths go by these only;
 * with --calls only some of the rows are broadcast, and paths go by those.
 *
 * The graph is a pure function of (seed, from, to). So each rank makes its own rows, and the result
 * is verified against Dijkstra, which shares nothing with the parallel part but that function.
 * Verdicts, times and checksums travel by MPI_Send: a broken collective cannot vouch for itself.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define UNREACHABLE (1 << 29) /* twice this still fits an int */
#define MAX_WEIGHT 1000
#define OUT_DEGREE 24 /* expected edges per vertex */
#define MAX_SIZE 65536
#define VERIFY_ALL_UP_TO 512 /* vertices; above, SAMPLED_ROWS of each rank are verified */
#define SAMPLED_ROWS 8

/* The widest vectors this machine has, without asking the user for -march. Sanitizers instrument
 * the resolver that clones need before they are initialised, so they get the plain function.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__clang__)
#define WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef WIDE_VECTORS
#define WIDE_VECTORS
#endif

struct graph {
	size_t size;  /* vertices */
	size_t rows;  /* of the matrix */
	size_t calls; /* rows that are broadcast: vertices that paths go by */
	uint64_t seed;
	uint64_t edge_below; /* a pair has an edge when the upper half of its hash is below this */
};

struct options {
	uint64_t size, rows, calls; /* 0: all */
	uint64_t graphs, seed;
	bool json;
	bool help;
};

struct report {
	double total_s;
	double bcast_s;
	uint64_t checksum;
	uint64_t rows_checked;
	uint64_t rows_wrong;
};

static void graph_init(struct graph *g, const struct options *opt, uint64_t seed)
{
	g->size = opt->size;
	g->rows = opt->rows;
	g->calls = opt->calls;
	g->seed = mix(seed + 0x9e3779b97f4a7c15ULL);
	/* As many edges lead to vertices that paths go by, however few these are. */
	g->edge_below = g->calls <= OUT_DEGREE ? (1ULL << 32) / 2 :
						 (OUT_DEGREE * (1ULL << 32)) / g->calls;
}

/* The vertex whose distances a row holds. */
static size_t vertex_of(const struct graph *g, size_t row)
{
	return row * g->size / g->rows;
}

/* The row that is broadcast by a call. */
static size_t row_of_call(const struct graph *g, size_t call)
{
	return call * g->rows / g->calls;
}

/* Weights of all edges that leave a vertex, UNREACHABLE where there is none, 0 to itself. */
static void graph_row(const struct graph *g, size_t from, int *weights)
{
	for (size_t to = 0; to < g->size; to++) {
		uint64_t h = mix(g->seed ^ (from * g->size + to + 1) * 0x9e3779b97f4a7c15ULL);

		weights[to] = (h >> 32) < g->edge_below ? (int)(h % MAX_WEIGHT) + 1 : UNREACHABLE;
	}
	weights[from] = 0;
}

/* First row of a rank's block; rank == ranks gives the number of rows. */
static size_t first_row(size_t rows, int ranks, int rank)
{
	return rows * (size_t)rank / (size_t)ranks;
}

/* Paths that go by vertex k: head is the distance to k, via the distances from k. */
WIDE_VECTORS
static void relax(int *restrict to, const int *restrict via, int head, size_t size)
{
	for (size_t j = 0; j < size; j++) {
		int by_k = head + via[j];

		to[j] = by_k < to[j] ? by_k : to[j];
	}
}

/* Returns the seconds this rank spent in MPI_Bcast, waiting for the owner included. */
static double floyd_warshall(const struct graph *g, int rank, int ranks, int *rows, int *scratch)
{
	size_t first = first_row(g->rows, ranks, rank);
	size_t count = first_row(g->rows, ranks, rank + 1) - first;
	double in_bcast = 0.0;
	int owner = 0;

	for (size_t call = 0; call < g->calls; call++) {
		size_t r = row_of_call(g, call), k = vertex_of(g, r);

		while (r >= first_row(g->rows, ranks, owner + 1))
			owner++;

		/* Row k cannot change in iteration k (its head is 0): sent from where it is. */
		int *row_k = owner == rank ? rows + (r - first) * g->size : scratch;
		double start = MPI_Wtime();

		MPI_Bcast(row_k, (int)g->size, MPI_INT, owner, MPI_COMM_WORLD);
		in_bcast += MPI_Wtime() - start;

		for (size_t i = 0; i < count; i++)
			if (first + i != r)
				relax(rows + i * g->size, row_k, rows[i * g->size + k], g->size);
	}
	return in_bcast;
}

/* Dijkstra without a heap: quadratic, and as different from the code above as can be. */
static void dijkstra(const struct graph *g, size_t source, int *distance, int *weights,
		     unsigned char *settled)
{
	for (size_t v = 0; v < g->size; v++)
		distance[v] = UNREACHABLE;
	/* What paths do not go by is never a step of one. */
	memset(settled, 1, g->size);
	for (size_t call = 0; call < g->calls; call++)
		settled[vertex_of(g, row_of_call(g, call))] = 0;
	settled[source] = 0;
	distance[source] = 0;

	for (;;) {
		size_t next = g->size;

		for (size_t v = 0; v < g->size; v++)
			if (!settled[v] && distance[v] < UNREACHABLE &&
			    (next == g->size || distance[v] < distance[next]))
				next = v;
		if (next == g->size)
			return;

		settled[next] = 1;
		graph_row(g, next, weights);
		for (size_t v = 0; v < g->size; v++)
			if (weights[v] < UNREACHABLE && distance[next] + weights[v] < distance[v])
				distance[v] = distance[next] + weights[v];
	}
}

/* Compares whole rows: all of them for small graphs, else ones spread over the block, both ends
 * included.
 */
static void verify(const struct graph *g, size_t first, size_t count, size_t sampled,
		   const int *rows, int *expect, int *weights, unsigned char *settled,
		   struct report *report)
{
	size_t checks = count;

	if (g->size > VERIFY_ALL_UP_TO && count > sampled)
		checks = sampled;

	for (size_t c = 0; c < checks; c++) {
		/* One alone is another one in each graph. */
		size_t i = checks > 1 ? c * (count - 1) / (checks - 1) : g->seed % count;
		const int *row = rows + i * g->size;

		dijkstra(g, vertex_of(g, first + i), expect, weights, settled);
		report->rows_checked++;
		if (memcmp(row, expect, g->size * sizeof(*row)) == 0)
			continue;

		size_t to = 0;

		while (row[to] == expect[to])
			to++;
		if (report->rows_wrong++ == 0)
			fprintf(stderr, "asp: distance %zu -> %zu is %d; Dijkstra says %d\n",
				vertex_of(g, first + i), to, row[to], expect[to]);
	}
}

/* A sum of mixed (position, distance): one number for the whole matrix, whatever the split. */
static uint64_t checksum(size_t size, size_t first, size_t count, const int *rows)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count * size; i++)
		sum += mix((first * size + i + 1) * 0x9e3779b97f4a7c15ULL + (uint64_t)rows[i]);
	return sum;
}

static void print_report(const struct options *opt, int ranks, const struct report *reports)
{
	double total_s = 0.0, max_s = 0.0, min_s = reports[0].bcast_s, mean_s = 0.0;
	uint64_t sum = 0, checked = 0, wrong = 0, calls = opt->calls * opt->graphs;

	for (int r = 0; r < ranks; r++) {
		const struct report *one = &reports[r];

		total_s = one->total_s > total_s ? one->total_s : total_s;
		max_s = one->bcast_s > max_s ? one->bcast_s : max_s;
		min_s = one->bcast_s < min_s ? one->bcast_s : min_s;
		mean_s += one->bcast_s / ranks;
		sum += one->checksum;
		checked += one->rows_checked;
		wrong += one->rows_wrong;
	}
	if (opt->json) {
		printf("{\"program\":\"asp\",\"size\":%llu,\"rows\":%llu,\"graphs\":%llu,"
		       "\"seed\":%llu,\"ranks\":%d,\"total_s\":%.9f,\"mpi_s\":%.9f,"
		       "\"bcast_calls\":%llu,\"bcast_bytes\":%llu,"
		       "\"bcast_s_max\":%.9f,\"bcast_s_min\":%.9f,"
		       "\"checksum\":\"%016llx\",\"rows_checked\":%llu,\"rows_wrong\":%llu,"
		       "\"verified\":%s}\n",
		       (unsigned long long)opt->size, (unsigned long long)opt->rows,
		       (unsigned long long)opt->graphs, (unsigned long long)opt->seed, ranks,
		       total_s, mean_s, (unsigned long long)calls,
		       (unsigned long long)(opt->size * sizeof(int)), max_s, min_s,
		       (unsigned long long)sum, (unsigned long long)checked,
		       (unsigned long long)wrong, wrong ? "false" : "true");
		return;
	}
	printf("asp: all-pairs shortest paths, %llu vertices, seed %llu, %d ranks\n",
	       (unsigned long long)opt->size, (unsigned long long)opt->seed, ranks);
	printf("total time       %10.4f s\n", total_s);
	printf("in MPI_Bcast     %10.4f s on the slowest rank, %.4f s on the fastest, "
	       "%.4f s on average\n",
	       max_s, min_s, mean_s);
	printf("                 %llu calls of %llu bytes, %.1f %% of the time\n",
	       (unsigned long long)calls, (unsigned long long)(opt->size * sizeof(int)),
	       total_s > 0.0 ? 100.0 * mean_s / total_s : 0.0);
	printf("checksum         %016llx\n", (unsigned long long)sum);
	if (wrong)
		printf("verified: NO, %llu of %llu rows differ from Dijkstra on the same graph\n",
		       (unsigned long long)wrong, (unsigned long long)checked);
	else
		printf("verified: yes, %llu whole rows of %llu agree with Dijkstra on the same "
		       "graph\n",
		       (unsigned long long)checked, (unsigned long long)(opt->rows * opt->graphs));
}

/* Collects every rank's report at rank 0, which prints. Returns how many of our rows are wrong, at
 * rank 0 of all ranks.
 */
static uint64_t gather_and_print(const struct options *opt, int rank, int ranks,
				 const struct report *mine)
{
	uint64_t wrong = mine->rows_wrong;

	if (rank != 0) {
		MPI_Send(mine, sizeof(*mine), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		return wrong;
	}

	struct report *all = calloc((size_t)ranks, sizeof(*all));

	if (!all) {
		fprintf(stderr, "asp: no memory for the reports of %d ranks\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	all[0] = *mine;
	for (int r = 1; r < ranks; r++) {
		MPI_Recv(&all[r], sizeof(all[r]), MPI_BYTE, r, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		wrong += all[r].rows_wrong;
	}
	print_report(opt, ranks, all);
	free(all);
	return wrong;
}

/* One graph: its distances, which take the time that counts, and whether they are right. */
static void solve(const struct options *opt, const struct graph *g, int rank, int ranks, int *rows,
		  int *row_k, int *expect, unsigned char *settled, struct report *report)
{
	size_t first = first_row(g->rows, ranks, rank);
	size_t count = first_row(g->rows, ranks, rank + 1) - first;

	for (size_t i = 0; i < count; i++)
		graph_row(g, vertex_of(g, first + i), rows + i * g->size);

	MPI_Barrier(MPI_COMM_WORLD);

	double start = MPI_Wtime();

	report->bcast_s += floyd_warshall(g, rank, ranks, rows, row_k);
	report->total_s += MPI_Wtime() - start;

	report->checksum += checksum(g->size, first, count, rows);
	verify(g, first, count, opt->graphs > 1 ? 1 : SAMPLED_ROWS, rows, expect, row_k, settled,
	       report);
}

static int run(const struct options *opt, int rank, int ranks)
{
	size_t size = opt->size;
	size_t count = first_row(opt->rows, ranks, rank + 1) - first_row(opt->rows, ranks, rank);
	struct report report = { 0 };
	int *rows = malloc((count ? count : 1) * size * sizeof(*rows));
	int *row_k = malloc(size * sizeof(*row_k));
	int *expect = malloc(size * sizeof(*expect));
	unsigned char *settled = malloc(size);
	uint64_t wrong = 1;

	if (!rows || !row_k || !expect || !settled) {
		fprintf(stderr,
			"asp: rank %d: no memory for %zu rows of %zu; try a smaller --size\n", rank,
			count, size);
		MPI_Abort(MPI_COMM_WORLD, 1);
		goto out;
	}
	for (uint64_t n = 0; n < opt->graphs; n++) {
		struct graph graph;

		graph_init(&graph, opt, opt->seed + n);
		solve(opt, &graph, rank, ranks, rows, row_k, expect, settled, &report);
	}
	wrong = gather_and_print(opt, rank, ranks, &report);
out:
	free(settled);
	free(expect);
	free(row_k);
	free(rows);
	return wrong ? 1 : 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: mpirun -n RANKS asp [--size N] [--rows N] [--calls N] [--graphs N]\n"
		"                           [--seed S] [--json]\n"
		"All-pairs shortest paths of a random directed graph by Floyd-Warshall; the\n"
		"result is verified. Exit status 1 if it is wrong, 2 for a bad option.\n"
		"  --size N    vertices, 1 to 65536 (default 2048)\n"
		"  --rows N    rows of the matrix, of vertices spread evenly; paths go by these\n"
		"              only (default: all)\n"
		"  --calls N   rows that are broadcast, spread evenly; paths go by these only\n"
		"              (default: all)\n"
		"  --graphs N  so many graphs, one after the other, 1 to 10000 (default 1)\n"
		"  --seed S    the first graph's seed (default 1)\n"
		"  --json      one line of JSON instead of text\n");
}

static bool parse(int argc, char **argv, bool talk, struct options *opt)
{
	const struct known_option known[] = {
		{ "size", .number = &opt->size, .min = 1, .max = MAX_SIZE },
		{ "rows", .number = &opt->rows, .min = 1, .max = MAX_SIZE },
		{ "calls", .number = &opt->calls, .min = 1, .max = MAX_SIZE },
		{ "graphs", .number = &opt->graphs, .min = 1, .max = 10000 },
		{ "seed", .number = &opt->seed, .max = UINT32_MAX },
		{ "json", .flag = &opt->json },
		{ "help", .flag = &opt->help },
		{ 0 },
	};
	bool right = parse_options(argc, argv, talk, known);

	opt->rows = opt->rows ? opt->rows : opt->size;
	opt->calls = opt->calls ? opt->calls : opt->rows;
	if (right && (opt->rows > opt->size || opt->calls > opt->rows)) {
		if (talk)
			fprintf(stderr, "asp: --rows are at most --size, --calls at most --rows\n");
		right = false;
	}
	return right;
}

int main(int argc, char **argv)
{
	struct options opt = { .size = 2048, .graphs = 1, .seed = 1 };
	int rank, ranks, status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	if (!parse(argc, argv, rank == 0, &opt)) {
		if (rank == 0)
			usage(stderr);
		status = 2;
	} else if (opt.help) {
		if (rank == 0)
			usage(stdout);
		status = 0;
	} else {
		status = run(&opt, rank, ranks);
	}
	MPI_Finalize();
	return status;
}
