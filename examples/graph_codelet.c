// SPDX-License-Identifier: BSD-3-Clause
/*
 * The benchmark of KACC's paper, the HPL codelet: a panel is broadcast while small matrices are
 *multiplied, and after each multiplication it is asked whether the panel is there. Over graphs
 *(oc_graph(3)), without an MPI, by each executor in turns, and by the blocking tree: the same graph
 *by the caller, waited for before anything is computed.
 *
 *	graph_codelet [OPTION...]                             ranks forked here, over socketpairs
 *	graph_codelet [OPTION...] RANK ADDRESS:PORT...        one rank of several hosts, over TCP
 *
 *	--ranks N            forked ranks (2)
 *	--bytes N,...        of the panel (12500,125000,1250000)
 *	--segments N,...     of a segment (65536; 0: the panel in one)
 *	--trees T,...        chain, binary, binomial (chain,binary)
 *	--matrices N,...     (40,4)
 *	--rounds N           of all of these (9)
 *	--name WORD          first column of the rows (node)
 *
 * Rows of rank 0: where, ranks, tree, bytes, segment, matrix, executor,
 *   us         until all ranks have the panel, computing meanwhile; of blocking: the broadcast
 *alone lost       CPU time lost until then: 1 - multiplications done / those that fit the time, %
 *of a rank total_us   panel and a fixed number of multiplications, which take as long as a blocking
 *broadcast ratio      total_us by that of blocking each the median over rounds. Returns 0 when all
 *bytes were right.
 */
#include <errno.h>
#include <onecopy/graph.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIST_MOST = 16, RANKS_MOST = 8, ROUNDS_MOST = 99, MATRIX_MOST = 64 };
enum how { BLOCKING, CALLER, THREAD, URING, HOWS };

static const char *const how_names[] = { "blocking", "caller", "thread", "uring" };
static const char *const tree_names[] = { "chain", "binary", "binomial" };
static const enum oc_graph_executor executors[] = { OC_GRAPH_CALLER, OC_GRAPH_CALLER,
						    OC_GRAPH_THREAD, OC_GRAPH_URING };

struct list {
	size_t count, value[LIST_MOST];
};

static struct {
	struct list bytes, segments, trees, matrices;
	unsigned int ranks, rounds;
	const char *name;
} options = { .bytes = { 3, { 12500, 125000, 1250000 } },
	      .segments = { 1, { 65536 } },
	      .trees = { 2, { OC_GRAPH_CHAIN, OC_GRAPH_BINARY } },
	      .matrices = { 2, { 40, 4 } },
	      .ranks = 2,
	      .rounds = 9,
	      .name = "node" };

/* What one rank has. */
static uint32_t rank, size;
static struct oc_graph_links *links;
static struct oc_graph_run *largest, *sum; /* of two numbers of all ranks, at rank 0 */
static struct oc_graph_run *tell;	   /* rank 0's two numbers to all */
static double numbers[2], scratch[2 * RANKS_MOST];
static double a[MATRIX_MOST * MATRIX_MOST], b[MATRIX_MOST * MATRIX_MOST],
	c[MATRIX_MOST * MATRIX_MOST];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "graph_codelet: rank %u: %s: %s; %s\n", rank, what, strerror(-err),
		links ? oc_graph_links_error(links) : "");
	exit(1);
}

static void complete(struct oc_graph_run *run)
{
	must(oc_graph_issue(run, OC_GRAPH_CALLER), "issue");
	must(oc_graph_wait(run), "wait");
}

/* All ranks' numbers combined, then known to all: so all have come here, too. */
static void combine(struct oc_graph_run *how)
{
	complete(how);
	complete(tell);
}

static void meet(void)
{
	combine(sum);
}

__attribute__((noinline)) static void multiply(size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double s = 0;

			for (size_t k = 0; k < n; k++)
				s += a[i * n + k] * b[k * n + j];
			c[i * n + j] = s;
		}
	/* Nobody reads it: to the compiler somebody may. */
	__asm__ volatile("" : : "r"(c) : "memory");
}

/* Multiplications a second without communication, while all ranks compute. */
static double measure_rate(size_t n)
{
	double begin, end;
	unsigned long count = 0;

	meet();
	begin = now();
	do {
		for (int i = 0; i < 20; i++)
			multiply(n);
		count += 20;
		end = now();
	} while (end < begin + 0.02);
	return (double)count / (end - begin);
}

static void fill(uint8_t *panel, size_t bytes, unsigned int of)
{
	for (size_t i = 0; i < bytes; i++)
		panel[i] = (uint8_t)(i * 7 + i / 255 + of);
}

static void check(const uint8_t *panel, size_t bytes, unsigned int of)
{
	for (size_t i = 0; i < bytes; i++)
		if (panel[i] != (uint8_t)(i * 7 + i / 255 + of)) {
			fprintf(stderr, "graph_codelet: rank %u: byte %zu is wrong\n", rank, i);
			exit(1);
		}
}

/* Computes until the panel is there: seconds of it, and how many multiplications were done. */
static double until_there(struct oc_graph_run *run, enum how how, size_t n, unsigned long *count)
{
	double begin = now();
	int result;

	*count = 0;
	must(oc_graph_issue(run, executors[how]), "issue");
	if (how == BLOCKING) {
		must(oc_graph_wait(run), "wait");
		return now() - begin;
	}
	do {
		multiply(n);
		++*count;
		result = oc_graph_test(run);
	} while (!result);
	must(result < 0 ? result : 0, "test");
	return now() - begin;
}

/* The panel and `work` multiplications: seconds until both are done. */
static double with_work(struct oc_graph_run *run, enum how how, size_t n, unsigned long work)
{
	double begin = now();
	int result = 0;

	must(oc_graph_issue(run, executors[how]), "issue");
	if (how == BLOCKING)
		must(oc_graph_wait(run), "wait");
	for (unsigned long i = 0; i < work; i++) {
		multiply(n);
		if (how != BLOCKING && !result)
			result = oc_graph_test(run);
	}
	must(result < 0 ? result : 0, "test");
	if (how != BLOCKING && !result)
		must(oc_graph_wait(run), "wait");
	return now() - begin;
}

static int compare(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;

	return (d > 0) - (d < 0);
}

static double median(double *values, unsigned int count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

struct samples {
	double us[ROUNDS_MOST], lost[ROUNDS_MOST], root_lost[ROUNDS_MOST], total[ROUNDS_MOST];
};

static void cell(enum oc_graph_tree tree, size_t bytes, size_t segment, size_t n)
{
	static struct samples samples[HOWS];
	uint8_t *panel = malloc(bytes);
	struct oc_graph_buffer buffer = { panel, bytes };
	struct oc_graph_run *run;
	struct oc_graph *graph;
	double blocking_us = 0, blocking_total = 0;
	static unsigned int times;

	must(panel ? 0 : -ENOMEM, "panel");
	must(oc_graph_bcast(&graph, tree, rank, size, 0, bytes, segment), "bcast");
	must(oc_graph_prepare(&run, graph, links, &buffer, 1, NULL, 0), "prepare");
	oc_graph_free(graph);
	/* The first round, which is not counted, makes rings and threads. */
	for (unsigned int r = 0; r <= options.rounds; r++) {
		for (unsigned int h = 0; h < HOWS; h++) {
			enum how how = (h + r) % HOWS;
			double rate = measure_rate(n), seconds;
			unsigned long count, work;

			fill(panel, bytes, rank ? 1 : ++times);
			times = rank ? times + 1 : times;
			meet();
			seconds = until_there(run, how, n, &count);
			check(panel, bytes, times);
			numbers[0] = seconds;
			numbers[1] = (double)count / (rate * seconds);
			numbers[1] = numbers[1] > 1 ? 1 : numbers[1];
			if (r)
				samples[how].root_lost[r - 1] = 100 * (1 - numbers[1]);
			/* Each rank's loss is of its own time until it has the panel. */
			{
				double kept = numbers[1];

				combine(largest);
				seconds = numbers[0];
				numbers[1] = kept;
				combine(sum);
			}
			if (r)
				samples[how].us[r - 1] = 1e6 * seconds,
						    samples[how].lost[r - 1] =
							    100 * (1 - numbers[1] / size);
			if (how == BLOCKING)
				blocking_us = 1e6 * seconds;
			/* The same work on all ranks, as long as a blocking broadcast takes. */
			work = (unsigned long)(1e-6 * blocking_us * rate) + 1;
			numbers[0] = rank ? 0 : (double)work;
			combine(largest);
			work = (unsigned long)numbers[0];
			meet();
			numbers[0] = with_work(run, how, n, work);
			combine(largest);
			if (r)
				samples[how].total[r - 1] = 1e6 * numbers[0];
		}
	}
	for (unsigned int how = 0; how < HOWS && !rank; how++) {
		double total = median(samples[how].total, options.rounds);

		blocking_total = how == BLOCKING ? total : blocking_total;
		printf("%s,%u,%s,%zu,%zu,%zu,%s,%.1f,%.1f,%.1f,%.1f,%.2f\n", options.name, size,
		       tree_names[tree], bytes, segment, n, how_names[how],
		       median(samples[how].us, options.rounds),
		       median(samples[how].lost, options.rounds),
		       median(samples[how].root_lost, options.rounds), total,
		       total / blocking_total);
		fflush(stdout);
	}
	oc_graph_run_free(run);
	free(panel);
}

static struct oc_graph_run *small(struct oc_graph *graph)
{
	struct oc_graph_buffer buffers[] = { { numbers, sizeof(numbers) },
					     { scratch, sizeof(scratch) } };
	struct oc_graph_run *run;

	must(oc_graph_prepare(&run, graph, links, buffers, 2, NULL, 0), "prepare");
	oc_graph_free(graph);
	return run;
}

static void be_rank(void)
{
	struct oc_graph *graph;

	must(oc_graph_reduce(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, 2, OC_GRAPH_DOUBLE,
			     OC_GRAPH_MAX, 0),
	     "reduce");
	largest = small(graph);
	must(oc_graph_reduce(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, 2, OC_GRAPH_DOUBLE,
			     OC_GRAPH_SUM, 0),
	     "reduce");
	sum = small(graph);
	must(oc_graph_bcast(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, sizeof(numbers), 0), "bcast");
	tell = small(graph);
	for (size_t i = 0; i < MATRIX_MOST * MATRIX_MOST; i++)
		a[i] = b[i] = (double)(i % 17) / 16;
	for (size_t m = 0; m < options.matrices.count; m++)
		for (size_t t = 0; t < options.trees.count; t++)
			for (size_t n = 0; n < options.bytes.count; n++)
				for (size_t s = 0; s < options.segments.count; s++)
					cell((enum oc_graph_tree)options.trees.value[t],
					     options.bytes.value[n], options.segments.value[s],
					     options.matrices.value[m]);
	oc_graph_run_free(largest);
	oc_graph_run_free(sum);
	oc_graph_run_free(tell);
	must(oc_graph_links_free(links), "free");
}

static int fork_ranks(void)
{
	int sockets[RANKS_MOST][RANKS_MOST], status, failed = 0;

	for (unsigned int x = 0; x < size; x++) {
		sockets[x][x] = -1;
		for (unsigned int y = 0; y < x; y++) {
			int pair[2];

			if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) {
				perror("graph_codelet: socketpair");
				return 1;
			}
			sockets[x][y] = pair[0];
			sockets[y][x] = pair[1];
		}
	}
	for (rank = 0; rank < size; rank++)
		if (!fork()) {
			for (unsigned int x = 0; x < size; x++)
				for (unsigned int y = 0; y < size; y++)
					if (x != rank && x != y)
						close(sockets[x][y]);
			must(oc_graph_links_create(&links, sockets[rank], size), "links");
			be_rank();
			exit(0);
		}
	for (unsigned int x = 0; x < size; x++)
		for (unsigned int y = 0; y < size; y++)
			if (x != y)
				close(sockets[x][y]);
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}

static bool parse_list(const char *text, bool trees, struct list *list)
{
	char *copy = strdup(text), *place = NULL;
	bool fine = copy;

	list->count = 0;
	for (char *word = fine ? strtok_r(copy, ",", &place) : NULL; word && fine;
	     word = strtok_r(NULL, ",", &place)) {
		char *end = word;
		size_t value = strtoul(word, &end, 10);

		/* A minus is what strtoul() would take, too. */
		fine = list->count < LIST_MOST &&
		       (trees || (*word >= '0' && *word <= '9' && !*end));
		for (value = trees ? 0 : value; trees && fine && strcmp(word, tree_names[value]);)
			fine = ++value < OC_GRAPH_TREES;
		if (fine)
			list->value[list->count++] = value;
	}
	free(copy);
	return fine && list->count;
}

static bool parse_option(const char *name, const char *value)
{
	struct list one;

	if (!strcmp(name, "--bytes"))
		return parse_list(value, false, &options.bytes);
	if (!strcmp(name, "--segments"))
		return parse_list(value, false, &options.segments);
	if (!strcmp(name, "--trees"))
		return parse_list(value, true, &options.trees);
	if (!strcmp(name, "--matrices"))
		return parse_list(value, false, &options.matrices);
	if (!strcmp(name, "--name")) {
		options.name = value;
		return true;
	}
	if (!parse_list(value, false, &one))
		return false;
	if (!strcmp(name, "--ranks"))
		return (options.ranks = (unsigned int)one.value[0]) <= RANKS_MOST && options.ranks;
	if (!strcmp(name, "--rounds"))
		return (options.rounds = (unsigned int)one.value[0]) <= ROUNDS_MOST &&
		       options.rounds;
	return false;
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
		if (!parse_option(argv[i], argv[i + 1]))
			break;
	for (size_t m = 0; m < options.matrices.count; m++)
		if (!options.matrices.value[m] || options.matrices.value[m] > MATRIX_MOST)
			i = argc + 1;
	if (i > argc || (i < argc && argv[i][0] == '-') || argc - i == 1 ||
	    argc - i > RANKS_MOST + 1) {
		fprintf(stderr,
			"graph_codelet: see the head of examples/graph_codelet.c for what it "
			"takes; matrices are of 1 to %d, ranks at most %d\n",
			MATRIX_MOST, RANKS_MOST);
		return 2;
	}
	if (i == argc) {
		size = options.ranks;
		return fork_ranks();
	}
	rank = (uint32_t)strtoul(argv[i], NULL, 10);
	size = (uint32_t)(argc - i - 1);
	must(oc_graph_links_connect(&links, rank, size, (const char *const *)argv + i + 1, 2010,
				    20000),
	     "connect");
	be_rank();
	return 0;
}
