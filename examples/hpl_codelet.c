// SPDX-License-Identifier: BSD-3-Clause
/*
 * The HPL codelet over an MPI: a panel is broadcast while small matrices are multiplied, and after
 * each product the program asks whether the panel is there (codelet.h, which says what is told).
 *
 * Matrices of 40 x 40 ask seldom (coarse), those of 4 x 4 often (fine). Three broadcasts take
 * turns: MPI_Bcast, beside which nothing is computed; a binary tree of MPI_Isend and MPI_Irecv that
 * goes on where the program asks, as in HPL; and MPI_Ibcast.
 *
 * Each panel is another one, and every rank verifies each. Times and verdicts travel by MPI_Send.
 */
#include "codelet.h"
#include "common.h"

#include <mpi.h>
#include <stdint.h>

#define BYTES_MOST ((uint64_t)1 << 30)

enum how { BCAST, TREE, IBCAST, HOWS };

static const char *const names[HOWS] = { "bcast", "tree", "ibcast" };

static struct {
	struct codelet_list bytes, matrices, ways;
	uint64_t rounds, gbit;
	const char *name;
	bool help;
} options = { .bytes = { 3, { 12500, 125000, 1250000 } },
	      .matrices = { 2, { 40, 4 } },
	      .ways = { HOWS, { BCAST, TREE, IBCAST } },
	      .rounds = 9,
	      .gbit = 1,
	      .name = "mpi" };

static struct {
	int rank, ranks;
	uint8_t *panel;
	size_t bytes;
	bool wrong;
} self;

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
			MPI_Isend(self.panel, (int)self.bytes, MPI_BYTE, child, 0, MPI_COMM_WORLD,
				  &tree->request[i]);
	}
	tree->received = true;
}

static void tree_start(struct tree *tree)
{
	*tree = (struct tree){ { MPI_REQUEST_NULL, MPI_REQUEST_NULL }, false };
	if (!self.rank)
		tree_send(tree);
	else
		MPI_Irecv(self.panel, (int)self.bytes, MPI_BYTE, (self.rank - 1) / 2, 0,
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

/* ---- beside products ------------------------------------------------------------------------- */

static struct {
	struct tree tree;
	MPI_Request request;
} under_way;

static void start(unsigned int how)
{
	if (how == TREE)
		tree_start(&under_way.tree);
	else
		MPI_Ibcast(self.panel, (int)self.bytes, MPI_BYTE, 0, MPI_COMM_WORLD,
			   &under_way.request);
}

static bool is_over(unsigned int how)
{
	int over;

	if (how == TREE)
		return tree_over(&under_way.tree);
	MPI_Test(&under_way.request, &over, MPI_STATUS_IGNORE);
	return over;
}

static struct told until_there(const struct codelet *codelet, unsigned int how, double rate)
{
	struct codelet_time begin = codelet_begin();
	unsigned long products = 0;

	if (how == BCAST) {
		MPI_Bcast(self.panel, (int)self.bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		return codelet_told(codelet, begin, 0, rate);
	}
	start(how);
	do {
		multiply(codelet->matrix);
		products++;
	} while (!is_over(how));
	return codelet_told(codelet, begin, products, rate);
}

static void with_work(unsigned int how, size_t n, unsigned long work)
{
	bool over = how == BCAST;

	if (over)
		MPI_Bcast(self.panel, (int)self.bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	else
		start(how);
	for (unsigned long i = 0; i < work; i++) {
		multiply(n);
		if (!over)
			over = is_over(how);
	}
	while (!over)
		over = is_over(how);
}

static void fill(unsigned int turn)
{
	for (size_t i = 0; i < self.bytes; i++)
		self.panel[i] = self.rank ? 0 : (uint8_t)mix(turn * 1000003ull + i);
}

static void check(unsigned int turn)
{
	for (size_t i = 0; i < self.bytes; i++) {
		if (self.panel[i] == (uint8_t)mix(turn * 1000003ull + i))
			continue;
		fprintf(stderr, "hpl_codelet: rank %d: byte %zu of a panel of %zu is wrong\n",
			self.rank, i, self.bytes);
		self.wrong = true;
		return;
	}
}

static double combine(double mine, bool sum)
{
	double one, all = mine;

	for (int rank = 1; !self.rank && rank < self.ranks; rank++) {
		MPI_Recv(&one, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		all = sum ? all + one : fmax(all, one);
	}
	if (self.rank) {
		MPI_Send(&mine, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
		MPI_Recv(&all, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	for (int rank = 1; !self.rank && rank < self.ranks; rank++)
		MPI_Send(&all, 1, MPI_DOUBLE, rank, 1, MPI_COMM_WORLD);
	return all;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int cell(size_t bytes, size_t n)
{
	struct codelet codelet = { .where = options.name,
				   .tree = "-",
				   .names = names,
				   .rank = (unsigned int)self.rank,
				   .size = (unsigned int)self.ranks,
				   .ways = HOWS,
				   .rounds = (unsigned int)options.rounds,
				   .bytes = bytes,
				   .matrix = n,
				   .gbit = (double)options.gbit,
				   .until_there = until_there,
				   .with_work = with_work,
				   .fill = fill,
				   .check = check,
				   .combine = combine };
	unsigned int wanted = 0;

	self.bytes = bytes;
	self.panel = malloc(bytes);
	if (!self.panel)
		return 1;
	for (size_t w = 0; w < options.ways.count; w++)
		wanted |= 1u << options.ways.value[w];
	codelet_run(&codelet, wanted);
	free(self.panel);
	return 0;
}

static const char usage[] =
	"usage: hpl_codelet [OPTION]...\n"
	"  --bytes N,...     of the panel; 12500,125000,1250000 unless given\n"
	"  --matrices N,...  that are multiplied; 40,4 unless given, 64 at most\n"
	"  --ways W,...      bcast, tree, ibcast; all unless given\n"
	"  --gbit N          the work of total_us is what fits a panel's time at N Gbit/s; 1 unless given\n"
	"  --rounds N        of each way and size; 9 unless given\n"
	"  --name WORD       first column of the rows; mpi unless given\n";

static bool numbers_between(const char *text, size_t most, struct codelet_list *list)
{
	bool fine = codelet_list(text, NULL, 0, list);

	for (size_t i = 0; fine && i < list->count; i++)
		fine = list->value[i] && list->value[i] <= most;
	return fine;
}

static bool take_bytes(const char *text)
{
	return numbers_between(text, BYTES_MOST, &options.bytes);
}

static bool take_matrices(const char *text)
{
	return numbers_between(text, CODELET_MATRIX_MOST, &options.matrices);
}

static bool take_ways(const char *text)
{
	return codelet_list(text, names, HOWS, &options.ways);
}

static bool take_name(const char *text)
{
	options.name = text;
	return true;
}

static const struct known_option known[] = {
	{ "bytes", .take = take_bytes },
	{ "matrices", .take = take_matrices },
	{ "ways", .take = take_ways },
	{ "gbit", .number = &options.gbit, .min = 1, .max = 1000 },
	{ "rounds", .number = &options.rounds, .min = 1, .max = CODELET_ROUNDS_MOST },
	{ "name", .take = take_name },
	{ "help", .flag = &options.help },
	{ 0 },
};

static bool all_right(void)
{
	bool right = combine(self.wrong, true) == 0;

	if (right && !self.rank)
		printf("verified: yes\n");
	return right;
}

int main(int argc, char **argv)
{
	bool parsed, right;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
	parsed = parse_options(argc, argv, !self.rank, known);
	if (!parsed || options.help) {
		if (!self.rank)
			fputs(usage, parsed ? stdout : stderr);
		MPI_Finalize();
		return parsed ? 0 : 2;
	}
	for (size_t m = 0; m < options.matrices.count; m++)
		for (size_t b = 0; b < options.bytes.count; b++)
			if (cell(options.bytes.value[b], options.matrices.value[m])) {
				fprintf(stderr, "hpl_codelet: no memory for %zu bytes\n",
					options.bytes.value[b]);
				MPI_Abort(MPI_COMM_WORLD, 1);
			}
	right = all_right();
	MPI_Finalize();
	return !right;
}
