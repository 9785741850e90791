/* SPDX-License-Identifier: BSD-3-Clause */
/* Many copiers at a time: of one process, or each of another one. */
#include "lab/tune/measure.h"

#include "base/atomic.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* LINE_ENDED is raised by the first copier that stops: none may wait for it in vain. LINE_DO has a
 * second line behind it. */
enum { LINE_ARRIVED, LINE_RELEASED, LINE_ENDED, LINE_DO };

struct contention_arg {
	uint32_t copiers;
	size_t bytes;
	size_t apart;	/* 0: each copies from a process of its own */
	bool rewritten; /* sources are, before each copy, and all buffers rotate */
};

/* Of those that rotate: more than the private caches of today's cores, twice; two at least. */
static size_t rotated(const struct contention_arg *arg)
{
	size_t least = (size_t)8 << 20;

	return 2 * arg->bytes > least ? 2 * arg->bytes : least;
}

/* Copiers of one process whose blocks differ: more take the same ones again, so that all stay as
 * near to each other as they are meant to be. */
#define PLACES 8

/* A page-table page of 4 KiB pages covers so much: blocks that lie in one such range are meant to.
 */
#define ALIGNMENT ((size_t)2 << 20)

static uint8_t *make_buffer(struct oci_tune_rank *me, size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + ALIGNMENT, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		oci_tune_fail(me, -ENOMEM, "no room for %zu bytes of buffers", bytes);
		return NULL;
	}
	memory += -(uintptr_t)memory % ALIGNMENT;
	memset(memory, 1, bytes);
	return memory;
}

/* The owner of what all copy has no CPU of its own where the copiers take all: it sleeps. */
static void sleep_to_the_end(const struct oci_tune_line *line)
{
	while (!oci_load_acquire(&line[LINE_ENDED].word))
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
}

/*
 * Is there another round? The first copier decides for all, in the word of the next round's parity:
 * it writes that word again only behind the next meeting, to which each rank comes when it has read
 * it.
 */
static bool is_another(struct oci_tune_rank *me, const struct contention_arg *arg, uint64_t *round,
		       uint32_t samples)
{
	struct oci_tune_line *line = me->shared->line;
	uint64_t *word = &line[LINE_DO + (*round + 1) % 2].word;

	/* Relaxed: the meeting orders it. */
	if (!me->rank)
		oci_store_relaxed(word, oci_tune_more(me, samples));
	oci_tune_meet(&line[LINE_ARRIVED], &line[LINE_RELEASED], arg->copiers, round);
	return oci_load_relaxed(word);
}

/* Those of the round before may still be read, but lie elsewhere. */
static size_t rewrite(const struct contention_arg *arg, uint8_t *source, uint32_t turn)
{
	size_t at = turn % (rotated(arg) / arg->bytes) * arg->bytes;

	memset(source + at, (int)turn, arg->bytes);
	return at;
}

static int copy_together(struct oci_tune_rank *me, const struct contention_arg *arg,
			 uint8_t *source, uint8_t *target)
{
	uint32_t owner = arg->apart ? arg->copiers : (me->rank + 1) % arg->copiers;
	uint32_t samples = 0, turn = 0;
	uint64_t address = me->shared->rank[owner].address + me->rank % PLACES * arg->apart;
	struct iovec local = { target, arg->bytes },
		     remote = { (void *)(uintptr_t)address, arg->bytes };
	uint64_t round = 0;

	oci_tune_begin(me);
	for (;;) {
		double start;
		ssize_t got;

		if (arg->rewritten) {
			size_t at = rewrite(arg, source, turn++);

			local.iov_base = target + at;
			remote.iov_base = (void *)(uintptr_t)(address + at);
		}
		if (!is_another(me, arg, &round, samples))
			break;
		start = oci_tune_now_s();
		got = oci_os_vm_read(me->shared->rank[owner].pid, &local, 1, &remote, 1);
		me->sample[samples++] = oci_tune_now_s() - start;
		if (got != (ssize_t)arg->bytes)
			return oci_tune_fail(me, got < 0 ? (int)got : -EIO, "process_vm_readv: %s",
					     got < 0 ? strerror((int)-got) : "too few bytes");
	}
	oci_tune_leave(me, 0, samples, 1);
	oci_tune_raise(&me->shared->line[LINE_ENDED], 1);
	return 0;
}

static int contention_body(struct oci_tune_rank *me)
{
	const struct contention_arg *arg = me->arg;
	size_t own = arg->rewritten ? rotated(arg) : arg->bytes;
	size_t bytes = me->rank == arg->copiers ? PLACES * arg->apart + arg->bytes : own;
	uint8_t *source = make_buffer(me, bytes), *target = make_buffer(me, own);

	if (!source || !target)
		return -ENOMEM;
	me->shared->rank[me->rank].address = (uint64_t)(uintptr_t)source;
	oci_tune_barrier(me);
	if (me->rank == arg->copiers) {
		sleep_to_the_end(me->shared->line);
		return 0;
	}
	return copy_together(me, arg, source, target);
}

static int measure(struct oci_tune_world *world, const struct contention_arg *arg,
		   struct oci_tune_point *point, char *why, size_t n)
{
	uint32_t copiers = arg->copiers;
	int error = oci_tune_run(world, copiers + 1, 0, contention_body, arg, why, n);

	if (error)
		return error;
	memset(point, 0, sizeof(*point));
	for (uint32_t r = 0; r < copiers; r++) {
		const struct oci_tune_point *one = &world->shared->rank[r].point[0];

		point->value += one->value / copiers;
		point->residual += one->residual / copiers;
		point->samples += one->samples;
	}
	return 0;
}

int oci_measure_contention(struct oci_tune_world *world, uint32_t copiers, size_t bytes,
			   size_t apart, struct oci_tune_point *point, char *why, size_t n)
{
	const struct contention_arg arg = { .copiers = copiers, .bytes = bytes, .apart = apart };

	return measure(world, &arg, point, why, n);
}

int oci_measure_ring(struct oci_tune_world *world, uint32_t copiers, size_t bytes,
		     struct oci_tune_point *point, char *why, size_t n)
{
	const struct contention_arg arg = { .copiers = copiers, .bytes = bytes, .rewritten = true };

	return measure(world, &arg, point, why, n);
}
