// SPDX-License-Identifier: BSD-3-Clause
#include "lab/harness/shm_barrier.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Two lines: the adjacent-line prefetcher fetches them in pairs. */
enum { APART = 128, SPINS_BEFORE_YIELD = 64, SPINS_BEFORE_CLOCK = 4096 };

static const int64_t idle_after_ns = 1000000;
/* Above the time a release takes to reach all waiting ranks: two cache-line transfers. */
static const int64_t start_delay_ns = 400;
/* A rank may come so much later than another from MPI_Init. */
static const int64_t meet_within_ns = 60000000000;

struct shm_segment {
	alignas(APART) _Atomic uint32_t arrived;
	alignas(APART) _Atomic uint32_t generation;
	alignas(APART) _Atomic uint32_t stop;
	_Atomic uint32_t failures;
	/* Between nodes: what this one's ranks say, and whether another one has failures. */
	_Atomic uint32_t says_stop, forgets, others_failed;
	alignas(APART)
		int64_t start_ns; /* written by the last arrival, ordered as the generation is */
	size_t samples;
	_Atomic int ranks; /* 0: not made yet */
};

/* What one rank owns: it alone writes here. @samples times follow it. */
struct shm_rank {
	alignas(APART) _Atomic uint64_t entered;
	alignas(APART) cpu_set_t cpus;
};

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t rank_bytes(size_t samples)
{
	size_t bytes = sizeof(struct shm_rank) + samples * sizeof(double);

	return (bytes + APART - 1) / APART * APART;
}

static struct shm_rank *rank_at(const struct shm_barrier *barrier, int rank)
{
	char *base = (char *)barrier->segment + sizeof(struct shm_segment);

	return (struct shm_rank *)(base + (size_t)rank * rank_bytes(barrier->segment->samples));
}

static int segment_map(struct shm_barrier *barrier, int fd, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	barrier->segment = at;
	barrier->bytes = bytes;
	return 0;
}

static int create(struct shm_barrier *barrier, int ranks, size_t samples, const char *name)
{
	size_t bytes = sizeof(struct shm_segment) + (size_t)ranks * rank_bytes(samples);
	int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err;

	if (fd < 0)
		return -errno;
	/* posix_fallocate rather than ftruncate: a full /dev/shm is an error here, not a SIGBUS. */
	err = -posix_fallocate(fd, 0, (off_t)bytes);
	if (!err)
		err = segment_map(barrier, fd, bytes);
	close(fd);
	if (err) {
		shm_unlink(name);
		return err;
	}
	barrier->segment->samples = samples;
	/* Release: whoever reads a number of ranks has the samples, too. Pairs with the acquire in
	 * shm_barrier_meet. */
	atomic_store_explicit(&barrier->segment->ranks, ranks, memory_order_release);
	barrier->rank = 0;
	barrier->ranks = ranks;
	return 0;
}

void shm_barrier_name(char name[SHM_BARRIER_NAME_CHARS])
{
	snprintf(name, SHM_BARRIER_NAME_CHARS, "/onecopy-bench-%d-%lld", (int)getpid(),
		 (long long)clock_ns());
}

static int open_made(struct shm_barrier *barrier, const char *name, int rank)
{
	int fd = shm_open(name, O_RDWR | O_CLOEXEC, 0), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	err = fstat(fd, &st) ? -errno : segment_map(barrier, fd, (size_t)st.st_size);
	close(fd);
	if (err)
		return err;
	barrier->rank = rank;
	barrier->ranks = barrier->segment->ranks;
	return 0;
}

void shm_barrier_close(struct shm_barrier *barrier)
{
	munmap(barrier->segment, barrier->bytes);
	barrier->segment = NULL;
}

static void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void wait_for_change(struct shm_barrier *barrier, uint32_t generation)
{
	_Atomic uint32_t *word = &barrier->segment->generation;
	int64_t idle_at = 0, now;
	unsigned int spins = 0;

	/* Acquire: pairs with the last arrival's release store in shm_barrier_wait. */
	while (atomic_load_explicit(word, memory_order_acquire) == generation) {
		spins++;
		if (barrier->yield && spins >= SPINS_BEFORE_YIELD)
			sched_yield();
		else
			cpu_relax();
		if (spins % SPINS_BEFORE_CLOCK)
			continue;
		now = clock_ns();
		if (idle_at == 0) {
			idle_at = now + idle_after_ns;
		} else if (now >= idle_at) {
			if (barrier->idle)
				barrier->idle();
			/* Bound or not, after a millisecond somebody else may need this CPU. */
			sched_yield();
			idle_at = now + idle_after_ns;
		}
	}
}

/* @delay_ns: how long after the last arrival the instant lies that start_ns names. */
static void meet(struct shm_barrier *barrier, int64_t delay_ns)
{
	struct shm_segment *s = barrier->segment;
	/*
	 * Relaxed: this rank saw the current value when it left the last wait, and it cannot change
	 * before this rank arrives.
	 */
	uint32_t generation = atomic_load_explicit(&s->generation, memory_order_relaxed);
	uint32_t before;

	/*
	 * acq_rel: the arrivals form one release sequence, so the last arrival has seen all that
	 * the others wrote before theirs, and its release store below hands it to the waiters.
	 */
	before = atomic_fetch_add_explicit(&s->arrived, 1, memory_order_acq_rel);
	if (before + 1 == (uint32_t)barrier->ranks) {
		/* Relaxed: nobody touches it before seeing the new generation, stored after it. */
		atomic_store_explicit(&s->arrived, 0, memory_order_relaxed);
		if (delay_ns) {
			/* No one reads it now: all have arrived, so all have left the last one. */
			s->start_ns = clock_ns() + delay_ns;
		}
		/* Release: pairs with the acquire load in wait_for_change. */
		atomic_store_explicit(&s->generation, generation + 1, memory_order_release);
		return;
	}
	wait_for_change(barrier, generation);
}

enum { SAYS_STOP = 1, HAS_FAILED = 2, FORGETS = 4 };

/*
 * By the node's first rank, while the others wait: its meetings before and behind order what is
 * read and written here, so all is relaxed.
 */
static void pass_on(struct shm_barrier *barrier)
{
	struct shm_segment *s = barrier->segment;
	uint32_t word = 0;

	if (atomic_load_explicit(&s->says_stop, memory_order_relaxed))
		word |= SAYS_STOP;
	if (atomic_load_explicit(&s->failures, memory_order_relaxed))
		word |= HAS_FAILED;
	if (atomic_load_explicit(&s->forgets, memory_order_relaxed))
		word |= FORGETS;
	word = barrier->meet_others(barrier->context, word);
	atomic_store_explicit(&s->stop, (word & SAYS_STOP) != 0, memory_order_relaxed);
	if (word & FORGETS) {
		atomic_store_explicit(&s->failures, 0, memory_order_relaxed);
		atomic_store_explicit(&s->forgets, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&s->others_failed, (word & (HAS_FAILED | FORGETS)) == HAS_FAILED,
			      memory_order_relaxed);
}

static void meet_all(struct shm_barrier *barrier, int64_t delay_ns)
{
	if (barrier->meet_others) {
		meet(barrier, 0);
		if (!barrier->rank)
			pass_on(barrier);
	}
	meet(barrier, delay_ns);
}

void shm_barrier_wait(struct shm_barrier *barrier)
{
	meet_all(barrier, 0);
}

/* Returns when all have come. */
static void join(struct shm_barrier *barrier)
{
	cpu_set_t all;
	int rank;

	/* Until all masks are known, assume the worst. */
	barrier->yield = true;
	CPU_ZERO(&rank_at(barrier, barrier->rank)->cpus);
	sched_getaffinity(0, sizeof(cpu_set_t), &rank_at(barrier, barrier->rank)->cpus);
	shm_barrier_wait(barrier);
	CPU_ZERO(&all);
	for (rank = 0; rank < barrier->ranks; rank++)
		CPU_OR(&all, &all, &rank_at(barrier, rank)->cpus);
	barrier->cpus = CPU_COUNT(&all);
	barrier->yield = barrier->ranks > barrier->cpus;
}

int shm_barrier_meet(struct shm_barrier *barrier, const char *name, int rank, int ranks,
		     size_t samples)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int64_t give_up = clock_ns() + meet_within_ns;
	int err = rank ? -ENOENT : create(barrier, ranks, samples, name);

	while (rank && err && clock_ns() < give_up) {
		err = open_made(barrier, name, rank);
		/* Acquire: pairs with the release in create(). */
		if (!err && !atomic_load_explicit(&barrier->segment->ranks, memory_order_acquire)) {
			shm_barrier_close(barrier);
			err = -ENOENT;
		}
		if (err)
			nanosleep(&pause, NULL);
	}
	if (err)
		return err == -ENOENT ? -ETIMEDOUT : err;
	barrier->ranks = ranks;
	barrier->tells = !rank;
	join(barrier);
	if (!rank)
		shm_unlink(name);
	return 0;
}

void shm_barrier_align(struct shm_barrier *barrier)
{
	if (barrier->yield) {
		/* Not all of them can run at one instant. */
		meet_all(barrier, 0);
		return;
	}
	meet_all(barrier, start_delay_ns);
	while (clock_ns() < barrier->segment->start_ns) {
	}
}

double *shm_barrier_times(const struct shm_barrier *barrier, int rank)
{
	return (double *)(rank_at(barrier, rank) + 1);
}

/* Relaxed, all below: shm_barrier_wait orders them, as their contracts say. */

void shm_barrier_set_stop(struct shm_barrier *barrier, bool stop)
{
	atomic_store_explicit(barrier->meet_others ? &barrier->segment->says_stop :
						     &barrier->segment->stop,
			      stop, memory_order_relaxed);
}

bool shm_barrier_stop(const struct shm_barrier *barrier)
{
	return atomic_load_explicit(&barrier->segment->stop, memory_order_relaxed);
}

bool shm_barrier_tell(struct shm_barrier *barrier, bool word)
{
	if (barrier->tells)
		shm_barrier_set_stop(barrier, word);
	shm_barrier_wait(barrier);
	word = shm_barrier_stop(barrier);
	shm_barrier_wait(barrier);
	return word;
}

void shm_barrier_add_failure(struct shm_barrier *barrier)
{
	atomic_fetch_add_explicit(&barrier->segment->failures, 1, memory_order_relaxed);
}

bool shm_barrier_failed(const struct shm_barrier *barrier)
{
	const struct shm_segment *s = barrier->segment;

	return atomic_load_explicit(&s->failures, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&s->others_failed, memory_order_relaxed);
}

/* Relaxed, as the two above: the waits between which they are made order them. */
void shm_barrier_forget_failures(struct shm_barrier *barrier)
{
	struct shm_segment *s = barrier->segment;

	atomic_store_explicit(&s->failures, 0, memory_order_relaxed);
	atomic_store_explicit(&s->others_failed, 0, memory_order_relaxed);
	atomic_store_explicit(&s->forgets, barrier->meet_others != NULL, memory_order_relaxed);
}

/*
 * Not ordered by shm_barrier_wait but by the MPI_Barrier under test: release here, acquire in
 * shm_barrier_find_absent. A barrier that synchronises makes the mark visible.
 */
void shm_barrier_mark(struct shm_barrier *barrier, uint64_t call)
{
	atomic_store_explicit(&rank_at(barrier, barrier->rank)->entered, call,
			      memory_order_release);
}

int shm_barrier_find_absent(const struct shm_barrier *barrier, uint64_t call)
{
	int rank;

	for (rank = 0; rank < barrier->ranks; rank++) {
		/* Acquire: pairs with shm_barrier_mark. */
		if (atomic_load_explicit(&rank_at(barrier, rank)->entered, memory_order_acquire) !=
		    call)
			return rank;
	}
	return -1;
}
