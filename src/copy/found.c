/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy/found.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "heap/arena.h"
#include "os/os.h"

/* A process whose arena is mapped here, or was: entries stay, and are used again. */
struct oci_found {
	struct oci_found *next; /* of the same list; written once */
	/* Atomic, all of them. Where `mapping` is NULL there is no process. */
	pid_t pid;
	uint32_t users; /* that may look at the rest */
	uint64_t seen;	/* the tick in which the kernel let us read it */
	struct oci_mapping *mapping;
	/* Written before `mapping`. */
	const struct oci_arena_front *front;
	size_t front_bytes;
	struct oci_mapping *leaving; /* under the lock: what was `mapping`, and may be in use */
};

/* Lists by number: ranks of a job have numbers that follow each other. */
#define LISTS 256
static struct oci_found *lists[LISTS]; /* atomic; written under the lock */

/* Processes where nothing was found, and when to look again: a rank may not have begun yet. Under
 * the lock. */
#define MISSES 64
#define WAIT_LEAST_NS ((uint64_t)1000000)
#define WAIT_MOST_NS ((uint64_t)1000000000)
static struct {
	pid_t pid;
	uint64_t due_ns, wait_ns;
} misses[MISSES];
static uint64_t missed; /* the tick of the last one, of any: one a tick costs little */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* trylock alone: nobody waits for it */
static uint32_t *ours; /* 1 in the process that started this, 0 in its children */
static pid_t self;

int oci_found_start(void)
{
	ours = oci_os_page_of_process();
	if (!ours)
		return -ENOSYS;
	self = getpid();
	*ours = 1;
	return 0;
}

/* ---- letting go: under the lock ------------------------------------------------------------- */

static void release_if_unused(struct oci_found *f)
{
	/* Sequentially consistent, with the exchange in let_go() and the two accesses in hold(): a
	 * user whom this does not count finds no mapping. */
	if (!f->leaving || __atomic_load_n(&f->users, __ATOMIC_SEQ_CST))
		return;
	munmap((void *)f->front, f->front_bytes);
	oci_mapping_free(f->leaving);
	f->leaving = NULL;
}

static void let_go(struct oci_found *f)
{
	struct oci_mapping *mapping = __atomic_exchange_n(&f->mapping, NULL, __ATOMIC_SEQ_CST);

	if (mapping)
		f->leaving = mapping;
	release_if_unused(f);
}

/* The memory of processes that have ended is theirs as long as somebody has it mapped. */
static void let_the_dead_go(void)
{
	for (unsigned int i = 0; i < LISTS; i++)
		for (struct oci_found *f = lists[i]; f; f = f->next)
			if (f->mapping && !oci_arena_lives(f->front))
				let_go(f);
			else
				release_if_unused(f);
}

/* ---- looking: under the lock ---------------------------------------------------------------- */

/* Does the kernel let us read this process's memory, and is this arena in it? */
static bool kernel_agrees(pid_t pid, const struct oci_arena_front *front)
{
	uint8_t nonce[sizeof(front->nonce)];
	struct iovec here = { nonce, sizeof(nonce) };
	struct iovec there = { (void *)(uintptr_t)front->base, sizeof(nonce) };

	return oci_os_vm_read(pid, &here, 1, &there, 1) == (ssize_t)sizeof(nonce) &&
	       !memcmp(nonce, front->nonce, sizeof(nonce));
}

static bool is_sealed(int fd, uint64_t bytes)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat file;

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &file) &&
	       (uint64_t)file.st_size >= bytes;
}

/* The front of the arena that this descriptor of process pid is; NULL: it is none, or another's. */
static const struct oci_arena_front *map_front(pid_t pid, int number, size_t *bytes)
{
	int error, fd = oci_os_open_peer_fd(pid, number);
	struct oci_arena_front front, *mapped = NULL;

	if (fd < 0)
		return NULL;
	if (pread(fd, &front, sizeof(front), 0) == (ssize_t)sizeof(front) &&
	    front.abi == OCI_ARENA_ABI && front.pid == pid && is_sealed(fd, front.bytes) &&
	    oci_arena_lives(&front) && kernel_agrees(pid, &front)) {
		*bytes = oci_arena_front_bytes(front.bytes);
		mapped = oci_os_map_front(fd, *bytes, &error);
	}
	close(fd);
	return mapped;
}

/* For process pid: an entry of its list that nobody uses, or a new one. NULL: no memory. */
static struct oci_found *take_entry(pid_t pid)
{
	struct oci_found **list = &lists[(unsigned int)pid % LISTS], *f = *list;

	while (f && (f->mapping || f->leaving))
		f = f->next;
	if (f) {
		__atomic_store_n(&f->pid, pid, __ATOMIC_RELAXED);
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->pid = pid;
	f->next = *list;
	/* Release: pairs with the acquire in find(). */
	__atomic_store_n(list, f, __ATOMIC_RELEASE);
	return f;
}

/* Of its descriptors of arenas: one may be ours, which it has open for a moment as we have its. */
static const struct oci_arena_front *find_front(pid_t pid, int *number, size_t *bytes)
{
	const struct oci_arena_front *front = NULL;

	*number = -1;
	do {
		*number = oci_os_find_peer_fd(pid, OCI_ARENA_LINK, *number + 1);
		if (*number >= 0)
			front = map_front(pid, *number, bytes);
	} while (*number >= 0 && !front);
	return front;
}

static bool find_arena(pid_t pid)
{
	const struct oci_arena_front *front;
	struct oci_mapping *mapping;
	struct oci_arena_id id;
	struct oci_found *f;
	int error, number;
	size_t bytes;

	front = find_front(pid, &number, &bytes);
	if (!front)
		return false;
	id = (struct oci_arena_id){ .base = front->base, .bytes = front->bytes, .fd = number };
	memcpy(id.nonce, front->nonce, sizeof(id.nonce));
	f = take_entry(pid);
	mapping = f ? oci_mapping_share(pid, &id, &error) : NULL;
	if (!mapping) {
		munmap((void *)front, bytes);
		return false;
	}
	f->front = front;
	f->front_bytes = bytes;
	__atomic_store_n(&f->seen, 0, __ATOMIC_RELAXED);
	/* Sequentially consistent, see release_if_unused(); what is above is seen with it. */
	__atomic_store_n(&f->mapping, mapping, __ATOMIC_SEQ_CST);
	return true;
}

static void look(pid_t pid)
{
	unsigned int slot = (unsigned int)pid % MISSES;
	uint64_t now = oci_clock_tick_ns();

	if (now == missed || (misses[slot].pid == pid && now < misses[slot].due_ns))
		return;
	let_the_dead_go();
	if (find_arena(pid)) {
		misses[slot].pid = 0;
		return;
	}
	missed = now;
	if (misses[slot].pid != pid)
		misses[slot].wait_ns = WAIT_LEAST_NS;
	else if (misses[slot].wait_ns < WAIT_MOST_NS)
		misses[slot].wait_ns *= 2;
	misses[slot].pid = pid;
	misses[slot].due_ns = now + misses[slot].wait_ns;
}

/* ---- use ------------------------------------------------------------------------------------ */

/* The entry of process pid, or NULL. */
static struct oci_found *find(pid_t pid)
{
	/* Acquire: pairs with the release in take_entry(); entries behind are older. */
	struct oci_found *f = __atomic_load_n(&lists[(unsigned int)pid % LISTS], __ATOMIC_ACQUIRE);

	/* Relaxed, both: hold() looks again. */
	while (f && (__atomic_load_n(&f->pid, __ATOMIC_RELAXED) != pid ||
		     !__atomic_load_n(&f->mapping, __ATOMIC_RELAXED)))
		f = f->next;
	return f;
}

static bool is_it(struct oci_found *f, pid_t pid)
{
	uint64_t tick = oci_clock_tick_ns();

	if (!oci_arena_lives(f->front))
		return false;
	/* Relaxed: nothing else is read by it. */
	if (__atomic_load_n(&f->seen, __ATOMIC_RELAXED) == tick)
		return true;
	if (!kernel_agrees(pid, f->front))
		return false;
	__atomic_store_n(&f->seen, tick, __ATOMIC_RELAXED);
	return true;
}

/* 1: held; 0: not now; -1: the process is not what it was. */
static int hold(struct oci_found *f, pid_t pid, struct oci_mapping **mapping)
{
	int error = errno;
	bool well;

	/* Sequentially consistent, as is the load: see release_if_unused(). */
	__atomic_fetch_add(&f->users, 1, __ATOMIC_SEQ_CST);
	*mapping = __atomic_load_n(&f->mapping, __ATOMIC_SEQ_CST);
	if (!*mapping || __atomic_load_n(&f->pid, __ATOMIC_RELAXED) != pid) {
		oci_found_put(f);
		return 0;
	}
	well = is_it(f, pid);
	errno = error;
	if (well)
		return 1;
	oci_found_put(f);
	return -1;
}

static struct oci_found *look_and_hold(pid_t pid, struct oci_found *before,
				       struct oci_mapping **mapping)
{
	struct oci_found *f;
	int error = errno, state;

	if (pthread_mutex_trylock(&lock))
		return NULL;
	/* The function is no cancellation point, and files are read with the lock held. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (before && before->mapping && before->pid == pid && !oci_arena_lives(before->front))
		let_go(before);
	f = find(pid);
	if (!f) {
		look(pid);
		f = find(pid);
	} else if (f == before) {
		f = NULL; /* it lives, and the kernel refuses us */
	}
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, NULL);
	errno = error;
	return f && hold(f, pid, mapping) == 1 ? f : NULL;
}

struct oci_found *oci_found_get(pid_t pid, struct oci_mapping **mapping)
{
	struct oci_found *f;
	int held;

	if (!ours || !*ours || pid == self || pid <= 0)
		return NULL;
	f = find(pid);
	held = f ? hold(f, pid, mapping) : -1;
	if (held > 0)
		return f;
	return held < 0 ? look_and_hold(pid, f, mapping) : NULL;
}

void oci_found_put(struct oci_found *found)
{
	/* Release: what was done there is over; pairs with the load in release_if_unused(). */
	__atomic_fetch_sub(&found->users, 1, __ATOMIC_RELEASE);
}

bool oci_found_has(const struct oci_found *found, uint64_t address, size_t bytes)
{
	return oci_arena_is_open(found->front, address, bytes);
}
