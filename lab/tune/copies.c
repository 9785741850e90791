/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between two ranks, by size and by what is locked; many copiers of one process, or of one
 * each. One file of more than 500 lines: all of them have their owner, pools and turns from the
 * same helpers.
 */
#include "lab/tune/measure.h"

#include "base/atomic.h"
#include "copy/memcpy.h"
#include "lab/harness/clock.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* More than the private caches of today's cores (2 MiB here, 4 MiB at most), twice. */
#define POOL_BYTES ((size_t)8 << 20)
/* A page-table page of 4 KiB pages covers so much: blocks that lie in one such range are meant to.
 */
#define ALIGNMENT ((size_t)2 << 20)
/* Copiers of one process whose blocks differ: more take the same ones again, so that all stay as
 * near to each other as they are meant to be. */
#define PLACES 8
/* Locks are timed on few pages, whose bytes stay in cache: a miss is no part of a lock. */
#define HOT_PAGES 16
/* A turn of the engine's helped copies: half a slot. */
#define HALF_BYTES ((size_t)32 << 10)

enum { LINE_ASK, LINE_READY, LINE_BYTES, LINE_FILLED, LINE_EMPTIED };

#define NO_MORE UINT64_MAX

struct copy_arg {
	enum oci_measure_kind kind;
	struct oci_measure_sizes sizes;
};

struct pool {
	uint8_t *memory;
	size_t bytes;
};

/* Two buffers at least: with one, each copy would find what the last one left in the cache. */
static size_t span_of(size_t bytes)
{
	return 2 * bytes > POOL_BYTES ? 2 * bytes : POOL_BYTES;
}

static size_t most_bytes(const struct oci_measure_sizes *sizes)
{
	size_t most = 0;

	for (uint32_t i = 0; i < sizes->count; i++)
		if (sizes->bytes[i] > most)
			most = sizes->bytes[i];
	return most;
}

static size_t pool_bytes(const struct oci_measure_sizes *sizes)
{
	return span_of(most_bytes(sizes));
}

/* Touched, so that no sample pays for a page's first use. */
static int make_pool(struct oci_tune_rank *me, struct pool *pool, size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + ALIGNMENT, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*pool = (struct pool){ 0 };
	if (memory == MAP_FAILED)
		return oci_tune_fail(me, -ENOMEM, "no room for %zu bytes of buffers", bytes);
	pool->memory = memory + -(uintptr_t)memory % ALIGNMENT;
	pool->bytes = bytes;
	memset(pool->memory, 1, bytes);
	return 0;
}

/* A single copy, or the sentence why not. */
static int copy_single(struct oci_tune_rank *me, uint32_t owner, bool push, void *mine,
		       const void *other, size_t bytes)
{
	struct iovec local = { mine, bytes }, remote = { (void *)(uintptr_t)other, bytes };
	pid_t pid = me->shared->rank[owner].pid;
	ssize_t got = push ? oci_os_vm_write(pid, &local, 1, &remote, 1) :
			     oci_os_vm_read(pid, &local, 1, &remote, 1);

	if (got == (ssize_t)bytes)
		return 0;
	return oci_tune_fail(me, got < 0 ? (int)got : -EIO, "process_vm_%s: %s",
			     push ? "writev" : "readv",
			     got < 0 ? strerror((int)-got) : "fewer bytes than asked for");
}

/* The kernel module's device, a descriptor of each rank's own. */
static int device = -1;

static int open_device(struct oci_tune_rank *me)
{
	device = oci_os_kmod_open();
	return device >= 0 ? 0 : oci_tune_fail(me, device, "/dev/onecopy: %s", strerror(-device));
}

/* What the owner has, for all to copy. */
static int register_pool(struct oci_tune_rank *me, const struct pool *pool)
{
	int error = open_device(me);

	if (!error)
		error = oci_os_kmod_register(device, (uintptr_t)pool->memory, pool->bytes, true, 0,
					     &me->shared->rank[me->rank].cookie);
	if (error == -ENOMEM)
		return oci_tune_fail(me, error,
				     "%zu MiB cannot be pinned; raise RLIMIT_MEMLOCK (ulimit -l)",
				     pool->bytes >> 20);
	return error ? oci_tune_fail(me, error, "/dev/onecopy: %s", strerror(-error)) : 0;
}

/* Between `mine` and the place in the region of the rank 1. */
static int copy_by_module(struct oci_tune_rank *me, enum oci_measure_kind kind, void *mine,
			  const uint8_t *other, size_t bytes)
{
	unsigned int flags = kind == OCI_MEASURE_KMOD_PUSH ? OCI_OS_KMOD_WRITE :
			     kind == OCI_MEASURE_KMOD_DMA  ? OCI_OS_KMOD_DMA :
							     0;
	struct iovec local = { mine, bytes };
	uint64_t offset = (uintptr_t)other - me->shared->rank[1].address;
	ssize_t got = oci_os_kmod_copy(device, me->shared->rank[1].cookie, offset, &local, 1, bytes,
				       flags);

	if (got == (ssize_t)bytes)
		return 0;
	return oci_tune_fail(me, got < 0 ? (int)got : -EIO, "a copy by /dev/onecopy: %s",
			     got < 0 ? strerror((int)-got) : "fewer bytes than asked for");
}

static uint8_t *pool_turn(const struct pool *pool, size_t bytes, uint64_t turn)
{
	/* As far for a size whatever larger ones are measured, too. */
	return pool->memory + turn % (span_of(bytes) / bytes) * bytes;
}

static uint8_t *slot_turn(const struct oci_tune_rank *me, uint64_t turn)
{
	return me->memory + turn % 2 * OCI_MEASURE_SLOT_BYTES;
}

/* The owner's half of a copy through a slot. */
static void fill_halves(struct oci_tune_rank *me, const uint8_t *source, size_t bytes,
			uint64_t *turns)
{
	struct oci_tune_line *line = me->shared->line;
	uint8_t *halves = me->memory;

	for (size_t done = 0; done < bytes; done += HALF_BYTES) {
		size_t length = bytes - done < HALF_BYTES ? bytes - done : HALF_BYTES;

		if (*turns >= 2)
			oci_tune_await(&line[LINE_EMPTIED], *turns - 1);
		memcpy(halves + *turns % 2 * HALF_BYTES, source + done, length);
		oci_tune_raise(&line[LINE_FILLED], ++*turns);
	}
}

static void empty_halves(struct oci_tune_rank *me, uint8_t *target, size_t bytes, uint64_t *turns)
{
	struct oci_tune_line *line = me->shared->line;

	for (size_t done = 0; done < bytes; done += HALF_BYTES) {
		size_t length = bytes - done < HALF_BYTES ? bytes - done : HALF_BYTES;

		oci_tune_await(&line[LINE_FILLED], *turns + 1);
		memcpy(target + done, me->memory + *turns % 2 * HALF_BYTES, length);
		oci_tune_raise(&line[LINE_EMPTIED], ++*turns);
	}
}

/* As whoever received these bytes does. */
static void use(const uint8_t *buffer, size_t bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i + sizeof(sum) <= bytes; i += sizeof(sum)) {
		uint64_t word;

		memcpy(&word, buffer + i, sizeof(word));
		sum += word;
	}
	__asm__ __volatile__("" : : "r"(sum));
}

static bool is_push(enum oci_measure_kind kind)
{
	return kind == OCI_MEASURE_PUSH || kind == OCI_MEASURE_MAP_PUSH ||
	       kind == OCI_MEASURE_KMOD_PUSH;
}

static bool is_by_module(enum oci_measure_kind kind)
{
	return kind == OCI_MEASURE_KMOD || kind == OCI_MEASURE_KMOD_PUSH ||
	       kind == OCI_MEASURE_KMOD_DMA;
}

/* The owner's buffers are in the memory that all share. */
static bool is_mapped(enum oci_measure_kind kind)
{
	return kind == OCI_MEASURE_MAP || kind == OCI_MEASURE_MAP_PUSH;
}

/* Rewrites the next source whenever it is asked to (PUSH: reads what came last; FILL: the slot),
 * and helps where the copy needs it. */
static int be_owner(struct oci_tune_rank *me, const struct copy_arg *arg)
{
	struct oci_tune_line *line = me->shared->line;
	struct pool source = { me->memory, pool_bytes(&arg->sizes) };
	uint64_t turn = 0, turns = 0;
	int error = 0;

	if (!is_mapped(arg->kind))
		error = make_pool(me, &source, source.bytes);
	if (!error && is_by_module(arg->kind))
		error = register_pool(me, &source);
	if (error)
		return error;
	me->shared->rank[me->rank].address = (uint64_t)(uintptr_t)source.memory;
	oci_tune_barrier(me);
	for (uint64_t asked = 1;; asked++) {
		size_t bytes;
		uint8_t *buffer;

		oci_tune_await(&line[LINE_ASK], asked);
		if (oci_load_relaxed(&line[LINE_ASK].word) == NO_MORE)
			return 0;
		bytes = oci_load_relaxed(&line[LINE_BYTES].word);
		turn++;
		buffer = pool_turn(&source, bytes, turn);
		if (arg->kind == OCI_MEASURE_FILL)
			use(slot_turn(me, turn), bytes);
		else if (is_push(arg->kind))
			use(pool_turn(&source, bytes, turn - 1), bytes);
		else
			memset(buffer, (int)turn, bytes);
		oci_tune_raise(&line[LINE_READY], turn);
		if (arg->kind == OCI_MEASURE_SHM)
			fill_halves(me, buffer, bytes, &turns);
	}
}

/* `other` is the peer's buffer: what is read, or with PUSH where it is written to; with FILL the
 * slot. */
static int copy_once(struct oci_tune_rank *me, enum oci_measure_kind kind, uint8_t *mine,
		     const uint8_t *other, size_t bytes, uint64_t *turns)
{
	switch (kind) {
	case OCI_MEASURE_CMA:
	case OCI_MEASURE_PUSH:
		return copy_single(me, 1, kind == OCI_MEASURE_PUSH, mine, other, bytes);
	case OCI_MEASURE_KMOD:
	case OCI_MEASURE_KMOD_PUSH:
	case OCI_MEASURE_KMOD_DMA:
		return copy_by_module(me, kind, mine, other, bytes);
	case OCI_MEASURE_SHM:
		empty_halves(me, mine, bytes, turns);
		return 0;
	default:
		if (kind == OCI_MEASURE_FILL)
			memcpy((uint8_t *)(uintptr_t)other, mine, bytes);
		else if (kind == OCI_MEASURE_MAP_PUSH)
			oci_memcpy((uint8_t *)(uintptr_t)other, mine, bytes, bytes);
		else if (kind == OCI_MEASURE_MAP)
			oci_memcpy(mine, other, bytes, bytes);
		else
			memcpy(mine, other, bytes);
		/* The compiler may neither move nor drop the copy between two readings of the
		 * clock.
		 */
		__asm__ __volatile__("" : : "r"(mine), "r"(other) : "memory");
		return 0;
	}
}

/* This rank alone raises it. */
static void raise_ask(struct oci_tune_rank *me, size_t bytes)
{
	struct oci_tune_line *line = me->shared->line;

	oci_store_relaxed(&line[LINE_BYTES].word, bytes);
	oci_tune_raise(&line[LINE_ASK], oci_load_relaxed(&line[LINE_ASK].word) + 1);
}

/* Asks for the next source and returns where it is in the memory that it is copied from; of a PUSH,
 * or FILL, which has its source in `mine`, where it is to go. */
static const uint8_t *ask(struct oci_tune_rank *me, const struct copy_arg *arg,
			  const struct pool *own, uint8_t *mine, size_t bytes, uint64_t turn)
{
	struct oci_tune_line *line = me->shared->line;
	struct pool source = *own;

	if (arg->kind == OCI_MEASURE_MEMCPY) {
		uint8_t *buffer = pool_turn(own, bytes, turn);

		memset(buffer, (int)turn, bytes);
		return buffer;
	}
	raise_ask(me, bytes);
	oci_tune_await(&line[LINE_READY], turn);
	if (arg->kind == OCI_MEASURE_FILL || is_push(arg->kind))
		memset(mine, (int)turn, bytes);
	if (arg->kind == OCI_MEASURE_FILL)
		return slot_turn(me, turn);
	source.memory = is_mapped(arg->kind) ? me->memory :
					       (uint8_t *)(uintptr_t)me->shared->rank[1].address;
	return pool_turn(&source, bytes, turn);
}

struct copier {
	struct pool target, own;
	uint64_t turn, turns;
};

/* The seconds that the next copy takes. */
static double copy_next(struct oci_tune_rank *me, const struct copy_arg *arg, struct copier *c,
			size_t bytes, int *error)
{
	uint8_t *mine = pool_turn(&c->target, bytes, ++c->turn);
	const uint8_t *other = ask(me, arg, &c->own, mine, bytes, c->turn);
	double start = now_s();

	*error = copy_once(me, arg->kind, mine, other, bytes, &c->turns);
	return now_s() - start;
}

static int be_copier(struct oci_tune_rank *me, const struct copy_arg *arg)
{
	size_t most = most_bytes(&arg->sizes);
	struct copier c = { 0 };
	int error;

	error = make_pool(me, &c.target, span_of(most));
	if (!error)
		error = make_pool(me, &c.own, c.target.bytes);
	if (!error && is_by_module(arg->kind))
		error = open_device(me);
	if (error)
		return error;
	oci_tune_barrier(me);
	/* Once through all of the pools: a page that somebody else than its owner touches for a
	 * first time may take microseconds, on a virtual machine also in the kernel's own mapping.
	 */
	for (size_t done = 0; done < c.target.bytes && !error; done += most)
		copy_next(me, arg, &c, most, &error);
	for (uint32_t i = 0; i < arg->sizes.count && !error; i++) {
		uint32_t samples = 0;

		oci_tune_begin(me);
		while (!error && oci_tune_more(me, samples))
			me->sample[samples++] = copy_next(me, arg, &c, arg->sizes.bytes[i], &error);
		oci_tune_leave(me, i, samples, 1);
	}
	if (error)
		return error;
	oci_tune_raise(&me->shared->line[LINE_ASK], NO_MORE);
	return 0;
}

static int copy_body(struct oci_tune_rank *me)
{
	return me->rank ? be_owner(me, me->arg) : be_copier(me, me->arg);
}

double oci_measure_copies_need(size_t bytes)
{
	/* Of each of two ranks, and what they share. */
	return 3. * (double)span_of(bytes);
}

int oci_measure_copies(struct oci_tune_world *world, enum oci_measure_kind kind,
		       const struct oci_measure_sizes *sizes, struct oci_tune_point *point,
		       char *why, size_t n)
{
	const struct copy_arg arg = { kind, *sizes };
	uint32_t ranks = kind == OCI_MEASURE_MEMCPY ? 1 : 2;

	return oci_tune_take(world, ranks, pool_bytes(sizes), copy_body, &arg, point, sizes->count,
			     why, n);
}

/* One after the other in turns, so that whatever drifts meets all of them alike. */
int oci_measure_pages(struct oci_tune_rank *me)
{
	static double kept[OCI_MEASURE_PAGES][OCI_TUNE_SAMPLES];
	const size_t page = oci_os_page_bytes();
	const size_t offset[] = { page / 2, page / 2, page - 1, page / 2 },
		     bytes[] = { 1, 2, 2, 1 };
	uint32_t samples = 0;
	uint8_t target[2];
	struct pool pool;
	int error = make_pool(me, &pool, (HOT_PAGES + 1) * page);

	if (error)
		return error;
	me->shared->rank[me->rank].address = (uint64_t)(uintptr_t)pool.memory;
	oci_tune_barrier(me);
	if (me->rank) {
		oci_tune_await(&me->shared->line[LINE_ASK], NO_MORE);
		return 0;
	}
	/* Nothing here is in one cache and needed in another one. */
	for (oci_tune_begin(me); oci_tune_more(me, samples); samples++) {
		uint64_t base = me->shared->rank[1].address + samples % HOT_PAGES * page;

		for (int i = 0; i < OCI_MEASURE_PAGES; i++) {
			const uint8_t *source = (const uint8_t *)(uintptr_t)(base + offset[i]);

			double start = now_s();

			error = copy_once(me, i < 3 ? OCI_MEASURE_CMA : OCI_MEASURE_PUSH, target,
					  source, bytes[i], NULL);
			kept[i][samples] = now_s() - start;
			if (error)
				return error;
		}
	}
	for (uint32_t i = 0; i < OCI_MEASURE_PAGES; i++) {
		memcpy(me->sample, kept[i], sizeof(kept[i]));
		oci_tune_leave(me, i, samples, 1);
	}
	oci_tune_raise(&me->shared->line[LINE_ASK], NO_MORE);
	return 0;
}

/* The owner of what all copy has no CPU of its own where the copiers take all: it sleeps. */
static void sleep_to_the_end(struct oci_tune_rank *me)
{
	while (!oci_load_acquire(&me->shared->line[LINE_ASK].word))
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
}

/* Those of the round before may still be read, but lie elsewhere. */
static size_t rewrite(size_t bytes, uint8_t *source, uint32_t turn)
{
	size_t at = turn % (span_of(bytes) / bytes) * bytes;

	memset(source + at, (int)turn, bytes);
	return at;
}

/* Where the k-th copier's place is in the one process's memory. */
static size_t place_of(const struct oci_measure_contended *of, uint32_t k)
{
	return of->where == OCI_MEASURE_APART ? k % PLACES * of->apart : 0;
}

static int copy_together(struct oci_tune_rank *me, const struct oci_measure_contended *of,
			 uint8_t *source, uint8_t *target)
{
	uint32_t owner = of->where == OCI_MEASURE_EACH ? (me->rank + 1) % of->copiers : of->copiers;
	uint32_t samples = 0, turn = 0;
	const uint8_t *theirs = (const uint8_t *)(uintptr_t)me->shared->rank[owner].address +
				place_of(of, me->rank);

	oci_tune_begin(me);
	for (;;) {
		size_t at = of->rewritten ? rewrite(of->bytes, source, turn++) : 0;
		double start;
		int error;

		if (!oci_tune_another(me, of->copiers, samples))
			break;
		start = now_s();
		error = copy_single(me, owner, of->push, target + at, theirs + at, of->bytes);
		me->sample[samples++] = now_s() - start;
		if (error)
			return error;
	}
	oci_tune_leave(me, 0, samples, 1);
	oci_tune_raise(&me->shared->line[LINE_ASK], NO_MORE);
	return 0;
}

static int contention_body(struct oci_tune_rank *me)
{
	const struct oci_measure_contended *of = me->arg;
	size_t own = of->rewritten ? span_of(of->bytes) : of->bytes;
	bool owner = me->rank == of->copiers;
	size_t places = place_of(of, PLACES - 1) + of->bytes;
	struct pool source, target;
	int error = make_pool(me, &source, owner ? places : own);

	if (!error)
		error = make_pool(me, &target, own);
	if (error)
		return error;
	me->shared->rank[me->rank].address = (uint64_t)(uintptr_t)source.memory;
	oci_tune_barrier(me);
	if (!owner)
		return copy_together(me, of, source.memory, target.memory);
	sleep_to_the_end(me);
	return 0;
}

int oci_measure_contention(struct oci_tune_world *world,
			   const struct oci_measure_contended *contended,
			   struct oci_tune_point *point, char *why, size_t n)
{
	uint32_t copiers = contended->copiers;
	int error = oci_tune_run(world, copiers + 1, 0, contention_body, contended, why, n);

	if (error)
		return error;
	*point = (struct oci_tune_point){ 0 };
	for (uint32_t r = 0; r < copiers; r++) {
		const struct oci_tune_point *one = &world->shared->rank[r].point[0];

		point->value += one->value / copiers;
		point->residual += one->residual / copiers;
		point->samples += one->samples;
	}
	return 0;
}
