/* SPDX-License-Identifier: BSD-3-Clause */
/* Points into terms. */
#include "lab/harness/stats.h"
#include "lab/tune/fit.h"
#include "lab/tune/tuning.h"
#include "os/os.h"

#include <math.h>
#include <stdio.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define CONTENTION_BYTES OCI_TUNING_CONTENTION_BYTES
#define MOST_STEPS 64
/* Of each number of copiers: of one process and of one each, in turns. */
#define TURNS 3
/* Rates without a start are those from the second size on: 16 KiB. */
#define SLOPES 1

/* Points of an experiment by size: x in bytes, y in seconds. */
struct points {
	double x[OCI_TUNING_POINTS], y[OCI_TUNING_POINTS];
	size_t count;
};

/*
 * Those of sizes [first, last) that were measured in calm, or all when none was, less what each
 * size takes besides its bytes: `start`, and `page_s` for each page.
 */
static struct points points_of(const struct oci_tuning *t, unsigned int series, size_t first,
			       size_t last, double start, double page_s)
{
	const struct oci_tune_point *point = t->point[series];
	struct points p = { .count = 0 };

	for (int any = 0; any < 2 && !p.count; any++) {
		for (size_t i = first; i < last; i++) {
			double bytes = (double)t->sizes.bytes[i], value = point[i].value;

			if (!any && point[i].residual > OCI_TUNING_CALM)
				continue;
			p.x[p.count] = bytes;
			p.y[p.count] = value - start - page_s * bytes / (double)oci_os_page_bytes();
			if (p.y[p.count] <= 0)
				p.y[p.count] = value / 100; /* start and locks are all of it */
			p.count++;
		}
	}
	return p;
}

static void give_rate(struct oci_tuning *t, const char *term, const struct points *p,
		      const char *how)
{
	struct oci_fit_line line = oci_fit_slope(p->x, p->y, p->count);

	oci_tuning_give(t, term, line.slope, line.residual, "%s, %.0f to %.0f KiB", how,
			p->x[0] / KIB, p->x[p->count - 1] / KIB);
}

/* The rate beyond the cache. Without a calm point the rate of the smaller sizes is the better
 * guess: that of a term that is not given. */
static void give_rate_beyond(struct oci_tuning *t, const char *term, unsigned int series,
			     double start, double page_s, const char *how)
{
	struct points p = points_of(t, series, t->split, t->sizes.count, start, page_s);
	bool calm = false;

	for (size_t i = t->split; i < t->sizes.count; i++)
		calm |= t->point[series][i].residual <= OCI_TUNING_CALM;
	if (calm)
		give_rate(t, term, &p, how);
}

/*
 * Start and rates of single copies, by a line: a copy begins later in a program, whose caches hold
 * other things, than alone again and again, which takes `least`.
 */
static void give_copies(struct oci_tuning *t, unsigned int series, const char *prefix,
			double page_s, double least, const char *how)
{
	struct points p = points_of(t, series, 0, t->split, 0, page_s);
	struct oci_fit_line line = oci_fit_line(p.x, p.y, p.count);
	char alpha[32], beta[32], beta_memory[32];

	if (!oci_tuning_can(t, series))
		return;
	snprintf(alpha, sizeof(alpha), "%salpha", prefix);
	snprintf(beta, sizeof(beta), "%sbeta", prefix);
	snprintf(beta_memory, sizeof(beta_memory), "%sbeta_memory", prefix);
	if (line.intercept < least) {
		p = points_of(t, series, 0, t->split, least, page_s);
		line = oci_fit_slope(p.x, p.y, p.count);
		line.intercept = least;
	}
	oci_tuning_give(
		t, alpha, line.intercept, line.residual,
		"where the line of copies begins, %.0f to %.0f KiB; of nothing else again and "
		"again: %.3g us",
		p.x[0] / KIB, p.x[p.count - 1] / KIB, 1e6 * least);
	oci_tuning_give(t, beta, line.slope, line.residual, "%s, %.0f to %.0f KiB", how,
			p.x[0] / KIB, p.x[p.count - 1] / KIB);
	give_rate_beyond(t, beta_memory, series, line.intercept, page_s, how);
}

/* Where the cache ends: by local copies, which nothing else slows down. */
static void find_split(struct oci_tuning *t)
{
	struct points p = points_of(t, OCI_MEASURE_MEMCPY, SLOPES, t->sizes.count, 0, 0);
	size_t split = oci_fit_split(p.x, p.y, p.count);

	if (split == p.count)
		return;
	for (t->split = SLOPES + 1; (double)t->sizes.bytes[t->split] < p.x[split];)
		t->split++;
	oci_tuning_give(
		t, "cache.bytes", 2 * (double)t->sizes.bytes[t->split - 1], 0,
		"twice the largest size that is copied locally at the rate of the smaller ones");
}

static void local_terms(struct oci_tuning *t)
{
	static const char how[] = "memcpy, source just rewritten";
	const struct oci_tune_point *slot = t->point[OCI_MEASURE_FILL],
				    *sum = t->point[OCI_TUNING_SUM];
	struct points p;

	find_split(t);
	p = points_of(t, OCI_MEASURE_MEMCPY, SLOPES, t->split, 0, 0);
	give_rate(t, "memcpy.cache", &p, how);
	give_rate_beyond(t, "memcpy.memory", OCI_MEASURE_MEMCPY, 0, 0, how);
	if (oci_tuning_can(t, OCI_MEASURE_FILL)) {
		double y[OCI_TUNING_SLOTS], x[OCI_TUNING_SLOTS];
		struct oci_fit_line line;

		for (unsigned int i = 0; i < OCI_TUNING_SLOTS; i++) {
			x[i] = (double)oci_tuning_slots.bytes[i];
			y[i] = slot[i].value > 0 ? slot[i].value : 1e-9;
		}
		line = oci_fit_slope(x, y, OCI_TUNING_SLOTS);
		oci_tuning_give(
			t, "memcpy.slot", line.slope, line.residual,
			"memcpy into shared memory that another core has read since it was last "
			"written, 16 and 64 KiB");
	}
	oci_tuning_give(t, "reduce", sum->value, sum->residual,
			"8192 doubles added to as many others, both in cache, by a function as "
			"operations have it");
}

static void shm_terms(struct oci_tuning *t)
{
	static const char how[] = "in and out of halves of 32 KiB, source just rewritten";
	struct points p = points_of(t, OCI_MEASURE_SHM, SLOPES, t->split, 0, 0);
	struct oci_fit_line line = oci_fit_line(p.x, p.y, p.count);

	oci_tuning_give(t, "shm.alpha", line.intercept, line.residual,
			"intercept of copies in and out of halves of 32 KiB");
	oci_tuning_give(t, "shm.lock", 0, 0, "copies of one's own need no lock");
	p = points_of(t, OCI_MEASURE_SHM, SLOPES, t->split, line.intercept, 0);
	give_rate(t, "shm.beta", &p, how);
	give_rate_beyond(t, "shm.beta_memory", OCI_MEASURE_SHM, line.intercept, 0, how);
}

static void map_terms(struct oci_tuning *t)
{
	oci_tuning_give(t, "map.lock", 0, 0, "a mapping needs no lock");
	give_copies(t, OCI_MEASURE_MAP, "map.", 0, 0,
		    "out of shared memory by loads and stores, source just rewritten");
	give_copies(t, OCI_MEASURE_MAP_PUSH, "map.push_", 0, 0,
		    "into shared memory by loads and stores, source just rewritten by the writer");
}

static void cma_terms(struct oci_tuning *t)
{
	const struct oci_tune_point *page = t->point[OCI_TUNING_PAGES];
	double lock = fmax(page[2].value - page[1].value, 0);

	oci_tuning_give(
		t, "cma.lock", lock, page[2].residual,
		"2 bytes on two pages less 2 bytes on one, process_vm_readv of one piece, first "
		"quartiles of %u",
		page[2].samples);
	oci_tuning_give(t, "cma.page", (double)oci_os_page_bytes(), 0, "page size");
	give_copies(t, OCI_MEASURE_CMA, "cma.", lock, page[0].value,
		    "process_vm_readv less alpha and locks, source just rewritten");
	give_copies(t, OCI_MEASURE_PUSH, "cma.push_", lock, page[3].value,
		    "process_vm_writev less push_alpha and locks, source just rewritten by the "
		    "writer");
}

/* From which size on all are quicker by an engine. */
static void dma_min(struct oci_tuning *t)
{
	const struct oci_tune_point *cpu = t->point[OCI_MEASURE_KMOD],
				    *engine = t->point[OCI_MEASURE_KMOD_DMA];
	uint32_t last = t->sizes.count - 1, i = t->sizes.count;

	if (!oci_tuning_can(t, OCI_MEASURE_KMOD_DMA))
		return;
	while (i && engine[i - 1].value < cpu[i - 1].value)
		i--;
	if (i > last)
		oci_tuning_give(t, "kmod.dma_min", 1e15, 0,
				"copies of %zu KiB, out of a region: %.3g us by a DMA engine, "
				"%.3g by the CPU",
				t->sizes.bytes[last] / KIB, 1e6 * engine[last].value,
				1e6 * cpu[last].value);
	else
		oci_tuning_give(t, "kmod.dma_min", (double)(t->sizes.bytes[i] - 1), 0,
				"the smallest of the sizes that are copied faster by a DMA engine, "
				"out of a region: %zu KiB, %.3g us, by the CPU %.3g",
				t->sizes.bytes[i] / KIB, 1e6 * engine[i].value, 1e6 * cpu[i].value);
}

/* A region's pages are pinned when it is made, once for all copies. */
static void kmod_terms(struct oci_tuning *t)
{
	if (!oci_tuning_can(t, OCI_MEASURE_KMOD))
		return;
	oci_tuning_give(t, "kmod.lock", 0, 0, "no page is locked for a copy");
	give_copies(t, OCI_MEASURE_KMOD, "kmod.", 0, 0,
		    "by the kernel module less alpha, out of a region, source just rewritten");
	give_copies(t, OCI_MEASURE_KMOD_PUSH, "kmod.push_", 0, 0,
		    "by the kernel module less push_alpha, into a region, source just rewritten by "
		    "the writer");
	dma_min(t);
}

/* All cores copy at once: what a byte costs then. Starts and locks keep no memory busy. */
static void give_domain(struct oci_tuning *t, unsigned int series, size_t bytes, const char *term)
{
	const struct oci_model_copy *cma = &t->model->copy[OCI_MODEL_CMA];
	const struct oci_tune_point *point = t->point[series];
	double moving = point->value - oci_model_alpha_s(t->model, OCI_MODEL_CMA, OCI_MODEL_PULL) -
			cma->lock.value * (double)bytes / cma->page.value;

	if (oci_tuning_can(t, series))
		oci_tuning_give(t, term, moving / ((double)bytes * t->domain_ranks),
				point->residual,
				"%u ranks copy %zu KiB at once, in a ring, sources just "
				"rewritten; less alpha and locks",
				t->domain_ranks, bytes / KIB);
}

/*
 * All copiers read from one process, then each from another one: what differs is the lock. In
 * turns, because what else the machine does changes; the median of the differences.
 */
static int contention_at(struct oci_tuning *t, uint32_t copiers, size_t apart, double *difference)
{
	double found[TURNS];

	for (int turn = 0; turn < TURNS; turn++) {
		struct oci_measure_contended of = { .copiers = copiers,
						    .bytes = CONTENTION_BYTES,
						    .where = OCI_MEASURE_APART,
						    .apart = apart };
		struct oci_tune_point one, spread;
		int error = oci_measure_contention(&t->world, &of, &one, t->why, t->why_bytes);

		of.where = OCI_MEASURE_EACH;
		if (!error)
			error = oci_measure_contention(&t->world, &of, &spread, t->why,
						       t->why_bytes);
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
				1e6 * fmax(found, 0), 1e6 * difference);
		return 0;
	}
	oci_tuning_note(t, "copiers of one process contend wherever they copy from");
	return 0;
}

/* All numbers up to 4, then every third larger. */
static uint32_t more_copiers(uint32_t copiers)
{
	return copiers + (copiers < 4 ? 1 : copiers / 3);
}

unsigned int oci_tuning_contention_steps(const struct oci_tuning *t)
{
	unsigned int steps = t->ranks > 1; /* how far a lock reaches */

	for (uint32_t c = 2; c <= t->ranks; c = more_copiers(c))
		steps++;
	return steps;
}

/* Copies between two packages over those in one: what a byte takes, start and locks taken off. */
static void give_across(struct oci_tuning *t)
{
	const struct oci_model_copy *cma = &t->model->copy[OCI_MODEL_CMA];
	const unsigned int *pair = t->pair[OCI_MODEL_MACHINE];
	struct oci_fit_line near, across;
	struct points p;

	if (!oci_tuning_two_packages(t)) {
		oci_tuning_note(t, "of the CPUs that may be used no two of one package can be held "
				   "against two of different ones: what goes between packages, "
				   "cma.beta_across and cma.gamma_across, is not measured");
		return;
	}
	p = points_of(t, OCI_MEASURE_CMA, 0, t->split, cma->alpha.value, cma->lock.value);
	near = oci_fit_slope(p.x, p.y, p.count);
	p = points_of(t, OCI_TUNING_ACROSS, 0, t->split, cma->alpha.value, cma->lock.value);
	across = oci_fit_slope(p.x, p.y, p.count);
	oci_tuning_give(t, "cma.beta_across", across.slope / near.slope,
			fmax(near.residual, across.residual),
			"process_vm_readv less alpha and locks between CPUs %u and %u, over the "
			"same between CPUs %u and %u of one package",
			pair[0], pair[1], t->cpus[0], t->cpus[1]);
}

static void give_gamma(struct oci_tuning *t, const double *copiers, const double *gamma,
		       size_t count)
{
	struct oci_fit_gamma fit;
	/* Copiers fill the first package; the model's step is behind all of its cores. */
	bool whole = t->package_cores == t->model->package_cores.value;
	double package = whole ? t->package_cores : copiers[count - 1], across;

	fit = oci_fit_gamma_across(copiers, gamma, count, package, &across);
	oci_tuning_give(
		t, "cma.gamma1", fit.gamma1, fit.residual,
		"%zu KiB from one process less the same from one each, over the locks; least squares "
		"over %zu numbers of copiers%s",
		CONTENTION_BYTES / KIB, count, across > 0 ? ", those of one package of them" : "");
	if (across > 0)
		oci_tuning_give(t, "cma.gamma_across", across, 0,
				"those of more than %.0f copiers over the curve of up to so many, "
				"geometric mean",
				package);
	else if (oci_tuning_two_packages(t))
		oci_tuning_note(t, "contention was not measured with more copiers than a package "
				   "has cores, and with fewer: cma.gamma_across is left out");
	oci_tuning_give(t, "cma.gamma2", fit.gamma2, fit.residual,
			count > 1 ? "as gamma1" : "one number of copiers gives gamma1 alone");
	oci_tuning_give(t, "cma.gamma_range", copiers[count - 1], 0,
			"most copiers measured, at %.3g; beyond is extrapolated", gamma[count - 1]);
}

static int contention_terms(struct oci_tuning *t)
{
	const struct oci_model_copy *cma = &t->model->copy[OCI_MODEL_CMA];
	double copiers[MOST_STEPS], gamma[MOST_STEPS], seconds = t->world.seconds;
	double locks = cma->lock.value * (double)CONTENTION_BYTES / cma->page.value;
	size_t count = 0;
	int error = 0;

	t->world.seconds = seconds / TURNS;
	for (uint32_t c = 2; c <= t->ranks && locks > 0 && count < MOST_STEPS && !error;
	     c = more_copiers(c)) {
		double difference;
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
	if (!error && count)
		give_gamma(t, copiers, gamma, count);
	return error;
}

static void flag_terms(struct oci_tuning *t)
{
	static const char *const name[OCI_MODEL_DISTANCES] = { "flag.cache", "flag.package",
							       "flag.machine" };
	bool any = false;

	for (unsigned int d = 0; d < OCI_MODEL_DISTANCES; d++) {
		/* a flag, and each more of a row */
		const struct oci_tune_point *point = t->point[OCI_TUNING_FLAG + d];

		if (!oci_tuning_can(t, OCI_TUNING_FLAG + d))
			continue;
		oci_tuning_give(
			t, name[d], point[0].value, point[0].residual,
			"half of there and back between CPUs %u and %u, first quartile of %u",
			t->pair[d][0], t->pair[d][1], point[0].samples);
		if (!any)
			oci_tuning_give(t, "flag.more", point[1].value, point[1].residual,
					"a sixteenth of 16 flags that are up, CPUs %u and %u",
					t->pair[d][0], t->pair[d][1]);
		any = true;
	}
	if (!any)
		oci_tuning_note(
			t,
			"two cores are needed to time a flag: flags are left out, and so is what a "
			"call costs");
}

static void call_terms(struct oci_tuning *t)
{
	/* a barrier; an Allgather of 8 bytes */
	const struct oci_tune_point *point = t->point[OCI_TUNING_CALL];
	const int further = OCI_MEASURE_SMALL_OPS - OCI_MEASURE_BARRIER_OPS;
	unsigned int d = 0;
	double op, call;

	/* Of the nearest CPUs: which those are may not be told, as in some guests. */
	while (d < OCI_MODEL_DISTANCES && !oci_tuning_can(t, OCI_TUNING_FLAG + d))
		d++;
	if (!oci_tuning_can(t, OCI_TUNING_CALL) || d == OCI_MODEL_DISTANCES)
		return;
	op = fmax(point[1].value - point[0].value, 0) / further;
	call = point[0].value - t->point[OCI_TUNING_FLAG + d][0].value -
	       OCI_MEASURE_BARRIER_OPS * op;
	oci_tuning_give(t, "op", op, point[1].residual,
			"an Allgather of 8 bytes on 2 ranks, %.3g us, less a barrier, over the %d "
			"operations that its plan has more",
			1e6 * point[1].value, further);
	oci_tuning_give(t, "call", fmax(call, 0), point[0].residual,
			"a barrier of 2 ranks, %.3g us, less a flag and %d operations",
			1e6 * point[0].value, OCI_MEASURE_BARRIER_OPS);
}

/* In this order: later ones use terms of earlier ones. */
int oci_tuning_terms(struct oci_tuning *t)
{
	local_terms(t);
	if (oci_tuning_can(t, OCI_MEASURE_CMA)) {
		int error;

		cma_terms(t);
		give_across(t);
		error = contention_terms(t);
		if (error && !oci_tuning_refused(t, error))
			return error;
		give_domain(t, OCI_TUNING_DOMAIN, t->domain_bytes, "domain");
		give_domain(t, OCI_TUNING_RING, CONTENTION_BYTES, "domain.cache");
	}
	kmod_terms(t);
	map_terms(t);
	shm_terms(t);
	flag_terms(t);
	call_terms(t);
	return 0;
}
