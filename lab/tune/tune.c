/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the experiments, and terms made of what they found. More than 500 lines, as each
 * experiment stands beside its terms. */
#include "lab/harness/stats.h"
#include "lab/topo/machine.h"
#include "lab/tune/fit.h"
#include "lab/tune/order.h"
#include "lab/tune/tuning.h"
#include "os/os.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
static struct oci_tune_point of_all_turns(struct oci_tuning *t, unsigned int series,
					  unsigned int at)
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

static void give_shape(struct oci_tuning *t, const char *name, unsigned int value)
{
	if (!value)
		return;
	oci_tuning_give(t, name, value, 0, "counted");
	snprintf(oci_term_of(t->model, oci_term_named(name))->source, OCI_TERM_TEXT, "hwloc");
}

/*
 * What each of all cores copies at once: beyond private caches, and so much that the sources and
 * targets of all cores, two of each, are twice what a cache holds that they share, where the memory
 * allows it: each rank has two of each, and as much as one has stays free.
 */
static size_t domain_bytes(const struct oci_tuning *t, size_t cache_bytes, unsigned int cache_cores)
{
	size_t bytes = 4 << 20, all = oci_os_memory_left() / (4 * (t->domain_ranks + 1));

	while (4 * bytes * cache_cores < 2 * cache_bytes && 2 * bytes <= all &&
	       bytes < (size_t)1 << 30)
		bytes *= 2;
	return bytes;
}

static void find_shape(struct oci_tuning *t)
{
	const struct oci_topo *topo = oci_topo_local();
	const struct oci_term *domain = &t->model->domain_cores;
	struct oci_topo_summary s = { .cores = 0 };
	unsigned int cache_cores;
	size_t cache_bytes;

	if (topo)
		oci_topo_summary(topo, &s);
	else
		oci_tuning_note(
			t, "hwloc cannot tell the shape of this machine: one package and one cache "
			   "are assumed");
	cache_bytes = s.l3_bytes ? s.l3_bytes : s.l2_bytes;
	cache_cores = s.l3_bytes ? s.cores_per_l3 : s.cores_per_l2;
	give_shape(t, "machine.packages", s.packages);
	give_shape(t, "machine.package_cores", s.packages ? s.cores / s.packages : 0);
	give_shape(t, "machine.cache_cores", s.cores_per_l3 ? s.cores_per_l3 : s.cores_per_l2);
	give_shape(t, "machine.domain_cores", s.numa_nodes ? s.cores / s.numa_nodes : 0);
	if (cache_bytes && cache_cores > 1) {
		oci_tuning_give(t, "cache.shared", (double)cache_bytes, 0, "size of the %s",
				s.l3_bytes ? "L3" : "L2");
		snprintf(t->model->cache_shared.source, OCI_TERM_TEXT, "hwloc");
	}
	t->domain_ranks = domain->given && domain->value < t->ranks ? (uint32_t)domain->value :
								      t->ranks;
	t->domain_bytes = domain_bytes(t, cache_bytes, cache_cores);
}

static enum oci_model_distance distance(const struct oci_topo_place *a,
					const struct oci_topo_place *b)
{
	enum oci_topo_level level = oci_topo_common(a, b);
	bool two_l3 = level == OCI_TOPO_L2 && a->l3 != OCI_TOPO_NOWHERE && a->l3 != b->l3;

	if (level == OCI_TOPO_CORE)
		return OCI_MODEL_DISTANCES; /* two threads of a core are not two cores */
	if (level <= OCI_TOPO_L3 && !two_l3)
		return OCI_MODEL_CACHE;
	return level <= OCI_TOPO_PACKAGE ? OCI_MODEL_PACKAGE : OCI_MODEL_MACHINE;
}

/* Puts the CPUs in order, and finds out how far each is from the first one. */
static int find_pairs(struct oci_tuning *t)
{
	const struct oci_topo *topo = oci_topo_local();
	uint32_t count = t->world.cpu_count;
	struct oci_tune_cpu *cpus = topo ? calloc(count, sizeof(*cpus)) : NULL;
	uint64_t mask[OCI_TUNING_CPUS / 64];

	if (!topo)
		return 0;
	if (!cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		memset(mask, 0, sizeof(mask));
		mask[t->cpus[i] / 64] = (uint64_t)1 << (t->cpus[i] % 64);
		oci_topo_place(topo, mask, OCI_TUNING_CPUS / 64, &cpus[i].place);
		cpus[i].number = t->cpus[i];
	}
	t->package_cores = oci_tune_order(cpus, count);
	for (uint32_t i = 0; i < count; i++) {
		enum oci_model_distance d = distance(&cpus[0].place, &cpus[i].place);

		t->cpus[i] = cpus[i].number;
		if (i == 1)
			t->near_pair = d != OCI_MODEL_MACHINE;
		if (d == OCI_MODEL_DISTANCES || t->pair[d][0] != t->pair[d][1])
			continue;
		t->pair[d][0] = t->cpus[0];
		t->pair[d][1] = t->cpus[i];
	}
	free(cpus);
	return 0;
}

uint32_t oci_tune_cpus(const unsigned int **cpus)
{
	static unsigned int list[OCI_TUNING_CPUS];
	static uint64_t mask[OCI_TUNING_CPUS / 64];
	unsigned int words = oci_os_affinity(0, mask, OCI_TUNING_CPUS / 64);
	uint32_t count = 0;

	for (unsigned int i = 0; i < words * 64 && i < OCI_TUNING_CPUS; i++)
		if (mask[i / 64] >> (i % 64) & 1)
			list[count++] = i;
	if (!count)
		list[count++] = 0;
	if (cpus)
		*cpus = list;
	return count;
}

size_t oci_tune_memory_left(void)
{
	return oci_os_memory_left();
}

/* What an experiment cannot do without. */
enum { TWO_CPUS = 1, SINGLE_COPIES = 2, TWO_COPIERS = 4, MODULE = 8, ENGINE = 16 };

static const struct experiment {
	const char *what;
	unsigned int points; /* 0: one for each size */
	unsigned int needs;
	/* What each rank runs, of how many that share so many pages; NULL: measure() says. */
	int (*body)(struct oci_tune_rank *me);
	uint32_t ranks;
	size_t pages;
} experiments[OCI_TUNING_SERIES] = {
	[OCI_MEASURE_CMA] = { "cma: copies", .needs = SINGLE_COPIES },
	[OCI_MEASURE_PUSH] = { "cma: writes", .needs = SINGLE_COPIES },
	[OCI_MEASURE_KMOD] = { "kmod: copies", .needs = MODULE },
	[OCI_MEASURE_KMOD_PUSH] = { "kmod: writes", .needs = MODULE },
	[OCI_MEASURE_KMOD_DMA] = { "kmod: copies by a DMA engine", .needs = MODULE | ENGINE },
	[OCI_MEASURE_MAP] = { .what = "map: copies" },
	[OCI_MEASURE_MAP_PUSH] = { "map: writes", .needs = TWO_CPUS },
	[OCI_MEASURE_SHM] = { .what = "shm: copies through a slot" },
	[OCI_MEASURE_MEMCPY] = { .what = "local copies" },
	[OCI_MEASURE_FILL] = { "local copies into a slot", OCI_TUNING_SLOTS, .needs = TWO_CPUS },
	[OCI_TUNING_PAGES] = { "cma: start and page locks", OCI_MEASURE_PAGES, SINGLE_COPIES,
			       oci_measure_pages, .ranks = 2 },
	[OCI_TUNING_DOMAIN] = { "cma: all cores at once", 1, .needs = SINGLE_COPIES | TWO_COPIERS },
	[OCI_TUNING_RING] = { "cma: all cores from each other", 1,
			      .needs = SINGLE_COPIES | TWO_COPIERS },
	[OCI_TUNING_SUM] = { "sums", 1, 0, oci_measure_sum, 1, 0 },
	[OCI_TUNING_CALL] = { "small calls", 2, TWO_CPUS, oci_measure_calls, 2,
			      OCI_MEASURE_CALL_PAGES },
	[OCI_TUNING_ACROSS] = { "cma: copies between packages", .needs = SINGLE_COPIES },
	[OCI_TUNING_FLAG + OCI_MODEL_CACHE] = { "flag.cache", 2, 0, oci_measure_flags, 2, 0 },
	[OCI_TUNING_FLAG + OCI_MODEL_PACKAGE] = { "flag.package", 2, 0, oci_measure_flags, 2, 0 },
	[OCI_TUNING_FLAG + OCI_MODEL_MACHINE] = { "flag.machine", 2, 0, oci_measure_flags, 2, 0 },
};

bool oci_tuning_two_packages(const struct oci_tuning *t)
{
	const unsigned int *pair = t->pair[OCI_MODEL_MACHINE];

	return t->near_pair && pair[0] != pair[1];
}

bool oci_tuning_can(const struct oci_tuning *t, unsigned int series)
{
	unsigned int needs = experiments[series].needs;
	const unsigned int *pair = t->pair[series < OCI_TUNING_FLAG ? 0 : series - OCI_TUNING_FLAG];

	return !(needs & TWO_CPUS && t->world.cpu_count < 2) &&
	       !(needs & SINGLE_COPIES && t->no_cma) && !(needs & MODULE && t->no_kmod) &&
	       !(needs & ENGINE && t->no_engine) && !(needs & TWO_COPIERS && t->domain_ranks < 2) &&
	       !(series == OCI_TUNING_CALL && t->no_call) &&
	       !(series == OCI_TUNING_ACROSS && !oci_tuning_two_packages(t)) &&
	       !(series >= OCI_TUNING_FLAG && pair[0] == pair[1]);
}

/* All ranks copy at once from the next one, in a ring: every end is busy itself. */
static int measure_ring(struct oci_tuning *t, size_t bytes, struct oci_tune_point *point)
{
	const struct oci_measure_contended ring = { .copiers = t->domain_ranks,
						    .bytes = bytes,
						    .where = OCI_MEASURE_EACH,
						    .rewritten = true };

	return oci_measure_contention(&t->world, &ring, point, t->why, t->why_bytes);
}

static int measure(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	const struct experiment *e = &experiments[series];
	bool across = series == OCI_TUNING_ACROSS;
	struct oci_tune_world world = t->world;

	if (series == OCI_TUNING_DOMAIN)
		return measure_ring(t, t->domain_bytes, point);
	if (series == OCI_TUNING_RING)
		return measure_ring(t, OCI_TUNING_CONTENTION_BYTES, point);
	if (across || series >= OCI_TUNING_FLAG) {
		world.cpus = t->pair[across ? OCI_MODEL_MACHINE : series - OCI_TUNING_FLAG];
		world.cpu_count = 2;
	}
	if (e->body)
		return oci_tune_take(&world, e->ranks, e->pages * oci_os_page_bytes(), e->body,
				     NULL, point, e->points, t->why, t->why_bytes);
	return oci_measure_copies(&world, across ? OCI_MEASURE_CMA : series,
				  series == OCI_MEASURE_FILL ? &oci_tuning_slots : &t->sizes, point,
				  t->why, t->why_bytes);
}

/* EPERM and ENOSYS: Yama, seccomp or another kernel; onecopy info says which and what helps. */
bool oci_tuning_refused(struct oci_tuning *t, int error)
{
	if (error != -EPERM && error != -ENOSYS && error != -ESRCH)
		return false;
	t->no_cma = true;
	oci_tuning_note(t, "cma cannot be used here and is left out: %s; onecopy info says why",
			t->why);
	return true;
}

/* Every experiment once. */
static int make_turn(struct oci_tuning *t, unsigned int turn)
{
	for (unsigned int s = 0; s < OCI_TUNING_SERIES; s++) {
		int error;

		if (!oci_tuning_can(t, s))
			continue;
		oci_tuning_step(t, experiments[s].what);
		error = measure(t, s, t->kept[s][turn]);
		if (error && s == OCI_TUNING_CALL) {
			t->no_call = true;
			oci_tuning_note(t, "what a call costs is left out: %s", t->why);
		} else if (error && experiments[s].needs & MODULE) {
			t->no_kmod = true;
			oci_tuning_note(t,
					"the kernel module cannot be used here and is left out: "
					"%s",
					t->why);
		} else if (error && !(experiments[s].needs & SINGLE_COPIES &&
				      oci_tuning_refused(t, error))) {
			return error;
		}
	}
	return 0;
}

static void combine_turns(struct oci_tuning *t)
{
	for (unsigned int s = 0; s < OCI_TUNING_SERIES; s++) {
		unsigned int points = experiments[s].points;

		for (unsigned int i = 0;
		     oci_tuning_can(t, s) && i < (points ? points : t->sizes.count); i++) {
			t->point[s][i] = of_all_turns(t, s, i);
			if (!points && t->point[s][i].residual > OCI_TUNING_CALM)
				oci_tuning_note(
					t,
					"%s of %zu KiB: the quartiles lie %.0f %% around the "
					"median, so other work was in the way; left out where "
					"calmer sizes are there",
					experiments[s].what, t->sizes.bytes[i] / KIB,
					100 * t->point[s][i].residual);
		}
	}
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

	t->world.seconds = seconds / t->turns;
	for (unsigned int turn = 0; turn < t->turns && !error; turn++)
		error = make_turn(t, turn);
	if (error)
		return error;
	t->world.seconds = seconds; /* of what has turns of its own */
	combine_turns(t);
	error = oci_tuning_terms(t);
	if (!error && t->unsteady)
		note_unsteady(t);
	return error;
}

/* May the kernel module use any? */
static bool has_engine(void)
{
	struct oci_os_kmod_counters counters = { 0 };
	int fd = oci_os_kmod_open();

	if (fd < 0)
		return false;
	oci_os_kmod_count(fd, &counters);
	close(fd);
	return counters.channels;
}

static int choose(struct oci_tuning *t)
{
	static const size_t kib[] = { 4, 16, 64, 256, 1024, 4096, 16384 };
	bool quick = t->options->quick;
	int error = find_pairs(t);

	if (error)
		return error;
	t->sizes.count = quick ? 6 : 7;
	for (uint32_t i = 0; i < t->sizes.count; i++)
		t->sizes.bytes[i] = kib[i] * KIB;
	t->split = t->sizes.count;
	t->turns = t->options->turns ? t->options->turns :
		   quick	     ? OCI_TUNING_TURNS / 2 :
				       OCI_TUNING_TURNS;
	/* Processes that share a CPU do not meet at a lock. */
	t->ranks = t->world.cpu_count;
	if (t->options->ranks && t->options->ranks < t->ranks)
		t->ranks = t->options->ranks;
	if (t->ranks > OCI_TUNE_MOST_RANKS)
		t->ranks = OCI_TUNE_MOST_RANKS;
	find_shape(t);
	t->no_engine = !has_engine();
	t->steps = oci_tuning_contention_steps(t);
	for (unsigned int s = 0; s < OCI_TUNING_SERIES; s++)
		t->steps += oci_tuning_can(t, s) * t->turns;
	return 0;
}

int oci_tune(const struct oci_tune_options *options, const struct oci_tune_listener *listener,
	     struct oci_model *model, char *why, size_t n)
{
	struct oci_tuning *t = calloc(1, sizeof(*t));
	const unsigned int *cpus;
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
	t->world.cpu_count = oci_tune_cpus(&cpus);
	memcpy(t->cpus, cpus, t->world.cpu_count * sizeof(*cpus));
	error = choose(t);
	if (error) {
		free(t);
		return error;
	}
	/* Some 45 points and two for each number of copiers: a minute, or some 15 seconds, and up
	 * to three times as long where the state that is measured in comes and goes. */
	seconds = options->seconds > 0 ? options->seconds : options->quick ? 0.2 : 1.0;
	error = oci_tune_world_create(&t->world, t->cpus, t->world.cpu_count, seconds,
				      t->ranks + 1);
	if (error) {
		snprintf(why, n, "no shared memory for the measuring ranks: %s", strerror(-error));
	} else {
		error = tune_all(t);
		oci_tune_world_destroy(&t->world);
	}
	if (!error && listener && listener->step)
		listener->step(listener->context, "done", 1);
	free(t);
	return error;
}
