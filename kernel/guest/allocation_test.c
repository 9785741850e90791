/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Every allocation of every call fails in turn: the first of a call, then the second,
 * until it makes no more. Then it either did what it says, or ENOMEM (EFAULT where a page of the
 * caller's could not be made), and left nothing behind. The kernel needs CONFIG_FAULT_INJECTION,
 * CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#include "calls.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#define BOTH (ONECOPY_REGION_READ | ONECOPY_REGION_WRITE)
#define FAULTS "/sys/kernel/debug/"

static int fail_nth = -1;
static unsigned int nth;
static bool was_hit;

static void arm(void)
{
	char number[16];
	int length = snprintf(number, sizeof(number), "%u", nth);

	CHECK(pwrite(fail_nth, number, (size_t)length, 0) == length);
}

static void disarm(void)
{
	char left[16] = "";

	CHECK(pread(fail_nth, left, sizeof(left) - 1, 0) > 0);
	CHECK(pwrite(fail_nth, "0", 1, 0) == 1);
	was_hit |= !atoi(left);
}

/* The call's result; it was one that may be. */
#define ARMED(call)                                                                        \
	({                                                                                 \
		long result_;                                                              \
		int errno_;                                                                \
		arm();                                                                     \
		result_ = (long)(call);                                                    \
		errno_ = errno;                                                            \
		disarm();                                                                  \
		errno = errno_;                                                            \
		CHECK(result_ != -1 || (was_hit && (errno == ENOMEM || errno == EFAULT))); \
		result_;                                                                   \
	})

/* All allocations may fail, and nobody talks of it. */
static void prepare_faults(void)
{
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth < 0 || access(FAULTS "failslab", F_OK) ||
	    access(FAULTS "fail_page_alloc", F_OK))
		leave_out("the kernel cannot fail allocations (CONFIG_FAILSLAB and others)");
	write_to(FAULTS "failslab/ignore-gfp-wait", "N");
	write_to(FAULTS "failslab/verbose", "0");
	write_to(FAULTS "fail_page_alloc/ignore-gfp-wait", "N");
	write_to(FAULTS "fail_page_alloc/ignore-gfp-highmem", "N");
	write_to(FAULTS "fail_page_alloc/min-order", "0");
	write_to(FAULTS "fail_page_alloc/verbose", "0");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint8_t *untouched(size_t bytes)
{
	void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(place != MAP_FAILED);
	return place;
}

static void opening(void)
{
	int fd = (int)ARMED(open("/dev/onecopy", O_RDWR | O_CLOEXEC));

	if (fd >= 0)
		close(fd);
}

static void status_words(void)
{
	int fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	void *words;

	CHECK(fd >= 0);
	words = (void *)ARMED(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	if (words != MAP_FAILED) {
		CHECK(!*(uint32_t *)words);
		munmap(words, 65536);
	}
	close(fd);
}

static void creating(uint8_t *place, size_t pages, unsigned int count, unsigned int flags)
{
	struct onecopy_piece pieces[ONECOPY_PIECES_MOST];
	size_t length = pages / count * PAGE;
	uint8_t byte = 1;
	uint64_t cookie;

	for (unsigned int i = 0; i < count; i++)
		pieces[i] = (struct onecopy_piece){ (uintptr_t)place + i * length, length };
	if (ARMED(create_of(device, pieces, count, flags, &cookie)))
		CHECK(!cookie);
	else
		CHECK(!copy(cookie, pages * PAGE - 1, &byte, 1, 0) && !byte && !destroy(cookie));
	munmap(place, pages * PAGE);
}

static void region_of_a_page(void)
{
	creating(memory(PAGE), 1, 1, BOTH);
}

static void large_region(void)
{
	creating(memory(2048 * PAGE), 2048, 1, BOTH);
}

static void region_of_pieces(void)
{
	creating(memory(1024 * PAGE), 1024, 1024, ONECOPY_REGION_READ);
}

static void region_of_new_memory(void)
{
	creating(untouched(32 * PAGE), 32, 2, BOTH);
}

static void destroying(void)
{
	uint8_t *place = memory(PAGE);
	uint64_t cookie = create(place, PAGE, BOTH);

	CHECK(!ARMED(destroy(cookie)));
	munmap(place, PAGE);
}

/* Between a region and many pieces of new memory. */
static void copying(unsigned int flags)
{
	enum { PIECES = 16 };
	struct onecopy_piece pieces[PIECES];
	uint8_t *shared = memory(PIECES * PAGE), *own = untouched(PIECES * PAGE);
	uint64_t cookie, copied;
	volatile uint32_t *words = NULL;
	unsigned int status = 0;

	fill(shared, PIECES * PAGE, 1);
	cookie = create(shared, PIECES * PAGE, BOTH);
	for (size_t i = 0; i < PIECES; i++)
		pieces[i] = (struct onecopy_piece){ (uintptr_t)own + i * PAGE, PAGE };
	if (flags & ONECOPY_COPY_ASYNC) {
		words = map_words();
		status = 1;
	}
	if (!ARMED(copy_pieces(cookie, 0, pieces, PIECES, flags, status, &copied))) {
		if (words)
			CHECK(await_word(&words[1]) == ONECOPY_STATUS_DONE);
		CHECK(copied && copied <= PIECES * PAGE);
		if (flags & ONECOPY_COPY_WRITE)
			CHECK(!shared[copied - 1]);
		else
			CHECK(is_filled(own, copied, 1));
	} else if (words) {
		CHECK(!words[1]);
	}
	CHECK(!destroy(cookie));
	munmap(shared, PIECES * PAGE);
	munmap(own, PIECES * PAGE);
	if (words)
		munmap((void *)words, WORDS * sizeof(*words));
}

static void copy_from_region(void)
{
	copying(0);
}

static void copy_to_region(void)
{
	copying(ONECOPY_COPY_WRITE);
}

static void copy_by_thread(void)
{
	copying(ONECOPY_COPY_KTHREAD);
}

static void copy_to_region_by_thread(void)
{
	copying(ONECOPY_COPY_KTHREAD | ONECOPY_COPY_WRITE);
}

static void asynchronous_copy(void)
{
	copying(ONECOPY_COPY_ASYNC);
}

static void copy_between_regions(void)
{
	uint8_t *place = memory(2 * PAGE);
	uint64_t from = create(place, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_SINGLE_USE);
	uint64_t to = create(place + PAGE, PAGE, BOTH);
	struct onecopy_copy call = { .size = sizeof(call),
				     .flags = ONECOPY_COPY_REGION,
				     .cookie = from,
				     .length = PAGE,
				     .local_cookie = to };

	fill(place, PAGE, 2);
	if (ARMED(ioctl(device, ONECOPY_COPY, &call)))
		/* It is not used up. */
		CHECK(!destroy(from));
	else
		CHECK(is_filled(place + PAGE, PAGE, 2));
	CHECK(!destroy(to));
	munmap(place, 2 * PAGE);
}

static void mapping(void)
{
	enum { PAGES = 32 };
	uint8_t *shared = memory(PAGES * PAGE), *place;
	uint64_t cookie;

	fill(shared, PAGES * PAGE, 3);
	cookie = create(shared, PAGES * PAGE, BOTH);
	if (!ARMED(map_at(cookie, 0, PAGES * PAGE, ONECOPY_MAP_WRITE, NULL, &place))) {
		CHECK(is_filled(place, PAGES * PAGE, 3));
		munmap(place, PAGES * PAGE);
	}
	CHECK(!destroy(cookie));
	munmap(shared, PAGES * PAGE);
}

/* The tables of the mapper's, in a call (which gets EFAULT) and without one (which waits). */
static void missed_pages_of_a_mapping(bool call)
{
	uint8_t *shared = memory(PAGE), *place, byte;
	uint64_t cookie;
	int ends[2];

	fill(shared, PAGE, 4);
	cookie = create(shared, PAGE, BOTH);
	CHECK(!map_at(cookie, 0, PAGE, ONECOPY_MAP_WRITE, (void *)0x100000000000, &place));
	CHECK(!pipe(ends));
	if (call)
		ARMED(write(ends[1], place, 1));
	else
		ARMED(*(volatile uint8_t *)place);
	byte = place[PAGE - 1];
	CHECK(byte == shared[PAGE - 1]);
	close(ends[0]);
	close(ends[1]);
	CHECK(!destroy(cookie));
	munmap(shared, PAGE);
	munmap(place, PAGE);
}

static void missed_pages(void)
{
	missed_pages_of_a_mapping(false);
}

static void pages_missed_in_a_call(void)
{
	missed_pages_of_a_mapping(true);
}

/* The first of all makes a channel ready. */
static void copy_by_an_engine(void)
{
	use_engines(64);
	copying(ONECOPY_COPY_DMA);
	use_engines(0);
}

static void copy_to_region_by_an_engine(void)
{
	use_engines(64);
	copying(ONECOPY_COPY_DMA | ONECOPY_COPY_WRITE);
	use_engines(0);
}

/* The graph's call with what is being failed, or without. */
static int run_of(int fd, unsigned int what, unsigned int armed)
{
	struct onecopy_graph_run run = { .size = sizeof(run), .what = what };

	return what == armed ? ARMED(ioctl(fd, ONECOPY_GRAPH_RUN, &run)) :
			       ioctl(fd, ONECOPY_GRAPH_RUN, &run);
}

/* Adds buffer 0 to buffer 1, sends that, and waits for as many bytes, which come unless it is to be
 * cancelled: one of its calls is made to fail. */
static void run_graph(bool created, unsigned int armed)
{
	enum { STATUS = 1, LANES = 2 };
	struct {
		struct onecopy_graph_head head;
		struct onecopy_graph_node node[3];
		uint32_t edge[2];
	} packed = { { .magic = ONECOPY_GRAPH_MAGIC,
		       .version = ONECOPY_GRAPH_VERSION,
		       .nodes = 3,
		       .edges = 2 },
		     { { .kind = ONECOPY_GRAPH_CALC,
			 .op = ONECOPY_CALC_SUM,
			 .buffer = 1,
			 .count = PAGE },
		       { .kind = ONECOPY_GRAPH_SEND, .buffer = 1, .count = PAGE, .edges_end = 1 },
		       { .kind = ONECOPY_GRAPH_RECV, .count = PAGE, .edges_end = 2 } },
		     { 0, 1 } };
	uint8_t *place = memory(2 * PAGE), got[PAGE];
	struct onecopy_piece buffer[2] = { { (uintptr_t)place, PAGE },
					   { (uintptr_t)place + PAGE, PAGE } };
	int fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC), pair[2];
	struct onecopy_graph_create create = { .size = sizeof(create),
					       .packed = (uintptr_t)&packed,
					       .packed_bytes = sizeof(packed),
					       .sockets = (uintptr_t)pair,
					       .buffers = (uintptr_t)buffer,
					       .socket_count = 1,
					       .buffer_count = 2,
					       .word = STATUS,
					       .lanes = LANES };
	bool cancelled = armed == ONECOPY_GRAPH_CANCEL;
	unsigned int what = cancelled ? ONECOPY_GRAPH_CANCEL : ONECOPY_GRAPH_LOOK;
	volatile uint32_t *words;

	CHECK(fd >= 0);
	words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(words != MAP_FAILED);
	tcp_pair(pair);
	memset(place, 2, PAGE);
	memset(place + PAGE, 3, PAGE);
	words[LANES] = ONECOPY_LANE_GRANTED;
	if (!(created ? ARMED(ioctl(fd, ONECOPY_GRAPH_CREATE, &create)) :
			ioctl(fd, ONECOPY_GRAPH_CREATE, &create)) &&
	    !run_of(fd, ONECOPY_GRAPH_ISSUE, armed)) {
		CHECK(recv(pair[1], got, PAGE, MSG_WAITALL) == (ssize_t)PAGE);
		CHECK(got[0] == 5 && got[PAGE - 1] == 5);
		words[LANES + 1] = ONECOPY_LANE_GRANTED;
		/* A call that failed may be made again. */
		if (run_of(fd, what, armed)) {
			CHECK(was_hit);
			CHECK(!run_of(fd, what, 0));
		}
		CHECK(send(pair[1], got, PAGE, MSG_NOSIGNAL) == (ssize_t)PAGE || cancelled);
		CHECK(await_word(&words[STATUS]) ==
		      (cancelled ? ONECOPY_STATUS_FAILED | ECANCELED : ONECOPY_STATUS_DONE));
		CHECK(cancelled || (place[0] == 5 && place[PAGE - 1] == 5));
	} else {
		CHECK(was_hit);
	}
	munmap((void *)words, PAGE);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	munmap(place, 2 * PAGE);
}

static void graph_creating(void)
{
	run_graph(true, 0);
}

static void graph_issuing(void)
{
	run_graph(false, ONECOPY_GRAPH_ISSUE);
}

static void graph_looking(void)
{
	run_graph(false, ONECOPY_GRAPH_LOOK);
}

static void graph_cancelling(void)
{
	run_graph(false, ONECOPY_GRAPH_CANCEL);
}

static void notifying(void)
{
	struct onecopy_notify call = { .size = sizeof(call), .fd = eventfd(0, EFD_NONBLOCK) };

	ARMED(ioctl(device, ONECOPY_NOTIFY, &call));
	close(call.fd);
	call.fd = -1;
	CHECK(!ioctl(device, ONECOPY_NOTIFY, &call));
}

static void counting(void)
{
	struct onecopy_counters call = { .size = sizeof(call) };

	ARMED(ioctl(device, ONECOPY_COUNTERS, &call));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct test calls[] = {
	TEST(opening),
	TEST(status_words),
	TEST(region_of_a_page),
	TEST(large_region),
	TEST(region_of_pieces),
	TEST(region_of_new_memory),
	TEST(destroying),
	TEST(copy_from_region),
	TEST(copy_to_region),
	TEST(copy_by_thread),
	TEST(copy_to_region_by_thread),
	TEST(asynchronous_copy),
	TEST(copy_between_regions),
	TEST(copy_by_an_engine),
	TEST(copy_to_region_by_an_engine),
	TEST(mapping),
	TEST(missed_pages),
	TEST(pages_missed_in_a_call),
	TEST(notifying),
	TEST(counting),
	TEST(graph_creating),
	TEST(graph_issuing),
	TEST(graph_looking),
	TEST(graph_cancelling),
	NO_MORE_TESTS,
};

static void every_allocation_fails(void)
{
	struct onecopy_counters before, after;
	unsigned int failed = 0;

	prepare_faults();
	before = counters();
	for (const struct test *call = calls; call->name; call++) {
		nth = 0;
		do {
			nth++;
			was_hit = false;
			call->run();
			CHECK(pinned_becomes(before.pages_pinned_now));
		} while (was_hit && nth < 1000);
		CHECK(!was_hit);
		printf("        %3u allocations of %s\n", nth - 1, call->name);
		failed += nth - 1;
	}
	after = counters();
	CHECK(after.regions_now == before.regions_now && after.maps_now == before.maps_now);
	/* Else the kernel failed none. */
	CHECK(failed > 50);
	fflush(stdout);
}

const struct test allocation_tests[] = { TEST(every_allocation_fails), NO_MORE_TESTS };
