/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the two HPL codelets share (hpl_codelet.c over an MPI, graph_codelet.c over onecopy's
 * graphs): products of small matrices, how many fit a time, and how ways to broadcast take turns
 * beside them. A. Nomura and Y. Ishikawa, "Design of Kernel-level Asynchronous Collective
 * Communication", EuroMPI 2010, section 5; the code is our own.
 *
 * Rows of rank 0: where, ranks, tree, bytes, segment, matrix, way, then medians over the rounds:
 *
 *	us         until the slowest rank has the panel
 *
 *	lost       CPU time lost, %: 1 - products done / those that fit the time; mean of the ranks
 *
 *	low, high  where the median of lost lies: interval()
 *
 *	root_lost  of rank 0
 *
 *	cpu_us     a rank's CPU time that was not its products', interrupts included
 *
 *	total_us   of the panel and as many products as fit its time at `gbit`
 *
 *	low, high  of total_us
 *
 * The time of `lost` and `cpu_us` is until the rank has the panel, or has handed it on, and no less
 * than the panel takes at `gbit` Gbit/s: what a root has put into its socket is sent meanwhile.
 * Unlike `lost`, `cpu_us` does not hold what other processes took.
 */
#ifndef EXAMPLES_CODELET_H
#define EXAMPLES_CODELET_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CODELET_LIST_MOST = 16, CODELET_ROUNDS_MOST = 99, CODELET_MATRIX_MOST = 64 };
enum { CODELET_WAYS_MOST = 8 };

struct codelet_list {
	size_t count, value[CODELET_LIST_MOST];
};

struct told {
	double us, lost, cpu_us;
};

/* How the panel of one cell is broadcast; `way` is below `ways`. */
struct codelet {
	const char *where, *tree;
	const char *const *names;
	unsigned int rank, size, ways, rounds;
	size_t bytes, segment, matrix;
	double gbit;
	struct told (*until_there)(const struct codelet *codelet, unsigned int way, double rate);
	void (*with_work)(unsigned int way, size_t matrix, unsigned long work);
	void (*fill)(unsigned int turn);
	void (*check)(unsigned int turn);
	/* The sum of all ranks' numbers, or their largest, on all; so all have come here, too. */
	double (*combine)(double mine, bool sum);
};

static double codelet_a[CODELET_MATRIX_MOST * CODELET_MATRIX_MOST],
	codelet_b[CODELET_MATRIX_MOST * CODELET_MATRIX_MOST],
	codelet_c[CODELET_MATRIX_MOST * CODELET_MATRIX_MOST];

static double codelet_seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of a panel at so many Gbit/s. */
static double codelet_nominal(const struct codelet *c)
{
	return 8e-9 * (double)c->bytes / c->gbit;
}

static double now(void)
{
	return codelet_seconds(CLOCK_MONOTONIC);
}

__attribute__((noinline)) static void multiply(size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			double s = 0;

			for (size_t k = 0; k < n; k++)
				s += codelet_a[i * n + k] * codelet_b[k * n + j];
			codelet_c[i * n + j] = s;
		}
	/* Nobody reads it: to the compiler somebody may. */
	__asm__ volatile("" : : "r"(codelet_c) : "memory");
}

static int codelet_compare(const void *left, const void *right)
{
	double l = *(const double *)left, r = *(const double *)right;

	return (l > r) - (l < r);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), codelet_compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Of sorted values: their k-th from both ends, the largest k with which the median of what they are
 * drawn from lies between these with 95 %; of fewer than 6 the ends. */
static void interval(const double *sorted, size_t count, double *low, double *high)
{
	double below = pow(0.5, (double)count), choose = below;
	size_t k = 0;

	/* below: that at most k of them are less than that median. */
	while (k < count / 2) {
		choose *= (double)(count - k) / (double)(k + 1);
		if (below + choose > 0.025)
			break;
		below += choose;
		k++;
	}
	*low = sorted[k];
	*high = sorted[count - 1 - k];
}

/* Products a second where nothing else goes on, all ranks at it: the median of many batches, each
 * long enough that the clock does not count, so that who takes the CPU now and then does not,
 * either.
 */
static double measure_rate(const struct codelet *c, size_t n)
{
	enum { BATCHES = 250 };
	static unsigned long batch[CODELET_MATRIX_MOST + 1];
	double rate[BATCHES];

	c->combine(0, true);
	for (batch[n] += !batch[n];; batch[n] *= 2) {
		double begin = now();

		for (unsigned long i = 0; i < batch[n]; i++)
			multiply(n);
		if (now() - begin > 2e-5)
			break;
	}
	for (int b = 0; b < BATCHES; b++) {
		double begin = now();

		for (unsigned long i = 0; i < batch[n]; i++)
			multiply(n);
		rate[b] = (double)batch[n] / (now() - begin);
	}
	return median(rate, BATCHES);
}

struct codelet_time {
	double wall, cpu;
};

static struct codelet_time codelet_begin(void)
{
	return (struct codelet_time){ now(), codelet_seconds(CLOCK_PROCESS_CPUTIME_ID) };
}

/* Products until then, and how many they were. */
static unsigned long compute_until(double end, size_t n, double rate)
{
	unsigned long count = 0, batch = 1 + (unsigned long)(2e-6 * rate);

	while (now() < end)
		for (unsigned long i = 0; i < batch; i++, count++)
			multiply(n);
	return count;
}

/* A rank has the panel, and has done so many products meanwhile. */
static struct told codelet_told(const struct codelet *c, struct codelet_time begin,
				unsigned long products, double rate)
{
	double us = 1e6 * (now() - begin.wall), wall, cpu;

	products += compute_until(begin.wall + codelet_nominal(c), c->matrix, rate);
	wall = now() - begin.wall;
	cpu = codelet_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu;
	return (struct told){ us, 100 * (1 - (double)products / (rate * wall)),
			      1e6 * (cpu - (double)products / rate) };
}

struct codelet_samples {
	double us[CODELET_ROUNDS_MOST], lost[CODELET_ROUNDS_MOST], root_lost[CODELET_ROUNDS_MOST],
		cpu[CODELET_ROUNDS_MOST], total[CODELET_ROUNDS_MOST];
};

static void codelet_print(const struct codelet *c, unsigned int way, struct codelet_samples *s)
{
	double lost = median(s->lost, c->rounds), total = median(s->total, c->rounds);
	double low, high, total_low, total_high;

	interval(s->lost, c->rounds, &low, &high);
	interval(s->total, c->rounds, &total_low, &total_high);
	printf("%s,%u,%s,%zu,%zu,%zu,%s,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f\n", c->where,
	       c->size, c->tree, c->bytes, c->segment, c->matrix, c->names[way],
	       median(s->us, c->rounds), lost, low, high, median(s->root_lost, c->rounds),
	       median(s->cpu, c->rounds), total, total_low, total_high);
	fflush(stdout);
}

/* One cell: all ways in turns, each panel another one. `wanted`: bit w for way w. */
static void codelet_run(const struct codelet *c, unsigned int wanted)
{
	static struct codelet_samples samples[CODELET_WAYS_MOST];
	static unsigned int turn;
	size_t n = c->matrix;

	for (int i = 0; i < CODELET_MATRIX_MOST * CODELET_MATRIX_MOST; i++)
		codelet_a[i] = codelet_b[i] = (double)(i % 17) / 16;
	/* The first round, which is not counted, makes rings, threads and connections. */
	for (unsigned int r = 0; r <= c->rounds; r++)
		for (unsigned int w = 0; w < c->ways; w++) {
			unsigned int way = (w + r) % c->ways, at = r ? r - 1 : 0;
			struct codelet_samples *s = &samples[way];
			double rate, begin;
			unsigned long work;
			struct told told;

			if (!(wanted >> way & 1))
				continue;
			c->fill(++turn);
			rate = measure_rate(c, n);
			c->combine(0, true);
			told = c->until_there(c, way, rate);
			c->check(turn);
			s->us[at] = c->combine(told.us, false);
			s->lost[at] = c->combine(told.lost, true) / c->size;
			s->root_lost[at] = told.lost;
			s->cpu[at] = c->combine(told.cpu_us, true) / c->size;
			/* The same on all ranks. */
			work = (unsigned long)(c->combine(rate, true) / c->size *
					       codelet_nominal(c)) +
			       1;
			c->combine(0, true);
			begin = now();
			c->with_work(way, n, work);
			s->total[at] = c->combine(1e6 * (now() - begin), false);
		}
	for (unsigned int way = 0; way < c->ways && !c->rank; way++)
		if (wanted >> way & 1)
			codelet_print(c, way, &samples[way]);
}

/* Numbers, or words of `names`: their places in it. */
static bool codelet_list(const char *text, const char *const *names, size_t count,
			 struct codelet_list *list)
{
	char *copy = strdup(text), *place = NULL;
	bool fine = copy;

	list->count = 0;
	for (char *word = fine ? strtok_r(copy, ",", &place) : NULL; word && fine;
	     word = strtok_r(NULL, ",", &place)) {
		char *end = word;
		size_t value = names ? 0 : strtoul(word, &end, 10);

		while (names && value < count && strcmp(word, names[value]))
			value++;
		/* A minus is what strtoul() would take, too. */
		fine = list->count < CODELET_LIST_MOST &&
		       (names ? value < count : *word >= '0' && *word <= '9' && !*end);
		if (fine)
			list->value[list->count++] = value;
	}
	free(copy);
	return fine && list->count;
}

#endif
