/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the experiments, and terms made of what they found. */
#include "lab/harness/stats.h"
#include "lab/topo/machine.h"
#include "lab/tune/fit.h"
#include "lab/tune/tuning.h"
#include "os/os.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB ((size_t)1 << 10)

void oci_tuning_step(struct oci_tuning *t, const char *what)
{
	if (t->listener && t->listener->step)
		t->listener->step(t->listener->context, what,
				  (double)t->step / (double)(t->steps ? t->steps : 1));
	t->step++;
}

void oci_tuning_note(struct oci_tuning *t, const char *format, ...)
{
	char sentence[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(sentence, sizeof(sentence), format, arguments);
	va_end(arguments);
	if (t->listener && t->listener->note)
		t->listener->note(t->listener->context, sentence);
}

static double to_digits(double value, int digits)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*g", digits, value);
	return strtod(text, NULL);
}

/* Six digits are more than a measurement has, and make a file that people can read. */
static double rounded(double value)
{
	/* Sizes and counts are exact. */
	return value == floor(value) && fabs(value) < 1e15 ? value : to_digits(value, 6);
}

void oci_tuning_give(struct oci_tuning *t, const char *name, double value, double residual,
		     const char *format, ...)
{
	const struct oci_term_info *info = oci_term_named(name);
	struct oci_term *term = oci_term_of(t->model, info);
	va_list arguments;

	term->value = rounded(value < info->least ? info->least :
			      value > info->most  ? info->most :
						    value);
	/* What is left of an exact fit is the arithmetic's. */
	term->residual = residual > 1e-6 ? rounded(residual) : 0;
	term->given = true;
	va_start(arguments, format);
	vsnprintf(term->method, sizeof(term->method), format, arguments);
	va_end(arguments);
	snprintf(term->source, sizeof(term->source), "measured");
	snprintf(term->host, sizeof(term->host), "%s", t->model->machine.host);
	snprintf(term->date, sizeof(term->date), "%s", t->date);
}

/* Turns that lie further apart than this say that the machine changes meanwhile. */
#define STEADY 0.25

/* One point of all turns: nobody's best moment, nobody's worst. */
static struct oci_tune_point combine(struct oci_tuning *t, unsigned int series, unsigned int at)
{
	double value[OCI_TUNING_TURNS], residual[OCI_TUNING_TURNS];
	struct oci_tune_point point = { 0 };
	unsigned int n = 0;

	for (; n < t->turns; n++) {
		const struct oci_tune_point *kept = &t->kept[series][n][at];

		value[n] = kept->value;
		residual[n] = kept->residual;
		point.samples += kept->samples;
	}
	point.value = oci_fit_midmean(value, n); /* orders them */
	point.residual = stats_median(residual, n);
	t->points++;
	t->unsteady += value[n * 3 / 4 < n ? n * 3 / 4 : n - 1] - value[n / 4] >
		       2 * STEADY * point.value;
	return point;
}

int oci_tuning_points(struct oci_tuning *t, unsigned int series, const char *what,
		      oci_tuning_take *take, struct oci_tune_point *point, unsigned int count)
{
	if (!oci_tuning_is_over(t)) {
		oci_tuning_step(t, what);
		return take(t, series, t->kept[series][t->turn]);
	}
	for (unsigned int i = 0; i < count; i++)
		point[i] = combine(t, series, i);
	return 0;
}

static void give_shape(struct oci_tuning *t, const char *name, unsigned int value)
{
	if (!value)
		return;
	oci_tuning_give(t, name, value, 0, "counted");
	snprintf(oci_term_of(t->model, oci_term_named(name))->source, OCI_TERM_TEXT, "hwloc");
}

static void find_shape(struct oci_tuning *t)
{
	const struct oci_topo *topo = oci_topo_local();
	struct oci_topo_summary s;

	if (!topo) {
		oci_tuning_note(
			t, "hwloc cannot tell the shape of this machine: one package and one cache "
			   "are assumed");
		return;
	}
	oci_topo_summary(topo, &s);
	give_shape(t, "machine.packages", s.packages);
	give_shape(t, "machine.package_cores", s.packages ? s.cores / s.packages : 0);
	give_shape(t, "machine.cache_cores", s.cores_per_l3 ? s.cores_per_l3 : s.cores_per_l2);
	give_shape(t, "machine.domain_cores", s.numa_nodes ? s.cores / s.numa_nodes : 0);
	t->cache_bytes = s.l3_bytes ? s.l3_bytes : s.l2_bytes;
	t->cache_cores = s.l3_bytes ? s.cores_per_l3 : s.cores_per_l2;
	if (!t->cache_bytes || t->cache_cores < 2)
		return;
	oci_tuning_give(t, "cache.shared", (double)t->cache_bytes, 0, "size of the %s",
			s.l3_bytes ? "L3" : "L2");
	snprintf(t->model->cache_shared.source, OCI_TERM_TEXT, "hwloc");
}

/* CPUs in the order in which ranks are placed: that of the mask, threads of a core included. */
static unsigned int list_cpus(unsigned int *cpus)
{
	static uint64_t mask[OCI_TUNING_CPUS / 64];
	unsigned int words = oci_os_affinity(mask, OCI_TUNING_CPUS / 64), count = 0;

	for (unsigned int i = 0; i < words * 64 && i < OCI_TUNING_CPUS; i++)
		if (mask[i / 64] >> (i % 64) & 1)
			cpus[count++] = i;
	if (!count)
		cpus[count++] = 0;
	return count;
}

uint32_t oci_tune_cpus(void)
{
	static unsigned int cpus[OCI_TUNING_CPUS];

	return list_cpus(cpus);
}

size_t oci_tune_memory_left(void)
{
	return oci_os_memory_left();
}

static void choose_sizes(struct oci_tuning *t)
{
	static const size_t kib[] = { 4, 16, 64, 256, 1024, 4096, 16384 };

	t->sizes.count = t->options->quick ? 6 : 7;
	for (uint32_t i = 0; i < t->sizes.count; i++)
		t->sizes.bytes[i] = kib[i] * KIB;
	t->split = t->sizes.count;
}

static int tune_cma(struct oci_tuning *t)
{
	int error;

	if (t->no_cma)
		return 0;
	error = oci_tuning_cma(t);
	if (!error)
		error = oci_tuning_contention(t);
	if (!error)
		error = oci_tuning_domain(t);
	if (!error)
		error = oci_tuning_ring(t);
	/* EPERM and ENOSYS: Yama, seccomp or another kernel; onecopy info says which and what
	 * helps. */
	if (error == -EPERM || error == -ENOSYS || error == -ESRCH) {
		t->no_cma = true;
		oci_tuning_note(
			t, "cma cannot be used here and is left out: %s; onecopy info says why",
			t->why);
		error = 0;
	}
	return error;
}

static int tune_turn(struct oci_tuning *t)
{
	int error = oci_tuning_memcpy(t); /* first: it tells where the cache ends */

	if (!error)
		error = tune_cma(t);
	if (!error)
		error = oci_tuning_map(t);
	if (!error)
		error = oci_tuning_shm(t);
	if (!error && t->world.cpu_count > 1)
		error = oci_tuning_slot(t);
	if (!error)
		error = oci_tuning_local(t);
	if (!error)
		error = oci_tuning_flags(t);
	return error ? error : oci_tuning_call(t);
}

static void note_unsteady(struct oci_tuning *t)
{
	double least = INFINITY, most = 0;
	char flags[96] = "";

	for (unsigned int d = 0; d < OCI_MODEL_DISTANCES; d++) {
		if (!t->kept[OCI_TUNING_FLAG + d][0][0].samples || most > 0)
			continue;
		for (unsigned int turn = 0; turn < t->turns; turn++) {
			double flag = t->kept[OCI_TUNING_FLAG + d][turn][0].value;

			least = fmin(least, flag);
			most = fmax(most, flag);
		}
		snprintf(flags, sizeof(flags), ", a flag from %.0f to %.0f ns", 1e9 * least,
			 1e9 * most);
	}
	oci_tuning_note(
		t,
		"%u of %u measurements differed by more than %.0f %% between the %u turns in "
		"which they were taken%s: other work is in the way, or a host that moves the "
		"CPUs of this virtual machine; terms are the means of the middle halves",
		t->unsteady, t->points, 100 * STEADY, t->turns, flags);
}

/* The turns, and the terms made of them. */
static int tune_all(struct oci_tuning *t)
{
	double seconds = t->world.seconds;
	int error = 0;

	find_shape(t);
	t->world.seconds = seconds / t->turns;
	for (t->turn = 0; t->turn < t->turns && !error; t->turn++)
		error = tune_turn(t);
	if (error)
		return error;
	t->world.seconds = seconds; /* of what has turns of its own */
	error = tune_turn(t);
	if (!error && t->unsteady)
		note_unsteady(t);
	return error;
}

static unsigned int count_steps(const struct oci_tuning *t)
{
	/* Those of one CPU; of two, without flags. */
	unsigned int steps = t->world.cpu_count > 1 ? 10 : 7;

	if (t->ranks > 1)
		steps += 2; /* all cores at once */
	for (int d = 0; d < OCI_MODEL_DISTANCES; d++)
		steps += oci_tuning_pair((struct oci_tuning *)t, (enum oci_model_distance)d,
					 (unsigned int[2]){ 0 });
	steps *= t->turns;
	steps += t->ranks > 1; /* how far a lock reaches */
	for (uint32_t c = 2; c <= t->ranks; c += c < 4 ? 1 : c / 3)
		steps++;
	return steps;
}

int oci_tune(const struct oci_tune_options *options, const struct oci_tune_listener *listener,
	     struct oci_model *model, char *why, size_t n)
{
	struct oci_tuning *t = calloc(1, sizeof(*t));
	time_t now = time(NULL);
	struct tm utc;
	double seconds;
	int error;

	if (!t)
		return -ENOMEM;
	*t = (struct oci_tuning){ .options = options,
				  .listener = listener,
				  .model = model,
				  .why = why,
				  .why_bytes = n };
	why[0] = '\0';
	oci_model_init(model);
	snprintf(model->name, sizeof(model->name), "tuned");
	model->calibrated = true;
	oci_machine_self(&model->machine);
	strftime(t->date, sizeof(t->date), "%Y-%m-%d", gmtime_r(&now, &utc));
	t->world.cpu_count = list_cpus(t->cpus);
	/* Processes that share a CPU do not meet at a lock. */
	t->ranks = t->world.cpu_count;
	if (options->ranks && options->ranks < t->ranks)
		t->ranks = options->ranks;
	if (t->ranks > OCI_TUNE_MOST_RANKS)
		t->ranks = OCI_TUNE_MOST_RANKS;
	t->turns = options->quick ? OCI_TUNING_TURNS / 2 : OCI_TUNING_TURNS;
	choose_sizes(t);
	t->steps = count_steps(t);
	/* Some 45 points and two for each number of copiers: a minute, or some 15 seconds, and up
	 * to three times as long where the state that is measured in comes and goes. */
	seconds = options->seconds > 0 ? options->seconds : options->quick ? 0.2 : 1.0;
	error = oci_tune_world_create(&t->world, t->cpus, t->world.cpu_count, seconds,
				      t->ranks + 1);
	if (error) {
		snprintf(why, n, "no shared memory for the measuring ranks: %s", strerror(-error));
		goto free_tuning;
	}
	error = tune_all(t);
	oci_tune_world_destroy(&t->world);
	if (!error && listener && listener->step)
		listener->step(listener->context, "done", 1);
free_tuning:
	free(t);
	return error;
}
