/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong of 2 ranks over one transport, as the Intel MPI Benchmarks time it: the same buffers
 * each time. With --touch the ranks behave as a program that communicates: they read what they
 * received and write what they send next, inside the timed part. With --stream rank 0 sends many
 * messages at once, with --both each rank does: the bandwidth, one way and both.
 *
 * Rank 0 prints lines as lab/experiment/run.h has them: the throughput of each size, the time of a
 * message, its cache misses. Every size is verified before it is timed.
 */
#include "pingpong.h"
#include "lab/harness/clock.h"
#include "lab/harness/options.h"
#include "lab/harness/stats.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 64, CPUS = 64, SAMPLES = 1001, SAMPLES_LEAST = 5, WARM_UP = 3, LINE = 64 };
/* Samples between two looks at the distance of the CPUs: see distance.c. */
#define BLOCKS 10
/* A sample is of as many round trips as take this long: the clock is not to be measured. */
#define SAMPLE_S 5e-6
/* As of onecopy bench p2p: an MPI counts a message in an int. */
#define BYTES_MOST (1L << 30)
/* Messages under way at once with --stream and --both. */
#define WINDOW 16

struct options {
	size_t bytes[SIZES];
	unsigned int sizes;
	size_t cpus[CPUS];
	unsigned int cpu_count;
	double seconds;
	struct range token_ns;
	bool touch, stream, both, misses, shared;
};

struct bench {
	struct transport me;
	const struct options *options;
	uint8_t *send, *recv;
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
	unsigned int sends = b->options->both || !b->me.rank ? WINDOW : 0;
	unsigned int receives = b->options->both || b->me.rank ? WINDOW : 0;

	for (unsigned int i = 0; i < count; i++) {
		transport_window(!b->me.rank, b->send, sends, b->recv, receives, bytes);
		if (b->me.rank)
			transport_send(0, b->send, 0);
		else
			transport_recv(1, b->recv, 0);
	}
}

/* Every byte of the first exchange. */
static void verify(struct bench *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		b->send[i] = byte_of(b->me.rank, i);
	memset(b->recv, 0xff, bytes);
	if (b->me.rank) {
		transport_recv(0, b->recv, bytes);
		transport_send(0, b->send, bytes);
	} else {
		transport_send(1, b->send, bytes);
		transport_recv(1, b->recv, bytes);
	}
	for (size_t i = 0; i < bytes; i++)
		if (b->recv[i] != byte_of(!b->me.rank, i))
			fail_at(bytes);
}

/* Rank `from`'s word, on both. */
static uint64_t tell(struct bench *b, uint32_t from, uint64_t word)
{
	if (b->me.rank == from)
		transport_send(!from, &word, sizeof(word));
	else
		transport_recv(from, &word, sizeof(word));
	return word;
}

static bool by_windows(const struct bench *b)
{
	return b->options->stream || b->options->both;
}

static void (*what_to_do(const struct bench *b))(struct bench *, size_t, unsigned int)
{
	return by_windows(b) ? windows : round_trips;
}

/* In one of these, one after the other. */
static uint32_t messages_of(const struct bench *b)
{
	return by_windows(b) ? WINDOW : 2;
}

/* Returns how many were made: at least `count`, which are those that count. */
static unsigned int take_samples(struct bench *b, size_t bytes, unsigned int batch,
				 unsigned int count, double *samples)
{
	void (*go)(struct bench *, size_t, unsigned int) = what_to_do(b);
	uint32_t messages = messages_of(b);
	unsigned int block = count / BLOCKS + 1, made = 0, n;

	distance_begin();
	for (unsigned int i = 0; i < count;) {
		n = block < count - i ? block : count - i;
		for (unsigned int k = i; k < i + n; k++) {
			double begin = now_s();

			go(b, bytes, batch);
			samples[k] = (now_s() - begin) / (batch * messages);
		}
		made += n;
		i += distance_keeps() ? n : 0;
	}
	return made;
}

static void print(const struct bench *b, size_t bytes, double s, double misses)
{
	double moved = (double)bytes * (b->options->both ? 2 : 1);

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
	unsigned int count, batch, made;
	uint64_t misses, theirs, word;

	verify(b, bytes);
	go(b, bytes, WARM_UP);
	begin = now_s();
	go(b, bytes, WARM_UP);
	each = (now_s() - begin) / WARM_UP;
	batch = each < SAMPLE_S ? (unsigned int)(SAMPLE_S / each) + 1 : 1;
	count = (unsigned int)(b->options->seconds / (each * batch));
	count = count > SAMPLES ? SAMPLES : count < SAMPLES_LEAST ? SAMPLES_LEAST : count;
	word = tell(b, 0, (uint64_t)batch << 32 | count);
	batch = (unsigned int)(word >> 32);
	count = (unsigned int)word;
	misses = b->counts ? misses_read() : 0;
	made = take_samples(b, bytes, batch, count, samples);
	misses = b->counts ? misses_read() - misses : 0;
	theirs = tell(b, 1, misses);
	if (b->me.rank)
		return;
	print(b, bytes, stats_median(samples, count),
	      (double)(misses + theirs) / ((double)made * batch * messages));
}

static void bind_rank(const struct options *options, uint32_t rank)
{
	cpu_set_t mine;

	if (!options->cpu_count)
		return;
	CPU_ZERO(&mine);
	CPU_SET(options->cpus[rank % options->cpu_count], &mine);
	if (!sched_setaffinity(0, sizeof(mine), &mine))
		return;
	fprintf(stderr, "pingpong: rank %u cannot be bound to CPU %zu: %s\n", rank,
		options->cpus[rank % options->cpu_count], strerror(errno));
	transport_close(1);
}

/* "0,8,64": whole numbers up to `most`. */
static void take_list(const char *name, const char *text, long most, size_t *list,
		      unsigned int *count, unsigned int room)
{
	char *copy = strdup(text), *rest = copy, *word;
	long number;

	while ((word = strsep(&rest, ","))) {
		if (*count == room || long_parse(word, 0, most, &number))
			usage("--%s takes up to %u whole numbers from 0 to %ld, not '%s'", name,
			      room, most, word);
		list[(*count)++] = (size_t)number;
	}
	free(copy);
}

static void take_bytes(void *choice, const char *text)
{
	struct options *options = choice;

	take_list("bytes", text, BYTES_MOST, options->bytes, &options->sizes, SIZES);
}

static void take_cpus(void *choice, const char *text)
{
	struct options *options = choice;

	take_list("cpus", text, CPU_SETSIZE - 1, options->cpus, &options->cpu_count, CPUS);
}

static void take_range(void *options, const char *text)
{
	range_take("--token-ns", text, 1e6, &((struct options *)options)->token_ns);
}

#define AT(member) .place = offsetof(struct options, member)

static const struct option_set set = {
	.rows =
		(const struct option_row[]){
			{ "bytes", 0, "LIST", "Of the messages", .take = take_bytes },
			{ "cpus", 0, "LIST", "That the ranks are bound to", .take = take_cpus },
			{ "seconds", 0, "S", "Of each size", OPTION_FRACTION, AT(seconds), 1e-9,
			  60 },
			{ "touch", 0, NULL, "Received bytes are read, and sent ones written before",
			  AT(touch) },
			{ "stream", 0, NULL, "Many messages at once from rank 0", AT(stream) },
			{ "both", 0, NULL, "Many messages at once from either", AT(both) },
			{ "misses", 0, NULL, "Count cache misses", AT(misses) },
			{ "shared", 0, NULL, "Buffers lie in memory that peers map", AT(shared) },
			{ "token-ns", 0, "LOW:HIGH",
			  "Count only what a token took so long before and behind",
			  .take = take_range },
			{ 0 } },
	.about = "Times messages between 2 ranks. Run by onecopy bench p2p and messages.",
};

int main(int argc, char **argv)
{
	struct options options = { .seconds = 0.02 };
	struct bench bench = { .options = &options };
	size_t most = 0;
	char why[256];

	options_parse(&set, argc, argv, &options);
	if (!options.sizes)
		usage("--bytes says how long messages are, as in --bytes 8,64,4096");
	transport_open(&bench.me, &argc, &argv);
	if (bench.me.ranks != 2)
		fail("a ping-pong takes 2 ranks");
	bind_rank(&options, bench.me.rank);
	distance_open(&bench.me, options.token_ns.low, options.token_ns.high);
	for (unsigned int i = 0; i < options.sizes; i++)
		most = options.bytes[i] > most ? options.bytes[i] : most;
	most = most ? most : 1;
	bench.send = transport_memory(most, options.shared);
	bench.recv = transport_memory(most, options.shared);
	if (!bench.send || !bench.recv)
		fail(options.shared ? "no memory that peers can map" : "no memory for the buffers");
	if (options.misses) {
		bench.counts = misses_open(why, sizeof(why));
		if (!bench.counts && !bench.me.rank)
			printf("# Cache misses were not counted: %s.\n", why);
	}
	for (unsigned int i = 0; i < options.sizes; i++)
		measure(&bench, options.bytes[i]);
	transport_close(0);
}
