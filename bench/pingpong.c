/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stats.h"

#define BATCH_US 3000.0 /* of a batch: long against the clock, short against the scheduler */
#define MOST_BATCHES 101

struct buffers {
	uint8_t *send, *receive;
	size_t bytes;
};

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void fill(uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(seed * 37 + i + (i >> 8));
}

static bool is_filled(const uint8_t *at, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++) {
		if (at[i] != (uint8_t)(seed * 37 + i + (i >> 8)))
			return false;
	}
	return true;
}

static uint64_t sum_of(const uint8_t *at, size_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < bytes; i += 64)
		sum += at[i];
	return sum;
}

/* Round trips, begun by rank 0; the time of all in microseconds. */
static double trips(const struct pingpong *p, const struct buffers *b, unsigned int count,
		    bool touch)
{
	/* Written so that the sum is not left out. */
	static volatile uint64_t kept __attribute__((unused));
	double start = now_us();

	for (unsigned int i = 0; i < count; i++) {
		if (p->rank == 0)
			p->send(p->context, b->send, b->bytes);
		p->receive(p->context, b->receive, b->bytes);
		if (touch)
			kept += sum_of(b->receive, b->bytes);
		if (p->rank == 1)
			p->send(p->context, b->send, b->bytes);
	}
	return now_us() - start;
}

static bool verify(const struct pingpong *p, const struct buffers *b, unsigned int seed)
{
	fill(b->send, b->bytes, seed + (unsigned int)p->rank);
	memset(b->receive, 0xee, b->bytes);
	trips(p, b, 1, false);
	return is_filled(b->receive, b->bytes, seed + 1u - (unsigned int)p->rank);
}

/* How many trips a batch has: rank 0 finds out and tells. */
static unsigned int plan(const struct pingpong *p, const struct buffers *b, bool quick)
{
	uint32_t count = quick ? 4 : 16;

	if (!quick) {
		double us = 0;

		while (p->rank == 0 && us < BATCH_US / 4 && count < 1u << 20) {
			p->send(p->context, &count, sizeof(count));
			us = trips(p, b, count, false);
			count *= 2;
		}
		if (p->rank == 0) {
			uint32_t end = 0;

			count = (uint32_t)(count / 2 * BATCH_US / (us + 0.01)) + 1;
			p->send(p->context, &end, sizeof(end));
		}
		while (p->rank == 1) {
			uint32_t asked;

			p->receive(p->context, &asked, sizeof(asked));
			if (!asked)
				break;
			trips(p, b, asked, false);
		}
	}
	if (p->rank == 0)
		p->send(p->context, &count, sizeof(count));
	else
		p->receive(p->context, &count, sizeof(count));
	return count;
}

static int run_size(const struct pingpong *p, const struct pingpong_options *o, size_t bytes)
{
	void *(*alloc)(size_t) = p->alloc ? p->alloc : malloc;
	void (*release)(void *) = p->free ? p->free : free;
	struct buffers b = { alloc(bytes + 1), alloc(bytes + 1), bytes };
	double us[MOST_BATCHES];
	unsigned int count, batches = o->quick ? 3 : o->batches;
	bool right;

	if (!b.send || !b.receive) {
		fprintf(stderr, "%s: no memory for messages of %zu bytes\n", p->program, bytes);
		exit(1);
	}
	right = verify(p, &b, 1);
	count = plan(p, &b, o->quick);
	for (unsigned int i = 0; i < batches; i++)
		us[i] = trips(p, &b, count, o->touch) / count / 2;
	right &= verify(p, &b, 7);
	if (!right)
		fprintf(stderr, "%s: wrong bytes in a message of %zu\n", p->program, bytes);
	if (p->rank == 0) {
		double median = stats_median(us, batches);

		printf("%-12s %10zu %12.3f %12.1f\n", o->name, bytes, median,
		       (double)bytes / median * 1e6 / (1 << 20));
		fflush(stdout);
	}
	release(b.send);
	release(b.receive);
	return !right;
}

int pingpong_parse(int argc, char **argv, struct pingpong_options *o)
{
	*o = (struct pingpong_options){ .least = 1,
					.most = (size_t)16 << 20,
					.batches = 15,
					.name = argv[0] };
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			o->quick = true;
		} else if (!strcmp(argv[i], "--touch")) {
			o->touch = true;
		} else if (!strcmp(argv[i], "--name") && i + 1 < argc) {
			o->name = argv[++i];
		} else if (!strcmp(argv[i], "--least") && i + 1 < argc) {
			o->least = strtoul(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--most") && i + 1 < argc) {
			o->most = strtoul(argv[++i], NULL, 0);
		} else {
			fprintf(stderr,
				"usage: %s [--quick] [--touch] [--name NAME] [--least BYTES] "
				"[--most BYTES]\n",
				argv[0]);
			return 2;
		}
	}
	return 0;
}

int pingpong_run(const struct pingpong *p, const struct pingpong_options *o)
{
	int failed = 0;

	for (size_t bytes = o->least; bytes <= o->most; bytes *= 2) {
		failed |= run_size(p, o, bytes);
		if (!bytes)
			break;
	}
	return failed;
}
