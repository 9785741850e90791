/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() under a heap that is shared memory.
 *
 * The child would go on with the parent's very pages. So before its fork() returns, it puts private
 * memory in the arena's place and fills it from the file, and the parent waits for that in its own
 * handler: each then has a copy of its own, as fork() promises. Remapping MAP_PRIVATE is not
 * enough: pages that the child has not written yet would show what the parent writes later. Until
 * then the child must not write into pages that are the parent's, see hide.c.
 *
 * Where the system counts all private memory as used, touched or not (vm.overcommit_memory of 2,
 * ulimit -d), an arena's worth of it cannot be had: the child gets a file of its own, and so an
 * arena.
 *
 * What other threads of the parent write meanwhile may be in the copy or not, word by word: where
 * that is mimalloc's own, the child could not allocate, so they wait in malloc() until it has its
 * copy (malloc.c), or for so long that they use memory which was not in use before, which is not
 * copied; and what they free is freed when it has. What this one has on its stack must not change
 * meanwhile: where that is malloc's, see stack.c. vfork() and posix_spawn() run no handlers and pay
 * nothing. A child made by the system call alone shares the memory.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/sysinfo.h>
#include <time.h>

#define CHUNK ((size_t)32 << 20)
#define PAGE ((size_t)4096)

/*
 * Of the thread that forks: the arena is locked from before() on. The child says by a pipe that it
 * has its copy. Where there are no two descriptors left for one, it says so in a page of System V
 * shared memory: the kernel counts who has that attached, from inside of fork(2) on and until the
 * process has ended, so a child that is stopped is told from one that was killed.
 */
static int finished[2];
static int page_id;
static _Atomic uint32_t *page; /* 1: it has its copy */
#define LOOK_NS 10000000       /* between two looks at the count */
static sigset_t mask;
static bool locked;
static bool hidden;  /* the child begins without the arena */
static bool copied;  /* in the child */
static bool watched; /* there is an arena to copy */

/* The child cannot go on, and has no heap to say so by stdio. */
static _Noreturn void give_up(const char *text)
{
	raw_say(text);
	_exit(127);
}

static _Noreturn void without_memory(void)
{
	give_up("onecopy: error: a child of fork() could not copy the shared heap, for want of "
		"memory; free some, or run without --shared-heap\n");
}

/* Pages come from the file: a page whose mapping here is gone or forbidden is there all the same.
 */
static void copy_range(int fd, uint8_t *base, size_t from, size_t to)
{
	while (from < to) {
		size_t piece = to - from < CHUNK ? to - from : CHUNK;
		ssize_t got = raw_pread(fd, base + from, piece, from);

		if (got > 0)
			from += (size_t)got;
		else if (got < 0 && errno == EINTR)
			continue;
		else
			without_memory();
	}
}

/*
 * But for what was used since fork() began, by threads that had to wait no longer: to mimalloc 2 it
 * is memory of which nothing was used, and zeros. What mimalloc 3 knows of its memory lies in the
 * arena and may say otherwise; then it is in use for ever.
 */
static void copy_used(int fd, uint8_t *base, size_t from, size_t to)
{
	while (from < to) {
		bool used = heap_has_used(from);
		size_t end = from;

		do
			end = (end / HEAP_GRAIN + 1) * HEAP_GRAIN;
		while (end < to && heap_has_used(end) == used);
		end = end < to ? end : to;
		if (used)
			copy_range(fd, base, from, end);
		from = end;
	}
}

/* The limit of a file's length (ulimit -f) is meant for others, as far as the process may raise it.
 */
static long make_as_long(int fd, size_t bytes)
{
	struct rlimit is = { 0 }, most;
	long error;

	raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&is, 0, 0);
	most = (struct rlimit){ is.rlim_max, is.rlim_max };
	raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, (long)&most, 0, 0, 0);
	error = raw_call(SYS_ftruncate, fd, (long)bytes, 0, 0, 0, 0);
	raw_call(SYS_prlimit64, 0, RLIMIT_FSIZE, (long)&is, 0, 0, 0);
	return error;
}

/* Memory of the child's own at the arena's place. The file behind it, or -1: there is none. */
static int replace(uint8_t *base, size_t bytes)
{
	int fd;

	if (raw_mmap(base, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1) != MAP_FAILED)
		return -1;
	fd = (int)raw_call(SYS_memfd_create, (long)OCI_ARENA_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING,
			   0, 0, 0, 0);
	if (fd < 0 || make_as_long(fd, bytes) ||
	    raw_mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
		     fd) == MAP_FAILED)
		without_memory();
	heap_seal(fd);
	return fd;
}

static void copy_file(int fd, uint8_t *base, size_t bytes)
{
	int own = replace(base, bytes);
	off_t data = 0, hole;

	while ((size_t)data < bytes && (data = raw_lseek(fd, data, SEEK_DATA)) >= 0) {
		hole = raw_lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			hole = (off_t)bytes;
		copy_used(fd, base, (size_t)data, (size_t)hole);
		data = hole;
	}
	if (own >= 0)
		heap_adopt(own);
	else
		heap_forget();
}

/* What is swapped out is not resident, and mincore() takes it for a hole. */
static bool may_be_swapped_out(void)
{
	struct sysinfo info = { 0 };

	return raw_call(SYS_sysinfo, (long)&info, 0, 0, 0, 0, 0) || info.freeswap < info.totalswap;
}

/*
 * The program closed the descriptor: the pages are reached through a second mapping of the same
 * memory (mremap of a size of 0), piece by piece, and mincore() tells which there are. With pages
 * swapped out all are copied that the heap has ever had; holes among them then become memory.
 */
static void copy_mapping(uint8_t *base, size_t bytes)
{
	static unsigned char resident[CHUNK / PAGE];
	bool all = may_be_swapped_out();

	for (size_t at = 0; at < bytes; at += CHUNK) {
		uint8_t *there = raw_map_again(base + at, CHUNK);

		if (there == MAP_FAILED || raw_mprotect(there, CHUNK, PROT_READ) ||
		    mincore(there, CHUNK, resident) ||
		    raw_mmap(base + at, CHUNK, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
			     -1) == MAP_FAILED)
			without_memory();
		for (size_t page = 0; page < CHUNK / PAGE; page++)
			if ((resident[page] & 1 || all) && heap_has_used(at + page * PAGE))
				memcpy(base + at + page * PAGE, there + page * PAGE, PAGE);
		raw_munmap(there, CHUNK);
	}
	heap_forget();
}

/* In the child, once: perhaps in a handler of SIGSEGV, where not even errno is there before. */
static void copy(void)
{
	uint8_t *base = heap_place.base;
	size_t bytes = heap_place.bytes, open = heap_place.open;
	size_t range = heap_range.begin, range_open = heap_range.open;

	if (copied)
		return;
	copied = true;
	if (hidden || heap_is_file(heap_fd()))
		copy_file(heap_fd(), base, bytes);
	else
		copy_mapping(base, bytes);
	/* As with the parent's: mlockall() would fill it. */
	raw_mprotect(base + open, range - open, PROT_NONE);
	raw_mprotect(base + range_open, bytes - range_open, PROT_NONE);
}

static void detach_page(void)
{
	syscall(SYS_shmdt, page);
	page = NULL;
}

/* Gone with the last process that has it. */
static void attach_page(void)
{
	long at;

	page_id = shmget(IPC_PRIVATE, sizeof(*page), IPC_CREAT | 0600);
	if (page_id < 0)
		return;
	at = syscall(SYS_shmat, page_id, NULL, 0);
	if (at != -1)
		page = (void *)at;
	shmctl(page_id, IPC_RMID, NULL);
}

void heap_before_fork(void)
{
	sigset_t all, was;

	/* A handler in the child would write into the parent's memory as long as it is shared; and
	 * in one of this thread's own, _Fork() would find the lock taken. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	locked = heap_lock();
	mask = was;
	watched = heap_has(heap_place.base, 1);
	if (!watched)
		return;
	heap_pause(true);
	copied = false;
	hidden = heap_is_file(heap_fd()) && heap_hide(copy);
	/* Nothing parts them: this fork() did not come by ours (stack.c). */
	if (heap_has(__builtin_frame_address(0), 1) || (heap_has_thread() && !hidden))
		raw_say("onecopy: error: fork() from a thread whose stack is memory of the shared "
			"heap did not come by libonecopy-heap.so's fork(): parent and child write "
			"over each other; preload that library first, or fork from another "
			"thread\n");
	page = NULL;
	if (pipe2(finished, O_CLOEXEC)) {
		finished[0] = finished[1] = -1;
		attach_page();
	}
}

static void wait_for_page(void)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };
	struct shmid_ds state;

	/* Acquire: pairs with the release in tell(); the pages themselves are each process's own.
	 */
	while (!atomic_load_explicit(page, memory_order_acquire)) {
		syscall(SYS_futex, page, FUTEX_WAIT, 0, &look, NULL, 0);
		if (shmctl(page_id, IPC_STAT, &state) || state.shm_nattch < 2)
			break; /* it has detached it, or died */
	}
}

static void wait_for_child(void)
{
	char byte;

	if (finished[0] >= 0) {
		raw_close(finished[1]);
		/* Ends when the child has its copy, or has died. */
		while (raw_call(SYS_read, finished[0], (long)&byte, 1, 0, 0, 0) == -EINTR)
			;
		raw_close(finished[0]);
	} else if (page) {
		wait_for_page();
		detach_page();
	}
}

static void tell(void)
{
	if (finished[0] >= 0) {
		if (raw_call(SYS_write, finished[1], (long)"", 1, 0, 0, 0) < 0)
			without_memory();
		raw_close(finished[0]);
		raw_close(finished[1]);
	} else {
		/* Release: pairs with the acquire in wait_for_page(). */
		atomic_store_explicit(page, 1, memory_order_release);
		syscall(SYS_futex, page, FUTEX_WAKE, 1, NULL, NULL, 0);
		detach_page();
	}
}

void heap_after_fork_in_parent(void)
{
	sigset_t was = mask;

	if (watched) {
		if (hidden)
			heap_show(false);
		wait_for_child();
		heap_pause(false);
	}
	if (locked)
		heap_unlock();
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

void heap_after_fork_in_child(void)
{
	sigset_t was = mask;

	if (watched) {
		/* The parent does not wait, so what would be copied is of no moment. */
		if (finished[0] < 0 && !page)
			give_up("onecopy: error: a child of fork() cannot copy the shared heap, as "
				"there is neither a descriptor left nor System V shared memory; "
				"raise ulimit -n, or run without --shared-heap\n");
		copy();
		if (hidden)
			heap_show(true);
		tell();
		heap_pause(false);
	}
	if (locked)
		heap_unlock();
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

void heap_watch_forks(void)
{
	static bool watching;

	if (!watching &&
	    !pthread_atfork(heap_before_fork, heap_after_fork_in_parent, heap_after_fork_in_child))
		watching = true;
	heap_find_forks();
}
