/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Tests of regions that others map: rights, sizes, memory that goes meanwhile. More
 * than 500 lines, as it is a list of small cases.
 */
#include "calls.h"

#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BOTH (ONECOPY_REGION_READ | ONECOPY_REGION_WRITE)
#define PAGES ((size_t)40) /* more than are shown at once */

static sigjmp_buf before_access;

static void on_signal(int number)
{
	siglongjmp(before_access, number);
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	CHECK(!sigaction(SIGBUS, &action, NULL) && !sigaction(SIGSEGV, &action, NULL));
}

/* The signal that it is answered with, 0: none. */
static int read_of(const uint8_t *place, uint8_t *byte)
{
	int number = sigsetjmp(before_access, 1);

	if (!number)
		*byte = *(const volatile uint8_t *)place;
	return number;
}

static int write_of(uint8_t *place)
{
	int number = sigsetjmp(before_access, 1);

	if (!number)
		*(volatile uint8_t *)place = 1;
	return number;
}

static uint8_t *map(uint64_t cookie, size_t offset, size_t length, unsigned int flags)
{
	uint8_t *place;

	CHECK(!map_at(cookie, offset, length, flags, NULL, &place));
	return place;
}

/* A page that a child and its parent share, for a word each way. */
struct board {
	uint64_t cookie;
	uint32_t turn;
	uint32_t done;
};

static struct board *make_board(void)
{
	void *place = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(place != MAP_FAILED);
	return place;
}

static void set_turn(struct board *board, uint32_t turn)
{
	__atomic_store_n(&board->turn, turn, __ATOMIC_RELEASE);
}

static void await_turn(struct board *board, uint32_t turn)
{
	while (__atomic_load_n(&board->turn, __ATOMIC_ACQUIRE) < turn)
		usleep(200);
}

/* ---- what it shows --------------------------------------------------------------------------- */

static void mapped_in_both_directions(void)
{
	uint8_t *shared = memory(PAGES * PAGE);
	uint64_t cookie, maps = counters().maps, now = counters().maps_now;

	fill(shared, PAGES * PAGE, 1);
	cookie = create(shared, PAGES * PAGE, BOTH);
	IN_CHILD({
		uint8_t *all = map(cookie, 0, PAGES * PAGE, ONECOPY_MAP_WRITE);
		uint8_t *part = map(cookie, 3 * PAGE, 2 * PAGE, 0);

		CHECK(counters().maps == maps + 2 && counters().maps_now == now + 2);
		/* Last page first, then all. */
		CHECK(all[PAGES * PAGE - 1] == shared[PAGES * PAGE - 1]);
		CHECK(is_filled(all, PAGES * PAGE, 1));
		CHECK(!memcmp(part, shared + 3 * PAGE, 2 * PAGE));
		all[4 * PAGE + 5] = 77;
		CHECK(part[PAGE + 5] == 77);
		fill(all, 3 * PAGE, 2);
		CHECK(!munmap(part, PAGE));
		CHECK(part[PAGE + 5] == 77);
	});
	CHECK(is_filled(shared, 3 * PAGE, 2) && shared[4 * PAGE + 5] == 77);
	IN_CHILD({
		const uint8_t *all = map(cookie, 0, PAGES * PAGE, 0);

		for (int i = 0; i < 100; i++) {
			shared[0]++; /* the child's own copy */
			CHECK(all[0] == (uint8_t)(0 * 31 + 2));
		}
	});
	for (int i = 0; i < 100 && counters().maps_now != now; i++)
		usleep(10000);
	CHECK(counters().maps_now == now);
}

/* Pieces lie one behind the other. */
static void mapped_vectors(void)
{
	uint8_t *shared = memory(9 * PAGE);
	struct onecopy_piece pieces[] = { { (uintptr_t)shared + 6 * PAGE, 2 * PAGE },
					  { (uintptr_t)shared + 11, 0 },
					  { (uintptr_t)shared + PAGE, 3 * PAGE } };
	uint64_t cookie;

	fill(shared, 9 * PAGE, 3);
	CHECK(!create_of(device, pieces, 3, ONECOPY_REGION_READ, &cookie));
	IN_CHILD({
		const uint8_t *all = map(cookie, 0, 5 * PAGE, 0);
		const uint8_t *part = map(cookie, PAGE, 2 * PAGE, 0);

		CHECK(!memcmp(all, shared + 6 * PAGE, 2 * PAGE));
		CHECK(!memcmp(all + 2 * PAGE, shared + PAGE, 3 * PAGE));
		CHECK(!memcmp(part, all + PAGE, 2 * PAGE));
	});
}

/* Also by calls of the kernel's, but for those that pin. */
static void mapped_memory_in_calls(void)
{
	uint8_t *shared = memory(4 * PAGE), *own = memory(4 * PAGE), *place;
	uint64_t cookie, other, refused;
	struct onecopy_piece piece;
	int ends[2];

	fill(shared, 4 * PAGE, 4);
	cookie = create(shared, 4 * PAGE, BOTH);
	fill(own, 4 * PAGE, 5);
	other = create(own, 4 * PAGE, ONECOPY_REGION_READ);
	place = map(cookie, 0, 4 * PAGE, ONECOPY_MAP_WRITE);
	CHECK(!pipe(ends));
	CHECK(write(ends[1], place, 4 * PAGE) == 4 * (ssize_t)PAGE);
	CHECK(!copy(other, 0, place, 4 * PAGE, 0));
	CHECK(is_filled(shared, 4 * PAGE, 5));
	CHECK(read(ends[0], place, 4 * PAGE) == 4 * (ssize_t)PAGE);
	CHECK(is_filled(shared, 4 * PAGE, 4));
	piece = (struct onecopy_piece){ (uintptr_t)place, PAGE };
	REFUSED(create_of(device, &piece, 1, ONECOPY_REGION_READ, &refused), EFAULT);
	REFUSED(copy(other, 0, place, PAGE, ONECOPY_COPY_KTHREAD), EFAULT);
	IN_CHILD({
		struct iovec local = { own, PAGE }, remote = { place, PAGE };

		REFUSED(process_vm_readv(getppid(), &local, 1, &remote, 1, 0), EFAULT);
	});
	CHECK(!mlock(place, PAGE) && !munlock(place, PAGE));
}

/* ---- rights ---------------------------------------------------------------------------------- */

static void mapping_rights(void)
{
	uint8_t *shared = memory(2 * PAGE), *place;
	uint64_t both = create(shared, PAGE, BOTH);
	uint64_t readable = create(shared, PAGE, ONECOPY_REGION_READ);
	uint64_t writable = create(shared, PAGE, ONECOPY_REGION_WRITE);
	uint64_t group = create(shared, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_GROUP);
	uint64_t single = create(shared, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_SINGLE_USE);
	uint64_t parts = create(shared + 8, PAGE, ONECOPY_REGION_READ);
	uint64_t cookies[] = { readable, both };
	uint8_t byte;

	catch_signals();
	shared[0] = 9;
	/* No region that is read alone lets its pages be written, nor one that was mapped so. */
	for (int i = 0; i < 2; i++) {
		place = map(cookies[i], 0, PAGE, 0);
		CHECK(!read_of(place, &byte) && byte == 9);
		CHECK(write_of(place) == SIGSEGV);
		REFUSED(mprotect(place, PAGE, PROT_READ | PROT_WRITE), EACCES);
		REFUSED(mprotect(place, PAGE, PROT_READ | PROT_EXEC), EACCES);
		CHECK(!mprotect(place, PAGE, PROT_NONE));
		CHECK(read_of(place, &byte) == SIGSEGV);
		REFUSED(mprotect(place, PAGE, PROT_WRITE), EACCES);
		CHECK(!mprotect(place, PAGE, PROT_READ));
		CHECK(!read_of(place, &byte) && byte == 9);
	}
	place = map(both, 0, PAGE, ONECOPY_MAP_WRITE);
	CHECK(!mprotect(place, PAGE, PROT_READ));
	CHECK(write_of(place) == SIGSEGV);
	CHECK(!mprotect(place, PAGE, PROT_READ | PROT_WRITE));
	CHECK(!write_of(place) && shared[0] == 1);
	REFUSED(map_at(readable, 0, PAGE, ONECOPY_MAP_WRITE, NULL, &place), EACCES);
	REFUSED(map_at(writable, 0, PAGE, ONECOPY_MAP_WRITE, NULL, &place), EACCES);
	REFUSED(map_at(writable, 0, PAGE, 0, NULL, &place), EACCES);
	REFUSED(map_at(single, 0, PAGE, 0, NULL, &place), EACCES);
	/* It is not used up by that. */
	CHECK(!copy(single, 0, shared + PAGE, PAGE, 0));
	/* What lies beside a region nobody sees. */
	REFUSED(map_at(parts, 0, PAGE, 0, NULL, &place), EINVAL);
	IN_CHILD({
		CHECK(!setgid(4000) && !setuid(4000));
		REFUSED(map_at(readable, 0, PAGE, 0, NULL, &place), EACCES);
		REFUSED(map_at(group, 0, PAGE, 0, NULL, &place), EACCES);
	});
	IN_CHILD({
		CHECK(!setuid(4000));
		REFUSED(map_at(readable, 0, PAGE, 0, NULL, &place), EACCES);
		map(group, 0, PAGE, 0);
	});
}

/* What the system refuses to who is not root. */
static void mapping_limits(void)
{
	const struct rlimit none = { 0, 0 };
	uint8_t *shared = memory(PAGE), *place;
	uint64_t cookie = create(shared, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_GROUP);
	char files[32] = "";
	int fd;

	write_to("/proc/sys/vm/mmap_min_addr", "65536");
	IN_CHILD({
		CHECK(!setuid(4000));
		REFUSED(map_at(cookie, 0, PAGE, 0, (void *)PAGE, &place), EPERM);
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &none));
		map(cookie, 0, PAGE, 0);
	});
	IN_CHILD({
		CHECK(!mlockall(MCL_FUTURE));
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &none));
		CHECK(!setuid(4000));
		REFUSED(map_at(cookie, 0, PAGE, 0, NULL, &place), EAGAIN);
	});
	fd = open("/proc/sys/fs/file-max", O_RDWR);
	CHECK(fd >= 0 && read(fd, files, sizeof(files) - 1) > 0);
	IN_CHILD({
		write_to("/proc/sys/fs/file-max", "0");
		CHECK(!setuid(4000));
		REFUSED(map_at(cookie, 0, PAGE, 0, NULL, &place), ENFILE);
	});
	CHECK(pwrite(fd, files, strlen(files), 0) > 0);
	close(fd);
	IN_CHILD({
		CHECK(!setuid(4000));
		map(cookie, 0, PAGE, 0);
	});
}

static void mapping_sizes(void)
{
	enum { REGION = 4 };
	uint8_t *shared = memory(REGION * PAGE), *place, *there = memory(4 * PAGE);
	uint64_t cookie = create(shared, REGION * PAGE, BOTH);
	struct {
		struct onecopy_map call;
		uint64_t more;
	} longer = { .call = { .size = sizeof(longer), .cookie = cookie, .length = PAGE } };
	struct onecopy_map call = { .size = sizeof(call), .cookie = cookie, .length = PAGE };
	uint8_t *const occupied = there + PAGE;
	uint64_t now = counters().maps_now;

	REFUSED(map_at(cookie, 0, 0, 0, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 0, 1, 0, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 8, PAGE, 0, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 0, UINT64_MAX, 0, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 0, PAGE, 2, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 0, PAGE, 1u << 31, NULL, &place), EINVAL);
	REFUSED(map_at(cookie, 0, PAGE, 0, there + 1, &place), EINVAL);
	REFUSED(map_at(cookie, 0, (REGION + 1) * PAGE, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie, REGION * PAGE, PAGE, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie, 2 * PAGE, 3 * PAGE, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie, -PAGE, 2 * PAGE, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie, PAGE, -PAGE, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie, 0, (uint64_t)1 << 63, 0, NULL, &place), ERANGE);
	REFUSED(map_at(cookie + 1, 0, PAGE, 0, NULL, &place), ENOENT);
	REFUSED(map_at(0, 0, PAGE, 0, NULL, &place), ENOENT);
	/* Where nothing lies, and there alone. */
	REFUSED(map_at(cookie, 0, PAGE, 0, occupied, &place), EEXIST);
	CHECK(!munmap(occupied, PAGE));
	REFUSED(map_at(cookie, 0, 2 * PAGE, 0, occupied, &place), EEXIST);
	CHECK(!map_at(cookie, PAGE, PAGE, 0, occupied, &place) && place == occupied);
	REFUSED(map_at(cookie, 0, PAGE, 0, (void *)(UINTPTR_MAX - 4095), &place), ENOMEM);
	REFUSED(map_at(cookie, 0, PAGE, 0, (void *)((uintptr_t)1 << 62), &place), ENOMEM);
	CHECK(!ioctl(device, ONECOPY_MAP, &longer));
	longer.call.addr = 0;
	longer.more = 1;
	REFUSED(ioctl(device, ONECOPY_MAP, &longer), E2BIG);
	call.size = 8;
	REFUSED(ioctl(device, ONECOPY_MAP, &call), EINVAL);
	call.size = 0;
	REFUSED(ioctl(device, ONECOPY_MAP, &call), EINVAL);
	REFUSED(ioctl(device, ONECOPY_MAP, NULL), EFAULT);
	/* What cannot be told is not kept mapped. */
	call.size = sizeof(call);
	place = memory(PAGE);
	memcpy(place, &call, sizeof(call));
	CHECK(!mprotect(place, PAGE, PROT_READ));
	REFUSED(ioctl(device, ONECOPY_MAP, place), EFAULT);
	CHECK(counters().maps_now == now + 2);
	IN_CHILD({
		struct rlimit limit = { 0, 0 };

		CHECK(!setrlimit(RLIMIT_AS, &limit));
		REFUSED(map_at(cookie, 0, PAGE, 0, NULL, &place), ENOMEM);
	});
	IN_CHILD({
		struct rlimit limit = { 0, 0 };

		/* No page is pinned for it. */
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
		map(cookie, 0, PAGE, 0);
	});
}

/* ---- what the mapper does with it ------------------------------------------------------------ */

static void mappings_that_are_changed(void)
{
	uint8_t *shared = memory(PAGES * PAGE), *place, *moved, byte;
	uint64_t cookie;

	catch_signals();
	fill(shared, PAGES * PAGE, 6);
	cookie = create(shared, PAGES * PAGE, BOTH);
	place = map(cookie, 0, PAGES * PAGE, ONECOPY_MAP_WRITE);
	CHECK(!read_of(place, &byte));
	IN_CHILD(CHECK(read_of(place, &byte) == SIGSEGV));
	REFUSED(madvise(place, PAGE, MADV_DOFORK), EINVAL);
	REFUSED(madvise(place, PAGE, MADV_DONTNEED), EINVAL);
	REFUSED(mremap(place, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0, EFAULT);
	CHECK(mremap(place, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(!munmap(place + 20 * PAGE, PAGE));
	moved = mremap(place, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       memory(64 * PAGE));
	CHECK(moved != MAP_FAILED && is_filled(moved, 20 * PAGE, 6));
	CHECK(!memcmp(place + 21 * PAGE, shared + 21 * PAGE, (PAGES - 21) * PAGE));
	/* What the process may see anyway, but nothing that is not the region's. */
	if (!remap_file_pages(moved, 2 * PAGE, 0, 21, 0))
		CHECK(!memcmp(moved, shared + 21 * PAGE, 2 * PAGE));
	if (!remap_file_pages(moved, 2 * PAGE, 0, PAGES - 1, 0)) {
		CHECK(!read_of(moved, &byte) && byte == shared[(PAGES - 1) * PAGE]);
		CHECK(read_of(moved + PAGE, &byte) == SIGBUS);
	}
	CHECK(!destroy(cookie));
	for (size_t i = 0; i < 20; i++)
		CHECK(read_of(moved + i * PAGE, &byte) == SIGBUS);
	CHECK(read_of(place + 21 * PAGE, &byte) == SIGBUS);
	CHECK(!munmap(moved, 20 * PAGE) && !munmap(place + 21 * PAGE, (PAGES - 21) * PAGE));
}

/* ---- memory that goes ------------------------------------------------------------------------ */

enum how {
	UNMAPPED,
	GIVEN_BACK,
	MOVED,
	COVERED,
	DESTROYED,
	CLOSED,
	EXITED,
	EXECUTED,
	KILLED,
	HOWS
};

static void owner(struct board *board, enum how how)
{
	uint8_t *shared = memory(PAGES * PAGE);

	device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	fill(shared, PAGES * PAGE, 7);
	board->cookie = create(shared, PAGES * PAGE, BOTH);
	set_turn(board, 1);
	await_turn(board, 2);
	switch (how) {
	case UNMAPPED:
		CHECK(!munmap(shared + PAGE, PAGE));
		break;
	case GIVEN_BACK:
		CHECK(!madvise(shared + PAGE, PAGE, MADV_DONTNEED));
		break;
	case MOVED:
		CHECK(mremap(shared, PAGES * PAGE, 64 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			     memory(64 * PAGE)) != MAP_FAILED);
		break;
	case COVERED:
		CHECK(mmap(shared, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			   0) == shared);
		break;
	case DESTROYED:
		CHECK(!destroy(board->cookie));
		__atomic_store_n(&board->done, 1, __ATOMIC_RELEASE);
		break;
	case CLOSED:
		close(device);
		break;
	case EXITED:
		_exit(0);
	case EXECUTED:
		execl("/bin/busybox", "busybox", "sleep", "1", NULL);
		_exit(1);
	default:
		pause();
	}
	await_turn(board, 3);
	_exit(0);
}

/* What is taken away goes page by page, mapping by mapping. */
static bool goes(const uint8_t *place)
{
	uint8_t byte;

	for (int i = 0; i < 5000 && !read_of(place, &byte); i++)
		usleep(1000);
	return read_of(place, &byte) == SIGBUS;
}

static void mapped_and_gone(enum how how)
{
	struct board *board = make_board();
	uint64_t pinned = counters().pages_pinned_now;
	uint8_t *place, *other, byte = 0;
	pid_t child = fork();

	if (!child)
		owner(board, how);
	await_turn(board, 1);
	place = map(board->cookie, 0, PAGES * PAGE, 0);
	other = map(board->cookie, PAGE, PAGE, 0);
	CHECK(is_filled(place, PAGES * PAGE, 7));
	CHECK(!read_of(other, &byte));
	if (how == KILLED)
		kill(child, SIGKILL);
	set_turn(board, 2);
	for (int i = 0; i < 5000; i++) {
		bool destroyed = __atomic_load_n(&board->done, __ATOMIC_ACQUIRE);

		if (read_of(place + PAGE, &byte) == SIGBUS)
			break;
		/* Until then it is what it was. */
		CHECK(!destroyed && byte == (uint8_t)(PAGE * 31 + PAGE / 251 + 7));
		usleep(1000);
	}
	/* All of it, and for good, and nobody maps it again. */
	for (size_t i = 0; i < PAGES; i++)
		CHECK(goes(place + i * PAGE));
	CHECK(goes(other));
	CHECK(map_at(board->cookie, 0, PAGE, 0, NULL, &place) == -1);
	CHECK(errno == ENOENT || errno == ESTALE);
	/* Though it is still mapped here. */
	CHECK(pinned_becomes(pinned));
	set_turn(board, 3);
	CHECK(waitpid(child, NULL, 0) == child);
	munmap(board, PAGE);
}

static void mapped_memory_that_goes(void)
{
	catch_signals();
	for (enum how how = 0; how < HOWS; how++)
		mapped_and_gone(how);
}

/* In doubt, not gone: the mapping stays. */
static void mapped_memory_that_stays(void)
{
	enum { BYTES = 4 << 20 };
	uint8_t *room = memory(2 * BYTES);
	uint8_t *shared = room + BYTES - (uintptr_t)room % BYTES; /* of large pages, if there are */
	uint64_t cookie;
	uint8_t *place, byte;

	catch_signals();
	madvise(shared, BYTES, MADV_HUGEPAGE);
	fill(shared, BYTES, 8);
	cookie = create(shared, BYTES, BOTH);
	place = map(cookie, 0, BYTES, 0);
	CHECK(is_filled(place, BYTES, 8));
	for (int i = 0; i < 8; i++) {
		IN_CHILD({
			shared[PAGE] = 0xcc; /* the child's own */
			CHECK(read_of(place, &byte) == SIGSEGV);
		});
		shared[(size_t)i * PAGE] = 0xdd;
		CHECK(!mprotect(shared + BYTES / 2 + (size_t)i * PAGE, PAGE, PROT_READ));
	}
	usleep(100000);
	for (size_t at = 0; at < BYTES; at += PAGE)
		CHECK(!read_of(place + at, &byte) && byte == shared[at]);
	/* The same memory twice in one process, the first of which goes. */
	CHECK(!munmap(shared, BYTES));
	CHECK(goes(place));
}

/* It is there as long as a mapping is, though it has neither region nor open device. */
static void module_of_a_mapping(void)
{
	uint8_t *shared = memory(PAGE), *place, byte;

	catch_signals();
	place = map(create(shared, PAGE, ONECOPY_REGION_READ), 0, PAGE, 0);
	CHECK(!read_of(place, &byte));
	close(device);
	CHECK(read_of(place, &byte) == SIGBUS);
	REFUSED(syscall(SYS_delete_module, "onecopy", O_NONBLOCK), EWOULDBLOCK);
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* Maps what there is, and reads or writes it, until there is nothing more. */
static void storm_of_accesses(struct board *board, uint64_t seed)
{
	uint8_t *place, byte;

	for (unsigned int i = 0; !__atomic_load_n(&board->done, __ATOMIC_ACQUIRE); i++) {
		uint64_t cookie = __atomic_load_n(&board->cookie, __ATOMIC_ACQUIRE);
		size_t first = (seed + i) % (PAGES / 2), count = 1 + i % (PAGES / 2);

		if (map_at(cookie, first * PAGE, count * PAGE, ONECOPY_MAP_WRITE, NULL, &place)) {
			CHECK(errno == ENOENT || errno == ESTALE);
			continue;
		}
		for (size_t k = 0; k < 4 * count; k++) {
			size_t at = (k * 7 + seed) % count * PAGE;
			int got = k % 2 ? write_of(place + at + 1) : read_of(place + at, &byte);

			CHECK(!got || got == SIGBUS);
			/* The first byte of each page is the number of its region's page. */
			CHECK(got || k % 2 || byte == first + at / PAGE);
		}
		CHECK(!munmap(place, count * PAGE));
	}
	_exit(0);
}

/* Regions come and go under four processes, each of which maps and misses pages meanwhile. */
static void mapping_storm(void)
{
	struct board *board = make_board();
	uint64_t pinned = counters().pages_pinned_now;
	pid_t child[4];

	catch_signals();
	for (uint64_t i = 0; i < 4; i++) {
		child[i] = fork();
		if (!child[i])
			storm_of_accesses(board, i * 11);
	}
	for (int round = 0; round < 150; round++) {
		uint8_t *shared = memory(PAGES * PAGE);
		uint64_t cookie;

		for (size_t i = 0; i < PAGES; i++)
			shared[i * PAGE] = (uint8_t)i;
		cookie = create(shared, PAGES * PAGE, BOTH);
		__atomic_store_n(&board->cookie, cookie, __ATOMIC_RELEASE);
		usleep(3000 + (useconds_t)round % 7 * 1000);
		if (round % 3 == 0)
			CHECK(!destroy(cookie));
		if (round % 3 == 1)
			CHECK(!madvise(shared + round % 20 * PAGE, PAGE, MADV_DONTNEED));
		CHECK(!munmap(shared, PAGES * PAGE));
	}
	__atomic_store_n(&board->done, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 4; i++)
		CHECK(child_succeeds(child[i]));
	CHECK(pinned_becomes(pinned));
}

/* Two that map each other's memory, and unmap and fork while the other's accesses miss. */
static void mapped_by_each_other(void)
{
	struct board *boards[2] = { make_board(), make_board() };
	pid_t child[2];

	catch_signals();
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		if (child[i])
			continue;
		device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
		for (int round = 0; round < 100; round++) {
			uint8_t *shared = memory(PAGES * PAGE), *place, byte;

			__atomic_store_n(&boards[i]->cookie, create(shared, PAGES * PAGE, BOTH),
					 __ATOMIC_RELEASE);
			if (!map_at(__atomic_load_n(&boards[!i]->cookie, __ATOMIC_ACQUIRE), 0,
				    PAGES * PAGE, ONECOPY_MAP_WRITE, NULL, &place)) {
				for (size_t at = 0; at < PAGES * PAGE; at += PAGE)
					round % 2 ? write_of(place + at) :
						    read_of(place + at, &byte);
				if (round % 10 == 0)
					IN_CHILD((void)0);
				munmap(place, PAGES * PAGE);
			}
			munmap(shared, PAGES * PAGE);
		}
		_exit(0);
	}
	for (int i = 0; i < 2; i++)
		CHECK(child_succeeds(child[i]));
}

/* A mapper that is killed at any moment leaves nothing behind. */
static void mappers_that_are_killed(void)
{
	uint8_t *shared = memory(PAGES * PAGE);
	uint64_t now = counters().maps_now, cookie;

	for (size_t i = 0; i < PAGES; i++)
		shared[i * PAGE] = (uint8_t)i;
	cookie = create(shared, PAGES * PAGE, BOTH);
	for (int round = 0; round < 40; round++) {
		struct board *board = make_board();
		pid_t child;

		board->cookie = cookie;
		child = fork();
		if (!child) {
			catch_signals();
			storm_of_accesses(board, (uint64_t)round);
		}
		usleep(2000 + (useconds_t)round * 700);
		kill(child, SIGKILL);
		CHECK(waitpid(child, NULL, 0) == child);
		munmap(board, PAGE);
	}
	for (int i = 0; i < 100 && counters().maps_now != now; i++)
		usleep(10000);
	CHECK(counters().maps_now == now);
}

const struct test map_tests[] = {
	TEST(mapped_in_both_directions),
	TEST(mapped_vectors),
	TEST(mapped_memory_in_calls),
	TEST(mapping_rights),
	TEST(mapping_limits),
	TEST(mapping_sizes),
	TEST(mappings_that_are_changed),
	TEST(mapped_memory_that_goes),
	TEST(mapped_memory_that_stays),
	TEST(module_of_a_mapping),
	TEST(mapping_storm),
	TEST(mapped_by_each_other),
	TEST(mappers_that_are_killed),
	NO_MORE_TESTS,
};
