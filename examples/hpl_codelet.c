// SPDX-License-Identifier: BSD-3-Clause
/*
 * The HPL codelet: a panel is broadcast while small matrices are multiplied, and after each product
 * the program asks whether the panel is there. A. Nomura and Y. Ishikawa, "Design of Kernel-level
 * Asynchronous Collective Communication", EuroMPI 2010, section 5; the code is our own.
 *
 * Matrices of 40 x 40 ask seldom (coarse), those of 4 x 4 often (fine). Three broadcasts take
 * turns: MPI_Ibcast; a binary tree of MPI_Isend and MPI_Irecv that goes on where the program asks,
 * as in HPL; and MPI_Bcast, beside which nothing is computed. Told are, of each size and as means
 * over the ranks, the time from the start of a broadcast to its end here, and what part of it was
 * lost to the products: all that those made in it would not have taken by themselves.
 *
 * Each panel is another one, and every rank verifies each. Times and verdicts travel by MPI_Send.
 */
#include <getopt.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define SIZES_MOST 16
#define BYTES_MOST ((uint64_t)1 << 30)

enum how { IBCAST, TREE, BCAST, HOWS };
enum { COARSE, FINE, GRAINS };

static const char *const names[HOWS] = { "ibcast", "tree", "bcast" };
static const int order[GRAINS] = { 40, 4 };

struct options {
	uint64_t bytes[SIZES_MOST], rounds;
	int sizes;
	bool json, help;
};

/* One line of the table, of a rank, then summed over all. */
struct told {
	double us, lost;
};

static struct {
	int rank, ranks;
	uint64_t *panel;
	size_t words; /* of the panel */
	double product_us[GRAINS];
	bool wrong;
} self;

/* ---- products -------------------------------------------------------------------------------- */

static double a[40 * 40], b[40 * 40], c[40 * 40];

static void multiply(int n)
{
	for (int i = 0; i < n; i++) {
		double *to = c + i * n;

		for (int k = 0; k < n; k++) {
			double by = a[i * n + k];

			for (int j = 0; j < n; j++)
				to[j] = 0.5 * to[j] + by * b[k * n + j];
		}
	}
}

/* What a product takes where nothing else goes on: in the fastest of many short batches. */
static void calibrate(void)
{
	for (int g = 0; g < GRAINS; g++) {
		self.product_us[g] = 1e9;
		for (int batch = 0; batch < 100; batch++) {
			double begin = MPI_Wtime(), now, us;
			long products = 0;

			do {
				for (int i = 0; i < 10; i++)
					multiply(order[g]);
				products += 10;
				now = MPI_Wtime();
			} while (now - begin < 3e-4);
			us = 1e6 * (now - begin) / (double)products;
			if (us < self.product_us[g])
				self.product_us[g] = us;
		}
	}
}

/* ---- broadcasts ------------------------------------------------------------------------------ */

struct tree {
	MPI_Request request[2];
	bool received;
};

static void tree_send(struct tree *tree)
{
	for (int i = 0; i < 2; i++) {
		int child = 2 * self.rank + 1 + i;

		if (child < self.ranks)
			MPI_Isend(self.panel, (int)self.words, MPI_UINT64_T, child, 0,
				  MPI_COMM_WORLD, &tree->request[i]);
	}
	tree->received = true;
}

static void tree_start(struct tree *tree)
{
	*tree = (struct tree){ { MPI_REQUEST_NULL, MPI_REQUEST_NULL }, false };
	if (!self.rank)
		tree_send(tree);
	else
		MPI_Irecv(self.panel, (int)self.words, MPI_UINT64_T, (self.rank - 1) / 2, 0,
			  MPI_COMM_WORLD, &tree->request[0]);
}

static bool tree_over(struct tree *tree)
{
	MPI_Status status[2];
	int over;

	MPI_Testall(2, tree->request, &over, status);
	if (!over || tree->received)
		return over;
	tree_send(tree);
	return false;
}

/* One broadcast with products of order[grain] beside it. */
static struct told run(enum how how, int grain)
{
	double begin = MPI_Wtime(), us;
	MPI_Request request;
	struct tree tree;
	long products = 0;
	int over = 0;

	if (how == BCAST) {
		MPI_Bcast(self.panel, (int)self.words, MPI_UINT64_T, 0, MPI_COMM_WORLD);
	} else if (how == TREE) {
		for (tree_start(&tree); !over; over = tree_over(&tree), products++)
			multiply(order[grain]);
	} else {
		MPI_Ibcast(self.panel, (int)self.words, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
		for (; !over; products++) {
			multiply(order[grain]);
			MPI_Test(&request, &over, MPI_STATUS_IGNORE);
		}
	}
	us = 1e6 * (MPI_Wtime() - begin);
	return (struct told){ us, 100 * (1 - (double)products * self.product_us[grain] / us) };
}

static uint64_t word_of(uint64_t turn, size_t i)
{
	return mix(turn * 1000003 + i);
}

static void fill(uint64_t turn)
{
	for (size_t i = 0; i < self.words; i++)
		self.panel[i] = self.rank ? 0 : word_of(turn, i);
}

static void verify(uint64_t turn, enum how how)
{
	for (size_t i = 0; i < self.words; i++) {
		if (self.panel[i] == word_of(turn, i))
			continue;
		fprintf(stderr, "hpl_codelet: rank %d: word %zu of a panel of %zu is wrong (%s)\n",
			self.rank, i, self.words, names[how]);
		self.wrong = true;
		return;
	}
}

/* ---- a size ---------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

static double median(double *values, uint64_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* The mean over the ranks, on rank 0. */
static struct told mean(struct told mine)
{
	struct told one, sum = mine;

	if (self.rank) {
		MPI_Send(&mine, 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
		return mine;
	}
	for (int rank = 1; rank < self.ranks; rank++) {
		MPI_Recv(&one, 2, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		sum.us += one.us;
		sum.lost += one.lost;
	}
	return (struct told){ sum.us / self.ranks, sum.lost / self.ranks };
}

static void print(const struct options *opt, uint64_t bytes, int grain, struct told told[HOWS])
{
	double ratio = told[IBCAST].us / told[TREE].us;

	if (opt->json)
		printf("{\"bytes\": %llu, \"order\": %d, \"ibcast_us\": %.3f, \"ibcast_lost\": "
		       "%.2f, \"tree_us\": %.3f, \"tree_lost\": %.2f, \"bcast_us\": %.3f}\n",
		       (unsigned long long)bytes, order[grain], told[IBCAST].us, told[IBCAST].lost,
		       told[TREE].us, told[TREE].lost, told[BCAST].us);
	else
		printf("%10llu B  %2d x %-2d  ibcast %9.1f us, lost %5.1f %%   tree %9.1f us, lost "
		       "%5.1f %%   bcast %9.1f us   ibcast/tree %.2f\n",
		       (unsigned long long)bytes, order[grain], order[grain], told[IBCAST].us,
		       told[IBCAST].lost, told[TREE].us, told[TREE].lost, told[BCAST].us, ratio);
}

static int measure(const struct options *opt, uint64_t bytes)
{
	double *us = malloc(2 * HOWS * opt->rounds * sizeof(*us)), *lost = us + HOWS * opt->rounds;
	static uint64_t turn;

	self.words = (bytes + 7) / 8;
	self.panel = malloc(self.words * 8);
	if (!us || !self.panel)
		return 1;
	for (int grain = 0; grain < GRAINS; grain++) {
		struct told told[HOWS];

		for (uint64_t n = 0; n < opt->rounds * HOWS; n++) {
			enum how how = (enum how)(n % HOWS);
			struct told one;

			fill(++turn);
			MPI_Barrier(MPI_COMM_WORLD);
			one = run(how, grain);
			us[how * opt->rounds + n / HOWS] = one.us;
			lost[how * opt->rounds + n / HOWS] = one.lost;
			verify(turn, how);
		}
		for (int how = 0; how < HOWS; how++)
			told[how] = mean(
				(struct told){ median(us + how * opt->rounds, opt->rounds),
					       median(lost + how * opt->rounds, opt->rounds) });
		if (!self.rank)
			print(opt, bytes, grain, told);
	}
	free(us);
	free(self.panel);
	return 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const char usage[] = "usage: hpl_codelet [--bytes N,N,...] [--rounds N] [--json]\n"
			    "  --bytes   of the panel; 12500,125000,1250000 unless given\n"
			    "  --rounds  of each broadcast and size; 101 unless given\n";

static bool parse(int argc, char **argv, struct options *opt)
{
	static const struct option known[] = { { "bytes", required_argument, NULL, 'b' },
					       { "rounds", required_argument, NULL, 'r' },
					       { "json", no_argument, NULL, 'j' },
					       { "help", no_argument, NULL, 'h' },
					       { NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'b':
			opt->sizes = 0;
			for (char *word = strtok(optarg, ","); word; word = strtok(NULL, ","))
				if (opt->sizes == SIZES_MOST ||
				    !parse_number("hpl_codelet: --bytes", word, 1, BYTES_MOST,
						  &opt->bytes[opt->sizes++]))
					return false;
			break;
		case 'r':
			if (!parse_number("hpl_codelet: --rounds", optarg, 1, 1000000,
					  &opt->rounds))
				return false;
			break;
		case 'j':
			opt->json = true;
			break;
		case 'h':
			opt->help = true;
			break;
		default:
			return false;
		}
	}
	return opt->sizes && optind == argc;
}

static bool all_right(void)
{
	int mine = !self.wrong, one, all = mine;

	if (self.rank) {
		MPI_Send(&mine, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
		return mine;
	}
	for (int rank = 1; rank < self.ranks; rank++) {
		MPI_Recv(&one, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		all &= one;
	}
	if (all)
		printf("verified: yes\n");
	return all;
}

int main(int argc, char **argv)
{
	struct options opt = { .bytes = { 12500, 125000, 1250000 }, .sizes = 3, .rounds = 101 };
	bool parsed, right;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
	opterr = !self.rank;
	parsed = parse(argc, argv, &opt);
	if (!parsed || opt.help) {
		if (!self.rank)
			fputs(usage, parsed ? stdout : stderr);
		MPI_Finalize();
		return parsed ? 0 : 2;
	}
	for (int i = 0; i < 40 * 40; i++) {
		a[i] = 1.0 / (1 + i);
		b[i] = 0.01 * (i % 7);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	calibrate();
	if (!self.rank && !opt.json)
		printf("a product: %.3f us coarse, %.4f us fine\n", self.product_us[COARSE],
		       self.product_us[FINE]);
	for (int i = 0; i < opt.sizes; i++) {
		if (measure(&opt, opt.bytes[i])) {
			fprintf(stderr, "hpl_codelet: no memory for %llu bytes\n",
				(unsigned long long)opt.bytes[i]);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	right = all_right();
	MPI_Finalize();
	return !right;
}
