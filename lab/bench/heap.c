/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_bench_heap: what the shared heap costs a program, against the same mimalloc without it.
 *
 * Each measurement is a process of its own with one library preloaded; both take turns, and that
 * without it a second time as the control. Preloads are by environment alone, so any other malloc
 * can be compared.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/experiment/run.h"
#include "lab/harness/clock.h"

enum { THREADS = 2, SLOTS = 1000, MOST_ROUNDS = 99, PROCESSES = 8, RUN_SECONDS = 600 };
#define MIB ((size_t)1 << 20)

static void *need(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory) {
		fprintf(stderr, "oc_bench_heap: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memory;
}

/* The four loops of STREAM on three arrays of 64 MiB: the sum of each loop's best of ten. */
static double stream(void)
{
	const size_t count = 8 * MIB;
	double *a = need(count * 8), *b = need(count * 8), *c = need(count * 8), best[4];

	for (size_t i = 0; i < count; i++) {
		a[i] = 1;
		b[i] = 2;
		c[i] = 0;
	}
	for (int round = 0; round < 10; round++) {
		for (int loop = 0; loop < 4; loop++) {
			double start = now_s(), took;

			for (size_t i = 0; i < count && loop == 0; i++)
				c[i] = a[i];
			for (size_t i = 0; i < count && loop == 1; i++)
				b[i] = 3 * c[i];
			for (size_t i = 0; i < count && loop == 2; i++)
				c[i] = a[i] + b[i];
			for (size_t i = 0; i < count && loop == 3; i++)
				a[i] = b[i] + 3 * c[i];
			took = now_s() - start;
			if (!round || took < best[loop])
				best[loop] = took;
		}
	}
	return best[0] + best[1] + best[2] + best[3];
}

/* Updates at random places of a table of 512 MiB, as HPCC's RandomAccess. The best of three. */
static double random_access(void)
{
	const uint64_t count = 64 * MIB, updates = 4000000;
	uint64_t *table = need(count * 8), x = 88172645463325252u;
	double best = 0;

	for (uint64_t i = 0; i < count; i++)
		table[i] = i;
	for (int round = 0; round < 3; round++) {
		double start = now_s(), took;

		for (uint64_t i = 0; i < updates; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			table[x % count] ^= x;
		}
		took = now_s() - start;
		if (!round || took < best)
			best = took;
	}
	return best;
}

static void *mix(void *argument)
{
	static _Thread_local char *slot[SLOTS];
	uint64_t x = 88172645463325252u + (uintptr_t)argument;

	for (int i = 0; i < 100000; i++) {
		size_t at, bytes;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		at = (x >> 32) % SLOTS;
		bytes = 16 + (x & (i % 100 ? 1023 : 65535));
		free(slot[at]);
		slot[at] = need(bytes);
		memset(slot[at], 1, bytes < 64 ? bytes : 64);
	}
	for (size_t i = 0; i < SLOTS; i++)
		free(slot[i]);
	return NULL;
}

/* 8 processes of 2 threads, each with 100,000 mixed malloc and free, ten times. */
static double allocations(void)
{
	char *const words[] = { "oc_bench_heap", "--work", "threads", NULL };
	double start = now_s();
	pid_t child;

	/* Programs, not forks: a child of fork() would have its parent's heap. */
	for (int process = 0; process < PROCESSES; process++)
		if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ))
			exit(1);
	for (int process = 0; process < PROCESSES; process++) {
		int status = 1;

		if (wait(&status) < 0 || status)
			exit(1);
	}
	return now_s() - start;
}

static double allocating_threads(void)
{
	pthread_t thread[THREADS];

	for (int round = 0; round < 10; round++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			if (pthread_create(&thread[i], NULL, mix, (void *)i))
				exit(1);
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	return 0;
}

/* Allocate, fill once, free: 4 MiB a hundred times. */
static double cold(void)
{
	double start = now_s();

	for (int i = 0; i < 100; i++) {
		char *memory = need(4 * MIB);

		memset(memory, i, 4 * MIB);
		free(memory);
	}
	return now_s() - start;
}

/* Allocate and fill 512 MiB in blocks of 4 MiB, once. */
static double first_touch(void)
{
	double start = now_s();

	for (int i = 0; i < 128; i++)
		memset(need(4 * MIB), i, 4 * MIB);
	return now_s() - start;
}

/* A process with 1 GiB in use forks; until the child, which looks at its copy, has ended. */
static double fork_of_much(void)
{
	char *memory = need(1024 * MIB);
	double start;
	pid_t child;

	memset(memory, 1, 1024 * MIB);
	start = now_s();
	child = fork();
	if (!child)
		_exit(memory[512 * MIB] != 1);
	if (child < 0 || waitpid(child, NULL, 0) != child) {
		fprintf(stderr, "oc_bench_heap: no child: %s\n", strerror(errno));
		exit(1);
	}
	return now_s() - start;
}

static const struct work {
	const char *name, *what;
	double (*run)(void);
} works[] = {
	{ "stream", "STREAM, 3 x 64 MiB", stream },
	{ "random", "random updates, 512 MiB", random_access },
	{ "allocations", "malloc/free, 8 x 2 threads", allocations },
	{ "cold", "4 MiB allocated, filled, freed", cold },
	{ "touch", "512 MiB filled first", first_touch },
	{ "fork", "fork with 1 GiB in use", fork_of_much },
	{ "threads", NULL, allocating_threads },
};
enum { WORKS = sizeof(works) / sizeof(works[0]) };

/* Part of another one's measurement: says nothing. */
static int print(const struct work *work, double seconds)
{
	return work->what && printf("= %s 1 %.6f\n", work->name, seconds * 1e3) < 0;
}

static const struct work *find_work(const char *name)
{
	for (int i = 0; i < WORKS; i++)
		if (!strcmp(works[i].name, name))
			return &works[i];
	return NULL;
}

/* The dynamic linker goes on without a library that it cannot find, and so would the figures. */
static int run_work(const char *name)
{
	const char *preload = getenv("LD_PRELOAD");
	const struct work *work = find_work(name);

	if (preload && *preload && !dlopen(preload, RTLD_LAZY | RTLD_NOLOAD)) {
		fprintf(stderr,
			"oc_bench_heap: %s was not preloaded; name one library, by its path\n",
			preload);
		return 1;
	}
	return work ? print(work, work->run()) : 2;
}

static int measure(struct results *results, struct step *step, unsigned int round)
{
	char arguments[64], program[PATH_MAX], why[512];
	struct run run = { .variant = step->context,
			   .program = realpath("/proc/self/exe", program),
			   .arguments = arguments,
			   .timeout_s = RUN_SECONDS };
	int err;

	snprintf(arguments, sizeof(arguments), "--work %s", works[step->at].name);
	err = run_program(results, &run, round, why, sizeof(why));
	if (err)
		run_explain(&run, err, why);
	return err;
}

static void plan(struct results *results, struct variant variants[3], unsigned int w)
{
	static const size_t once = 1;
	struct figure *figure = figure_new(results, &once, 1, "ms", "%s", works[w].name);

	figure->row = works[w].what;
	figure->x_name = "run";
	figure->x_is_bytes = false;
	figure->folded = true;
	figure->group = 1;
	results_turn(results);
	for (int v = 0; v < 3; v++)
		results_step(results, measure, &variants[v], w, "%s, %s", works[w].what,
			     variants[v].name);
}

int main(int argc, char **argv)
{
	static char settings[2][PATH_MAX];
	struct variant variants[] = { { .name = "base" },
				      { .name = "heap" },
				      { .name = "control" } };
	const char *only = argc > 4 ? argv[4] : "";
	int rounds = argc > 3 ? atoi(argv[3]) : 7, err;
	struct comparison *comparison;
	struct results results;

	if (argc == 3 && !strcmp(argv[1], "--work"))
		return run_work(argv[2]);
	if (argc < 3 || argc > 5 || rounds < 1 || rounds > MOST_ROUNDS ||
	    (*only && !find_work(only))) {
		fprintf(stderr,
			"usage: oc_bench_heap BASE HEAP [ROUNDS [WORK]]\n"
			"Compares two libraries for LD_PRELOAD, such as libmimalloc.so.2 and "
			"libonecopy-heap.so (\"\": none),\nin up to %d rounds (7). WORK: stream, "
			"random, allocations, cold, touch, fork.\n",
			MOST_ROUNDS);
		return 2;
	}
	results_begin(&results, argc, argv, (unsigned int)rounds);
	run_begin();
	for (int v = 0; v < 3; v++) {
		snprintf(settings[v % 2], PATH_MAX, "LD_PRELOAD=%s", argv[1 + v % 2]);
		variants[v].setting = *argv[1 + v % 2] ? settings[v % 2] : NULL;
	}
	for (unsigned int w = 0; w < WORKS; w++)
		if (works[w].what && (!*only || !strcmp(only, works[w].name)))
			plan(&results, variants, w);
	comparison = results_compare(&results, 1, "base", "heap");
	comparison->title = "ms with each; ratio: base/heap";
	comparison->control = "control";
	comparison->floor = 0.95;
	err = results_run(&results);
	results_finish(&results);
	if (results.complete)
		results_print(&results, stdout);
	results_end(&results);
	return err != 0;
}
