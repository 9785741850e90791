// SPDX-License-Identifier: BSD-3-Clause
/*
 * The benchmark of KACC's paper, the HPL codelet: a panel is broadcast while small matrices are
 * multiplied, and after each product it is asked whether the panel is there. Over graphs
 *(oc_graph(3)), without an MPI, by each executor in turns, and by the blocking tree: the same graph
 *by the caller, waited for before anything is computed. codelet.h says what is told.
 *
 *	graph_codelet [OPTION...]                             ranks forked here, over socketpairs
 *	graph_codelet [OPTION...] RANK ADDRESS:PORT...        one rank of several hosts, over TCP
 *
 *	--ranks N            forked ranks (2)
 *	--bytes N,...        of the panel (12500,125000,1250000)
 *	--segments N,...     of a segment (65536; 0: the panel in one)
 *	--trees T,...        chain, binary, binomial (chain,binary)
 *	--matrices N,...     (40,4)
 *	--ways W,...         blocking, caller, thread, uring, kmod, floor (the first four); kmod is
 *	                     uring where there is no module, and over socketpairs
 *	--gbit N             of the work of total_us (1)
 *	--rounds N           of all of these (9)
 *	--name WORD          first column of the rows (node)
 *
 * `floor` is what the kernel's sockets take by themselves: a rank only computes, for the time that
 *the panel takes at --gbit, and asks afterwards. The sockets' buffers must hold the panel, as with
 * OC_TEST_HOSTS_BUFFERS of tests/hosts/hosts.sh; else it comes later than that, and `us` shows it.
 *
 * Returns 0 when all bytes were right.
 */
#include "codelet.h"

#include <errno.h>
#include <onecopy/graph.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MOST = 8 };
enum how { BLOCKING, CALLER, THREAD, URING, KMOD, FLOOR, HOWS };

static const char *const how_names[] = { "blocking", "caller", "thread", "uring", "kmod", "floor" };
static const char *const tree_names[] = { "chain", "binary", "binomial" };
static const enum oc_graph_executor executors[] = { OC_GRAPH_CALLER, OC_GRAPH_CALLER,
						    OC_GRAPH_THREAD, OC_GRAPH_URING,
						    OC_GRAPH_KMOD,   OC_GRAPH_CALLER };

static struct {
	struct codelet_list bytes, segments, trees, matrices, ways;
	unsigned int ranks, rounds, gbit;
	const char *name;
} options = { .bytes = { 3, { 12500, 125000, 1250000 } },
	      .segments = { 1, { 65536 } },
	      .trees = { 2, { OC_GRAPH_CHAIN, OC_GRAPH_BINARY } },
	      .matrices = { 2, { 40, 4 } },
	      .ways = { 4, { BLOCKING, CALLER, THREAD, URING } },
	      .ranks = 2,
	      .rounds = 9,
	      .gbit = 1,
	      .name = "node" };

/* What one rank has. */
static uint32_t rank, size;
static struct oc_graph_links *links;
static struct oc_graph_run *largest, *sum; /* of a number of all ranks, at rank 0 */
static struct oc_graph_run *tell;	   /* rank 0's number to all */
static double number, scratch[RANKS_MOST];
static uint8_t *panel;
static struct oc_graph_run *run;
static size_t bytes;

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "graph_codelet: rank %u: %s: %s; %s\n", rank, what, strerror(-err),
		links ? oc_graph_links_error(links) : "");
	exit(1);
}

static void complete(struct oc_graph_run *small)
{
	must(oc_graph_issue(small, OC_GRAPH_CALLER), "issue");
	must(oc_graph_wait(small), "wait");
}

static double combine(double mine, bool summed)
{
	number = mine;
	complete(summed ? sum : largest);
	complete(tell);
	return number;
}

static void fill(unsigned int turn)
{
	for (size_t i = 0; i < bytes; i++)
		panel[i] = (uint8_t)(i * 7 + i / 255 + (rank ? 1 : turn));
}

static void check(unsigned int turn)
{
	for (size_t i = 0; i < bytes; i++)
		if (panel[i] != (uint8_t)(i * 7 + i / 255 + turn)) {
			fprintf(stderr, "graph_codelet: rank %u: byte %zu is wrong\n", rank, i);
			exit(1);
		}
}

static struct told until_there(const struct codelet *codelet, unsigned int how, double rate)
{
	struct codelet_time begin = codelet_begin();
	size_t n = codelet->matrix;
	unsigned long count = 0;
	struct told told;
	int result;

	must(oc_graph_issue(run, executors[how]), "issue");
	if (how == FLOOR) {
		begin = codelet_begin();
		told = codelet_told(codelet, begin, 0, rate);
		must(oc_graph_wait(run), "wait");
		told.us = 1e6 * (now() - begin.wall);
		return told;
	}
	if (how == BLOCKING) {
		must(oc_graph_wait(run), "wait");
		return codelet_told(codelet, begin, 0, rate);
	}
	do {
		multiply(n);
		count++;
		result = oc_graph_test(run);
	} while (!result);
	must(result < 0 ? result : 0, "test");
	return codelet_told(codelet, begin, count, rate);
}

static void with_work(unsigned int how, size_t n, unsigned long work)
{
	bool asks = how != BLOCKING && how != FLOOR;
	int result = 0;

	must(oc_graph_issue(run, executors[how]), "issue");
	if (how == BLOCKING)
		must(oc_graph_wait(run), "wait");
	for (unsigned long i = 0; i < work; i++) {
		multiply(n);
		if (asks && !result)
			result = oc_graph_test(run);
	}
	must(result < 0 ? result : 0, "test");
	if (how != BLOCKING && !result)
		must(oc_graph_wait(run), "wait");
}

static void cell(enum oc_graph_tree tree, size_t panel_bytes, size_t segment, size_t n)
{
	struct oc_graph_buffer buffer = { NULL, panel_bytes };
	struct codelet codelet = { .where = options.name,
				   .tree = tree_names[tree],
				   .names = how_names,
				   .rank = rank,
				   .size = size,
				   .ways = HOWS,
				   .rounds = options.rounds,
				   .bytes = panel_bytes,
				   .segment = segment,
				   .matrix = n,
				   .gbit = options.gbit,
				   .until_there = until_there,
				   .with_work = with_work,
				   .fill = fill,
				   .check = check,
				   .combine = combine };
	struct oc_graph *graph;
	unsigned int wanted = 0;

	bytes = panel_bytes;
	buffer.base = panel = malloc(bytes);
	must(panel ? 0 : -ENOMEM, "panel");
	must(oc_graph_bcast(&graph, tree, rank, size, 0, bytes, segment), "bcast");
	must(oc_graph_prepare(&run, graph, links, &buffer, 1, NULL, 0), "prepare");
	oc_graph_free(graph);
	for (size_t w = 0; w < options.ways.count; w++)
		wanted |= 1u << options.ways.value[w];
	codelet_run(&codelet, wanted);
	oc_graph_run_free(run);
	free(panel);
}

static struct oc_graph_run *small(struct oc_graph *graph)
{
	struct oc_graph_buffer buffers[] = { { &number, sizeof(number) },
					     { scratch, sizeof(scratch) } };
	struct oc_graph_run *prepared;

	must(oc_graph_prepare(&prepared, graph, links, buffers, 2, NULL, 0), "prepare");
	oc_graph_free(graph);
	return prepared;
}

static void be_rank(void)
{
	struct oc_graph *graph;

	must(oc_graph_reduce(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, 1, OC_GRAPH_DOUBLE,
			     OC_GRAPH_MAX, 0),
	     "reduce");
	largest = small(graph);
	must(oc_graph_reduce(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, 1, OC_GRAPH_DOUBLE,
			     OC_GRAPH_SUM, 0),
	     "reduce");
	sum = small(graph);
	must(oc_graph_bcast(&graph, OC_GRAPH_BINOMIAL, rank, size, 0, sizeof(number), 0), "bcast");
	tell = small(graph);
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

/* Each rank has a CPU while there are enough, so that the scheduler does not move them together. */
static void bind_to_cpu(uint32_t which)
{
	cpu_set_t allowed, one;
	int seen = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	which %= (uint32_t)CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && seen++ == (int)which) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof(one), &one);
		}
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
			bind_to_cpu(rank);
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

static bool parse_option(const char *name, const char *value)
{
	struct codelet_list one;

	if (!strcmp(name, "--bytes"))
		return codelet_list(value, NULL, 0, &options.bytes);
	if (!strcmp(name, "--segments"))
		return codelet_list(value, NULL, 0, &options.segments);
	if (!strcmp(name, "--trees"))
		return codelet_list(value, tree_names, OC_GRAPH_TREES, &options.trees);
	if (!strcmp(name, "--matrices"))
		return codelet_list(value, NULL, 0, &options.matrices);
	if (!strcmp(name, "--ways"))
		return codelet_list(value, how_names, HOWS, &options.ways);
	if (!strcmp(name, "--name")) {
		options.name = value;
		return true;
	}
	if (!codelet_list(value, NULL, 0, &one))
		return false;
	if (!strcmp(name, "--ranks"))
		return (options.ranks = (unsigned int)one.value[0]) <= RANKS_MOST && options.ranks;
	if (!strcmp(name, "--rounds"))
		return (options.rounds = (unsigned int)one.value[0]) <= CODELET_ROUNDS_MOST &&
		       options.rounds;
	if (!strcmp(name, "--gbit"))
		return (options.gbit = (unsigned int)one.value[0]) > 0;
	return false;
}

int main(int argc, char **argv)
{
	int i = 1;

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
		if (!parse_option(argv[i], argv[i + 1]))
			break;
	for (size_t m = 0; m < options.matrices.count; m++)
		if (!options.matrices.value[m] || options.matrices.value[m] > CODELET_MATRIX_MOST)
			i = argc + 1;
	if (i > argc || (i < argc && argv[i][0] == '-') || argc - i == 1 ||
	    argc - i > RANKS_MOST + 1) {
		fprintf(stderr,
			"graph_codelet: see the head of examples/graph_codelet.c for what it "
			"takes; matrices are of 1 to %d, ranks at most %d\n",
			CODELET_MATRIX_MOST, RANKS_MOST);
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
