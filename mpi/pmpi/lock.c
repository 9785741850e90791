/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of windows.
 *
 * While another process holds the lock, MPI_Win_lock waits inside the MPI, and there is no function
 * that asks whether it would. So each window has locks of ours besides, one for each member, in
 * memory that all of them map. Whoever wants the MPI's lock takes ours first, in a loop that drives
 * us, and gives ours back after the MPI's: the MPI's is free then, and waits for nothing but the
 * target's progress, which it has in any MPI call. Locks with MPI_MODE_NOCHECK conflict with
 * nothing and go to the MPI as they are.
 *
 * They are taken in the order of the calls, as those of MPICH are: a program may have one process
 * take a lock again and again until another one has had it.
 */
#include "window.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line each: the nonce, then the locks. */
enum { LINE = 64 };

/*
 * Whoever comes draws a ticket. All that share the lock in a row have it at the same time: `shared`
 * is the ticket that may share it now, `exclusive` counts those who are through with it.
 */
struct lock {
	uint32_t tickets, shared, exclusive; /* atomic */
};

/* Of window->held. */
enum { NOT_HELD, SHARED, EXCLUSIVE };

/* ---- memory -----------------------------------------------------------------------------------
 */

static size_t bytes_of(const struct oci_pmpi_window *window)
{
	return ((size_t)window->size + 1) * LINE;
}

static bool map(struct oci_pmpi_window *window, int fd)
{
	void *memory = mmap(NULL, bytes_of(window), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	window->held = calloc((size_t)window->size, 1);
	if (memory != MAP_FAILED) {
		window->locks = memory;
		window->locks_bytes = bytes_of(window);
	}
	if (window->locks && window->held)
		return true;
	oci_pmpi_locks_drop(window);
	return false;
}

void oci_pmpi_locks_make(struct oci_pmpi_window *window, struct oci_pmpi_locks_id *id)
{
	id->pid = getpid();
	id->fd = memfd_create("onecopy-window", MFD_CLOEXEC);
	if (id->fd < 0)
		return;
	/* Reserved, so that no access is a SIGBUS when memory runs out. */
	if (getrandom(id->nonce, sizeof(id->nonce), 0) == sizeof(id->nonce) &&
	    !posix_fallocate(id->fd, 0, (off_t)bytes_of(window)) && map(window, id->fd)) {
		memcpy(window->locks, id->nonce, sizeof(id->nonce));
		return;
	}
	close(id->fd);
	id->fd = -1;
}

bool oci_pmpi_locks_find(struct oci_pmpi_window *window, const struct oci_pmpi_locks_id *id)
{
	struct stat file;
	char path[64];
	int fd;
	bool found;

	if (id->fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", id->pid, id->fd);
	/* In another PID namespace the number may be another process's, with a terminal there,
	 * which is not to be opened. */
	if (stat(path, &file) || !S_ISREG(file.st_mode))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return false;
	found = !fstat(fd, &file) && S_ISREG(file.st_mode) &&
		file.st_size == (off_t)bytes_of(window) && map(window, fd);
	close(fd);
	if (found && memcmp(window->locks, id->nonce, sizeof(id->nonce))) {
		oci_pmpi_locks_drop(window);
		found = false;
	}
	return found;
}

void oci_pmpi_locks_drop(struct oci_pmpi_window *window)
{
	if (window->locks)
		munmap(window->locks, window->locks_bytes);
	free(window->held);
	window->locks = window->held = NULL;
}

/* ---- locks ------------------------------------------------------------------------------------
 */

static struct lock *lock_of(const struct oci_pmpi_window *window, int target)
{
	return (struct lock *)(void *)(window->locks + ((size_t)target + 1) * LINE);
}

static void await_turn(const uint32_t *turn, uint32_t ticket)
{
	uint32_t turns = 0;

	/* Acquire: pairs with the releases in take() and give(), so that what those before have
	 * done under the lock is over. They only add, so one release reaches past the next. */
	while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != ticket) {
		oci_pmpi_drive_from_engine();
		oci_pmpi_drive();
		oci_pmpi_pause(&turns);
	}
}

static void take(struct oci_pmpi_window *window, int target, uint8_t kind)
{
	struct lock *lock = lock_of(window, target);
	uint32_t ticket = __atomic_fetch_add(&lock->tickets, 1, __ATOMIC_RELAXED);

	if (kind == SHARED) {
		await_turn(&lock->shared, ticket);
		/* The next one may share it, too. Release: what a writer before us has done. */
		__atomic_fetch_add(&lock->shared, 1, __ATOMIC_RELEASE);
	} else {
		await_turn(&lock->exclusive, ticket);
	}
	window->held[target] = kind;
}

/* Release: pairs with the acquire in await_turn(). */
static void give(struct oci_pmpi_window *window, int target)
{
	struct lock *lock = lock_of(window, target);

	if (window->held[target] == EXCLUSIVE)
		__atomic_fetch_add(&lock->shared, 1, __ATOMIC_RELEASE);
	if (window->held[target] != NOT_HELD)
		__atomic_fetch_add(&lock->exclusive, 1, __ATOMIC_RELEASE);
	window->held[target] = NOT_HELD;
}

static void give_all(struct oci_pmpi_window *window)
{
	for (int target = 0; target < window->size; target++)
		give(window, target);
}

static struct oci_pmpi_window *with_locks(MPI_Win win, int assert)
{
	struct oci_pmpi_window *window = assert &MPI_MODE_NOCHECK ? NULL : oci_pmpi_window_of(win);

	return window && window->locks ? window : NULL;
}

/* ---- the functions ----------------------------------------------------------------------------
 */

static void drive(void)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
}

int oci_pmpi_Win_lock(int type, int target, int assert, MPI_Win win)
{
	struct oci_pmpi_window *window = with_locks(win, assert);
	bool helped;
	int error;

	/* What is wrong with the call the MPI tells. */
	if (!window || target < 0 || target >= window->size || window->held[target] ||
	    (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE)) {
		drive();
		helped = !window && !(assert &MPI_MODE_NOCHECK) && oci_pmpi_help();
		return oci_pmpi_helped(helped, PMPI(Win_lock)(type, target, assert, win));
	}
	take(window, target, type == MPI_LOCK_SHARED ? SHARED : EXCLUSIVE);
	error = PMPI(Win_lock)(type, target, assert, win);
	if (error)
		give(window, target);
	return error;
}

int oci_pmpi_Win_lock_all(int assert, MPI_Win win)
{
	struct oci_pmpi_window *window = with_locks(win, assert);
	bool helped;
	int error;

	for (int target = 0; window && target < window->size; target++)
		if (window->held[target])
			window = NULL;
	for (int target = 0; window && target < window->size; target++)
		take(window, target, SHARED);
	helped = !window && !(assert &MPI_MODE_NOCHECK) && oci_pmpi_help();
	error = oci_pmpi_helped(helped, PMPI(Win_lock_all)(assert, win));
	if (error && window)
		give_all(window);
	return error;
}

int oci_pmpi_Win_unlock(int target, MPI_Win win)
{
	struct oci_pmpi_window *window = with_locks(win, 0);
	bool helped;
	int error;

	drive();
	helped = oci_pmpi_help_at(win);
	error = oci_pmpi_helped(helped, PMPI(Win_unlock)(target, win));
	if (!error && window && target >= 0 && target < window->size)
		give(window, target);
	return error;
}

int oci_pmpi_Win_unlock_all(MPI_Win win)
{
	struct oci_pmpi_window *window = with_locks(win, 0);
	bool helped;
	int error;

	drive();
	helped = oci_pmpi_help_at(win);
	error = oci_pmpi_helped(helped, PMPI(Win_unlock_all)(win));
	if (!error && window)
		give_all(window);
	return error;
}

/* These wait for the progress of targets only; but a program may call them again and again until a
 * peer has done something, as it may MPI_Test. */
#define DRIVEN(name, parameters, arguments)  \
	int oci_pmpi_##name parameters       \
	{                                    \
		drive();                     \
		return PMPI(name) arguments; \
	}
/* Those of other jobs may be anywhere when it is called. */
#define HELPED(name, parameters, arguments)                           \
	int oci_pmpi_##name parameters                                \
	{                                                             \
		bool helped;                                          \
                                                                      \
		drive();                                              \
		helped = oci_pmpi_help_at(win);                       \
		return oci_pmpi_helped(helped, PMPI(name) arguments); \
	}

/* clang-format off */
HELPED(Win_flush, (int target, MPI_Win win), (target, win))
HELPED(Win_flush_all, (MPI_Win win), (win))
HELPED(Win_flush_local, (int target, MPI_Win win), (target, win))
HELPED(Win_flush_local_all, (MPI_Win win), (win))
DRIVEN(Win_sync, (MPI_Win win), (win))
HELPED(Win_complete, (MPI_Win win), (win))
DRIVEN(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag))
/* clang-format on */
