// SPDX-License-Identifier: BSD-3-Clause
/*
 * CG: Poisson's equation by pipelined conjugate gradients.
 *
 * The square grid is cut into blocks, one a rank (a Cartesian communicator). An iteration needs one
 * sum of two numbers over all ranks, and the rows and columns at the blocks' edges (a column is a
 * derived type). Both are persistent requests, a collective one beside those of point-to-point
 * messages, started and waited for in one array while the inner points are computed; that the sum
 * may take as long as the multiplication is what the pipelined form is for (P. Ghysels and W.
 * Vanroose, "Hiding global synchronization latency in the preconditioned Conjugate Gradient
 * algorithm", 2014; the code is our own). With --nonblocking the sum is an MPI_Iallreduce instead.
 *
 * Right-hand sides are made from known solutions, which are functions of (solve, row, column): so
 * every rank verifies its own points. Verdicts and times travel by MPI_Send: a broken collective
 * cannot vouch for itself.
 */
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#include "common.h"

/* Persistent collectives: MPI 4's, which Open MPI 5 has, too, or an extension of Open MPI 4. */
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define ALLREDUCE_INIT MPI_Allreduce_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define ALLREDUCE_INIT MPIX_Allreduce_init
#endif

#define MAX_SIZE 8192
#define MAX_SOLVES 100000
/* Of the residual's norm; the solution is then right to about this times the condition. */
#define TOLERANCE 1e-11
#define LARGEST_ERROR 1e-6

enum { WEST, EAST, NORTH, SOUTH, SIDES };
enum { SUM = 2 * SIDES, REQUESTS }; /* behind the messages: sends, then receives */

struct options {
	int size, solves;
	bool nonblocking, json, help;
};

/* This rank's block, and its vectors: each rows * stride doubles with a frame of one around. */
struct block {
	MPI_Comm comm;
	MPI_Datatype column;
	int size;	       /* of the whole grid */
	int row, column_first; /* of the block's first point in the grid */
	int rows, columns;
	size_t stride;
	double *x, *r, *w, *p, *s, *z, *q;
	int neighbour[SIDES];
	MPI_Request request[REQUESTS];
	double mine[2], sum[2];
	bool persistent;
};

struct report {
	double total_s, wait_s, worst_error;
	int iterations, wrong;
};

/* What every rank is told by rank 0: a derived type of its own. */
static void share_options(struct options *opt)
{
	int lengths[2] = { 2, 3 };
	MPI_Aint places[2] = { offsetof(struct options, size),
			       offsetof(struct options, nonblocking) };
	MPI_Datatype types[2] = { MPI_INT, MPI_C_BOOL }, type;

	MPI_Type_create_struct(2, lengths, places, types, &type);
	MPI_Type_commit(&type);
	MPI_Bcast(opt, 1, type, 0, MPI_COMM_WORLD);
	MPI_Type_free(&type);
}

static double *at(const struct block *b, double *vector, int row, int column)
{
	return vector + (size_t)(row + 1) * b->stride + (size_t)(column + 1);
}

/* A number from -1 to 1. */
static double exact(const struct block *b, int solve, int row, int column)
{
	uint64_t x = ((uint64_t)solve * MAX_SIZE + (uint64_t)(b->row + row)) * MAX_SIZE +
		     (uint64_t)(b->column_first + column) + 1;

	if (b->row + row < 0 || b->row + row >= b->size || b->column_first + column < 0 ||
	    b->column_first + column >= b->size)
		return 0.0; /* outside of the grid */
	return (double)(int64_t)mix(x * 0x9e3779b97f4a7c15ULL) / 9223372036854775808.0;
}

/* Messages between neighbours are the same in each iteration: w's edges, and the sum. */
static void make_requests(struct block *b)
{
	double *edge[SIDES] = { at(b, b->w, 0, 0), at(b, b->w, 0, b->columns - 1),
				at(b, b->w, 0, 0), at(b, b->w, b->rows - 1, 0) };
	double *frame[SIDES] = { at(b, b->w, 0, -1), at(b, b->w, 0, b->columns), at(b, b->w, -1, 0),
				 at(b, b->w, b->rows, 0) };

	for (int side = 0; side < SIDES; side++) {
		bool vertical = side == WEST || side == EAST;
		MPI_Datatype type = vertical ? b->column : MPI_DOUBLE;
		int count = vertical ? 1 : b->columns, to = b->neighbour[side];

		/* The tag is the side as the sender has it: what goes west comes from the east. */
		MPI_Send_init(edge[side], count, type, to, side, b->comm, &b->request[side]);
		MPI_Recv_init(frame[side], count, type, to, side ^ 1, b->comm,
			      &b->request[SIDES + side]);
	}
	b->request[SUM] = MPI_REQUEST_NULL;
#ifdef ALLREDUCE_INIT
	if (b->persistent)
		ALLREDUCE_INIT(b->mine, b->sum, 2, MPI_DOUBLE, MPI_SUM, b->comm, MPI_INFO_NULL,
			       &b->request[SUM]);
#else
	b->persistent = false;
#endif
}

/* A vector of zeros. */
static double *vector_of(const struct block *b)
{
	return calloc((size_t)(b->rows + 2) * b->stride, sizeof(double));
}

static bool block_create(struct block *b, const struct options *opt, int ranks)
{
	int dims[2] = { 0, 0 }, periods[2] = { 0, 0 }, place[2], rank;

	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &b->comm);
	MPI_Comm_rank(b->comm, &rank);
	MPI_Cart_coords(b->comm, rank, 2, place);
	MPI_Cart_shift(b->comm, 0, 1, &b->neighbour[NORTH], &b->neighbour[SOUTH]);
	MPI_Cart_shift(b->comm, 1, 1, &b->neighbour[WEST], &b->neighbour[EAST]);
	b->size = opt->size;
	b->row = opt->size * place[0] / dims[0];
	b->rows = opt->size * (place[0] + 1) / dims[0] - b->row;
	b->column_first = opt->size * place[1] / dims[1];
	b->columns = opt->size * (place[1] + 1) / dims[1] - b->column_first;
	b->stride = (size_t)b->columns + 2;
	MPI_Type_vector(b->rows, 1, (int)b->stride, MPI_DOUBLE, &b->column);
	MPI_Type_commit(&b->column);

	double **vectors[] = { &b->x, &b->r, &b->w, &b->p, &b->s, &b->z, &b->q };

	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		*vectors[v] = vector_of(b);
		if (!*vectors[v])
			return false;
	}
	b->persistent = !opt->nonblocking;
	make_requests(b);
	return true;
}

static void block_destroy(struct block *b)
{
	for (int i = 0; i < REQUESTS; i++)
		if (b->request[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&b->request[i]);
	MPI_Type_free(&b->column);
	MPI_Comm_free(&b->comm);
	free(b->x);
	free(b->r);
	free(b->w);
	free(b->p);
	free(b->s);
	free(b->z);
	free(b->q);
}

/* q = A w at the points of rows [from, to) and columns [left, right). */
static void multiply(struct block *b, int from, int to, int left, int right)
{
	for (int i = from; i < to; i++) {
		const double *w = at(b, b->w, i, 0);
		double *q = at(b, b->q, i, 0);

		for (int j = left; j < right; j++)
			q[j] = 4.0 * w[j] - w[j - 1] - w[j + 1] - w[j - (int)b->stride] -
			       w[j + (int)b->stride];
	}
}

/* Those that need a neighbour's points. */
static void multiply_edges(struct block *b)
{
	int last_row = b->rows > 1 ? b->rows - 1 : 1;
	int last_column = b->columns > 1 ? b->columns - 1 : 1;

	multiply(b, 0, 1, 0, b->columns);
	multiply(b, last_row, b->rows, 0, b->columns);
	multiply(b, 1, last_row, 0, 1);
	multiply(b, 1, last_row, last_column, b->columns);
}

/* q = A w with the neighbours' edges, and sum = what the ranks' `mine` add up to, at once. */
static void exchange_and_multiply(struct block *b, double *wait_s)
{
	MPI_Status statuses[REQUESTS];
	double start = MPI_Wtime();

	if (!b->persistent)
		MPI_Iallreduce(b->mine, b->sum, 2, MPI_DOUBLE, MPI_SUM, b->comm, &b->request[SUM]);
	MPI_Startall(b->persistent ? REQUESTS : SUM, b->request);
	*wait_s += MPI_Wtime() - start;
	multiply(b, 1, b->rows - 1, 1, b->columns - 1);
	start = MPI_Wtime();
	MPI_Waitall(REQUESTS, b->request, statuses);
	*wait_s += MPI_Wtime() - start;
	multiply_edges(b);
}

static void dot_products(struct block *b)
{
	double rr = 0.0, wr = 0.0;

	for (int i = 0; i < b->rows; i++) {
		const double *r = at(b, b->r, i, 0), *w = at(b, b->w, i, 0);

		for (int j = 0; j < b->columns; j++) {
			rr += r[j] * r[j];
			wr += w[j] * r[j];
		}
	}
	b->mine[0] = rr;
	b->mine[1] = wr;
}

static void update(struct block *b, double alpha, double beta)
{
	for (int i = 0; i < b->rows; i++) {
		double *x = at(b, b->x, i, 0), *r = at(b, b->r, i, 0), *w = at(b, b->w, i, 0);
		double *p = at(b, b->p, i, 0), *s = at(b, b->s, i, 0), *z = at(b, b->z, i, 0);
		const double *q = at(b, b->q, i, 0);

		for (int j = 0; j < b->columns; j++) {
			z[j] = q[j] + beta * z[j];
			s[j] = w[j] + beta * s[j];
			p[j] = r[j] + beta * p[j];
			x[j] += alpha * p[j];
			r[j] -= alpha * s[j];
			w[j] -= alpha * z[j];
		}
	}
}

/* x = 0, r = the right-hand side of this solve's solution, w = A r. */
static void begin(struct block *b, int solve, double *wait_s)
{
	size_t bytes = (size_t)(b->rows + 2) * b->stride * sizeof(double);

	double *const zeroed[] = { b->x, b->p, b->s, b->z };

	for (size_t v = 0; v < sizeof(zeroed) / sizeof(zeroed[0]); v++)
		memset(zeroed[v], 0, bytes);
	for (int i = 0; i < b->rows; i++) {
		double *r = at(b, b->r, i, 0);

		for (int j = 0; j < b->columns; j++)
			r[j] = 4.0 * exact(b, solve, i, j) - exact(b, solve, i, j - 1) -
			       exact(b, solve, i, j + 1) - exact(b, solve, i - 1, j) -
			       exact(b, solve, i + 1, j);
	}
	memcpy(b->w, b->r, bytes);
	b->mine[0] = b->mine[1] = 0.0;
	exchange_and_multiply(b, wait_s);
	for (int i = 0; i < b->rows; i++)
		memcpy(at(b, b->w, i, 0), at(b, b->q, i, 0), (size_t)b->columns * sizeof(double));
}

static void solve(struct block *b, int number, struct report *report)
{
	double alpha = 0.0, before = 0.0, enough = 0.0;
	int most = 20 * b->size + 100;

	begin(b, number, &report->wait_s);
	for (int i = 0; i < most; i++) {
		double beta = 0.0;

		dot_products(b);
		exchange_and_multiply(b, &report->wait_s);
		if (i == 0)
			enough = TOLERANCE * TOLERANCE * b->sum[0];
		if (b->sum[0] <= enough)
			return;
		if (i == 0) {
			alpha = b->sum[0] / b->sum[1];
		} else {
			beta = b->sum[0] / before;
			alpha = b->sum[0] / (b->sum[1] - beta * b->sum[0] / alpha);
		}
		before = b->sum[0];
		update(b, alpha, beta);
		report->iterations++;
	}
}

/* Each point against the solution that the right-hand side was made from. */
static void verify(struct block *b, int number, struct report *report)
{
	double worst = 0.0;

	for (int i = 0; i < b->rows; i++)
		for (int j = 0; j < b->columns; j++) {
			double error = fabs(*at(b, b->x, i, j) - exact(b, number, i, j));

			/* A NaN is no smaller than anything. */
			if (!(error <= worst))
				worst = error;
		}
	if (!(worst <= LARGEST_ERROR) && report->wrong++ == 0)
		fprintf(stderr, "cg: solve %d: a point is wrong by %g\n", number, worst);
	if (!(worst <= report->worst_error))
		report->worst_error = worst;
}

static void print_report(const struct options *opt, bool persistent, int ranks,
			 const struct report *all)
{
	const char *form = persistent ? "persistent" : "nonblocking";

	if (opt->json) {
		printf("{\"program\":\"cg\",\"size\":%d,\"solves\":%d,\"ranks\":%d,\"reduce\":\"%s\","
		       "\"total_s\":%.9f,\"mpi_s\":%.9f,\"iterations\":%d,"
		       "\"worst_error\":%.3g,\"verified\":%s}\n",
		       opt->size, opt->solves, ranks, form, all->total_s, all->wait_s,
		       all->iterations, all->worst_error, all->wrong ? "false" : "true");
		return;
	}
	printf("cg: Poisson's equation, %d x %d points, %d solves, %d ranks, %s sums\n", opt->size,
	       opt->size, opt->solves, ranks, form);
	printf("total time       %10.4f s, %d iterations\n", all->total_s, all->iterations);
	printf("in MPI           %10.4f s on average of the ranks\n", all->wait_s);
	if (all->wrong)
		printf("verified: NO, in %d solves of a rank a point is wrong by more than %g\n",
		       all->wrong, LARGEST_ERROR);
	else
		printf("verified: yes, every point of every solve is right to %.1e\n",
		       all->worst_error);
}

/* Rank 0 prints for all. Returns how many of our solves were wrong, at rank 0 of all ranks'. */
static int gather_and_print(const struct options *opt, bool persistent, int rank, int ranks,
			    struct report *mine)
{
	if (rank != 0) {
		MPI_Send(mine, sizeof(*mine), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		return mine->wrong;
	}
	for (int r = 1; r < ranks; r++) {
		struct report one;

		MPI_Recv(&one, sizeof(one), MPI_BYTE, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mine->total_s = fmax(mine->total_s, one.total_s);
		mine->wait_s += one.wait_s;
		mine->worst_error = fmax(mine->worst_error, one.worst_error);
		mine->wrong += one.wrong;
	}
	mine->wait_s /= ranks;
	print_report(opt, persistent, ranks, mine);
	return mine->wrong;
}

static int run(const struct options *opt, int rank, int ranks)
{
	struct report report = { 0 };
	struct block b = { 0 };
	int wrong;

	if (!block_create(&b, opt, ranks)) {
		fprintf(stderr, "cg: rank %d: no memory; try a smaller --size\n", rank);
		MPI_Abort(MPI_COMM_WORLD, 1);
		return 1;
	}
	MPI_Barrier(b.comm);
	for (int number = 0; number < opt->solves; number++) {
		double start = MPI_Wtime();

		solve(&b, number, &report);
		report.total_s += MPI_Wtime() - start;
		verify(&b, number, &report);
	}
	wrong = gather_and_print(opt, b.persistent, rank, ranks, &report);
	block_destroy(&b);
	return wrong ? 1 : 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: mpirun -n RANKS cg [--size N] [--solves N] [--nonblocking] [--json]\n"
		"Poisson's equation on a square by pipelined conjugate gradients; the result is\n"
		"verified. Exit status 1 if it is wrong, 2 for a bad option.\n"
		"  --size N       points along a side, 1 to 8192 (default 128)\n"
		"  --solves N     how many right-hand sides, one after the other (default 100)\n"
		"  --nonblocking  sums by MPI_Iallreduce, not by a persistent request\n"
		"  --json         one line of JSON instead of text\n");
}

static bool parse(int argc, char **argv, struct options *opt)
{
	uint64_t size = (uint64_t)opt->size, solves = (uint64_t)opt->solves;
	const struct known_option known[] = {
		{ "size", .number = &size, .min = 1, .max = MAX_SIZE },
		{ "solves", .number = &solves, .min = 1, .max = MAX_SOLVES },
		{ "nonblocking", .flag = &opt->nonblocking },
		{ "json", .flag = &opt->json },
		{ "help", .flag = &opt->help },
		{ 0 },
	};
	bool right = parse_options(argc, argv, true, known);

	opt->size = (int)size;
	opt->solves = (int)solves;
	return right;
}

int main(int argc, char **argv)
{
	struct options opt = { .size = 128, .solves = 100 };
	int rank, ranks, status;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);

	if (rank == 0 && !parse(argc, argv, &opt))
		opt.size = 0; /* which tells the others */
	share_options(&opt);
	if (opt.size == 0) {
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
