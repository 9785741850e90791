/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighborhood collectives on grids and graphs: dimensions of one and two processes, periodic or
 * with borders, the same neighbor several times and itself, ranks with none, more neighbors on one
 * side than on the other. (table.c has layouts, sizes and forms, where all ranks are neighbors.)
 *
 * Each call is made twice: where onecopy serves it, and on a duplicate whose info key says "mpi".
 * What is received must be what MPI 4.0 says, in a grid what was sent in the other direction, in a
 * graph by the first of several edges what was sent by the first; and what the MPI gives by itself.
 */
#include "form.h"

#include <string.h>

enum { MOST_RANKS = 8, MOST_EDGES = 24, MOST_INTS = 9000, STRIDE = 2 };
/* Blocks with gaps, and two ints between them. */
enum { MARGIN = 16, ROOM = MOST_EDGES * (MOST_INTS * STRIDE + 2) + MARGIN };

static int rank, ranks;
static unsigned long calls;
static MPI_Datatype gapped; /* an int and a gap */

struct side {
	int count, ranks[MOST_EDGES]; /* of the neighbors; MPI_PROC_NULL: none */
};

struct graph {
	const char *name;
	MPI_Comm ours, theirs; /* the same; collectives of the second are the MPI's */
	int is_grid;
	int is_simple; /* no two ranks are neighbors more than once */
	struct side in, out;
	struct side out_of[MOST_RANKS];
};

struct call {
	enum case_collective function;
	int most; /* ints of a block */
	enum form form;
};

/* Where the blocks of one side lie, in ints, and how many ints each has. */
struct blocks {
	int counts[MOST_EDGES], displs[MOST_EDGES];
	MPI_Aint addresses[MOST_EDGES];
	MPI_Datatype types[MOST_EDGES];
};

static int in[ROOM], got[ROOM], mpis[ROOM], image[ROOM];
static struct blocks sent, received;
static int watched; /* ints of what is received, and behind it */

/* ---- what is to arrive ---------------------------------------------------------------------- */

static int gives_each(const struct call *c)
{
	return oci_function_sends_each(case_function(c->function));
}

static int has_counts(const struct call *c)
{
	return !oci_function_is_uniform(case_function(c->function));
}

static int value(int from, int block, int i)
{
	return (from + 1) * 1000003 + block * 5003 + i;
}

static int ints_of(const struct call *c, int from, int to)
{
	if (!gives_each(c))
		to = 0;
	return has_counts(c) ? (from * 7 + to * 3) % 4 * c->most / 3 : c->most;
}

/* Which block of its sender arrives as block b. */
static int origin(const struct graph *g, int b)
{
	const struct side *theirs = &g->out_of[g->in.ranks[b]];
	int turn = g->is_grid ? 1 : 0, place = 0;

	for (int other = 0; other < g->in.count; other++)
		place += g->in.ranks[other] == g->in.ranks[b] && (other ^ turn) < (b ^ turn);
	for (int k = 0; k < theirs->count; k++)
		if (theirs->ranks[k] == rank && !place--)
			return k;
	case_fail("%s: rank %d has no edge for block %d", g->name, g->in.ranks[b], b);
}

/* Of an Alltoallw every other block has gaps. */
static int stride_of(const struct call *c, int b)
{
	return c->function == CASE_neighbor_alltoallw && b % 2 ? STRIDE : 1;
}

/* How far they reach. */
static int lay_out(const struct call *c, const struct side *side, int sends, struct blocks *blocks)
{
	int at = 0;

	/* With counts: the last one first, and two ints between them. */
	for (int i = 0; i < side->count; i++) {
		int b = has_counts(c) ? side->count - 1 - i : i, other = side->ranks[b];

		blocks->counts[b] = other == MPI_PROC_NULL ? c->most :
				    sends		   ? ints_of(c, rank, other) :
							     ints_of(c, other, rank);
		blocks->displs[b] = at;
		blocks->addresses[b] = (MPI_Aint)at * (MPI_Aint)sizeof(int);
		blocks->types[b] = stride_of(c, b) > 1 ? gapped : MPI_INT;
		at += blocks->counts[b] * stride_of(c, b) + (has_counts(c) ? 2 : 0);
	}
	return at;
}

static void put(int *buffer, const struct call *c, int b, const struct blocks *blocks, int from,
		int block)
{
	for (int i = 0; i < blocks->counts[b]; i++)
		buffer[blocks->displs[b] + i * stride_of(c, b)] = value(from, block, i);
}

static void clear(int *buffer)
{
	memset(buffer, 0x5a, (size_t)watched * sizeof(*buffer));
}

static void prepare(const struct graph *g, const struct call *c)
{
	lay_out(c, &g->out, 1, &sent);
	watched = lay_out(c, &g->in, 0, &received) + MARGIN;
	clear(image);
	for (int b = 0; gives_each(c) && b < g->out.count; b++)
		put(in, c, b, &sent, rank, b);
	for (int i = 0; !gives_each(c) && i < c->most; i++)
		in[i] = value(rank, 0, i);
	for (int b = 0; b < g->in.count; b++)
		if (g->in.ranks[b] != MPI_PROC_NULL)
			put(image, c, b, &received, g->in.ranks[b],
			    gives_each(c) ? origin(g, b) : 0);
}

/* ---- a call --------------------------------------------------------------------------------- */

static void make(const struct call *c, enum form form, MPI_Comm comm, int *out,
		 MPI_Request *request)
{
	form_begin(&(struct arguments){ .collective = c->function,
					.send = in,
					.recv = out,
					.send_count = ints_of(c, rank, 0),
					.recv_count = c->most,
					.send_counts = sent.counts,
					.send_places = sent.displs,
					.recv_counts = received.counts,
					.recv_places = received.displs,
					.send_places_c = sent.addresses,
					.recv_places_c = received.addresses,
					.send_type = MPI_INT,
					.recv_type = MPI_INT,
					.send_types = sent.types,
					.recv_types = received.types,
					.comm = comm },
		   form, request);
}

static void run(const struct call *c, enum form form, MPI_Comm comm, int *out)
{
	MPI_Request request;

	clear(out);
	make(c, form, comm, out, &request);
	if (form == FORM_PERSISTENT) {
		MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		clear(out);
		MPI_Start(&request);
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (form == FORM_PERSISTENT)
		MPI_Request_free(&request);
}

static void compare(const struct graph *g, const struct call *c, const int *right,
		    const char *whose)
{
	for (int i = 0; i < watched; i++)
		if (got[i] != right[i])
			case_fail("%s %s of at most %d ints on %s: int %d is %d, not %d as %s",
				  form_names[c->form], case_names[c->function], c->most, g->name, i,
				  got[i], right[i], whose);
}

/* In a graph those are Open MPI's own, mpi/ompi/README.md says why. */
static int is_given_back(const struct graph *g, const struct call *c)
{
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
	return c->form == FORM_BLOCKING && !g->is_grid && !has_counts(c);
#else
	(void)g;
	(void)c;
	return 0;
#endif
}

/*
 * Where two ranks are neighbors more than once, MPICH 4.0.2 by itself takes the last block for the
 * first in a graph (Neighbor_alltoall), and the first for the first in a grid (Neighbor_alltoallv
 * and Neighbor_alltoallw). On 8 ranks it also waits for ever in such a graph, without us too.
 */
static int mpi_is_wrong(const struct graph *g, const struct call *c)
{
#ifdef MPICH_VERSION
	return !g->is_simple && gives_each(c);
#else
	(void)g;
	(void)c;
	return 0;
#endif
}

static void one_call(const struct graph *g, const struct call *c)
{
	prepare(g, c);
	run(c, c->form, g->ours, got);
	/* MPICH 4.0.2 by itself fails in persistent ones, and Open MPI 4.1.4's nonblocking ones
	 * take the first of several blocks for the first in a grid, too. */
	if (!mpi_is_wrong(g, c)) {
		run(c, FORM_BLOCKING, g->theirs, mpis);
		compare(g, c, mpis, "the MPI gives");
	}
	calls++;
	if (!is_given_back(g, c)) {
		compare(g, c, image, "MPI says");
		for (int i = 0; i < (c->form == FORM_PERSISTENT ? 2 : 1); i++)
			case_count(c->function, c->most > 0);
	}
}

static void all_calls(const struct graph *g)
{
	static const int sizes[] = { 0, 2, 90, 3000, MOST_INTS };
	/* Many ranks of MPICH spin, each until it has a CPU. */
	size_t step = ranks > 4 ? 2 : 1;

	for (int f = CASE_COLLECTIVES; f < CASE_FUNCTIONS; f++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s += step)
			for (int form = 0; form < FORMS; form++)
				one_call(g, &(struct call){ (enum case_collective)f, sizes[s],
							    (enum form)form });
}

/* ---- topologies ----------------------------------------------------------------------------- */

static void look_for_repeated(struct graph *g)
{
	g->is_simple = 1;
	for (int r = 0; r < ranks; r++)
		for (int b = 0; b < g->out_of[r].count; b++)
			for (int d = 0; d < b; d++)
				if (g->out_of[r].ranks[b] == g->out_of[r].ranks[d] &&
				    g->out_of[r].ranks[b] != MPI_PROC_NULL)
					g->is_simple = 0;
}

/* Does all calls on it, and frees it. */
static void use(struct graph *g, const char *name)
{
	MPI_Info info;
	char key[64];

	g->name = name;
	case_info_key(key, sizeof(key), CASE_neighbor_alltoallv);
	MPI_Info_create(&info);
	MPI_Info_set(info, key, "mpi");
	MPI_Comm_dup_with_info(g->ours, info, &g->theirs);
	MPI_Info_free(&info);
	/* A nonblocking call would be the MPI's until the communicator is known. */
	MPI_Allgather(&g->out, sizeof(g->out), MPI_BYTE, g->out_of, sizeof(g->out), MPI_BYTE,
		      g->ours);
	look_for_repeated(g);
	all_calls(g);
	MPI_Comm_free(&g->ours);
	MPI_Comm_free(&g->theirs);
}

static void grid(const char *name, int dims, const int *sizes, const int *periods)
{
	struct graph g = { .is_grid = 1, .in.count = 2 * dims };

	MPI_Cart_create(MPI_COMM_WORLD, dims, sizes, periods, 0, &g.ours);
	for (int d = 0; d < dims; d++)
		MPI_Cart_shift(g.ours, d, 1, &g.in.ranks[2 * d], &g.in.ranks[2 * d + 1]);
	g.out = g.in;
	use(&g, name);
}

/*
 * Ranks of a line that only give, between such as only get: what is sent along an edge and what is
 * received along it are alike, but not the two directions, which Open MPI 4.1.4 takes for an error.
 */
#ifndef OPEN_MPI
static void one_sided(void)
{
	int no = 0, sent[2] = { rank, rank }, received[2], gives = rank % 2, right;
	MPI_Request request;
	MPI_Comm line;

	MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &no, 0, &line);
	MPI_Barrier(line);
	for (int form = 0; form < FORMS; form++) {
		received[0] = received[1] = -1;
		form_begin(&(struct arguments){ .collective = CASE_neighbor_alltoall,
						.send = sent,
						.recv = received,
						.send_count = gives,
						.recv_count = !gives,
						.send_type = MPI_INT,
						.recv_type = MPI_INT,
						.comm = line },
			   (enum form)form, &request);
		if (form == FORM_PERSISTENT)
			MPI_Start(&request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		if (form == FORM_PERSISTENT)
			MPI_Request_free(&request);
		right = gives || ((!rank || received[0] == rank - 1) &&
				  (rank == ranks - 1 || received[1] == rank + 1));
		if (!right || (gives && received[0] != -1))
			case_fail("%s neighbor_alltoall of ranks that only give or only get: "
				  "%d and %d were received",
				  form_names[form], received[0], received[1]);
	}
	MPI_Comm_free(&line);
}
#endif

/* Everybody's neighbors are the next one, the one before, and rank 0, whose are all others. */
static void graph(void)
{
	int index[MOST_RANKS], edges[MOST_RANKS * MOST_RANKS], count = 0;
	struct graph g = { .is_grid = 0 };

	for (int r = 0; r < ranks; r++) {
		edges[count++] = (r + 1) % ranks;
		edges[count++] = (r + ranks - 1) % ranks;
		for (int other = 1; other < ranks && !r; other++)
			edges[count++] = other;
		if (r)
			edges[count++] = 0;
		index[r] = count;
	}
	MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, 0, &g.ours);
	MPI_Graph_neighbors_count(g.ours, rank, &g.in.count);
	MPI_Graph_neighbors(g.ours, rank, g.in.count, g.in.ranks);
	g.out = g.in;
	use(&g, "a graph");
}

/* How often two ranks are neighbors, in this direction. */
static int edges_of(unsigned int salt, int from, int to)
{
	unsigned int hash = (salt * 64 + (unsigned int)(from * 8 + to)) * 2654435761u;

	/* The last of several is nobody's. */
	if (ranks > 2 && (from == ranks - 1 || to == ranks - 1))
		return 0;
	return (int)((hash >> 28) % 5 / 2);
}

static void random_graph(unsigned int salt)
{
	int weights[MOST_EDGES] = { 0 };
	struct graph g = { .is_grid = 0 };

	/* Those that are repeated are not side by side. */
	for (int turn = 0; turn < 2; turn++)
		for (int r = 0; r < ranks; r++) {
			if (edges_of(salt, r, rank) > turn)
				g.in.ranks[g.in.count++] = r;
			if (edges_of(salt, rank, r) > turn)
				g.out.ranks[g.out.count++] = r;
		}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g.in.count, g.in.ranks, weights, g.out.count,
				       g.out.ranks, weights, MPI_INFO_NULL, 0, &g.ours);
	use(&g, "a distributed graph");
}

int main(int argc, char **argv)
{
	static const int yes[] = { 1, 1, 1 }, no[] = { 0, 0, 0 }, mixed[] = { 1, 0, 1 };
	int line[3] = { 1, 1, 1 }, box[3] = { 0, 0, 0 };

	case_begin(&argc, &argv, &rank, &ranks);
	if (ranks < 2 || ranks > MOST_RANKS)
		case_fail("this is for 2 to %d ranks", MOST_RANKS);
	MPI_Type_create_resized(MPI_INT, 0, STRIDE * sizeof(int), &gapped);
	MPI_Type_commit(&gapped);
	line[0] = ranks;
	MPI_Dims_create(ranks, 3, box);
	grid("a ring", 1, line, yes);
	grid("a line", 1, line, no);
	grid("a line with periodic dimensions of one", 3, line, yes);
	grid("a line with others of one", 3, line, mixed);
	grid("a periodic box", 3, box, yes);
	grid("a box", 3, box, no);
	grid("a box with some borders", 3, box, mixed);
#ifndef OPEN_MPI
	one_sided();
#endif
	graph();
	for (unsigned int salt = 0; salt < 4; salt++)
		random_graph(salt);
	MPI_Type_free(&gapped);
	return case_end("neighbors: %lu calls on %d ranks, every byte right\n", calls, ranks);
}
