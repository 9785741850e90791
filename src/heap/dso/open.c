/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which memory is there: for other processes, of the arena, by bits in its file; and for ourselves.
 *
 * The kernel's process_vm_readv() fails with EFAULT where the other process has no memory that it
 * could read itself. Whoever copies by a mapping of the arena sees the pages of the file instead,
 * and so asks these bits first. mimalloc opens pages by heap_mprotect(), which sets bits. The
 * program may take its memory away by mprotect(), or map something else in its place: so those
 * calls of all objects that are loaded with the program lead to ours (bind.c), which clear bits,
 * for good; where the program has put other memory in the arena's place no bit counts any more.
 * Calls of objects that are loaded later are not seen.
 */
#include "dso.h"
#include "raw.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#define PAGE OCI_ARENA_PAGE

/* ---- of the arena --------------------------------------------------------------------------- */

static struct oci_arena_front *front(void)
{
	return (void *)atomic_load_explicit(&heap_place.base, memory_order_relaxed);
}

void heap_seal(int fd)
{
	raw_call(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK, 0, 0, 0);
}

void heap_write_front(uint8_t *base, uint64_t bytes, const uint8_t nonce[16])
{
	struct oci_arena_front *new = (void *)base;

	memset(new, 0, sizeof(*new));
	memcpy(new->nonce, nonce, sizeof(new->nonce));
	new->abi = OCI_ARENA_ABI;
	new->pid = getpid();
	new->base = (uintptr_t)base;
	new->bytes = bytes;
}

void heap_own_front(uint8_t *base)
{
	struct oci_arena_front *new = (void *)base;
	pthread_mutexattr_t robust;

	/* Another thread may end while the process goes on. */
	if (raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0) != new->pid)
		return;
	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&new->owner, &robust);
	pthread_mutex_lock(&new->owner);
}

/* Relaxed: whoever is to copy there hears of it later, by a message that orders this. */
static void set_bits(uint64_t *word, uint64_t bits, bool open)
{
	uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (open && (now & bits) != bits)
		__atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
	else if (!open && now & bits)
		__atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
}

/* Whole pages inside, or to be closed, all that are touched; within the arena. */
static void mark(uintptr_t address, size_t bytes, bool open)
{
	struct oci_arena_front *f = front();
	uint64_t offset = address - f->base, end = offset + bytes;
	uint64_t page = open ? (offset + PAGE - 1) / PAGE : offset / PAGE;
	uint64_t last = open ? end / PAGE : (end + PAGE - 1) / PAGE;

	while (page < last) {
		uint64_t count = 64 - page % 64;

		if (count > last - page)
			count = last - page;
		set_bits(&f->open[page / 64], (~0ull >> (64 - count)) << page % 64, open);
		page += count;
	}
}

void heap_opened(void *address, size_t bytes)
{
	mark((uintptr_t)address, bytes, true);
}

void heap_closed(void *address, size_t bytes)
{
	mark((uintptr_t)address, bytes, false);
}

/* ---- of this process ------------------------------------------------------------------------ */

/* Of the main thread's stack nothing else lies this near below its end. */
#define STACK_MOST ((uintptr_t)8 << 20)

static uintptr_t data, data_end; /* what the program itself can write from its start on */
static uintptr_t stack_end;	 /* of the main thread */
static const void *main_thread;
static atomic_bool is_odd; /* the program has changed how it can access some of that */

/* The first object is the program. What is read-only after the relocation is a piece at the front.
 */
static int look_at_program(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	uintptr_t constant = 0;

	(void)bytes;
	(void)unused;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_GNU_RELRO)
			constant = begin + part->p_memsz;
		if (part->p_type == PT_LOAD && part->p_flags & PF_W && part->p_flags & PF_R) {
			data = begin;
			data_end = begin + part->p_memsz;
		}
	}
	if (constant > data)
		data = (constant + PAGE - 1) & ~(PAGE - 1);
	return 1;
}

static bool meets(uintptr_t address, size_t bytes, uintptr_t begin, uintptr_t end)
{
	return address < end && bytes && address + bytes > begin;
}

static bool lies_in(uintptr_t address, size_t bytes, uintptr_t begin, uintptr_t end)
{
	return address >= begin && address < end && bytes <= end - address;
}

bool heap_is_there(const void *memory, size_t bytes, const void *frame)
{
	uintptr_t address = (uintptr_t)memory, top = (uintptr_t)frame;

	if (heap_has(memory, bytes))
		return oci_arena_is_open(front(), address, bytes);
	/* Relaxed: a program that does so while another thread receives there has no order. */
	if (atomic_load_explicit(&is_odd, memory_order_relaxed))
		return false;
	if (lies_in(address, bytes, data, data_end))
		return true;
	return __builtin_thread_pointer() == main_thread && top < stack_end &&
	       stack_end - top < STACK_MOST && lies_in(address, bytes, top, stack_end);
}

/* ---- calls of the program ------------------------------------------------------------------- */

typedef int protecting(void *address, size_t bytes, int protection);
typedef int unmapping(void *address, size_t bytes);
typedef void *mapping(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
typedef void *remapping(void *address, size_t bytes, size_t new_bytes, int flags, void *to);
typedef void *attaching(int id, const void *address, int flags);
typedef int advising(void *address, size_t bytes, int advice);

/* The functions that calls led to before; set before any call leads to ours. */
static protecting *next_protect;
static unmapping *next_unmap;
static mapping *next_map, *next_map64;
static remapping *next_remap;
static attaching *next_attach;

/* The C library's, with the hooks that are in it: what is not the program's own call does not go to
 * who is in front of us. Not searched for here, inside of free(): a lock of the dynamic linker may
 * be held by a thread that a child of fork() does not have. Relaxed: the function itself has always
 * been there. */
static _Atomic(unmapping *) unmap_behind;
static _Atomic(advising *) advise_behind;

int heap_unmap_next(void *address, size_t bytes)
{
	unmapping *next = atomic_load_explicit(&unmap_behind, memory_order_relaxed);

	return next ? next(address, bytes) : raw_munmap(address, bytes);
}

int heap_advise_next(void *address, size_t bytes, int advice)
{
	advising *next = atomic_load_explicit(&advise_behind, memory_order_relaxed);

	return next ? next(address, bytes, advice) : raw_madvise(address, bytes, advice);
}

/* Before the program changes what lies there: `gone`, or how it can be accessed. */
static void before_change(const void *memory, size_t bytes, bool gone)
{
	uintptr_t address = (uintptr_t)memory, first = address, last;
	const struct oci_arena_front *f = front();

	if (f && meets(address, bytes, f->base, f->base + f->bytes)) {
		first = address > f->base ? address : f->base;
		last = address + bytes < f->base + f->bytes ? address + bytes : f->base + f->bytes;
		if (gone)
			/* Release: seen by whoever hears of what is there instead. */
			__atomic_store_n(&front()->foreign, 1, __ATOMIC_RELEASE);
		else
			mark(first, last - first, false);
	}
	if (meets(address, bytes, data, data_end) ||
	    meets(address, bytes, stack_end - STACK_MOST, stack_end))
		atomic_store_explicit(&is_odd, true, memory_order_relaxed);
}

static int protect(void *address, size_t bytes, int protection)
{
	if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
		before_change(address, bytes, false);
	return next_protect(address, bytes, protection);
}

static int unmap(void *address, size_t bytes)
{
	before_change(address, bytes, true);
	return next_unmap(address, bytes);
}

static void *map(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED)
		before_change(address, bytes, true);
	return next_map(address, bytes, protection, flags, fd, offset);
}

static void *map64(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (flags & MAP_FIXED)
		before_change(address, bytes, true);
	return next_map64(address, bytes, protection, flags, fd, offset);
}

/* With five arguments, where the header has four and more: the last one is there with some flags.
 */
static void *remap(void *address, size_t bytes, size_t new_bytes, int flags, void *to)
{
	/* A size of 0 makes a second mapping, and leaves the first. */
	before_change(address, bytes, true);
	if (flags & MREMAP_FIXED)
		before_change(to, new_bytes, true);
	return next_remap(address, bytes, new_bytes, flags, to);
}

static void *attach(int id, const void *address, int flags)
{
	struct shmid_ds state;
	int error = errno;

	if (flags & SHM_REMAP && !shmctl(id, IPC_STAT, &state))
		before_change(address, state.shm_segsz, true);
	errno = error;
	return next_attach(id, address, flags);
}

void heap_watch_pages(void)
{
	static const struct oci_object_call calls[] = { { "mprotect", protect, false },
							{ "munmap", unmap, false },
							{ "mmap", map, false },
							{ "mmap64", map64, false },
							{ "mremap", remap, false },
							{ "shmat", attach, false },
							{ "madvise", heap_madvise_of_others,
							  false },
							{ 0 } };
	enum { CALLS = sizeof(calls) / sizeof(calls[0]) - 1 };
	extern void *__libc_stack_end;
	void *other[CALLS];
	bool all = true;

	_Static_assert((int)CALLS <= (int)HEAP_CALLS_MOST, "room in bind.c");
	if (main_thread)
		return;
	dl_iterate_phdr(look_at_program, NULL);
	if (raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0) == getpid()) {
		stack_end = (uintptr_t)__libc_stack_end;
		main_thread = __builtin_thread_pointer();
	}
	for (int i = 0; i < CALLS; i++) {
		other[i] = heap_find_other(calls[i].name);
		all &= other[i] != NULL;
	}
	if (!all)
		return;
	next_protect = other[0];
	next_unmap = other[1];
	next_map = other[2];
	next_map64 = other[3];
	next_remap = other[4];
	next_attach = other[5];
	atomic_store_explicit(&unmap_behind, heap_find_next("munmap"), memory_order_relaxed);
	atomic_store_explicit(&advise_behind, heap_find_next("madvise"), memory_order_relaxed);
	heap_bind_all(calls, other);
}
