/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/world.h"

#include "base/atomic.h"
#include "lab/harness/clock.h"
#include "lab/harness/stats.h"
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Polls before a wait yields: some 20 us, longer than any flag takes between two running ranks. */
#define SPINS 2000

static size_t shared_bytes(uint32_t ranks)
{
	return sizeof(struct oci_tune_shared) +
	       ranks * sizeof(((struct oci_tune_shared *)0)->rank[0]);
}

int oci_tune_world_create(struct oci_tune_world *world, const unsigned int *cpus,
			  unsigned int cpu_count, double seconds, uint32_t most_ranks)
{
	void *shared = mmap(NULL, shared_bytes(most_ranks), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return -errno;
	*world = (struct oci_tune_world){ .cpus = cpus,
					  .cpu_count = cpu_count,
					  .seconds = seconds,
					  .limit_s = 120,
					  .shared = shared,
					  .most_ranks = most_ranks };
	return 0;
}

void oci_tune_world_destroy(struct oci_tune_world *world)
{
	munmap(world->shared, shared_bytes(world->most_ranks));
	world->shared = NULL;
}

static double clock_part(void)
{
	double least = 1;

	for (int i = 0; i < 1000; i++) {
		double start = now_s(), took = now_s() - start;

		if (took < least)
			least = took;
	}
	return least;
}

__attribute__((noreturn)) static void be_rank(struct oci_tune_world *world,
					      struct oci_tune_rank *me,
					      int (*body)(struct oci_tune_rank *me))
{
	static double samples[OCI_TUNE_SAMPLES];
	int error;

	/* A bound that is refused leaves the scheduler to place the rank: worse numbers, no error.
	 */
	if (world->cpu_count)
		oci_os_bind(world->cpus[me->rank % world->cpu_count]);
	oci_os_die_with_parent();
	oci_os_set_ptracer(getppid()); /* its descendants, our fellow ranks, are admitted */
	me->shared = world->shared;
	me->seconds = world->seconds;
	me->sample = samples;
	me->clock_s = clock_part();
	me->shared->rank[me->rank].pid = getpid();
	oci_tune_barrier(me);
	error = body(me);
	me->shared->rank[me->rank].error = error;
	_exit(error ? 1 : 0);
}

static void end_all(const pid_t *pids, uint32_t ranks)
{
	for (uint32_t r = 0; r < ranks; r++)
		if (pids[r] > 0)
			kill(pids[r], SIGKILL);
	for (uint32_t r = 0; r < ranks; r++)
		if (pids[r] > 0)
			waitpid(pids[r], NULL, 0);
}

/* One rank that fails would leave the others waiting, so they are ended at once. */
static int await_all(struct oci_tune_world *world, pid_t *pids, uint32_t ranks, char *why, size_t n)
{
	double end = now_s() + world->limit_s;
	uint32_t left = ranks;

	while (left) {
		for (uint32_t r = 0; r < ranks; r++) {
			int status;

			if (pids[r] <= 0 || waitpid(pids[r], &status, WNOHANG) != pids[r])
				continue;
			pids[r] = 0;
			left--;
			if (WIFEXITED(status) && !WEXITSTATUS(status))
				continue;
			end_all(pids, ranks);
			if (!WIFEXITED(status)) {
				snprintf(why, n, "measuring rank %u was ended by signal %d", r,
					 WTERMSIG(status));
				return -EIO;
			}
			snprintf(why, n, "%s", world->shared->rank[r].why);
			return world->shared->rank[r].error ? world->shared->rank[r].error : -EIO;
		}
		if (now_s() > end) {
			end_all(pids, ranks);
			snprintf(why, n, "the measuring ranks did not end within %g seconds",
				 world->limit_s);
			return -ETIMEDOUT;
		}
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return 0;
}

int oci_tune_run(struct oci_tune_world *world, uint32_t ranks, size_t memory_bytes,
		 int (*body)(struct oci_tune_rank *me), const void *arg, char *why, size_t n)
{
	uint8_t *memory = NULL;
	pid_t *pids;
	int error = 0;

	if (ranks > world->most_ranks)
		return -EINVAL;
	memset(world->shared, 0, shared_bytes(world->most_ranks));
	pids = calloc(ranks, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	if (memory_bytes) {
		memory = mmap(NULL, memory_bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (memory == MAP_FAILED) {
			error = -errno;
			snprintf(why, n, "%zu bytes of shared memory: %s", memory_bytes,
				 strerror(errno));
			goto free_pids;
		}
	}
	fflush(NULL); /* or each child would print what is buffered once more */
	for (uint32_t r = 0; r < ranks && !error; r++) {
		struct oci_tune_rank me = { .rank = r,
					    .ranks = ranks,
					    .arg = arg,
					    .memory = memory };

		pids[r] = fork();
		if (!pids[r])
			be_rank(world, &me, body);
		if (pids[r] < 0) {
			error = -errno;
			snprintf(why, n, "fork: %s", strerror(errno));
		}
	}
	if (error)
		end_all(pids, ranks);
	else
		error = await_all(world, pids, ranks, why, n);
	if (memory)
		munmap(memory, memory_bytes);
free_pids:
	free(pids);
	return error;
}

int oci_tune_take(struct oci_tune_world *world, uint32_t ranks, size_t memory_bytes,
		  int (*body)(struct oci_tune_rank *me), const void *arg,
		  struct oci_tune_point *point, unsigned int count, char *why, size_t n)
{
	int error = oci_tune_run(world, ranks, memory_bytes, body, arg, why, n);

	if (!error)
		memcpy(point, world->shared->rank[0].point, count * sizeof(*point));
	return error;
}

void oci_tune_raise(struct oci_tune_line *line, uint64_t value)
{
	/* Release: what this rank wrote before is seen by whoever sees the value (await). */
	oci_store_release(&line->word, value);
}

void oci_tune_await(const struct oci_tune_line *line, uint64_t value)
{
	/* Acquire: pairs with the release of raise. */
	for (unsigned int spins = 0; oci_load_acquire(&line->word) < value; spins++)
		if (spins < SPINS)
			oci_cpu_relax();
		else
			oci_os_yield();
}

static void meet(struct oci_tune_line *arrived, struct oci_tune_line *released, uint32_t ranks,
		 uint64_t round)
{
	/* Acquire and release: the last one has seen what all wrote before, and passes it on by the
	 * release of `released`. */
	if (__atomic_add_fetch(&arrived->word, 1, __ATOMIC_ACQ_REL) == round * ranks)
		oci_tune_raise(released, round);
	else
		oci_tune_await(released, round);
}

void oci_tune_barrier(struct oci_tune_rank *me)
{
	meet(&me->shared->arrived, &me->shared->released, me->ranks, ++me->barriers);
}

bool oci_tune_another(struct oci_tune_rank *me, uint32_t ranks, uint32_t samples)
{
	/* By parity: rank 0 writes a word again only behind the next meeting, to which each rank
	 * comes when it has read it. */
	uint64_t *word = &me->shared->another[++me->rounds % 2].word;

	/* Relaxed: the meeting orders it. */
	if (!me->rank)
		oci_store_relaxed(word, oci_tune_more(me, samples));
	meet(&me->shared->round_arrived, &me->shared->round_released, ranks, me->rounds);
	return oci_load_relaxed(word);
}

struct oci_tune_point oci_tune_point_of(double *samples, uint32_t count)
{
	struct oci_tune_point point = { .samples = count };
	double median;

	if (!count)
		return point;
	stats_sort(samples, count);
	median = samples[count / 2];
	point.value = samples[count / 4];
	if (median > 0)
		point.residual = (samples[count * 3 / 4] - samples[count / 4]) / 2 / median;
	return point;
}

void oci_tune_begin(struct oci_tune_rank *me)
{
	me->begun_s = now_s();
}

bool oci_tune_more(const struct oci_tune_rank *me, uint32_t n)
{
	return n < OCI_TUNE_SAMPLES && (n < 16 || now_s() - me->begun_s <= me->seconds);
}

void oci_tune_leave(struct oci_tune_rank *me, uint32_t index, uint32_t samples, double things)
{
	for (uint32_t i = 0; i < samples; i++) {
		double took = me->sample[i] - me->clock_s;

		me->sample[i] = took > 0 ? took / things : 0;
	}
	me->shared->rank[me->rank].point[index] = oci_tune_point_of(me->sample, samples);
}

int oci_tune_fail(struct oci_tune_rank *me, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(me->shared->rank[me->rank].why, sizeof(me->shared->rank[me->rank].why), format,
		  arguments);
	va_end(arguments);
	return error;
}
