/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Tests of /dev/onecopy, for the guest that guest/run.sh boots: each in a child of
 * its own, which a crash or an alarm ends as a failure. "device_test [SECONDS [TEST...]]": so long
 * the last one, which throws random calls at the device, and from 60 on others take more rounds,
 * too; only these tests. More than 500 lines, as it is a list of small cases; those of memory that
 * goes are in memory_test.c, those of mappings in map_test.c, those of memory that the kernel does
 * not get in allocation_test.c, those of DMA engines in engine_test.c, those of graphs in
 * graph_test.c, random calls and kills in hostile_test.c.
 */
#include "calls.h"

#include <linux/magic.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

int device;
int fuzz_seconds = 5;

/* ---- what it does ---------------------------------------------------------------------------- */

static void both_directions(void)
{
	size_t bytes = 3 * PAGE + 100;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	uint64_t cookie;

	fill(shared, bytes, 1);
	cookie = create(shared, bytes, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE);
	IN_CHILD({
		CHECK(!copy(cookie, 0, own, bytes, 0));
		CHECK(is_filled(own, bytes, 1));
		fill(own, bytes, 2);
		CHECK(!copy(cookie, 0, own, bytes, ONECOPY_COPY_WRITE));
	});
	CHECK(is_filled(shared, bytes, 2));
	CHECK(!destroy(cookie));
	REFUSED(copy(cookie, 0, own, bytes, 0), ENOENT);
	REFUSED(destroy(cookie), ENOENT);
}

/* Every offset and length around the ends of pages, by each who can copy. */
static void parts(void)
{
	static const unsigned int ways[] = { 0, ONECOPY_COPY_KTHREAD };
	static const size_t places[] = { 0, 1, 63, 4095, 4096, 4097, 8191, 8192, 12000 };
	size_t bytes = 4 * PAGE;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	uint64_t cookie = create(shared, bytes, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE);

	for (unsigned int w = 0; w < 2; w++)
		for (unsigned int a = 0; a < 9; a++)
			for (unsigned int b = a + 1; b < 9; b++) {
				size_t from = places[a], length = places[b] - from;

				fill(shared, bytes, w);
				memset(own, 0xee, bytes);
				CHECK(!copy(cookie, from, own + 7, length, ways[w]));
				CHECK(!memcmp(own + 7, shared + from, length));
				CHECK(own[6] == 0xee && own[7 + length] == 0xee);
				memset(shared, 0xee, bytes);
				CHECK(!copy(cookie, from, own + 7, length,
					    ways[w] | ONECOPY_COPY_WRITE));
				CHECK(!memcmp(own + 7, shared + from, length));
				CHECK(!from || shared[from - 1] == 0xee);
				CHECK(shared[from + length] == 0xee);
			}
}

/* Pieces on both sides, none of them aligned, some of them empty. */
static void vectors(void)
{
	enum { PIECES = 40 };
	struct onecopy_piece theirs[PIECES], mine[PIECES];
	static uint8_t flat[2][PIECES * 3000];
	size_t bytes = 0, at = 0, most = PIECES * 3 * PAGE;
	uint8_t *shared = memory(most), *own = memory(most);
	uint64_t cookie, copied;

	for (int i = 0; i < PIECES; i++) {
		size_t length = i % 7 == 3 ? 0 : 1 + (size_t)(i * 977) % 3000;

		theirs[i] = (struct onecopy_piece){ (uintptr_t)shared + (size_t)i * 3 * PAGE + 5000,
						    length };
		bytes += length;
	}
	for (int i = 0; i < PIECES; i++) {
		size_t length = i == PIECES - 1 ? bytes - at : bytes / PIECES - (size_t)i % 3;

		mine[i] = (struct onecopy_piece){ (uintptr_t)own + (size_t)i * 3 * PAGE + 11,
						  length };
		at += length;
	}
	fill(shared, most, 9);
	at = 0;
	for (int i = 0; i < PIECES; at += theirs[i++].len)
		memcpy(flat[0] + at, (void *)(uintptr_t)theirs[i].addr, theirs[i].len);
	CHECK(!create_of(device, theirs, PIECES, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE,
			 &cookie));
	for (unsigned int way = 0; way <= ONECOPY_COPY_KTHREAD; way += ONECOPY_COPY_KTHREAD) {
		memset(own, 0, most);
		CHECK(!copy_pieces(cookie, 0, mine, PIECES, way, 0, &copied));
		CHECK(copied == bytes);
		at = 0;
		for (int i = 0; i < PIECES; at += mine[i++].len)
			memcpy(flat[1] + at, (void *)(uintptr_t)mine[i].addr, mine[i].len);
		CHECK(!memcmp(flat[0], flat[1], bytes));
		memset(shared, 0, most);
		CHECK(!copy_pieces(cookie, 0, mine, PIECES, way | ONECOPY_COPY_WRITE, 0, &copied));
		at = 0;
		for (int i = 0; i < PIECES; at += theirs[i++].len)
			CHECK(!memcmp((void *)(uintptr_t)theirs[i].addr, flat[0] + at,
				      theirs[i].len));
	}
}

static void region_to_region(void)
{
	size_t bytes = 5 * PAGE;
	uint8_t *a = memory(bytes), *b = memory(bytes);
	uint64_t from, to;

	fill(a, bytes, 3);
	from = create(a, bytes, ONECOPY_REGION_READ);
	to = create(b + 100, bytes - 100, ONECOPY_REGION_WRITE);
	IN_CHILD({
		struct onecopy_copy call = { .size = sizeof(call),
					     .flags = ONECOPY_COPY_REGION,
					     .cookie = from,
					     .offset = 50,
					     .length = 3 * PAGE + 1,
					     .local_cookie = to,
					     .local_offset = 9 };

		CHECK(!ioctl(device, ONECOPY_COPY, &call));
		CHECK(call.copied == 3 * PAGE + 1);
		call.copied = 0;
		call.flags |= ONECOPY_COPY_WRITE;
		REFUSED(ioctl(device, ONECOPY_COPY, &call), EACCES);
		call.flags &= ~ONECOPY_COPY_WRITE;
		call.local_offset = bytes;
		REFUSED(ioctl(device, ONECOPY_COPY, &call), ERANGE);
	});
	CHECK(!memcmp(a + 50, b + 109, 3 * PAGE + 1));
	CHECK(b[108] == 0 && b[109 + 3 * PAGE + 1] == 0);
}

/* In each direction, by each of those who may copy. */
static void region_to_region_by_all(void)
{
	static const unsigned int ways[] = { 0, ONECOPY_COPY_KTHREAD, ONECOPY_COPY_ASYNC };
	size_t bytes = 3 * PAGE;
	uint8_t *a = memory(bytes), *b = memory(bytes);
	volatile uint32_t *words = map_words();
	uint64_t from = create(a, bytes, ONECOPY_REGION_READ);
	uint64_t to = create(b, bytes, ONECOPY_REGION_WRITE);

	for (unsigned int i = 0; i < 6; i++) {
		bool write = i % 2, async = ways[i / 2] == ONECOPY_COPY_ASYNC;
		struct onecopy_copy call = { .size = sizeof(call),
					     .flags = ONECOPY_COPY_REGION | ways[i / 2] |
						      (write ? ONECOPY_COPY_WRITE : 0),
					     .cookie = write ? to : from,
					     .offset = write ? 0 : 7,
					     .length = bytes - 7,
					     .status = async,
					     .local_cookie = write ? from : to,
					     .local_offset = write ? 7 : 0 };

		fill(a, bytes, i);
		memset(b, 0xee, bytes);
		CHECK(!ioctl(device, ONECOPY_COPY, &call));
		if (async)
			CHECK(await_word(&words[1]) == ONECOPY_STATUS_DONE);
		words[1] = 0;
		CHECK(call.copied == bytes - 7);
		CHECK(!memcmp(a + 7, b, bytes - 7) && b[bytes - 7] == 0xee);
	}
}

static void memory_ends_in_the_middle(void)
{
	size_t bytes = 4 * PAGE;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	struct onecopy_piece piece = { (uintptr_t)own, bytes };
	uint64_t cookie, copied;

	fill(shared, bytes, 4);
	cookie = create(shared, bytes, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE);
	CHECK(!munmap(own + 2 * PAGE, 2 * PAGE));
	CHECK(!copy_pieces(cookie, 0, &piece, 1, 0, 0, &copied));
	CHECK(copied == 2 * PAGE && is_filled(own, 2 * PAGE, 4));
	CHECK(!munmap(own, 2 * PAGE));
	REFUSED(copy_pieces(cookie, 0, &piece, 1, 0, 0, &copied), EFAULT);
	REFUSED(copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_KTHREAD, 0, &copied), EFAULT);
	REFUSED(create_of(device, &piece, 1, ONECOPY_REGION_READ, &copied), EFAULT);
	own = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REFUSED(copy(cookie, 0, own, bytes, 0), EFAULT);
	piece.addr = (uintptr_t)own;
	REFUSED(create_of(device, &piece, 1, ONECOPY_REGION_WRITE, &copied), EFAULT);
	CHECK(!copy(cookie, 0, own, bytes, ONECOPY_COPY_WRITE));
	CHECK(!shared[5]);
}

static void rights(void)
{
	uint8_t *shared = memory(PAGE), *own = memory(PAGE);
	uint64_t readable = create(shared, PAGE, ONECOPY_REGION_READ);
	uint64_t writable = create(shared, PAGE, ONECOPY_REGION_WRITE);
	uint64_t group = create(shared, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_GROUP);

	REFUSED(copy(readable, 0, own, 10, ONECOPY_COPY_WRITE), EACCES);
	REFUSED(copy(writable, 0, own, 10, 0), EACCES);
	IN_CHILD({
		CHECK(!setgid(4000) && !setuid(4000));
		REFUSED(copy(readable, 0, own, 10, 0), EACCES);
		REFUSED(copy(group, 0, own, 10, 0), EACCES);
	});
	IN_CHILD({
		CHECK(!setuid(4000));
		REFUSED(copy(readable, 0, own, 10, 0), EACCES);
		CHECK(!copy(group, 0, own, 10, 0));
	});
	IN_CHILD({
		device = open("/dev/onecopy", O_RDWR);
		REFUSED(destroy(readable), EACCES);
		CHECK(!copy(readable, 0, own, 10, 0));
	});
}

/* What SECURITY.md says of who may do what, where it is not the user alone. */
static void whose_it_is(void)
{
	static const int spaces[] = { CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWNS };
	uint8_t *shared = memory(PAGE), *own = memory(PAGE);
	volatile uint32_t *words = map_words();
	uint64_t cookie = create(shared, PAGE, ONECOPY_REGION_READ);

	/* The user is the maker's as it was then. */
	CHECK(!seteuid(4000));
	REFUSED(copy(cookie, 0, own, PAGE, 0), EACCES);
	IN_CHILD(REFUSED(copy(cookie, 0, own, PAGE, 0), EACCES));
	CHECK(!seteuid(0));
	/* Namespaces do not part processes of one user, as far as the kernel has them. */
	for (unsigned int i = 0; i < sizeof(spaces) / sizeof(*spaces); i++)
		IN_CHILD({
			CHECK(!unshare(spaces[i]) || errno == EINVAL);
			/* Some are the next child's. */
			IN_CHILD(CHECK(!copy(cookie, 0, own, PAGE, 0)));
		});
	/* Who is not dumpable made it all the same. */
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	IN_CHILD(CHECK(!copy(cookie, 0, own, PAGE, 0)));
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
	/* Who has the file, whatever user: it writes its words, and ends its regions. */
	IN_CHILD({
		CHECK(!setgid(4000) && !setuid(4000));
		REFUSED(copy(cookie, 0, own, PAGE, 0), EACCES);
		map_words()[3] = 5;
		CHECK(!destroy(cookie));
	});
	CHECK(words[3] == 5);
	REFUSED(copy(cookie, 0, own, PAGE, 0), ENOENT);
}

static void bounds(void)
{
	uint8_t *shared = memory(2 * PAGE), *own = memory(2 * PAGE);
	uint64_t cookie = create(shared, PAGE + 10, ONECOPY_REGION_READ);

	CHECK(!copy(cookie, PAGE, own, 10, 0));
	REFUSED(copy(cookie, PAGE, own, 11, 0), ERANGE);
	REFUSED(copy(cookie, PAGE + 10, own, 1, 0), ERANGE);
	REFUSED(copy(cookie, UINT64_MAX - 5, own, 10, 0), ERANGE);
	REFUSED(copy(cookie, 0, own, 0, 0), EINVAL);
	REFUSED(copy(cookie + 1, 0, own, 10, 0), ENOENT);
	REFUSED(copy(0, 0, own, 10, 0), ENOENT);
}

static void single_use(void)
{
	uint8_t *shared = memory(PAGE), *own = memory(PAGE);
	uint64_t cookie = create(shared, PAGE, ONECOPY_REGION_READ | ONECOPY_REGION_SINGLE_USE);
	uint64_t before = counters().regions_now;

	/* What is refused does not use it up. */
	REFUSED(copy(cookie, 0, own, PAGE + 1, 0), ERANGE);
	REFUSED(copy(cookie, 0, own, PAGE, ONECOPY_COPY_WRITE), EACCES);
	REFUSED(copy(cookie, 0, (void *)1, PAGE, ONECOPY_COPY_KTHREAD), EFAULT);
	REFUSED(copy(cookie, 0, (void *)1, PAGE, 0), EFAULT);
	CHECK(!copy(cookie, 0, own, 10, 0));
	REFUSED(copy(cookie, 0, own, 10, 0), ENOENT);
	CHECK(counters().regions_now == before - 1);
}

/* By a thread, an engine, and one that breaks off. */
static void single_use_by_all(void)
{
	static const unsigned int ways[] = { ONECOPY_COPY_KTHREAD, ONECOPY_COPY_ASYNC,
					     ONECOPY_COPY_DMA, 0 };
	enum { WAYS = sizeof(ways) / sizeof(*ways) };
	size_t bytes = 2 * PAGE;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	struct onecopy_piece piece = { (uintptr_t)own, bytes };
	volatile uint32_t *words = map_words();

	fill(shared, bytes, 1);
	/* As far as there is an engine. */
	use_engines(1);
	for (unsigned int i = 0; i < WAYS; i++) {
		uint64_t copied, before = counters().regions_now;
		uint64_t cookie =
			create(shared, bytes, ONECOPY_REGION_READ | ONECOPY_REGION_SINGLE_USE);
		bool async = ways[i] == ONECOPY_COPY_ASYNC, breaks = i == WAYS - 1;

		memset(own, 0, bytes);
		if (breaks)
			CHECK(!munmap(own + PAGE, PAGE));
		CHECK(!copy_pieces(cookie, 0, &piece, 1, ways[i], async, &copied));
		if (async)
			CHECK(await_word(&words[1]) == ONECOPY_STATUS_DONE);
		CHECK(copied == (breaks ? PAGE : bytes) && is_filled(own, copied, 1));
		REFUSED(copy(cookie, 0, own, PAGE, 0), ENOENT);
		CHECK(counters().regions_now == before);
	}
	use_engines(0);
}

/* Of several that want it at once one has it. */
static void single_use_of_one(void)
{
	enum { COPIERS = 4, ROUNDS = 20 };
	size_t bytes = 16 * PAGE;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	uint32_t *board =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(board != MAP_FAILED);
	fill(shared, bytes, 2);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t cookie =
			create(shared, bytes, ONECOPY_REGION_READ | ONECOPY_REGION_SINGLE_USE);
		pid_t child[COPIERS];

		memset(board, 0, PAGE);
		for (unsigned int i = 0; i < COPIERS; i++) {
			child[i] = fork();
			CHECK(child[i] >= 0);
			if (child[i])
				continue;
			__atomic_add_fetch(&board[0], 1, __ATOMIC_SEQ_CST);
			while (__atomic_load_n(&board[0], __ATOMIC_SEQ_CST) < COPIERS)
				sched_yield();
			if (!copy(cookie, 0, own, bytes, i % 2 ? ONECOPY_COPY_KTHREAD : 0)) {
				CHECK(is_filled(own, bytes, 2));
				__atomic_add_fetch(&board[1], 1, __ATOMIC_SEQ_CST);
			} else {
				CHECK(errno == ENOENT);
			}
			_exit(0);
		}
		for (unsigned int i = 0; i < COPIERS; i++)
			CHECK(child_succeeds(child[i]));
		CHECK(board[1] == 1);
	}
}

static void put_on_node(void *place, size_t bytes, unsigned int node)
{
	enum { BIND = 2, MOVE = 2 };
	unsigned long mask = 1ul << node;

	CHECK(!syscall(SYS_mbind, place, bytes, BIND, &mask, 8 * sizeof(mask), MOVE));
}

static bool is_cpu_of(unsigned int cpu, unsigned int node)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/node%u", cpu, node);
	return !access(path, F_OK);
}

/* Of the trace: each time that a thread began, by which CPU. How many. */
static unsigned int count_turns(const char *trace, unsigned int *cpu, unsigned int most)
{
	FILE *file = fopen(trace, "r");
	char line[512];
	unsigned int count = 0;

	CHECK(file);
	while (fgets(line, sizeof(line), file) && count < most)
		if (strstr(line, "function run_jobs") && strchr(line, '['))
			cpu[count++] = (unsigned int)atoi(strchr(line, '[') + 1);
	fclose(file);
	return count;
}

/* Also behind one for another node. */
static void by_a_thread_of_the_node(void)
{
	enum { COPIES = 12 };
#define TRACING "/sys/kernel/tracing/"
	const size_t bytes = 512 * PAGE;
	volatile uint32_t *word = map_words();
	uint8_t *own = memory(bytes), *shared[2];
	unsigned int cpu[2 * COPIES], right = 0;
	uint64_t cookie[2], copied;
	struct onecopy_piece piece = { (uintptr_t)own, bytes };

	mount("tracefs", TRACING, "tracefs", 0, NULL);
	if (access(TRACING "events/workqueue/workqueue_execute_start/enable", F_OK))
		leave_out("the kernel has no trace of work (CONFIG_TRACING)");
	if (access("/sys/devices/system/node/node1", F_OK))
		leave_out("there is one node");
	for (unsigned int n = 0; n < 2; n++) {
		shared[n] = memory(bytes);
		put_on_node(shared[n], bytes, n);
		cookie[n] = create(shared[n], bytes, ONECOPY_REGION_WRITE);
	}
	close(open(TRACING "trace", O_WRONLY | O_TRUNC));
	write_to(TRACING "events/workqueue/workqueue_execute_start/enable", "1");
	for (unsigned int i = 0; i < COPIES; i++)
		CHECK(!copy_pieces(cookie[i % 2], 0, &piece, 1,
				   ONECOPY_COPY_ASYNC | ONECOPY_COPY_WRITE, 1 + i, &copied));
	for (unsigned int i = 0; i < COPIES; i++)
		CHECK(await_word(&word[1 + i]) == ONECOPY_STATUS_DONE);
	write_to(TRACING "events/workqueue/workqueue_execute_start/enable", "0");
	CHECK(count_turns(TRACING "trace", cpu, 2 * COPIES) == COPIES);
	/* As a rule: from 6.6 on the scheduler may move a thread away. */
	for (unsigned int i = 0; i < COPIES; i++)
		right += is_cpu_of(cpu[i], i % 2);
	CHECK(right > COPIES / 4 * 3);
}

/* Structures: sizes, unknown flags, reserved fields, what a call has no use for. */
static void structures(void)
{
	struct {
		struct onecopy_copy call;
		uint64_t more;
	} longer = { .call.size = sizeof(longer) };
	uint8_t *own = memory(PAGE);
	struct onecopy_piece piece = { (uintptr_t)own, PAGE };
	uint64_t cookie = create(own, PAGE, ONECOPY_REGION_READ);
	struct onecopy_copy good = { .size = sizeof(good),
				     .cookie = cookie,
				     .length = PAGE,
				     .pieces = (uintptr_t)&piece,
				     .piece_count = 1 };
	struct onecopy_copy bad;
	struct onecopy_region_create create_bad = { .size = sizeof(create_bad),
						    .flags = ONECOPY_REGION_READ,
						    .pieces = (uintptr_t)&piece,
						    .piece_count = 1,
						    .word = 1 }; /* words are not mapped */
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = -2 };
	struct onecopy_region_destroy shorter = { .size = 8 };
	struct onecopy_region_destroy more = { .size = sizeof(more),
					       .reserved = 1,
					       .cookie = cookie };
	struct onecopy_counters first = { .size = 16, .regions_gone = 7 };
	struct onecopy_copy *fixed = (struct onecopy_copy *)memory(PAGE);

	memcpy(&longer.call, &good, sizeof(good));
	longer.call.size = sizeof(longer);
	CHECK(!ioctl(device, ONECOPY_COPY, &longer));
	longer.call.copied = 0;
	longer.more = 1;
	REFUSED(ioctl(device, ONECOPY_COPY, &longer), E2BIG);
#define BAD(change)                                                 \
	do {                                                        \
		bad = good;                                         \
		change;                                             \
		REFUSED(ioctl(device, ONECOPY_COPY, &bad), EINVAL); \
	} while (0)
	BAD(bad.size = 0);
	BAD(bad.size = 3);
	BAD(bad.size = sizeof(bad) - 8);
	BAD(bad.size = 1 << 20);
	BAD(bad.flags = 1 << 30);
	BAD(bad.copied = 1);
	BAD(bad.status = 1);
	BAD(bad.local_cookie = 1);
	BAD(bad.local_offset = 1);
	BAD(bad.length = PAGE - 1);
	BAD(bad.length = UINT64_MAX);
	BAD(bad.piece_count = 0);
	BAD(bad.piece_count = ONECOPY_PIECES_MOST + 1);
	BAD(bad.flags = ONECOPY_COPY_ASYNC);		       /* no word */
	BAD((bad.flags = ONECOPY_COPY_ASYNC, bad.status = 1)); /* words are not mapped */
	BAD(bad.flags = ONECOPY_COPY_REGION);		       /* and pieces */
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EINVAL);
	create_bad.word = 0;
	create_bad.flags = 0;
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EINVAL);
	create_bad.flags = 1 << 20 | ONECOPY_REGION_READ;
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EINVAL);
	create_bad.flags = ONECOPY_REGION_READ;
	create_bad.piece_count = ONECOPY_PIECES_MOST + 1;
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EINVAL);
	create_bad.piece_count = 1;
	piece.len = 0;
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EINVAL);
	piece = (struct onecopy_piece){ UINT64_MAX - 4095, 4096 };
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &create_bad), EFAULT);
	REFUSED(ioctl(device, ONECOPY_NOTIFY, &notify), EINVAL);
	notify.fd = device;
	REFUSED(ioctl(device, ONECOPY_NOTIFY, &notify), EINVAL);
	notify.fd = 1 << 20;
	REFUSED(ioctl(device, ONECOPY_NOTIFY, &notify), EBADF);
	REFUSED(ioctl(device, ONECOPY_REGION_DESTROY, &shorter), EINVAL);
	REFUSED(ioctl(device, ONECOPY_REGION_DESTROY, &more), EINVAL);
	CHECK(!ioctl(device, ONECOPY_COUNTERS, &first));
	CHECK(first.version == ONECOPY_VERSION && first.regions_created && first.regions_gone == 7);
	/* What was copied cannot be told. */
	piece = (struct onecopy_piece){ (uintptr_t)own, PAGE };
	*fixed = good;
	CHECK(!mprotect(fixed, PAGE, PROT_READ));
	REFUSED(ioctl(device, ONECOPY_COPY, fixed), EFAULT);
	REFUSED(ioctl(device, ONECOPY_COPY, NULL), EFAULT);
	REFUSED(ioctl(device, 0x1234, &bad), ENOTTY);
}

/* The call succeeds or fails, and of what the caller gave only these bytes are others then. */
static void check_returned(unsigned long call, const void *given, size_t bytes, int error,
			   size_t from, size_t to)
{
	uint8_t place[sizeof(struct onecopy_counters) + 64];

	memset(place, 0x5a, sizeof(place));
	memcpy(place, given, bytes);
	CHECK(ioctl(device, call, place) == (error ? -1 : 0) && (!error || errno == error));
	CHECK(!memcmp(place, given, from));
	CHECK(!memcmp(place + to, (const uint8_t *)given + to, bytes - to));
	for (size_t i = bytes; i < sizeof(place); i++)
		CHECK(place[i] == 0x5a);
}

#define AT(type, member) offsetof(struct type, member)

/* Nothing of the kernel's memory comes along, and nothing is written beyond the size. */
static void nothing_else_is_returned(void)
{
	uint8_t *own = memory(2 * PAGE);
	struct onecopy_piece piece = { (uintptr_t)own, PAGE };
	struct onecopy_region_create make = { .size = sizeof(make),
					      .flags = ONECOPY_REGION_READ,
					      .pieces = (uintptr_t)&piece,
					      .piece_count = 1 };
	uint64_t cookie = create(own, PAGE, ONECOPY_REGION_READ);
	struct onecopy_copy get = { .size = sizeof(get),
				    .cookie = cookie,
				    .length = PAGE,
				    .pieces = (uintptr_t)&piece,
				    .piece_count = 1 };
	struct onecopy_map show = { .size = sizeof(show), .cookie = cookie, .length = PAGE };
	struct onecopy_region_destroy end = { .size = sizeof(end), .cookie = cookie };
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = -1 };
	struct onecopy_counters counted = { .size = sizeof(counted) };
	volatile uint32_t *word;

	check_returned(ONECOPY_REGION_CREATE, &make, sizeof(make), 0,
		       AT(onecopy_region_create, cookie), sizeof(make));
	make.cookie = 1;
	check_returned(ONECOPY_REGION_CREATE, &make, sizeof(make), EINVAL, 0, 0);
	piece.addr += PAGE;
	check_returned(ONECOPY_COPY, &get, sizeof(get), 0, AT(onecopy_copy, copied), sizeof(get));
	get.offset = 1;
	check_returned(ONECOPY_COPY, &get, sizeof(get), ERANGE, 0, 0);
	check_returned(ONECOPY_MAP, &show, sizeof(show), 0, AT(onecopy_map, addr), sizeof(show));
	show.length = 1;
	check_returned(ONECOPY_MAP, &show, sizeof(show), EINVAL, 0, 0);
	check_returned(ONECOPY_NOTIFY, &notify, sizeof(notify), 0, 0, 0);
	check_returned(ONECOPY_REGION_DESTROY, &end, sizeof(end), 0, 0, 0);
	check_returned(ONECOPY_REGION_DESTROY, &end, sizeof(end), ENOENT, 0, 0);
	/* Of a caller that knows fewer counters. */
	for (uint32_t size = 4; size <= sizeof(counted); size += 4) {
		counted.size = size;
		check_returned(ONECOPY_COUNTERS, &counted, size, 0, 4, size);
	}
	word = map_words();
	for (size_t i = 0; i < PAGE / sizeof(*word); i++)
		CHECK(!word[i]);
}

/* The first mapping says how many there are. */
static void words(void)
{
	const int both = PROT_READ | PROT_WRITE;
	uint32_t *first, *second;

	CHECK(mmap(NULL, ONECOPY_STATUS_BYTES_MOST + PAGE, both, MAP_SHARED, device, 0) ==
	      MAP_FAILED);
	CHECK(mmap(NULL, PAGE, both, MAP_PRIVATE, device, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, PAGE, both, MAP_SHARED, device, PAGE) == MAP_FAILED && errno == EINVAL);
	first = mmap(NULL, 3 * PAGE, both, MAP_SHARED, device, 0);
	CHECK(first != MAP_FAILED);
	CHECK(mmap(NULL, 4 * PAGE, both, MAP_SHARED, device, 0) == MAP_FAILED && errno == EINVAL);
	second = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, device, 0);
	CHECK(second != MAP_FAILED);
	for (size_t i = 0; i < 3 * PAGE / sizeof(*first); i++) {
		CHECK(!first[i]);
		first[i] = (uint32_t)i;
	}
	CHECK(!memcmp(first, second, 2 * PAGE));
	CHECK(mremap(first, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	/* A child has them, too. */
	IN_CHILD(first[5] = 99);
	CHECK(second[5] == 99);
	CHECK(!munmap(first, 3 * PAGE) && second[7] == 7);
}

/* A shared mapping of a file that is written to a disk: read alone, as the kernel would not notice
 * what is written to its pages. A private one is memory. */
static void files(void)
{
	struct statfs system;
	struct stat status;
	uint8_t *own = memory(PAGE), *shared, *private;
	struct onecopy_piece piece = { .len = 2 * PAGE };
	struct onecopy_region_create call = { .size = sizeof(call),
					      .flags = ONECOPY_REGION_READ | ONECOPY_REGION_WRITE,
					      .pieces = (uintptr_t)&piece,
					      .piece_count = 1 };
	int fd;

	if (statfs("/disk", &system) || system.f_type != EXT4_SUPER_MAGIC)
		_exit(LEFT_OUT);
	fd = open("/disk/file", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, 2 * PAGE));
	shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	private = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(shared != MAP_FAILED && private != MAP_FAILED);
	piece.addr = (uintptr_t)shared;
	REFUSED(ioctl(device, ONECOPY_REGION_CREATE, &call), EFAULT);
	/* The file is as it was: a hole. */
	CHECK(!fstat(fd, &status) && !status.st_blocks);
	fill(shared, 2 * PAGE, 8);
	CHECK(!copy(create(shared, 2 * PAGE, ONECOPY_REGION_READ), 0, own, PAGE, 0));
	CHECK(is_filled(own, PAGE, 8));
	fill(own, PAGE, 9);
	CHECK(!copy(create(private, 2 * PAGE, ONECOPY_REGION_WRITE), PAGE, own, PAGE,
		    ONECOPY_COPY_WRITE));
	CHECK(is_filled(private + PAGE, PAGE, 9) && !is_filled(shared + PAGE, PAGE, 9));
	close(fd);
}

/* ---- asynchronous ---------------------------------------------------------------------------- */

static void in_order(void)
{
	enum { BYTES = 8 << 20 };
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie, copied, rings = 0;
	int event = eventfd(0, EFD_NONBLOCK);
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = event };
	struct pollfd poll_event = { .fd = event, .events = POLLIN };

	CHECK(!ioctl(device, ONECOPY_NOTIFY, &notify));
	fill(shared, BYTES, 5);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (unsigned int i = 1; i < WORDS; i++) {
		struct onecopy_piece piece = { (uintptr_t)own + (i - 1) * (BYTES / WORDS),
					       BYTES / WORDS };

		CHECK(!copy_pieces(cookie, (i - 1) * (BYTES / WORDS), &piece, 1, ONECOPY_COPY_ASYNC,
				   i, &copied));
		CHECK(word[i] != 0);
	}
	for (unsigned int i = WORDS - 1; i > 0; i--) {
		size_t last = i * (BYTES / WORDS) - 16;

		CHECK(await_word(&word[i]) == ONECOPY_STATUS_DONE);
		/* By now, not soon. */
		CHECK(!memcmp(own + last, shared + last, 16));
		/* All before it have ended before. */
		for (unsigned int k = 1; k < i; k++)
			CHECK(word[k] == ONECOPY_STATUS_DONE);
	}
	CHECK(is_filled(own, BYTES / WORDS * (WORDS - 1), 5));
	for (uint64_t sum = 0; sum < WORDS - 1; sum += rings) {
		CHECK(poll(&poll_event, 1, 5000) == 1);
		CHECK(read(event, &rings, sizeof(rings)) == sizeof(rings));
	}
	notify.fd = -1;
	CHECK(!ioctl(device, ONECOPY_NOTIFY, &notify));
}

static void a_word_is_taken(void)
{
	enum { BYTES = 32 << 20 };
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie = create(shared, BYTES, ONECOPY_REGION_READ), copied;
	struct onecopy_piece piece = { (uintptr_t)own, BYTES };
	bool taken = false;

	REFUSED(copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 1 << 20, &copied), EINVAL);
	/* A process that does not run for a while finds its copy ended, and begins a second one. */
	for (int i = 0; i < 50 && !taken; i++) {
		CHECK(!copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 3, &copied));
		/* The kernel knows by itself. */
		word[3] = 0;
		taken = copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 3, &copied) == -1;
		CHECK(!taken || errno == EBUSY);
		while (word[3] != ONECOPY_STATUS_DONE)
			usleep(1000);
	}
	CHECK(taken);
	CHECK(!copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 3, &copied));
	/* The region is used up to its end, though nobody finds it any more. */
	CHECK(!destroy(cookie));
	CHECK(await_word(&word[3]) == ONECOPY_STATUS_DONE);
	REFUSED(copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 3, &copied), ENOENT);
	CHECK(!word[3]);
}

/* A word that is taken as soon as it may be tells of the copy that took it, not of the one before.
 */
static void a_word_is_taken_again(void)
{
	enum { BYTES = 8192 };
	const uint32_t copies = fuzz_seconds < LONG_RUN ? 5000 : 20000;
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie = create(shared, BYTES, ONECOPY_REGION_READ), copied;
	struct onecopy_piece piece = { (uintptr_t)own, BYTES };

	for (uint32_t i = 0; i < copies; i++) {
		memcpy(shared + BYTES - sizeof(i), &i, sizeof(i));
		while (copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, 3, &copied))
			CHECK(errno == EBUSY);
		if (i % 2) {
			CHECK(await_word(&word[3]) == ONECOPY_STATUS_DONE);
			CHECK(!memcmp(own + BYTES - sizeof(i), &i, sizeof(i)));
		}
	}
	CHECK(await_word(&word[3]) == ONECOPY_STATUS_DONE);
}

/* Its file and its memory go while a copy is under way. */
static void closed_in_the_middle(void)
{
	enum { BYTES = 16 << 20 };
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t pinned = counters().pages_pinned_now, cookie;

	for (int i = 0; i < 20; i++) {
		cookie = create(shared, BYTES, ONECOPY_REGION_READ);
		IN_CHILD({
			struct onecopy_piece piece = { (uintptr_t)own, BYTES };
			uint64_t copied;

			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			map_words();
			for (unsigned int k = 1; k < 4; k++)
				CHECK(!copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_ASYNC, k,
						   &copied));
			usleep((useconds_t)i * 500);
			if (i % 2)
				munmap(own, BYTES);
		});
		CHECK(!destroy(cookie));
	}
	CHECK(pinned_becomes(pinned));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct test tests[] = {
	TEST(both_directions),
	TEST(parts),
	TEST(vectors),
	TEST(region_to_region),
	TEST(region_to_region_by_all),
	TEST(memory_ends_in_the_middle),
	TEST(rights),
	TEST(whose_it_is),
	TEST(bounds),
	TEST(single_use),
	TEST(single_use_by_all),
	TEST(single_use_of_one),
	TEST(by_a_thread_of_the_node),
	TEST(structures),
	TEST(nothing_else_is_returned),
	TEST(words),
	TEST(files),
	TEST(in_order),
	TEST(a_word_is_taken),
	TEST(a_word_is_taken_again),
	TEST(closed_in_the_middle),
	NO_MORE_TESTS,
};

static unsigned int passed, failed;

static bool is_asked_for(const char *name, char *const *asked)
{
	if (!*asked)
		return true;
	while (*asked && strcmp(*asked, name))
		asked++;
	return *asked;
}

static void run(const struct test *test, char *const *asked)
{
	for (; test->name; test++) {
		uint64_t begin = now_ns();
		pid_t child;
		int status;

		if (!is_asked_for(test->name, asked))
			continue;
		fflush(stdout);
		child = fork();
		if (!child) {
			alarm(120 + 2 * (unsigned int)fuzz_seconds);
			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			CHECK(device >= 0);
			test->run();
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		/* The next test counts from there. */
		if (!pinned_becomes(0)) {
			printf("  %llu pages stay pinned\n",
			       (unsigned long long)counters().pages_pinned_now);
			status |= 1;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == LEFT_OUT) {
			printf("left out  %s\n", test->name);
		} else if (status) {
			printf("FAILED  %s\n", test->name);
			failed++;
		} else {
			printf("ok      %s: %.1f s\n", test->name,
			       1e-9 * (double)(now_ns() - begin));
			passed++;
		}
	}
}

int main(int argc, char **argv)
{
	char *const *asked = argv + (argc > 2 ? 2 : argc);

	if (argc > 1)
		fuzz_seconds = atoi(argv[1]);
	device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0);
	run(map_tests, asked);
	run(allocation_tests, asked);
	run(engine_tests, asked);
	run(graph_tests, asked);
	run(tests, asked);
	run(memory_tests, asked);
	run(hostile_tests, asked);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
