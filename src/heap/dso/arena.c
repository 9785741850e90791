/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arena: one memfd, mapped shared, that mimalloc takes its segments from.
 *
 * Preloaded, every allocation of the process comes from it; loaded by the engine, only what is
 * asked for by alloc(). What does not fit is private memory, by mimalloc as well. One file of more
 * than 500 lines: how the arena is made, divided and allocated from goes by the same few words.
 */
#include "dso.h"
#include "os/os.h"
#include "raw.h"

#include "base/bytes.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

/* mimalloc's segments begin at multiples of this, and so does what it is given. */
#define SEGMENT ((size_t)32 << 20)
/* Address space of the arena where nothing bounds it; never more than the machine has memory. */
#define MOST ((uint64_t)64 << 30)
#define LEAST (2 * SEGMENT)
#define DESCRIPTORS 64

struct heap_place heap_place;
atomic_bool heap_ready;

static void *arena_alloc(size_t bytes, size_t align);
static void arena_free(void *memory);

static struct oci_arena arena = { .abi = OCI_ARENA_ABI,
				  .fd = -1,
				  .why = "the arena was not made yet",
				  .alloc = arena_alloc,
				  .free = arena_free,
				  .counts = heap_counts,
				  .serve = heap_serve };

static atomic_bool made; /* `arena` is as it will be, with or without memory */

/* Of `arena` and of what is below. Held by the thread that makes an arena. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Atomic(pthread_t) maker; /* who holds it, for heap_make() inside of itself */
static dev_t file_device;
static ino_t file_inode;
/*
 * mimalloc's names of the arena, of which it takes so many pieces. mimalloc 2: all of it at the
 * start. mimalloc 3 places no block of more than 32 MiB in a piece: an eighth, and it has the rest
 * when it needs more, see range.c.
 */
enum { PIECES_MOST = 8, PLACES_NOT_ALL = 300 };
#define PIECE_MOST ((size_t)16 << 30) /* mimalloc 3 takes no larger one */
static mi_arena_id_t pieces[PIECES_MOST];
static atomic_uint piece_count;
static size_t piece_bytes;
static atomic_uint generation; /* of arenas: 1 the first, more in children of fork() */
/*
 * mimalloc gives pages back late, when it is called next (pages.c). Where we are not preloaded that
 * is seldom: blocks of PUNCHED bytes and more are punched out by arena_free(), as soon as the file
 * holds SLACK more than what is alive: a buffer that comes and goes keeps its pages.
 */
#define PUNCHED ((size_t)64 << 10)
#define SLACK ((uint64_t)64 << 20)
static atomic_size_t live;
/* For memory from one piece alone; malloc takes it from any. */
static __thread mi_heap_t *thread_heaps[PIECES_MOST];
static __thread unsigned int thread_generation;

bool heap_is_locked_here(void)
{
	/* Relaxed: only this thread stores its own name, so it reads that or somebody else's. */
	return atomic_load_explicit(&maker, memory_order_relaxed) == pthread_self();
}

bool heap_lock(void)
{
	if (heap_is_locked_here())
		return false;
	/* Acquire: pairs with the release in heap_unlock(). */
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
		sched_yield();
	atomic_store_explicit(&maker, pthread_self(), memory_order_relaxed);
	return true;
}

void heap_wait_a_turn(void)
{
	const struct timespec turn = { .tv_nsec = 50000 };

	/* Not the C library's: malloc() is no place to be cancelled at. */
	raw_call(SYS_nanosleep, (long)&turn, 0, 0, 0, 0, 0);
}

enum heap_lock_soon heap_lock_soon(void)
{
	/* Who does not fork has it for microseconds. */
	enum { YIELDS = 100 };
	unsigned int looks = 0;
	uint64_t begun = 0;

	if (heap_is_locked_here())
		return HEAP_LOCKED_BEFORE;
	/* Acquire: as in heap_lock(). */
	while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
		uint64_t now = oci_clock_ns();

		begun = begun ? begun : now;
		if (now - begun > HEAP_WAIT_NS)
			return HEAP_NOT_LOCKED;
		if (looks++ < YIELDS)
			sched_yield();
		else
			heap_wait_a_turn();
	}
	atomic_store_explicit(&maker, pthread_self(), memory_order_relaxed);
	return HEAP_LOCKED;
}

void heap_unlock(void)
{
	atomic_store_explicit(&maker, 0, memory_order_relaxed);
	/* Release: pairs with the acquires in heap_lock() and heap_lock_soon(). */
	atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* The engine says so when it is malformed. */
static uint64_t wanted_bytes(void)
{
	const char *text = environ ? getenv("ONECOPY_HEAP_BYTES") : NULL;
	size_t bytes;

	return text && oci_option_bytes(text, &bytes) ? bytes : UINT64_MAX;
}

/* In the place of src/os/process.c's, for cgroup.c, too: raw, as malloc() is no place to be
 * cancelled at. */
ssize_t oci_os_read_file(const char *path, char *text, size_t bytes)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long done = fd < 0 ? fd : 1;
	size_t used = 0;

	while (done > 0) {
		done = raw_call(SYS_read, fd, (long)(text + used), (long)(bytes - 1 - used), 0, 0,
				0);
		used += done > 0 ? (size_t)done : 0;
	}
	if (fd >= 0)
		raw_close((int)fd);
	text[used] = '\0';
	return done < 0 ? done : (ssize_t)used;
}

/* Half of the address space that the process may still take: the other half is for all that is not
 * malloc. */
static uint64_t address_space_bytes(void)
{
	struct rlimit limit;
	char text[64];
	uint64_t pages = 0;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	oci_os_read_file("/proc/self/statm", text, sizeof(text));
	for (const char *digit = text; *digit >= '0' && *digit <= '9'; digit++)
		pages = pages * 10 + (uint64_t)(*digit - '0');
	if (limit.rlim_cur / 4096 <= pages)
		return 0;
	return (limit.rlim_cur - pages * 4096) / 2;
}

static size_t round_up(size_t bytes)
{
	return (bytes + SEGMENT - 1) & ~(SEGMENT - 1);
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A program that has so few counts them: UCX ends one that lacks a single descriptor. */
static bool is_short_of_descriptors(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < DESCRIPTORS;
}

/* 0, and *why, when there can be none. */
static uint64_t arena_bytes(const char **why)
{
	uint64_t asked = wanted_bytes(), space = address_space_bytes(), bytes;
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit file;

	if (is_short_of_descriptors()) {
		*why = "the limit of open files (ulimit -n) is below 64, so there is none to spare "
		       "for a shared heap; raise it";
		return 0;
	}
	/* Rounded up: a file as long as the memory, for whoever needs nearly all of it. */
	bytes = asked == UINT64_MAX ? least_of(MOST, memory + SEGMENT) : asked;
	bytes = least_of(bytes, space);
	/* A longer file is SIGXFSZ, not an error. */
	if (!getrlimit(RLIMIT_FSIZE, &file) && file.rlim_cur != RLIM_INFINITY)
		bytes = least_of(bytes, file.rlim_cur);
	bytes &= ~(SEGMENT - 1);
	if (bytes >= LEAST)
		return bytes;
	if (asked < LEAST)
		*why = "ONECOPY_HEAP_BYTES is below 64M, which turns the shared heap off; set more "
		       "or leave it unset";
	else
		*why = "the limit of the address space (ulimit -v) or of the size of files "
		       "(ulimit -f) leaves no room for a shared heap; raise it";
	return 0;
}

/*
 * Out of the way of the program, which may count on the next descriptor being 3: as high as the
 * usual tables reach, or where there is room.
 */
static int move_up(int fd)
{
	struct rlimit limit;
	int high = 1000, moved;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < 1024)
		high = limit.rlim_cur > 32 ? (int)limit.rlim_cur - 16 : 0;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, high);
	if (moved < 0)
		return fd;
	raw_close(fd);
	return moved;
}

/* The mapping at a multiple of SEGMENT: NULL when there is no room for it. */
static uint8_t *map_aligned(int fd, size_t bytes, int protection)
{
	uint8_t *room = raw_mmap(NULL, bytes + SEGMENT, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	uint8_t *base;

	if (room == MAP_FAILED)
		return NULL;
	base = (uint8_t *)(((uintptr_t)room + SEGMENT - 1) & ~(SEGMENT - 1));
	if (base != room)
		raw_munmap(room, (size_t)(base - room));
	raw_munmap(base + bytes, SEGMENT - (size_t)(base - room));
	if (raw_mmap(base, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd) ==
	    MAP_FAILED) {
		raw_munmap(base, bytes);
		return NULL;
	}
	return base;
}

static void set_place(uint8_t *base, size_t bytes, size_t open)
{
	atomic_store_explicit(&heap_place.open, open, memory_order_relaxed);
	atomic_store_explicit(&heap_place.bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&heap_place.base, base, memory_order_relaxed);
}

/* The segments that mimalloc does not get. */
static size_t front_bytes(uint64_t bytes)
{
	return round_up(oci_arena_front_bytes(bytes));
}

/*
 * Lets mimalloc have the memory, in as few pieces as it takes. False: none of it. Committed: it
 * leaves that alone. Else it opens memory and gives it back by calls that are ours, see pages.c;
 * and where they are not, arena_free() gives back.
 */
static bool give(uint8_t *memory, size_t bytes, bool committed, bool exclusive)
{
	size_t piece = bytes, at = 0, here;
	unsigned int count = 0;

	while (at < bytes && count < PIECES_MOST) {
		here = least_of(piece, bytes - at);
		if (mi_manage_os_memory_ex(memory + at, here, committed, false, true, -1, exclusive,
					   &pieces[count])) {
			count++;
			at += here;
		} else if (count || piece <= SEGMENT) {
			break;
		} else {
			piece = round_up(piece / 2);
		}
	}
	atomic_store_explicit(&piece_count, count, memory_order_relaxed);
	return count;
}

/*
 * The rest of the arena is the range that mimalloc asks for by mmap(), where it does, and where
 * that is ours: for all that the process allocates, or for ours alone. How many bytes it gets now.
 */
static size_t divide(size_t front, size_t bytes, bool range)
{
	size_t first = bytes - front;

	if (range && mi_version() >= PLACES_NOT_ALL)
		first = least_of(least_of(first, PIECE_MOST), round_up(first / PIECES_MOST));
	piece_bytes = first;
	return heap_range_make(front + first, bytes) ? first : bytes - front;
}

/* Further pieces that mimalloc asks for by itself are as large, and opened as it uses them. */
static void let_it_ask(void)
{
#if MI_MALLOC_VERSION >= 300
	mi_option_set(mi_option_arena_reserve, (long)(piece_bytes >> 10));
	mi_option_set(mi_option_arena_eager_commit, 0);
#endif
	heap_range.serves_all = true;
}

/* A further piece, of the range: are there more than were seen? */
static bool add_piece(unsigned int seen)
{
	bool locked = heap_lock(), added = false;
	unsigned int count = atomic_load_explicit(&piece_count, memory_order_relaxed);
	void *memory = NULL;

	if (count == seen && count < PIECES_MOST)
		memory = heap_range_take(piece_bytes);
	if (memory)
		added = mi_manage_os_memory_ex(memory, piece_bytes, false, false, true, -1, true,
					       &pieces[count]);
	/* Release: pairs with the acquire in alloc_in_pieces(). */
	if (added)
		atomic_store_explicit(&piece_count, count + 1, memory_order_release);
	if (locked)
		heap_unlock();
	return added || count > seen;
}

/* The lock is held. Leaves `arena` without one, and the reason, when it cannot be. */
static void make(void)
{
	bool everything = heap_replaces_malloc() && !generation;
	uint64_t bytes = arena_bytes(&arena.why), front;
	struct stat status;
	uint8_t *base;
	bool bound, range;
	size_t given;
	int fd;

	if (!bytes)
		return;
	fd = memfd_create(OCI_ARENA_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		arena.why = "memfd_create was refused, so there is no shared heap; allow that "
			    "system call in the container's seccomp profile";
		return;
	}
	fd = move_up(fd);
	if (ftruncate(fd, (off_t)bytes) || fstat(fd, &status) ||
	    getrandom(arena.nonce, sizeof(arena.nonce), GRND_NONBLOCK) != sizeof(arena.nonce)) {
		arena.why = "the file of the shared heap could not be made as long as it has to "
			    "be; set ONECOPY_HEAP_BYTES to less";
		goto close_fd;
	}
	heap_seal(fd);
	front = front_bytes(bytes);
	heap_begin_pages(oci_arena_front_bytes(bytes), bytes);
	mi_process_init();
	arena.mimalloc = mi_version();
	bound = heap_bind(&range);
	arena.why = "there is no address space left for the shared heap; set ONECOPY_HEAP_BYTES to "
		    "less";
	/* Nothing may fill what is not in use, as mlockall() does: mimalloc opens what it uses. */
	base = map_aligned(fd, bytes, bound ? PROT_NONE : PROT_READ | PROT_WRITE);
	if (!base)
		goto close_fd;
	if (raw_mprotect(base, oci_arena_front_bytes(bytes), PROT_READ | PROT_WRITE))
		goto unmap;
	/* Dumping it would fault in every hole of it. */
	raw_madvise(base, bytes, MADV_DONTDUMP);
	heap_write_front(base, bytes, arena.nonce);
	set_place(base, bytes, bound ? oci_arena_front_bytes(bytes) : bytes);
	if (!bound)
		heap_open_pages(base + front, bytes - front);
	given = divide(front, bytes, bound && range);
	if (!give(base + front, given, !bound, !everything)) {
		arena.why = "mimalloc refused the memory of the shared heap (it has too many "
			    "arenas)";
		set_place(NULL, 0, 0);
		goto unmap;
	}
	file_device = status.st_dev;
	file_inode = status.st_ino;
	arena.fd = fd;
	arena.base = base;
	arena.bytes = bytes;
	arena.why = "";
	if (everything)
		let_it_ask();
	heap_own_front(base);
	heap_note_group();
	atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
	return;
unmap:
	raw_munmap(base, bytes);
close_fd:
	close(fd);
}

OC_COLD void heap_make(void)
{
	int error = errno;

	if (!heap_lock())
		return;
	if (!atomic_load_explicit(&made, memory_order_relaxed)) {
		heap_watch_forks();
		heap_watch_pages();
		make();
		/* Release: what make() wrote is seen by whoever reads one of them (acquire). */
		atomic_store_explicit(&made, true, memory_order_release);
		atomic_store_explicit(&heap_ready, true, memory_order_release);
	}
	heap_unlock();
	errno = error;
}

bool heap_is_file(int fd)
{
	struct stat status;

	return fd >= 0 && !raw_fstat(fd, &status) && status.st_dev == file_device &&
	       status.st_ino == file_inode;
}

int heap_fd(void)
{
	return arena.fd;
}

void heap_forget(void)
{
	if (heap_is_file(arena.fd))
		raw_close(arena.fd);
	set_place(NULL, 0, 0);
	arena.fd = -1;
	arena.base = NULL;
	arena.bytes = 0;
	atomic_store_explicit(&live, 0, memory_order_relaxed);
	heap_count_anew();
	arena.why = "a child of fork() has the memory of its parent as a copy, which is private";
	atomic_store_explicit(&made, false, memory_order_relaxed);
}

void heap_adopt(int fd)
{
	struct stat status;

	heap_count_anew();
	if (heap_is_file(arena.fd))
		raw_close(arena.fd);
	arena.fd = move_up(fd);
	if (raw_fstat(arena.fd, &status) ||
	    getrandom(arena.nonce, sizeof(arena.nonce), GRND_NONBLOCK) != sizeof(arena.nonce)) {
		arena.why = "the file of the shared heap of a child of fork() cannot be looked at, "
			    "so no other process can map it; allow fstat and getrandom";
		raw_close(arena.fd);
		arena.fd = -1;
		return;
	}
	raw_madvise(arena.base, arena.bytes, MADV_DONTDUMP);
	heap_write_front(arena.base, arena.bytes, arena.nonce);
	heap_own_front(arena.base);
	file_device = status.st_dev;
	file_inode = status.st_ino;
}

/* mimalloc's heaps belong to threads, and these to a piece of the arena each. NULL: no memory. */
static void *alloc_in_pieces(size_t bytes, size_t align, unsigned int *count)
{
	unsigned int now = atomic_load_explicit(&generation, memory_order_relaxed);
	void *memory = NULL;

	/* Acquire: pairs with the release in add_piece(). */
	*count = atomic_load_explicit(&piece_count, memory_order_acquire);
	if (thread_generation != now) {
		/* What the last ones hold is alive still: they stay with mimalloc. */
		memset(thread_heaps, 0, sizeof(thread_heaps));
		thread_generation = now;
	}
	for (unsigned int i = 0; i < *count && !memory; i++) {
		if (!thread_heaps[i])
			thread_heaps[i] = mi_heap_new_in_arena(pieces[i]);
		if (thread_heaps[i])
			memory = mi_heap_malloc_aligned(thread_heaps[i],
							heap_aligned_bytes(align, bytes), align);
	}
	return memory;
}

/* What mimalloc 3 places in a piece. */
#define IN_PIECE_MOST (SEGMENT - ((size_t)128 << 10))
#define IN_PIECE_ALIGN ((size_t)64 << 10)

static void *alloc_in_arena(size_t bytes, size_t align)
{
	unsigned int count;
	void *memory;

	do
		memory = alloc_in_pieces(bytes, align, &count);
	while (!memory && bytes <= IN_PIECE_MOST && align <= IN_PIECE_ALIGN && add_piece(count));
	if (!memory && (bytes > IN_PIECE_MOST || align > IN_PIECE_ALIGN))
		memory = heap_range_alloc(bytes, align);
	return memory;
}

static void free_block(void *memory)
{
	size_t bytes = mi_usable_size(memory), alive = 0;
	bool counted = memory && !heap_replaces_malloc() && heap_has(memory, bytes);

	if (counted)
		alive = atomic_fetch_sub_explicit(&live, bytes, memory_order_relaxed) - bytes;
	if (heap_defer(memory))
		return;
	if (counted && bytes >= PUNCHED && heap_used() > alive + SLACK)
		heap_punch(memory, bytes);
	mi_free(memory);
}

/*
 * The last large block that was freed, as programs take one for each of their steps: to zero its
 * pages and to give them back would take longer than what is done with it. Not in a child of
 * fork(), whose blocks may be its parent's.
 */
#define KEPT_MOST ((size_t)64 << 20)
static _Atomic(void *) kept;

static bool may_be_kept(size_t bytes)
{
	return bytes >= HEAP_LARGE && bytes <= KEPT_MOST &&
	       atomic_load_explicit(&generation, memory_order_relaxed) == 1;
}

/* NULL: there is none, or it will not do. */
static void *take_kept(size_t bytes, size_t align)
{
	void *memory = NULL, *other = NULL;
	size_t room;

	/* Acquire: the block as its last owner left it. Pairs with the releases here and in keep().
	 */
	if (may_be_kept(bytes))
		memory = atomic_exchange_explicit(&kept, NULL, memory_order_acquire);
	if (!memory)
		return NULL;
	room = mi_usable_size(memory);
	if (room >= bytes && room / 2 <= bytes && (uintptr_t)memory % align == 0)
		return memory;
	if (!atomic_compare_exchange_strong_explicit(&kept, &other, memory, memory_order_release,
						     memory_order_relaxed))
		free_block(memory);
	return NULL;
}

/* Returns which block is to be freed, or NULL. */
static void *keep(void *memory)
{
	size_t bytes = memory ? mi_usable_size(memory) : 0;

	if (!may_be_kept(bytes) || !heap_has(memory, bytes))
		return memory;
	/* Release and acquire: as in take_kept(). */
	return atomic_exchange_explicit(&kept, memory, memory_order_acq_rel);
}

static void *arena_alloc(size_t bytes, size_t align)
{
	void *memory;

	if (!arena.base)
		return NULL;
	memory = take_kept(bytes, align);
	if (memory)
		return memory;
	memory = heap_replaces_malloc() && generation == 1 ?
			 mi_malloc_aligned(heap_aligned_bytes(align, bytes), align) :
			 alloc_in_arena(bytes, align);
	if (memory && !heap_has(memory, bytes)) {
		mi_free(memory);
		return NULL;
	}
	if (memory && !heap_replaces_malloc()) {
		atomic_fetch_add_explicit(&live, mi_usable_size(memory), memory_order_relaxed);
		if (bytes >= HEAP_LARGE)
			heap_back(memory, bytes);
	}
	return memory;
}

static void arena_free(void *memory)
{
	free_block(keep(memory));
}

uint64_t heap_used(void)
{
	int saved = errno;
	struct stat status;

	if (arena.fd < 0 || fstat(arena.fd, &status) || status.st_dev != file_device ||
	    status.st_ino != file_inode) {
		/* free() leaves it as it was. */
		errno = saved;
		return 0;
	}
	return (uint64_t)status.st_blocks * 512;
}

OC_EXPORT const struct oci_arena *onecopy_arena_1(void);

OC_EXPORT const struct oci_arena *onecopy_arena_1(void)
{
	/* Acquire: pairs with the release in heap_make(). */
	if (!atomic_load_explicit(&made, memory_order_acquire))
		heap_make();
	if (arena.fd >= 0 && !heap_is_file(arena.fd)) {
		arena.fd = -1;
		arena.why = "the program closed the descriptor of the shared heap, so no other "
			    "process can map it; let it close only what it opened";
	}
	return &arena;
}
