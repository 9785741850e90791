/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and contention into terms. */
#include "os/os.h"
#include "tune/fit.h"
#include "tune/tuning.h"

#include <stdio.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
/* Copies of the contention experiment: long beside a system call, short enough for private caches.
 */
#define CONTENTION_BYTES (256 * KIB)
#define MOST_STEPS 64

/* Rates of one mechanism below and above the size where the cache ends. `base` is what each size
 * takes besides its bytes. */
static void give_rates(struct oci_tuning *t, const char *beta, const char *beta_memory,
		       const struct oci_tune_point *point, const double *base, const char *how)
{
	double x[8] = { 0 }, y[8] = { 0 };
	struct oci_fit_line low, high;
	size_t count = t->sizes.count, split = t->split < count ? t->split : count;

	for (size_t i = 0; i < count; i++) {
		x[i] = (double)t->sizes.bytes[i];
		y[i] = point[i].value - base[i];
		if (y[i] <= 0)
			y[i] = point[i].value / 100; /* all of it start and locks: nearly free */
	}
	low = oci_fit_slope(x, y, split);
	oci_tuning_give(t, beta, low.slope, low.residual, "%s, %zu to %zu KiB", how,
			t->sizes.bytes[0] / KIB, t->sizes.bytes[split - 1] / KIB);
	if (split == count)
		return;
	high = oci_fit_slope(x + split, y + split, count - split);
	oci_tuning_give(t, beta_memory, high.slope, high.residual, "%s, %zu to %zu KiB", how,
			t->sizes.bytes[split] / KIB, t->sizes.bytes[count - 1] / KIB);
}

/* Where the cache ends, by the mechanism that is used most; once. */
static void find_split(struct oci_tuning *t, const struct oci_tune_point *point, const double *base)
{
	double x[8] = { 0 }, y[8] = { 0 };

	for (size_t i = 0; i < t->sizes.count; i++) {
		x[i] = (double)t->sizes.bytes[i];
		y[i] = point[i].value > base[i] ? point[i].value - base[i] : point[i].value;
	}
	t->split = oci_fit_split(x, y, t->sizes.count);
	if (t->split < t->sizes.count)
		oci_tuning_give(
			t, "cache.bytes", 2 * x[t->split - 1], 0,
			"twice the largest size that copies at the rate of the smaller ones");
}

static int copies(struct oci_tuning *t, enum oci_measure_kind kind, const char *what,
		  struct oci_tune_point *point)
{
	oci_tuning_step(t, what);
	return oci_measure_copies(&t->world, kind, &t->sizes, point, t->why, t->why_bytes);
}

/* alpha, l and beta. */
int oci_tuning_cma(struct oci_tuning *t)
{
	struct oci_tune_point page[3], point[8];
	double base[8], lock, page_bytes = (double)oci_os_page_bytes();
	int error;

	oci_tuning_step(t, "cma: start and page locks");
	error = oci_measure_pages(&t->world, page, t->why, t->why_bytes);
	if (error)
		return error;
	lock = page[2].value - page[1].value;
	if (lock < 0)
		lock = 0;
	error = copies(t, OCI_MEASURE_CMA, "cma: copies", point);
	if (error)
		return error;
	oci_tuning_give(t, "cma.alpha", page[0].value, page[0].residual,
			"process_vm_readv of 1 byte, first quartile of %u", page[0].samples);
	oci_tuning_give(
		t, "cma.lock", lock, page[2].residual,
		"2 bytes on two pages less 2 bytes on one, process_vm_readv of one piece, first "
		"quartiles of %u",
		page[2].samples);
	oci_tuning_give(t, "cma.page", page_bytes, 0, "page size");
	for (uint32_t i = 0; i < t->sizes.count; i++)
		base[i] = page[0].value + lock * (double)t->sizes.bytes[i] / page_bytes;
	find_split(t, point, base);
	give_rates(t, "cma.beta", "cma.beta_memory", point, base,
		   "process_vm_readv less alpha and locks, source just rewritten");
	return 0;
}

/* All copiers read from one process, then each from another one: what differs is the lock. */
int oci_tuning_contention(struct oci_tuning *t)
{
	double copiers[MOST_STEPS], gamma[MOST_STEPS], locks;
	const struct oci_term *lock = &t->model->copy[OCI_MODEL_CMA].lock;
	struct oci_fit_gamma fit;
	size_t count = 0;
	int error = 0;

	locks = lock->value * (double)CONTENTION_BYTES / t->model->copy[OCI_MODEL_CMA].page.value;
	for (uint32_t c = 2; c <= t->ranks && count < MOST_STEPS; c += c < 4 ? 1 : c / 3) {
		struct oci_tune_point one, spread;
		char what[64];

		snprintf(what, sizeof(what), "cma: %u copiers of one process", c);
		oci_tuning_step(t, what);
		error = oci_measure_contention(&t->world, c, CONTENTION_BYTES, false, &one, t->why,
					       t->why_bytes);
		if (!error)
			error = oci_measure_contention(&t->world, c, CONTENTION_BYTES, true,
						       &spread, t->why, t->why_bytes);
		if (error)
			return error;
		copiers[count] = c;
		gamma[count] = locks > 0 ? 1 + (one.value - spread.value) / locks : 1;
		if (gamma[count] < 1)
			gamma[count] = 1;
		count++;
	}
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

/* All cores copy at once, each from another process: what a memory domain gives. */
int oci_tuning_domain(struct oci_tuning *t)
{
	const struct oci_term *cores = &t->model->domain_cores;
	uint32_t ranks = t->ranks;
	struct oci_tune_point point;
	size_t bytes = t->options->quick ? 4 * MIB : 16 * MIB;
	int error;

	if (cores->given && cores->value < ranks)
		ranks = (uint32_t)cores->value;
	if (ranks < 2)
		return 0;
	oci_tuning_step(t, "cma: all cores at once");
	error = oci_measure_contention(&t->world, ranks, bytes, true, &point, t->why, t->why_bytes);
	if (!error)
		oci_tuning_give(t, "domain", point.value / ((double)bytes * ranks), point.residual,
				"%u ranks copy %zu MiB at once, each from another process", ranks,
				bytes / MIB);
	return error;
}

int oci_tuning_map(struct oci_tuning *t)
{
	const double base[8] = { 0 };
	struct oci_tune_point point[8];
	int error = copies(t, OCI_MEASURE_MAP, "map: copies", point);

	if (error)
		return error;
	if (!t->model->copy[OCI_MODEL_CMA].beta.given)
		find_split(t, point, base);
	oci_tuning_give(t, "map.alpha", 0, 0, "a load needs no start");
	oci_tuning_give(t, "map.lock", 0, 0, "a mapping needs no lock");
	give_rates(t, "map.beta", "map.beta_memory", point, base,
		   "memcpy from shared memory, source just rewritten");
	return 0;
}

int oci_tuning_memcpy(struct oci_tuning *t)
{
	const double base[8] = { 0 };
	struct oci_tune_point point[8];
	int error = copies(t, OCI_MEASURE_MEMCPY, "local copies", point);

	if (!error)
		give_rates(t, "memcpy.cache", "memcpy.memory", point, base,
			   "memcpy, source just rewritten");
	return error;
}

int oci_tuning_shm(struct oci_tuning *t)
{
	struct oci_tune_point point[8];
	double x[8] = { 0 }, y[8] = { 0 }, base[8];
	struct oci_fit_line line;
	size_t count = t->split < t->sizes.count ? t->split : t->sizes.count;
	int error = copies(t, OCI_MEASURE_SHM, "shm: copies through a slot", point);

	if (error)
		return error;
	for (size_t i = 0; i < t->sizes.count; i++) {
		x[i] = (double)t->sizes.bytes[i];
		y[i] = point[i].value;
	}
	line = oci_fit_line(x, y, count);
	oci_tuning_give(t, "shm.alpha", line.intercept, line.residual,
			"intercept of copies in and out of halves of 32 KiB");
	oci_tuning_give(t, "shm.lock", 0, 0, "copies of one's own need no lock");
	for (size_t i = 0; i < t->sizes.count; i++)
		base[i] = line.intercept;
	give_rates(t, "shm.beta", "shm.beta_memory", point, base,
		   "in and out of halves of 32 KiB, source just rewritten");
	return 0;
}
