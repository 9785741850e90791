/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong of 2 ranks over one transport, as the Intel MPI Benchmarks time it: the same buffers
 * each time. With --touch the ranks behave as a program that communicates: they read what they
 * received and write what they send next, inside the timed part. With --stream rank 0 sends many
 * messages at once, with --both each rank does: the bandwidth, one way and both. With --halo, on a
 * periodic grid of any number of ranks, each exchanges messages with its up to four neighbours at
 * once; with --ring each sends one to the next and receives one from the rank before. With
 * --alltoall they call MPI_Alltoall. With --put, --get and --accumulate rank 0 does that to a
 * window of rank 1, and waits each time until it is done.
 *
 * Rank 0 prints lines as lab/experiment/run.h has them: the throughput of each size, the time of a
 * message (of an exchange, of a shift), its cache misses. Every size is verified before it is
 * timed.
 */
#include "pingpong.h"
#include "lab/harness/clock.h"
#include "lab/harness/options.h"
#include "lab/harness/stats.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SAMPLES = 1001, SAMPLES_LEAST = 5, WARM_UP = 3, LINE = 64 };
/* A sample is of as many round trips as take this long: the clock is not to be measured. */
#define SAMPLE_S 5e-6
/* As of onecopy bench p2p: an MPI counts a message in an int. */
#define BYTES_MOST ((size_t)1 << 30)
/* Messages under way at once with --stream and --both. */
#define WINDOW 16
/* Of a rank on a grid. */
#define SIDES 4

struct options {
	struct size_list sizes, cpus;
	double seconds;
	bool touch, stream, both, halo, ring, alltoall, misses, shared;
	bool put, get, accumulate, allocated;
};

struct bench {
	struct transport me;
	const struct options *options;
	uint8_t *send, *recv;
	struct window window;
	uint32_t to[WINDOW], from[WINDOW];
	bool counts;
	uint64_t sum; /* of what was read, so that it is read */
};

static void fail(const char *what)
{
	fprintf(stderr, "pingpong: %s\n", what);
	transport_close(1);
}

static void fail_at(size_t bytes)
{
	fprintf(stderr, "pingpong: a wrong byte was received in a message of %zu\n", bytes);
	transport_close(1);
}

static uint8_t byte_of(uint32_t from, size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + from * 17 + 5);
}

static void touch(struct bench *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE)
		b->sum += b->recv[i];
	memset(b->send, (int)(b->sum & 127), bytes);
}

static void round_trips(struct bench *b, size_t bytes, unsigned int count)
{
	bool pings = !b->me.rank, touches = b->options->touch;

	for (unsigned int i = 0; i < count; i++) {
		if (pings)
			transport_send(1, b->send, bytes);
		transport_recv(!b->me.rank, b->recv, bytes);
		if (touches)
			touch(b, bytes);
		if (!pings)
			transport_send(0, b->send, bytes);
	}
}

/* Rank 0's messages to rank 1, or both ranks'; an empty one back tells that they are there. */
static void windows(struct bench *b, size_t bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		transport_window(&b->window, bytes);
		if (b->me.rank)
			transport_send(0, b->send, 0);
		else
			transport_recv(1, b->recv, 0);
	}
}

/* With all neighbours; those that are done with it wait for nobody else. */
static void exchanges(struct bench *b, size_t bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		transport_window(&b->window, bytes);
}

static void alltoalls(struct bench *b, size_t bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		transport_alltoall(b->send, b->recv, bytes);
}

static enum operation operation_of(const struct bench *b)
{
	return b->options->put	      ? OPERATION_PUT :
	       b->options->get	      ? OPERATION_GET :
	       b->options->accumulate ? OPERATION_ACCUMULATE :
					OPERATION_NONE;
}

/* Rank 1 waits in the MPI meanwhile. */
static void operations(struct bench *b, size_t bytes, unsigned int count)
{
	for (unsigned int i = 0; i < count && !b->me.rank; i++)
		transport_operate(operation_of(b), b->send, bytes);
	if (b->me.rank)
		transport_recv(0, b->send, 0);
	else
		transport_send(1, b->send, 0);
}

static bool by_windows(const struct bench *b)
{
	return b->options->stream || b->options->both;
}

static bool by_neighbours(const struct bench *b)
{
	return b->options->halo || b->options->ring || b->options->alltoall;
}

static void add_neighbour(struct bench *b, uint32_t to, uint32_t from)
{
	if (to != b->me.rank)
		b->to[b->window.sends++] = to;
	if (from != b->me.rank)
		b->from[b->window.receives++] = from;
}

/* The grid is as square as the number of ranks allows. */
static void find_neighbours(struct bench *b)
{
	uint32_t rank = b->me.rank, ranks = b->me.ranks, rows = 1, columns, row, column;

	for (uint32_t r = 1; r * r <= ranks && b->options->halo; r++)
		rows = ranks % r ? rows : r;
	columns = ranks / rows;
	row = rank / columns;
	column = rank % columns;
	for (uint32_t side = 0; side < (b->options->halo ? SIDES / 2 : 0); side++) {
		uint32_t next = side ? (row + 1) % rows * columns + column :
				       row * columns + (column + 1) % columns;
		uint32_t before = side ? (row + rows - 1) % rows * columns + column :
					 row * columns + (column + columns - 1) % columns;

		add_neighbour(b, next, before);
		add_neighbour(b, before, next);
	}
	if (b->options->ring)
		add_neighbour(b, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
}

static void fill_window(struct bench *b)
{
	b->window.to = b->to;
	b->window.from = b->from;
	b->window.send = b->send;
	b->window.recv = b->recv;
	if (by_neighbours(b)) {
		find_neighbours(b);
		return;
	}
	b->window.one_place = true;
	for (unsigned int i = 0; i < WINDOW; i++)
		b->to[i] = b->from[i] = !b->me.rank;
	b->window.sends = b->options->both || !b->me.rank ? WINDOW : 0;
	b->window.receives = b->options->both || b->me.rank ? WINDOW : 0;
}

/* Blocks of the buffer that is received into. */
static unsigned int places(const struct bench *b)
{
	return b->options->alltoall ? b->me.ranks : by_neighbours(b) ? b->window.receives : 1;
}

/* Whose bytes come to be in one of them. */
static uint32_t source_of(const struct bench *b, unsigned int place)
{
	return b->options->alltoall ? place : by_neighbours(b) ? b->from[place] : !b->me.rank;
}

static void (*what_to_do(const struct bench *b))(struct bench *, size_t, unsigned int)
{
	return operation_of(b)	    ? operations :
	       b->options->alltoall ? alltoalls :
	       by_neighbours(b)	    ? exchanges :
	       by_windows(b)	    ? windows :
				      round_trips;
}

/* Every byte that came, into rank 1's window or from it. */
static void verify_operation(struct bench *b, size_t bytes)
{
	bool get = b->options->get;
	uint8_t *came = get ? b->send : b->recv, before = 1;

	for (size_t i = 0; i < bytes; i++) {
		b->send[i] = byte_of(b->me.rank, i);
		b->recv[i] = get ? byte_of(b->me.rank, i) : before;
	}
	transport_meet();
	operations(b, bytes, 1);
	transport_meet();
	if (get ? b->me.rank : !b->me.rank)
		return;
	for (size_t i = 0; i < bytes; i++)
		if (came[i] != (byte_of(get, i) ^ (b->options->accumulate ? before : 0)))
			fail_at(bytes);
}

/* Every byte of the first exchange. */
static void verify(struct bench *b, size_t bytes)
{
	unsigned int blocks = b->options->alltoall ? places(b) : 1;

	if (operation_of(b)) {
		verify_operation(b, bytes);
		return;
	}
	for (size_t i = 0; i < blocks * bytes; i++)
		b->send[i] = byte_of(b->me.rank, i % bytes);
	memset(b->recv, 0xff, places(b) * bytes);
	if (by_neighbours(b)) {
		what_to_do(b)(b, bytes, 1);
	} else if (b->me.rank) {
		transport_recv(0, b->recv, bytes);
		transport_send(0, b->send, bytes);
	} else {
		transport_send(1, b->send, bytes);
		transport_recv(1, b->recv, bytes);
	}
	for (unsigned int p = 0; p < places(b); p++)
		for (size_t i = 0; i < bytes; i++)
			if (b->recv[p * bytes + i] != byte_of(source_of(b, p), i))
				fail_at(bytes);
}

/* Rank 0's word, on all. */
static uint64_t tell(struct bench *b, uint64_t word)
{
	if (b->me.rank)
		transport_recv(0, &word, sizeof(word));
	for (uint32_t r = 1; r < b->me.ranks && !b->me.rank; r++)
		transport_send(r, &word, sizeof(word));
	return word;
}

/* All ranks' words, on rank 0. */
static uint64_t sum_up(struct bench *b, uint64_t word)
{
	uint64_t theirs, sum = word;

	if (b->me.rank)
		transport_send(0, &word, sizeof(word));
	for (uint32_t r = 1; r < b->me.ranks && !b->me.rank; r++) {
		transport_recv(r, &theirs, sizeof(theirs));
		sum += theirs;
	}
	return sum;
}

/* In one of these, one after the other. */
static uint32_t messages_of(const struct bench *b)
{
	return by_neighbours(b) || operation_of(b) ? 1 : by_windows(b) ? WINDOW : 2;
}

static void take_samples(struct bench *b, size_t bytes, unsigned int batch, unsigned int count,
			 double *samples)
{
	void (*go)(struct bench *, size_t, unsigned int) = what_to_do(b);
	uint32_t messages = messages_of(b);

	for (unsigned int i = 0; i < count; i++) {
		double begin = now_s();

		go(b, bytes, batch);
		samples[i] = (now_s() - begin) / (batch * messages);
	}
}

static void print(const struct bench *b, size_t bytes, double s, double misses)
{
	double ranks = b->me.ranks, moved = (double)bytes;

	if (b->options->alltoall)
		moved *= ranks * (ranks - 1);
	else
		moved *= b->options->both ? 2 : places(b);

	printf("= throughput %zu %.6g\n", bytes, 1e-9 * moved / s);
	printf("= time %zu %.6g\n", bytes, 1e6 * s);
	if (b->counts)
		printf("= misses %zu %.6g\n", bytes, misses);
	fflush(stdout);
}

static void measure(struct bench *b, size_t bytes)
{
	void (*go)(struct bench *, size_t, unsigned int) = what_to_do(b);
	uint32_t messages = messages_of(b);
	double samples[SAMPLES], begin, each;
	unsigned int count, batch;
	uint64_t misses, word;

	verify(b, bytes);
	go(b, bytes, WARM_UP);
	begin = now_s();
	go(b, bytes, WARM_UP);
	each = (now_s() - begin) / WARM_UP;
	batch = each < SAMPLE_S ? (unsigned int)(SAMPLE_S / each) + 1 : 1;
	count = (unsigned int)(b->options->seconds / (each * batch));
	count = count > SAMPLES ? SAMPLES : count < SAMPLES_LEAST ? SAMPLES_LEAST : count;
	word = tell(b, (uint64_t)batch << 32 | count);
	batch = (unsigned int)(word >> 32);
	count = (unsigned int)word;
	misses = b->counts ? misses_read() : 0;
	take_samples(b, bytes, batch, count, samples);
	misses = b->counts ? misses_read() - misses : 0;
	misses = sum_up(b, misses);
	if (b->me.rank)
		return;
	print(b, bytes, stats_median(samples, count),
	      (double)misses / ((double)count * batch * messages));
}

static void bind_rank(const struct options *options, uint32_t rank)
{
	cpu_set_t mine;

	size_t cpu;

	if (!options->cpus.count)
		return;
	cpu = options->cpus.at[rank % options->cpus.count];
	CPU_ZERO(&mine);
	CPU_SET(cpu, &mine); /* one beyond the set is none, which is refused */
	if (!sched_setaffinity(0, sizeof(mine), &mine))
		return;
	fprintf(stderr, "pingpong: rank %u cannot be bound to CPU %zu: %s\n", rank, cpu,
		strerror(errno));
	transport_close(1);
}

static void take_bytes(void *sizes, const char *text)
{
	size_list_take("--bytes", text, 0, sizes);
}

static void take_cpus(void *cpus, const char *text)
{
	size_list_take("--cpus", text, 0, cpus);
}

#define AT(member) .place = offsetof(struct options, member)

static const struct option_set set = {
	.rows =
		(const struct option_row[]){
			{ "bytes", 0, "LIST", "Of the messages", .take = take_bytes, AT(sizes) },
			{ "cpus", 0, "LIST", "That the ranks are bound to", .take = take_cpus,
			  AT(cpus) },
			{ "seconds", 0, "S", "Of each size", OPTION_FRACTION, AT(seconds), 1e-9,
			  60 },
			{ "touch", 0, NULL, "Received bytes are read, and sent ones written before",
			  AT(touch) },
			{ "stream", 0, NULL, "Many messages at once from rank 0", AT(stream) },
			{ "both", 0, NULL, "Many messages at once from either", AT(both) },
			{ "halo", 0, NULL, "Of any number of ranks: with the neighbours on a grid",
			  AT(halo) },
			{ "ring", 0, NULL, "Of any number of ranks: to the next one", AT(ring) },
			{ "alltoall", 0, NULL, "Of any number of ranks: MPI_Alltoall",
			  AT(alltoall) },
			{ "put", 0, NULL, "MPI_Put into a window", AT(put) },
			{ "get", 0, NULL, "MPI_Get from a window", AT(get) },
			{ "accumulate", 0, NULL, "MPI_Accumulate: MPI_BXOR in a window",
			  AT(accumulate) },
			{ "allocated", 0, NULL,
			  "Of these: the window is of MPI_Win_allocate, not MPI_Win_create",
			  AT(allocated) },
			{ "misses", 0, NULL, "Count cache misses", AT(misses) },
			{ "shared", 0, NULL, "Buffers lie in memory that peers map", AT(shared) },
			{ 0 } },
	.about = "Times messages between ranks. Run by onecopy bench p2p and messages.",
};

int main(int argc, char **argv)
{
	struct options options = { .seconds = 0.02 };
	struct bench bench = { .options = &options };
	size_t most = 0, blocks;
	char why[256];

	options_parse(&set, argc, argv, &options);
	for (unsigned int i = 0; i < options.sizes.count; i++)
		most = options.sizes.at[i] > most ? options.sizes.at[i] : most;
	if (!options.sizes.count || most > BYTES_MOST)
		usage("--bytes says how long messages are, as in --bytes 8,64,4096, up to 1G");
	transport_open(&bench.me, &argc, &argv);
	if (by_neighbours(&bench) ? bench.me.ranks < 2 : bench.me.ranks != 2)
		fail(by_neighbours(&bench) ? "neighbours take 2 ranks and more" :
					     "a ping-pong takes 2 ranks");
	bind_rank(&options, bench.me.rank);
	most = most ? most : 1;
	blocks = options.alltoall ? bench.me.ranks : 1;
	bench.send = transport_memory(blocks * most, options.shared);
	bench.recv = transport_memory((options.halo ? SIDES : blocks) * most, options.shared);
	if (!bench.send || !bench.recv)
		fail(options.shared ? "no memory that peers can map" : "no memory for the buffers");
	fill_window(&bench);
	if (operation_of(&bench))
		bench.recv = transport_expose(options.allocated ? NULL : bench.recv, most);
	if (options.misses) {
		bench.counts = misses_open(why, sizeof(why));
		if (!bench.counts && !bench.me.rank)
			printf("# Cache misses were not counted: %s.\n", why);
	}
	for (unsigned int i = 0; i < options.sizes.count; i++)
		measure(&bench, options.sizes.at[i]);
	transport_close(0);
}
