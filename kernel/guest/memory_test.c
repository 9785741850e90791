/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Regions whose memory goes, or not: unmapped, given back, moved to another node,
 * shared with children; how much of it may be pinned.
 */
#include "calls.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void gone(int how)
{
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(4 * PAGE), *own = memory(PAGE);
	struct onecopy_counters before = counters();
	struct onecopy_piece piece = { (uintptr_t)shared, 4 * PAGE };
	struct onecopy_region_create call = { .size = sizeof(call),
					      .flags = ONECOPY_REGION_READ,
					      .pieces = (uintptr_t)&piece,
					      .piece_count = 1,
					      .word = PAGE / sizeof(*word) };
	uint64_t cookie;
	uint32_t was = word[0], own_was = word[3];

	fill(shared, 4 * PAGE, 6);
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &call), EINVAL);
	call.word = 3;
	CHECK(!ioctl(device, ONECOPY_REGION_CREATE, &call));
	cookie = call.cookie;
	CHECK(word[3] == own_was);
	if (how == 0)
		CHECK(!munmap(shared + PAGE, PAGE));
	else if (how == 1)
		CHECK(!madvise(shared + PAGE, PAGE, MADV_DONTNEED));
	else if (how == 2)
		CHECK(mremap(shared, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
	else
		CHECK(mmap(shared, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			   0) == shared);
	CHECK(copy(cookie, 0, own, PAGE, 0) == -1 && (errno == ESTALE || errno == ENOENT));
	CHECK(word[0] > was && word[3] > own_was && !word[2]);
	CHECK(pinned_becomes(before.pages_pinned_now));
	CHECK(counters().regions_gone == before.regions_gone + 1);
	REFUSED(copy(cookie, 0, own, PAGE, 0), ENOENT);
}

static void gone_with_its_memory(void)
{
	for (int how = 0; how < 4; how++)
		gone(how);
}

enum { MADE_AGAIN = 3000 };
static uint32_t round_begun, round_over; /* atomic */
static uint64_t made_ns;		 /* what it takes to make one that stays */

static void await_round(const uint32_t *rounds, uint32_t round)
{
	/* Acquire: pairs with the release of whoever begins the round, or ends it. */
	while (__atomic_load_n(rounds, __ATOMIC_ACQUIRE) < round)
		;
}

/* Once a round, at any moment of it, or behind it. */
static void *let_go(void *page)
{
	for (uint32_t round = 1; round <= MADE_AGAIN; round++) {
		uint64_t begun;

		await_round(&round_begun, round);
		begun = now_ns();
		while (now_ns() - begun < made_ns * (round * 37 % 200) / 100)
			;
		CHECK(!madvise(page, PAGE, MADV_DONTNEED));
		/* Release: pairs with the acquire in await_round(). */
		__atomic_store_n(&round_over, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* A cookie that was dead when it was returned is told of by its word, too. */
static void gone_while_it_is_made(void)
{
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(4 * PAGE), *own = memory(PAGE);
	struct onecopy_piece piece = { (uintptr_t)shared, 4 * PAGE };
	unsigned int made = 0, gone = 0;
	uint64_t begun;
	pthread_t other;

	for (int round = 0; round < 20; round++) {
		shared[0] = 1;
		begun = now_ns();
		CHECK(!destroy(create(shared, 4 * PAGE, ONECOPY_REGION_READ)));
		made_ns = now_ns() - begun;
	}
	CHECK(!pthread_create(&other, NULL, let_go, shared));
	for (uint32_t round = 1; round <= MADE_AGAIN; round++) {
		struct onecopy_region_create call = { .size = sizeof(call),
						      .flags = ONECOPY_REGION_READ,
						      .pieces = (uintptr_t)&piece,
						      .piece_count = 1,
						      .word = 3 };
		uint32_t was = word[3];

		shared[0] = 1; /* a page of its own again, not that of zeros */
		/* Release: pairs with the acquire in await_round(). */
		__atomic_store_n(&round_begun, round, __ATOMIC_RELEASE);
		if (!ioctl(device, ONECOPY_REGION_CREATE, &call)) {
			await_round(&round_over, round);
			made++;
			if (!copy(call.cookie, 0, own, PAGE, 0)) {
				CHECK(!destroy(call.cookie));
			} else {
				CHECK((errno == ENOENT || errno == ESTALE) && word[3] != was);
				gone++;
			}
		} else {
			CHECK(errno == ESTALE);
			await_round(&round_over, round);
		}
	}
	CHECK(!pthread_join(other, NULL) && gone && gone < made);
}

/* What is beside it, or between its pieces, or only protected, or copied to a child, does not end
 * it. */
static void kept(void)
{
	uint8_t *shared = memory(8 * PAGE), *own = memory(2 * PAGE);
	struct onecopy_piece pieces[2] = { { (uintptr_t)shared + PAGE, PAGE },
					   { (uintptr_t)shared + 4 * PAGE, PAGE } };
	uint64_t cookie;

	fill(shared, 8 * PAGE, 7);
	CHECK(!create_of(device, pieces, 2, ONECOPY_REGION_READ, &cookie));
	CHECK(!munmap(shared, PAGE));
	CHECK(!munmap(shared + 2 * PAGE, 2 * PAGE));
	CHECK(!munmap(shared + 5 * PAGE, 3 * PAGE));
	CHECK(!mprotect(shared + PAGE, PAGE, PROT_READ));
	CHECK(!mprotect(shared + PAGE, PAGE, PROT_READ | PROT_WRITE));
	IN_CHILD({
		shared[PAGE] = 0xcc; /* the child's own */
		CHECK(!copy(cookie, 0, own, 2 * PAGE, 0));
		CHECK(own[0] != 0xcc);
	});
	/* Written after the fork: the parent's pages are the region's still. */
	shared[PAGE] = 0xdd;
	CHECK(!copy(cookie, 0, own, 2 * PAGE, 0));
	CHECK(own[0] == 0xdd && own[PAGE] == shared[4 * PAGE]);
}

/* Nobody reads zeros where the owner has written. */
static void never_written(void)
{
	uint8_t *own = memory(PAGE), *shared;
	uint64_t cookie;
	int result;

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	cookie = create(shared, PAGE, ONECOPY_REGION_READ);
	CHECK(!copy(cookie, 0, own, PAGE, 0));
	shared[0] = 1;
	result = copy(cookie, 0, own, PAGE, 0);
	CHECK(result ? errno == ESTALE || errno == ENOENT : own[0] == 1);
}

/* The process ends; another has its file open. */
static void gone_with_its_process(void)
{
	uint8_t *shared = memory(PAGE), *own = memory(PAGE);
	uint64_t *cookie =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	IN_CHILD(*cookie = create(shared, PAGE, ONECOPY_REGION_READ));
	for (int i = 0; i < 100 && !copy(*cookie, 0, own, PAGE, 0); i++)
		usleep(10000);
	CHECK(copy(*cookie, 0, own, PAGE, 0) == -1 && (errno == ESTALE || errno == ENOENT));
}

/* Whether a page may be moved to another node; -1: there is none. */
static int moves(uint8_t *page)
{
	void *pages[1] = { page };
	int node = 1, was = -1, now = -1;

	CHECK(!syscall(SYS_move_pages, 0, 1ul, pages, NULL, &was, 0));
	CHECK(was >= 0);
	node = !was;
	if (syscall(SYS_move_pages, 0, 1ul, pages, &node, &now, 2 /* MPOL_MF_MOVE */) < 0)
		return -1;
	return now == node;
}

/* A page that was moved just now may lie on a list of some CPU's yet, from which it is not moved.
 */
static bool comes_to_move(uint8_t *page)
{
	bool moved = moves(page) == 1;

	for (int i = 0; i < 200 && !moved; i++) {
		usleep(10000);
		moved = moves(page) == 1;
	}
	return moved;
}

/* The kernel moves no page that is pinned; and ours are not, when their region has ended. */
static void pages_move_again(void)
{
	uint8_t *place = memory(2 * PAGE), *own = memory(PAGE);
	uint64_t cookie;

	if (moves(place) < 0)
		leave_out("the kernel moves no pages between nodes, or has one alone");
	CHECK(comes_to_move(place));
	cookie = create(place, 2 * PAGE, ONECOPY_REGION_READ);
	CHECK(!moves(place));
	/* That it was tried ends nothing. */
	CHECK(!copy(cookie, 0, own, PAGE, 0));
	CHECK(!destroy(cookie));
	CHECK(comes_to_move(place));
}

/* Another moves the pages of both sides between the nodes, and compacts all memory, meanwhile. */
static void move_pages_of(pid_t owner, uint8_t *const places[2], size_t pages)
{
	int compact = open("/proc/sys/vm/compact_memory", O_WRONLY);

	for (unsigned int round = 0;; round++) {
		for (int side = 0; side < 2; side++)
			for (size_t i = 0; i < pages; i++) {
				void *page[1] = { places[side] + i * PAGE };
				int node = (int)(round + i) % 2, now;

				syscall(SYS_move_pages, owner, 1ul, page, &node, &now, 2);
			}
		if (compact >= 0 && round % 4 == 0)
			CHECK(write(compact, "1", 1) == 1);
	}
}

static void pages_moved_meanwhile(void)
{
	enum { PAGES = 64, BYTES = PAGES * 4096 };
	uint8_t *places[2] = { memory(BYTES), memory(BYTES) }, *mapped;
	unsigned int made = 0, rounds = fuzz_seconds < LONG_RUN ? 30 : 120;
	struct onecopy_piece piece = { (uintptr_t)places[0], BYTES };
	uint64_t pinned = counters().pages_pinned_now, cookie;
	pid_t owner = getpid(), mover = fork();

	if (!mover) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		move_pages_of(owner, places, PAGES);
	}
	for (unsigned int round = 0; round < rounds; round++) {
		fill(places[0], BYTES, round);
		if (create_of(device, &piece, 1, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE,
			      &cookie)) {
			/* Its pages were moved away each time. */
			CHECK(errno == ESTALE);
			continue;
		}
		made++;
		for (unsigned int way = 0; way <= ONECOPY_COPY_KTHREAD;
		     way += ONECOPY_COPY_KTHREAD) {
			memset(places[1], 0, BYTES);
			CHECK(!copy(cookie, 0, places[1], BYTES, way));
			CHECK(is_filled(places[1], BYTES, round));
			fill(places[1], BYTES, round + 1);
			CHECK(!copy(cookie, 0, places[1], BYTES, way | ONECOPY_COPY_WRITE));
			CHECK(is_filled(places[0], BYTES, round + 1));
			fill(places[0], BYTES, round);
		}
		CHECK(!map_at(cookie, 0, BYTES, ONECOPY_MAP_WRITE, NULL, &mapped));
		CHECK(is_filled(mapped, BYTES, round));
		fill(mapped, BYTES, round + 2);
		CHECK(is_filled(places[0], BYTES, round + 2));
		CHECK(!destroy(cookie) && !munmap(mapped, BYTES));
	}
	kill(mover, SIGKILL);
	CHECK(waitpid(mover, NULL, 0) == mover);
	CHECK(made > rounds / 2);
	CHECK(pinned_becomes(pinned));
}

/* Children come, write all that they inherit, and go, while this process's memory is copied by
 * another and by a thread. */
static void forks_meanwhile(void)
{
	enum { BYTES = 1 << 20 };
	const unsigned int rounds = fuzz_seconds < LONG_RUN ? 20 : 100;
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	struct onecopy_piece pieces[] = { { (uintptr_t)own, BYTES }, { (uintptr_t)shared, BYTES } };
	volatile uint32_t *words = map_words();
	uint64_t from, to, copied;
	pid_t copier;

	fill(shared, BYTES, 1);
	from = create(shared, BYTES, ONECOPY_REGION_READ);
	to = create(own, BYTES, ONECOPY_REGION_WRITE);
	copier = fork();
	CHECK(copier >= 0);
	if (!copier) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
		for (unsigned int i = 0;; i++) {
			memset(own, 0, BYTES);
			CHECK(!copy(from, 0, own, BYTES, i % 2 ? ONECOPY_COPY_KTHREAD : 0));
			CHECK(is_filled(own, BYTES, 1));
		}
	}
	for (unsigned int round = 0; round < rounds; round++) {
		memset(own, 0, BYTES);
		CHECK(!copy_pieces(round % 2 ? to : from, 0, &pieces[round % 2], 1,
				   ONECOPY_COPY_ASYNC | (round % 2 ? ONECOPY_COPY_WRITE : 0), 1,
				   &copied));
		IN_CHILD({
			memset(shared, 0xee, BYTES);
			memset(own, 0xee, BYTES);
		});
		CHECK(await_word(&words[1]) == ONECOPY_STATUS_DONE);
		words[1] = 0;
		CHECK(is_filled(shared, BYTES, 1) && is_filled(own, BYTES, 1));
	}
	CHECK(!waitpid(copier, NULL, WNOHANG));
	kill(copier, SIGKILL);
	CHECK(waitpid(copier, NULL, 0) == copier);
	CHECK(!destroy(from) && !destroy(to));
}

static void pinned_memory_is_counted(void)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	uint8_t *shared = memory(1 << 20);
	struct onecopy_piece piece = { (uintptr_t)shared, 68 << 10 };
	uint64_t cookie, second;

	IN_CHILD({
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
		CHECK(!setuid(4000));
		REFUSED(create_of(device, &piece, 1, ONECOPY_REGION_READ, &cookie), ENOMEM);
		piece.len = 40 << 10;
		CHECK(!create_of(device, &piece, 1, ONECOPY_REGION_READ, &cookie));
		REFUSED(create_of(device, &piece, 1, ONECOPY_REGION_READ, &second), ENOMEM);
		CHECK(!destroy(cookie));
		CHECK(!create_of(device, &piece, 1, ONECOPY_REGION_READ, &cookie));
	});
}

/* Copiers that are killed while they look whether the region's pages are still there: what they
 * cannot see then ends nobody's region. */
static void killed_while_looking(void)
{
	enum { BYTES = 8 << 20, ROUNDS = 40 };
	uint8_t *shared = memory(BYTES), *own = memory(PAGE);
	uint64_t cookie;

	if (moves(shared) < 0)
		leave_out("the kernel moves no pages between nodes, or has one alone");
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t copier = fork();

		CHECK(copier >= 0);
		if (!copier) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				CHECK(!copy(cookie, 0, own, 1, 0));
		}
		/* Each try to move a page has the next copy look at all of them. */
		for (int try = 0; try < 20; try++)
			moves(shared);
		kill(copier, SIGKILL);
		CHECK(waitpid(copier, NULL, 0) == copier);
		CHECK(!copy(cookie, 0, own, 1, 0));
	}
	CHECK(!destroy(cookie));
}

const struct test memory_tests[] = {
	TEST(gone_with_its_memory),
	TEST(gone_while_it_is_made),
	TEST(kept),
	TEST(never_written),
	TEST(gone_with_its_process),
	TEST(pages_move_again),
	TEST(pages_moved_meanwhile),
	TEST(forks_meanwhile),
	TEST(pinned_memory_is_counted),
	TEST(killed_while_looking),
	NO_MORE_TESTS,
};
