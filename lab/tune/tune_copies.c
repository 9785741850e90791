/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and contention into terms. */
#include "lab/harness/stats.h"
#include "lab/tune/fit.h"
#include "lab/tune/tuning.h"
#include "os/os.h"

#include <stdio.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
/* Copies of the contention experiment: long beside a system call, short enough for private caches.
 */
#define CONTENTION_BYTES (256 * KIB)
#define MOST_STEPS 64
/* Of each number of copiers: of one process and of one each, in turns. */
#define TURNS 3

/* Samples that lie further apart than this say more about the machine's other work. */
#define CALM 0.25

/*
 * The points of sizes [first, last) that were measured in calm, or all when none was: x in bytes, y
 * in seconds less what each size takes besides its bytes. Returns their number.
 */
static size_t calm_points(const struct oci_tuning *t, const struct oci_tune_point *point,
			  const double *base, size_t first, size_t last, double *x, double *y)
{
	size_t count = 0;

	for (int any = 0; any < 2 && !count; any++) {
		for (size_t i = first; i < last; i++) {
			if (!any && point[i].residual > CALM)
				continue;
			x[count] = (double)t->sizes.bytes[i];
			y[count] = point[i].value - base[i];
			if (y[count] <= 0)
				y[count] = point[i].value / 100; /* start and locks are all of it */
			count++;
		}
	}
	return count;
}

static void give_rate(struct oci_tuning *t, const char *beta, const struct oci_tune_point *point,
		      const double *base, size_t first, size_t last, const char *how)
{
	double x[8] = { 0 }, y[8] = { 0 };
	size_t count = calm_points(t, point, base, first, last, x, y);
	struct oci_fit_line line = oci_fit_slope(x, y, count);

	oci_tuning_give(t, beta, line.slope, line.residual, "%s, %.0f to %.0f KiB", how, x[0] / KIB,
			x[count - 1] / KIB);
}

/* Rates without a start are those from the second size on: 16 KiB. */
#define SLOPES 1

/* Rates of one mechanism below and above the size where the cache ends. */
static void give_rates(struct oci_tuning *t, const char *beta, const char *beta_memory,
		       const struct oci_tune_point *point, const double *base, const char *how)
{
	bool calm = false;

	for (size_t i = t->split; i < t->sizes.count; i++)
		calm |= point[i].residual <= CALM;
	if (beta)
		give_rate(t, beta, point, base, SLOPES, t->split, how);
	/* Without a calm point the rate of the smaller sizes is the better guess: that of a term
	 * that is not given. */
	if (calm)
		give_rate(t, beta_memory, point, base, t->split, t->sizes.count, how);
}

/* The names of a mechanism's terms in one direction. */
struct names {
	const char *alpha, *beta, *beta_memory;
};

/*
 * Start and rate together, by a line: a copy begins later in a program, whose caches hold other
 * things, than alone again and again, which takes `least`. locks: of each size.
 */
static void give_start_and_rates(struct oci_tuning *t, const struct names *names,
				 const struct oci_tune_point *point, const double *locks,
				 double least, const char *how)
{
	double x[8] = { 0 }, y[8] = { 0 }, base[8];
	size_t count = calm_points(t, point, locks, 0, t->split, x, y);
	struct oci_fit_line line = oci_fit_line(x, y, count);

	if (line.intercept < least) {
		for (size_t i = 0; i < t->sizes.count; i++)
			base[i] = locks[i] + least;
		count = calm_points(t, point, base, 0, t->split, x, y);
		line = oci_fit_slope(x, y, count);
		line.intercept = least;
	}
	oci_tuning_give(
		t, names->alpha, line.intercept, line.residual,
		"where the line of copies begins, %.0f to %.0f KiB; of nothing else again and "
		"again: %.3g us",
		x[0] / KIB, x[count - 1] / KIB, 1e6 * least);
	oci_tuning_give(t, names->beta, line.slope, line.residual, "%s, %.0f to %.0f KiB", how,
			x[0] / KIB, x[count - 1] / KIB);
	for (size_t i = 0; i < t->sizes.count; i++)
		base[i] = locks[i] + line.intercept;
	give_rates(t, NULL, names->beta_memory, point, base, how);
}

/* Where the cache ends: by local copies, which nothing else slows down. */
static void find_split(struct oci_tuning *t, const struct oci_tune_point *point)
{
	const double base[8] = { 0 };
	double x[8] = { 0 }, y[8] = { 0 };
	size_t count = calm_points(t, point, base, SLOPES, t->sizes.count, x, y);
	size_t split = oci_fit_split(x, y, count);

	if (split == count)
		return;
	for (t->split = SLOPES + 1; (double)t->sizes.bytes[t->split] < x[split];)
		t->split++;
	oci_tuning_give(
		t, "cache.bytes", 2 * (double)t->sizes.bytes[t->split - 1], 0,
		"twice the largest size that is copied locally at the rate of the smaller ones");
}

static int take_copies(struct oci_tuning *t, unsigned int kind, struct oci_tune_point *point)
{
	return oci_measure_copies(&t->world, kind, &t->sizes, point, t->why, t->why_bytes);
}

static int copies(struct oci_tuning *t, enum oci_measure_kind kind, const char *what,
		  struct oci_tune_point *point)
{
	int error = oci_tuning_points(t, kind, what, take_copies, point, t->sizes.count);

	for (size_t i = 0; !error && oci_tuning_is_over(t) && i < t->sizes.count; i++)
		if (point[i].residual > CALM)
			oci_tuning_note(
				t,
				"%s of %zu KiB: the quartiles lie %.0f %% around the median, "
				"so other work was in the way; left out where calmer sizes are "
				"there",
				what, t->sizes.bytes[i] / KIB, 100 * point[i].residual);
	return error;
}

static int take_pages(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	(void)series;
	return oci_measure_pages(&t->world, point, t->why, t->why_bytes);
}

/* alpha, l and beta, of reads and of writes. */
int oci_tuning_cma(struct oci_tuning *t)
{
	struct oci_tune_point page[OCI_MEASURE_PAGES], point[8], write[8];
	double locks[8], lock, page_bytes = (double)oci_os_page_bytes();
	int error = oci_tuning_points(t, OCI_TUNING_PAGES, "cma: start and page locks", take_pages,
				      page, OCI_MEASURE_PAGES);

	if (!error)
		error = copies(t, OCI_MEASURE_CMA, "cma: copies", point);
	if (!error)
		error = copies(t, OCI_MEASURE_PUSH, "cma: writes", write);
	if (error || !oci_tuning_is_over(t))
		return error;
	lock = page[2].value - page[1].value;
	if (lock < 0)
		lock = 0;
	oci_tuning_give(
		t, "cma.lock", lock, page[2].residual,
		"2 bytes on two pages less 2 bytes on one, process_vm_readv of one piece, first "
		"quartiles of %u",
		page[2].samples);
	oci_tuning_give(t, "cma.page", page_bytes, 0, "page size");
	for (uint32_t i = 0; i < t->sizes.count; i++)
		locks[i] = lock * (double)t->sizes.bytes[i] / page_bytes;
	give_start_and_rates(t, &(struct names){ "cma.alpha", "cma.beta", "cma.beta_memory" },
			     point, locks, page[0].value,
			     "process_vm_readv less alpha and locks, source just rewritten");
	give_start_and_rates(
		t, &(struct names){ "cma.push_alpha", "cma.push_beta", "cma.push_beta_memory" },
		write, locks, page[3].value,
		"process_vm_writev less push_alpha and locks, source just rewritten by the writer");
	return 0;
}

/*
 * All copiers read from one process, then each from another one: what differs is the lock. In
 * turns, because what else the machine does changes; the median of the differences.
 */
static int contention_at(struct oci_tuning *t, uint32_t copiers, size_t apart, double *difference)
{
	double found[TURNS];

	for (int turn = 0; turn < TURNS; turn++) {
		struct oci_tune_point one, spread;
		int error = oci_measure_contention(&t->world, copiers, CONTENTION_BYTES, apart,
						   &one, t->why, t->why_bytes);

		if (!error)
			error = oci_measure_contention(&t->world, copiers, CONTENTION_BYTES, 0,
						       &spread, t->why, t->why_bytes);
		if (error)
			return error;
		found[turn] = one.value - spread.value;
	}
	*difference = stats_median(found, TURNS);
	return 0;
}

/*
 * How far apart two copiers do not meet at a lock: a quarter of what they cost each other side by
 * side counts as not meeting. Linux splits the lock of a page table by its pages, so that is where
 * 2 MiB end on x86.
 */
static int find_span(struct oci_tuning *t, double difference)
{
	oci_tuning_step(t, "cma: how far a lock reaches");
	for (size_t apart = 2 * CONTENTION_BYTES; apart <= 32 * MIB; apart *= 2) {
		double found;
		int error = contention_at(t, 2, apart, &found);

		if (error)
			return error;
		if (found > difference / 4)
			continue;
		oci_tuning_give(t, "cma.lock_span", (double)apart, 0,
				"two copiers of one process cost each other %.3g us so far apart, "
				"%.3g us side by side",
				1e6 * (found > 0 ? found : 0), 1e6 * difference);
		return 0;
	}
	oci_tuning_note(t, "copiers of one process contend wherever they copy from");
	return 0;
}

int oci_tuning_contention(struct oci_tuning *t)
{
	const struct oci_model_copy *cma = &t->model->copy[OCI_MODEL_CMA];
	double copiers[MOST_STEPS], gamma[MOST_STEPS], locks, difference,
		seconds = t->world.seconds;
	struct oci_fit_gamma fit;
	size_t count = 0;
	int error = 0;

	if (!oci_tuning_is_over(t))
		return 0; /* it goes by terms of the others, and in turns of its own */
	locks = cma->lock.value * (double)CONTENTION_BYTES / cma->page.value;
	t->world.seconds = seconds / TURNS;
	for (uint32_t c = 2; c <= t->ranks && locks > 0 && count < MOST_STEPS && !error;
	     c += c < 4 ? 1 : c / 3) {
		char what[64];

		snprintf(what, sizeof(what), "cma: %u copiers of one process", c);
		oci_tuning_step(t, what);
		error = contention_at(t, c, CONTENTION_BYTES, &difference);
		copiers[count] = c;
		gamma[count] = error || difference < 0 ? 1 : 1 + difference / locks;
		/* Below that there is no contention whose reach could be told. */
		if (!error && !count && gamma[count] > 1.5)
			error = find_span(t, difference);
		count++;
	}
	t->world.seconds = seconds;
	if (error)
		return error;
	if (!count)
		return 0;
	if (oci_fit_gamma(copiers, gamma, count, &fit)) {
		oci_tuning_note(
			t,
			"no curve of paper 002's form fits the contention of page locks, which is "
			"left out");
		return 0;
	}
	oci_tuning_give(
		t, "cma.gamma1", fit.gamma1, fit.residual,
		"%zu KiB from one process less the same from one each, over the locks; least squares "
		"over %zu numbers of copiers",
		CONTENTION_BYTES / KIB, count);
	oci_tuning_give(t, "cma.gamma2", fit.gamma2, fit.residual,
			count > 1 ? "as gamma1" : "one number of copiers gives gamma1 alone");
	oci_tuning_give(t, "cma.gamma_range", copiers[count - 1], 0,
			"most copiers measured, at %.3g; beyond is extrapolated", gamma[count - 1]);
	return 0;
}

static uint32_t domain_ranks(const struct oci_tuning *t)
{
	const struct oci_term *cores = &t->model->domain_cores;

	return cores->given && cores->value < t->ranks ? (uint32_t)cores->value : t->ranks;
}

/* Beyond private caches; and so much that the sources and targets of all cores, two of each, are
 * twice what a cache holds that they share, where the memory allows it: each rank has two of each,
 * and as much as one has stays free. */
#define DOMAIN_BYTES (4 * MIB)

static size_t domain_bytes(const struct oci_tuning *t)
{
	size_t bytes = DOMAIN_BYTES, all = oci_tune_memory_left() / (4 * (domain_ranks(t) + 1));

	while (t->cache_cores && 4 * bytes * t->cache_cores < 2 * t->cache_bytes &&
	       2 * bytes <= all && bytes < GIB)
		bytes *= 2;
	return bytes;
}

/*
 * All cores copy at once, by `take`: what a byte costs then is the term `name`. Starts and locks
 * keep no memory busy.
 */
static int all_cores(struct oci_tuning *t, unsigned int series, const char *what,
		     oci_tuning_take *take, size_t bytes, const char *name, const char *how)
{
	const struct oci_model_copy *cma = &t->model->copy[OCI_MODEL_CMA];
	uint32_t ranks = domain_ranks(t);
	struct oci_tune_point point;
	double moving;
	int error;

	if (ranks < 2)
		return 0;
	error = oci_tuning_points(t, series, what, take, &point, 1);
	if (error || !oci_tuning_is_over(t))
		return error;
	moving = point.value - oci_model_alpha_s(t->model, OCI_MODEL_CMA, OCI_MODEL_PULL) -
		 cma->lock.value * (double)bytes / cma->page.value;
	oci_tuning_give(t, name, moving / ((double)bytes * ranks), point.residual,
			"%u ranks copy %zu KiB at once, %s; less alpha and locks", ranks,
			bytes / KIB, how);
	return 0;
}

static int take_domain(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	(void)series;
	return oci_measure_ring(&t->world, domain_ranks(t), domain_bytes(t), point, t->why,
				t->why_bytes);
}

/* Each from another one, more than the caches hold: what a memory domain gives. */
int oci_tuning_domain(struct oci_tuning *t)
{
	return all_cores(t, OCI_TUNING_DOMAIN, "cma: all cores at once", take_domain,
			 domain_bytes(t), "domain", "in a ring, sources just rewritten");
}

static int take_ring(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	(void)series;
	return oci_measure_ring(&t->world, domain_ranks(t), CONTENTION_BYTES, point, t->why,
				t->why_bytes);
}

/* The same of what the caches hold, between cores that all copy from each other. */
int oci_tuning_ring(struct oci_tuning *t)
{
	return all_cores(t, OCI_TUNING_RING, "cma: all cores from each other", take_ring,
			 CONTENTION_BYTES, "domain.cache", "in a ring, sources just rewritten");
}

int oci_tuning_map(struct oci_tuning *t)
{
	const double locks[8] = { 0 };
	struct oci_tune_point point[8], write[8];
	int error = copies(t, OCI_MEASURE_MAP, "map: copies", point);

	if (!error && t->world.cpu_count > 1)
		error = copies(t, OCI_MEASURE_MAP_PUSH, "map: writes", write);
	if (error || !oci_tuning_is_over(t))
		return error;
	oci_tuning_give(t, "map.lock", 0, 0, "a mapping needs no lock");
	give_start_and_rates(t, &(struct names){ "map.alpha", "map.beta", "map.beta_memory" },
			     point, locks, 0,
			     "out of shared memory by loads and stores, source just rewritten");
	if (t->world.cpu_count > 1)
		give_start_and_rates(
			t,
			&(struct names){ "map.push_alpha", "map.push_beta",
					 "map.push_beta_memory" },
			write, locks, 0,
			"into shared memory by loads and stores, source just rewritten by the "
			"writer");
	return 0;
}

int oci_tuning_memcpy(struct oci_tuning *t)
{
	const double base[8] = { 0 };
	struct oci_tune_point point[8];
	int error = copies(t, OCI_MEASURE_MEMCPY, "local copies", point);

	if (error || !oci_tuning_is_over(t))
		return error;
	find_split(t, point);
	give_rates(t, "memcpy.cache", "memcpy.memory", point, base,
		   "memcpy, source just rewritten");
	return 0;
}

int oci_tuning_shm(struct oci_tuning *t)
{
	struct oci_tune_point point[8];
	double x[8] = { 0 }, y[8] = { 0 }, base[8] = { 0 };
	struct oci_fit_line line;
	int error = copies(t, OCI_MEASURE_SHM, "shm: copies through a slot", point);

	if (error || !oci_tuning_is_over(t))
		return error;
	line = oci_fit_line(x, y, calm_points(t, point, base, SLOPES, t->split, x, y));
	oci_tuning_give(t, "shm.alpha", line.intercept, line.residual,
			"intercept of copies in and out of halves of 32 KiB");
	oci_tuning_give(t, "shm.lock", 0, 0, "copies of one's own need no lock");
	for (size_t i = 0; i < t->sizes.count; i++)
		base[i] = line.intercept;
	give_rates(t, "shm.beta", "shm.beta_memory", point, base,
		   "in and out of halves of 32 KiB, source just rewritten");
	return 0;
}

static const struct oci_measure_sizes slot_sizes = {
	.bytes = { OCI_MEASURE_SLOT_BYTES / 4, OCI_MEASURE_SLOT_BYTES },
	.count = 2,
};

static int take_slot(struct oci_tuning *t, unsigned int kind, struct oci_tune_point *point)
{
	return oci_measure_copies(&t->world, kind, &slot_sizes, point, t->why, t->why_bytes);
}

int oci_tuning_slot(struct oci_tuning *t)
{
	struct oci_fit_line line;
	struct oci_tune_point point[2];
	double x[2], y[2];
	int error = oci_tuning_points(t, OCI_MEASURE_FILL, "local copies into a slot", take_slot,
				      point, slot_sizes.count);

	if (error || !oci_tuning_is_over(t))
		return error;
	for (uint32_t i = 0; i < slot_sizes.count; i++) {
		x[i] = (double)slot_sizes.bytes[i];
		y[i] = point[i].value > 0 ? point[i].value : 1e-9;
	}
	line = oci_fit_slope(x, y, slot_sizes.count);
	oci_tuning_give(t, "memcpy.slot", line.slope, line.residual,
			"memcpy into shared memory that another core has read since it was last "
			"written, 16 and 64 KiB");
	return 0;
}
