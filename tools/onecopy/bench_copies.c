/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copies without a collective: mechanisms against each other, and how copiers of one process
 * hold each other up. The experiments are those of lab/tune.
 */
#include "bench.h"
#include "command.h"
#include "lab/tune/measure.h"
#include "lab/tune/tune.h"
#include "measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINT_S 0.05
#define POINT_QUICK_S 0.01
#define KIB ((size_t)1 << 10)
/* Farther apart, two copiers meet at no page of the page table: it covers so much. */
#define FAR ((size_t)2 << 20)

enum { KINDS = 4, SIZES_A_TURN = 8, COPIERS_MOST = 32, CONTENTION_SIZES = 4 };

static const struct {
	enum oci_measure_kind kind;
	const char *name;
} kinds[KINDS] = {
	{ OCI_MEASURE_MEMCPY, "memcpy within a rank" },
	{ OCI_MEASURE_MAP, "map: memcpy from shared memory" },
	{ OCI_MEASURE_CMA, "cma: process_vm_readv" },
	{ OCI_MEASURE_SHM, "shm: in and out of a slot, 2 ranks" },
};

static const size_t contention_sizes[CONTENTION_SIZES] = { 4 * KIB, 64 * KIB, 256 * KIB,
							   1024 * KIB };

static struct {
	struct oci_tune_world world;
	struct figure *rates;
	struct figure *latency, *throughput, *gamma;
	size_t copiers[COPIERS_MOST];
	unsigned int copiers_count;
	bool contention_refused;
} copies;

static void open_world(struct bench *bench, uint32_t most_ranks)
{
	const unsigned int *cpus;
	uint32_t count = oci_tune_cpus(&cpus);
	int error = oci_tune_world_create(&copies.world, cpus, count,
					  bench->options.quick ? POINT_QUICK_S : POINT_S,
					  most_ranks);

	if (error) {
		say("the measuring ranks have no memory to share: %s", strerror(-error));
		exit(1);
	}
}

static struct figure *new_figure(struct bench *bench, const char *name, const char *title,
				 const char *unit, const char *about)
{
	struct figure *figure =
		figure_new(&bench->results, copies.copiers, copies.copiers_count, unit, "%s", name);

	figure->title = title;
	figure->about = about;
	figure->x_name = "copiers";
	figure->x_is_bytes = false;
	return figure;
}

static int measure_kind(struct results *results, struct step *step, unsigned int round);
static int measure_contention(struct results *results, struct step *step, unsigned int round);

/* They are in order. */
static unsigned int sizes_that_fit(const struct size_list *sizes)
{
	double left = (double)oci_tune_memory_left();
	unsigned int count = sizes->count;
	char error[128], at[32];

	while (count && oci_measure_copies_need(sizes->at[count - 1]) > left) {
		size_t bytes = sizes->at[--count];

		measure_no_room(oci_measure_copies_need(bytes), left, 2, error, sizeof(error));
		bytes_text(bytes, at, sizeof(at));
		figure_note(copies.rates, "%s is left out: %s.", at, error);
	}
	return count;
}

static void plan_mechanisms(struct bench *bench)
{
	copies.rates = new_figure(
		bench, "mechanisms", "Mechanisms: rate of a copy from another process", "GB/s",
		"One copier; the source has just been written by its owner, targets rotate through "
		"more than the private caches hold. The time of a copy with its start and locks.");
	copies.rates->x = bench->options.sizes.at;
	copies.rates->x_count = sizes_that_fit(&bench->options.sizes);
	copies.rates->x_name = "bytes";
	copies.rates->x_is_bytes = true;
	copies.rates->more_is_better = copies.rates->compared = true;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		results_step(&bench->results, measure_kind, NULL, kind, "%s", kinds[kind].name);
}

/* All numbers up to 8, then about every 1.4th. */
static void choose_copiers(uint32_t most)
{
	for (uint32_t c = 1; copies.copiers_count < COPIERS_MOST;) {
		copies.copiers[copies.copiers_count++] = c;
		if (c == most)
			return;
		c += c < 8 ? 1 : c * 2 / 5;
		if (c > most)
			c = most;
	}
}

static void plan_contention(struct bench *bench, uint32_t most)
{
	choose_copiers(most);
	copies.latency = new_figure(
		bench, "contention-latency", "Copiers at a time: time of a copy", "us",
		"Single copies (cma), all begin together: reads of parts of one process's memory that "
		"lie side by side or 2 MiB apart, or of one buffer; writes to parts of it side by "
		"side; or each from or to another process.");
	copies.latency->log_y = true;
	copies.throughput = new_figure(
		bench, "contention-throughput",
		"Copiers of one process: throughput against that of one copier", "times",
		"Bytes that all copiers move in a second, over those of a single copier in the same "
		"round.");
	copies.throughput->more_is_better = true;
	copies.gamma = new_figure(
		bench, "contention-gamma", "Copiers of one process: what a page lock costs",
		"gamma",
		"1 + (time from one process - time from a process each) / (lock time of the pages "
		"alone, by this machine's model). 1: the copiers do not hold each other up.");
	results_turn(&bench->results);
	for (unsigned int i = 0; i < CONTENTION_SIZES; i++) {
		char size[32];

		bytes_text(contention_sizes[i], size, sizeof(size));
		results_step(&bench->results, measure_contention, NULL, i,
			     "contention, up to %u copiers, %s", most, size);
	}
	if (most < bench->options.ranks)
		figure_note(copies.latency,
			    "Up to %u copiers, not %u: those that share a CPU do not contend.",
			    most, bench->options.ranks);
	if (most == 1)
		figure_note(copies.latency, "There is one CPU: nothing can contend.");
}

void bench_copies_plan(struct bench *bench)
{
	uint32_t most = bench->options.ranks < bench->cpus ? bench->options.ranks : bench->cpus;

	open_world(bench, most + 2);
	results_turn(&bench->results);
	if (bench->options.what & BENCH_MECHANISMS)
		plan_mechanisms(bench);
	if (bench->options.what & BENCH_CONTENTION)
		plan_contention(bench, most);
}

static int measure_kind(struct results *results, struct step *step, unsigned int round)
{
	struct figure *figure = copies.rates;
	unsigned int kind = step->at;
	unsigned int series = figure_series(figure, kinds[kind].name);

	for (unsigned int first = 0; first < figure->x_count; first += SIZES_A_TURN) {
		struct oci_measure_sizes sizes = { .count = 0 };
		struct oci_tune_point point[SIZES_A_TURN];
		char why[256] = "";

		while (sizes.count < SIZES_A_TURN && first + sizes.count < figure->x_count) {
			sizes.bytes[sizes.count] = figure->x[first + sizes.count];
			sizes.count++;
		}
		if (oci_measure_copies(&copies.world, kinds[kind].kind, &sizes, point, why,
				       sizeof(why))) {
			bench_leave_out(step, figure, kinds[kind].name, why);
			return 0;
		}
		for (unsigned int i = 0; i < sizes.count; i++)
			figure_add(figure, figure_cell(figure, series, first + i), round,
				   1e-9 * (double)sizes.bytes[i] / point[i].value);
	}
	(void)results;
	return 0;
}

/* Seconds of a copy; NaN, and no more contention, when it cannot be measured. */
static double contention_s(const struct oci_measure_contended *of)
{
	struct oci_tune_point point;
	char why[256] = "";

	if (copies.contention_refused)
		return NAN;
	if (!oci_measure_contention(&copies.world, of, &point, why, sizeof(why)))
		return point.value;
	copies.contention_refused = true;
	figure_note(copies.latency, "Contention was not measured: %s.", why);
	return NAN;
}

static void add(struct figure *figure, size_t bytes, const char *where, unsigned int x,
		unsigned int round, double value)
{
	char size[32], name[64];

	bytes_text(bytes, size, sizeof(size));
	snprintf(name, sizeof(name), "%s, %s", size, where);
	figure_add(figure, figure_cell(figure, figure_series(figure, name), x), round, value);
}

/* Figures 2, 3 and 6 of paper 002: all to all, one to all from other places and from the same one,
 * all to one. */
static void measure_copiers(size_t bytes, unsigned int x, unsigned int round, double *single)
{
	static const struct {
		const char *name;
		size_t apart; /* 0: the block's size */
		bool shared, push;
	} places[] = { { "read side by side", 0, false, false },
		       { "read 2M apart", FAR, false, false },
		       { "one buffer read", 0, true, false },
		       { "written side by side", 0, false, true } };
	struct oci_measure_contended of = { .copiers = (uint32_t)copies.copiers[x],
					    .bytes = bytes };
	double lock = oci_model_lock_s(oci_model_current(NULL), OCI_MODEL_CMA, bytes, 1);
	double each[2] = { NAN, NAN }; /* read, written */

	of.where = OCI_MEASURE_EACH;
	for (int push = 0; push < 2 && of.copiers > 1; push++) {
		of.push = push;
		each[push] = contention_s(&of);
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		double one;

		of.where = places[i].shared ? OCI_MEASURE_SHARED : OCI_MEASURE_APART;
		of.apart = places[i].apart ? places[i].apart : bytes;
		of.push = places[i].push;
		one = contention_s(&of);
		if (copies.contention_refused)
			return;
		/* A single copier's places are all alike: the first one's, by direction. */
		if (of.copiers == 1 && (!i || places[i].push))
			single[of.push] = one;
		add(copies.latency, bytes, places[i].name, x, round, 1e6 * one);
		add(copies.throughput, bytes, places[i].name, x, round,
		    of.copiers * single[of.push] / one);
		if (of.copiers > 1 && lock > 0)
			add(copies.gamma, bytes, places[i].name, x, round,
			    1 + (one - each[of.push]) / lock);
	}
	if (of.copiers > 1) {
		add(copies.latency, bytes, "a process each read", x, round, 1e6 * each[0]);
		add(copies.latency, bytes, "a process each written", x, round, 1e6 * each[1]);
	}
}

static int measure_contention(struct results *results, struct step *step, unsigned int round)
{
	double single[2] = { NAN, NAN }; /* read, written */

	for (unsigned int x = 0; x < copies.copiers_count && !copies.contention_refused; x++)
		measure_copiers(contention_sizes[step->at], x, round, single);
	(void)results;
	return 0;
}

void bench_copies_end(void)
{
	if (copies.world.shared)
		oci_tune_world_destroy(&copies.world);
}
