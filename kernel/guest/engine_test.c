/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Copies by DMA engines (ONECOPY_COPY_DMA): of driver/fake_engine.c, which fails in
 * each way in which one can, or of a real one (arm64.sh), whose driver can lose its interrupts.
 */
#include "calls.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>

#define BOTH (ONECOPY_REGION_READ | ONECOPY_REGION_WRITE)
#define FAKE "/sys/module/fake_engine/parameters/"
#define REAL_FAULT "/sys/module/zynqmp_dma/parameters/loses_interrupts"
#define MANY 64

static bool is_fake(void)
{
	return !access(FAKE "fault", F_OK);
}

static bool is_set(const char *path)
{
	char text[4] = "";
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return *text == 'Y';
}

static void set_fake(const char *name, unsigned int value)
{
	set_parameter("fake_engine", name, value);
}

/* Or the test cannot be run here. */
static void need_engines(unsigned int channels)
{
	DIR *folder = opendir("/sys/class/dma");
	struct dirent *entry = NULL;

	while (folder && (entry = readdir(folder)) && entry->d_name[0] == '.')
		;
	if (folder)
		closedir(folder);
	if (!entry)
		leave_out("there is no DMA engine");
	use_engines(channels);
}

/* ---- right bytes ----------------------------------------------------------------------------- */

/* Every offset and length around the ends of pages and of lines of caches. */
static void engine_parts(void)
{
	static const unsigned int ways[] = { ONECOPY_COPY_DMA,
					     ONECOPY_COPY_DMA | ONECOPY_COPY_KTHREAD };
	static const size_t places[] = { 0, 1, 63, 64, 128, 4095, 4096, 4097, 4224, 8192, 12000 };
	enum { PLACES = sizeof(places) / sizeof(*places) };
	size_t bytes = 4 * PAGE;
	uint8_t *shared = memory(bytes), *own = memory(bytes);
	uint64_t cookie = create(shared, bytes, BOTH);
	struct onecopy_counters before, after;

	need_engines(MANY);
	before = counters();
	CHECK(before.channels == MANY);
	for (unsigned int way = 0; way < 2; way++)
		for (unsigned int a = 0; a < PLACES; a++)
			for (unsigned int b = a + 1; b < PLACES; b++) {
				size_t from = places[a], length = places[b] - from;
				uint8_t *to = own + (a + b) % 3 * 64 + (a * b) % 2 * 7 + 1;

				fill(shared, bytes, way);
				memset(own, 0xee, bytes);
				CHECK(!copy(cookie, from, to, length, ways[way]));
				CHECK(!memcmp(to, shared + from, length));
				CHECK(to[-1] == 0xee && to[length] == 0xee);
				memset(shared, 0xee, bytes);
				CHECK(!copy(cookie, from, to, length,
					    ways[way] | ONECOPY_COPY_WRITE));
				CHECK(!memcmp(to, shared + from, length));
				CHECK(!from || shared[from - 1] == 0xee);
				CHECK(shared[from + length] == 0xee);
			}
	after = counters();
	CHECK(after.bytes_by_engine > before.bytes_by_engine);
	CHECK(after.engine_failures == before.engine_failures);
	use_engines(0);
	CHECK(!counters().channels);
	CHECK(!copy(cookie, 0, own, bytes, ONECOPY_COPY_DMA));
	CHECK(counters().bytes_by_engine == after.bytes_by_engine);
	CHECK(counters().engines_busy == after.engines_busy);
}

/* Many more pages than an engine has places, and pieces of any length. */
static void engine_vectors(void)
{
	enum { PIECES = 40, BYTES = 4 << 20 };
	struct onecopy_piece pieces[PIECES];
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie, copied, engines;
	size_t at = 0;

	need_engines(MANY);
	fill(shared, BYTES, 1);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (size_t i = 0; i < PIECES; i++) {
		size_t length = i % 7 == 3 ? 0 : 1 + i * 99991 % (BYTES / PIECES - 1);

		/* One at least is for an engine that takes only multiples of something. */
		if (!i)
			length = 2 * PAGE;

		pieces[i] = (struct onecopy_piece){ (uintptr_t)own + i * (BYTES / PIECES), length };
	}
	engines = counters().bytes_by_engine;
	CHECK(!copy_pieces(cookie, 128, pieces, PIECES, ONECOPY_COPY_DMA, 0, &copied));
	for (int i = 0; i < PIECES; at += pieces[i++].len)
		CHECK(!memcmp((void *)(uintptr_t)pieces[i].addr, shared + 128 + at, pieces[i].len));
	CHECK(copied == at && counters().bytes_by_engine > engines);
	/* Whole pages are the engine's all. */
	engines = counters().bytes_by_engine;
	CHECK(!copy(cookie, 0, own, BYTES, ONECOPY_COPY_DMA));
	CHECK(is_filled(own, BYTES, 1));
	CHECK(counters().bytes_by_engine == engines + BYTES);
	use_engines(0);
}

static void engine_between_regions(void)
{
	size_t bytes = 64 * PAGE;
	uint8_t *place = memory(2 * bytes);
	uint64_t from = create(place, bytes, ONECOPY_REGION_READ), engines;
	struct onecopy_copy call = { .size = sizeof(call),
				     .flags = ONECOPY_COPY_DMA | ONECOPY_COPY_REGION,
				     .cookie = from,
				     .offset = 4096,
				     .length = bytes - 2 * PAGE,
				     .local_cookie =
					     create(place + bytes, bytes, ONECOPY_REGION_WRITE),
				     .local_offset = 128 };

	need_engines(MANY);
	fill(place, bytes, 2);
	engines = counters().copies_by_engine;
	CHECK(!ioctl(device, ONECOPY_COPY, &call));
	CHECK(!memcmp(place + bytes + 128, place + 4096, bytes - 2 * PAGE));
	CHECK(counters().copies_by_engine == engines + 1);
	use_engines(0);
}

/* ---- in order -------------------------------------------------------------------------------- */

/* Some by the engine, some by the thread: each word, all before it, and no byte later. */
static void engine_in_order(void)
{
	enum { BYTES = 8 << 20, PART = BYTES / WORDS };
	volatile uint32_t *word = map_words();
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie, copied, rings = 0, engines;
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = eventfd(0, EFD_NONBLOCK) };
	struct pollfd poll_event = { .fd = notify.fd, .events = POLLIN };

	need_engines(MANY);
	CHECK(!ioctl(device, ONECOPY_NOTIFY, &notify));
	fill(shared, BYTES, 3);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	engines = counters().copies_by_engine;
	for (unsigned int i = 1; i < WORDS; i++) {
		struct onecopy_piece piece = { (uintptr_t)own + (i - 1) * PART, PART };
		unsigned int flags = ONECOPY_COPY_ASYNC | (i % 3 ? ONECOPY_COPY_DMA : 0);

		CHECK(!copy_pieces(cookie, (i - 1) * PART, &piece, 1, flags, i, &copied));
		CHECK(word[i] != 0);
	}
	for (unsigned int i = WORDS - 1; i > 0; i--) {
		CHECK(await_word(&word[i]) == ONECOPY_STATUS_DONE);
		CHECK(!memcmp(own + i * PART - 16, shared + i * PART - 16, 16));
		for (unsigned int k = 1; k < i; k++)
			CHECK(word[k] == ONECOPY_STATUS_DONE);
	}
	CHECK(is_filled(own, PART * (WORDS - 1), 3));
	for (uint64_t sum = 0; sum < WORDS - 1; sum += rings) {
		CHECK(poll(&poll_event, 1, 5000) == 1);
		CHECK(read(notify.fd, &rings, sizeof(rings)) == sizeof(rings));
	}
	CHECK(counters().copies_by_engine == engines + 10);
	use_engines(0);
}

/* ---- busy ------------------------------------------------------------------------------------ */

/* One channel, four processes: who finds it taken copies by the CPU. */
static void engines_are_busy(void)
{
	enum { BYTES = 4 << 20, ROUNDS = 12, COPIERS = 4 };
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	struct onecopy_counters before, after;
	uint64_t cookie;
	pid_t child[COPIERS];

	need_engines(MANY);
	/* Others may be kept from before. */
	before = counters();
	use_engines((unsigned int)before.engine_failures + 1);
	if (is_fake())
		set_fake("delay_us", 50);
	fill(shared, BYTES, 4);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (int i = 0; i < COPIERS; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i])
			continue;
		for (int round = 0; round < ROUNDS; round++) {
			memset(own, 0, BYTES);
			CHECK(!copy(cookie, 0, own, BYTES,
				    ONECOPY_COPY_DMA | (round % 2 ? ONECOPY_COPY_KTHREAD : 0)));
			CHECK(is_filled(own, BYTES, 4));
		}
		_exit(0);
	}
	for (int i = 0; i < COPIERS; i++)
		CHECK(child_succeeds(child[i]));
	if (is_fake())
		set_fake("delay_us", 0);
	after = counters();
	printf("        %llu of %d copies found no channel free\n",
	       (unsigned long long)(after.engines_busy - before.engines_busy), COPIERS * ROUNDS);
	CHECK(after.engines_busy > before.engines_busy);
	CHECK(after.copies_by_engine > before.copies_by_engine);
	CHECK(after.engine_failures == before.engine_failures);
	use_engines(0);
}

static void engine_with_few_places(void)
{
	enum { BYTES = 1 << 20 };
	static const unsigned int places[] = { 1, 3, 31 };
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t cookie, failures = counters().engine_failures;

	need_engines(MANY);
	if (!is_fake())
		leave_out("the engine has the places that it has");
	fill(shared, BYTES, 5);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (unsigned int i = 0; i < 3; i++) {
		set_fake("places", places[i]);
		memset(own, 0, BYTES);
		CHECK(!copy(cookie, 0, own, BYTES, ONECOPY_COPY_DMA));
		CHECK(is_filled(own, BYTES, 5));
	}
	set_fake("places", 32);
	CHECK(counters().engine_failures == failures);
	use_engines(0);
}

/* ---- failing --------------------------------------------------------------------------------- */

/* With the fault: right bytes, the word says so, and the next copy has a channel: another one, if
 * this one is broken. */
static void fails_in(volatile uint32_t *word, void (*fault)(bool), bool breaks)
{
	enum { BYTES = 1 << 20 };
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	struct onecopy_piece piece = { (uintptr_t)own, BYTES };
	struct onecopy_counters before, after;
	uint64_t cookie, copied;

	fill(shared, BYTES, 6);
	cookie = create(shared, BYTES, ONECOPY_REGION_READ);
	for (unsigned int async = 0; async < 2; async++) {
		memset(own, 0, BYTES);
		before = counters();
		fault(true);
		if (async) {
			CHECK(!copy_pieces(cookie, 0, &piece, 1,
					   ONECOPY_COPY_DMA | ONECOPY_COPY_ASYNC, 1, &copied));
			CHECK(await_word(&word[1]) == ONECOPY_STATUS_DONE);
			word[1] = 0;
		} else {
			CHECK(!copy(cookie, 0, own, BYTES, ONECOPY_COPY_DMA));
		}
		/* One that was not stopped writes wrong bytes now. */
		usleep(50000);
		fault(false);
		CHECK(is_filled(own, BYTES, 6));
		after = counters();
		CHECK(after.engine_failures == before.engine_failures + breaks);
		CHECK(after.engines_busy == before.engines_busy + !breaks);
		memset(own, 0, BYTES);
		CHECK(!copy(cookie, 0, own, BYTES, ONECOPY_COPY_DMA));
		CHECK(is_filled(own, BYTES, 6));
		after = counters();
		CHECK(after.engine_failures == before.engine_failures + breaks);
		CHECK(after.bytes_by_engine >= before.bytes_by_engine + BYTES);
		CHECK(after.failures == before.failures);
	}
	CHECK(!destroy(cookie));
	munmap(shared, BYTES);
	munmap(own, BYTES);
}

static unsigned int fake_fault;

static void fake(bool on)
{
	set_fake("fault", on ? fake_fault : 0);
}

static void real(bool on)
{
	write_to(REAL_FAULT, on ? "1" : "0");
}

/* In the middle, from its first piece on, and when all its places have been used once. */
static void engine_fails(void)
{
	static const unsigned int after[] = { 5, 0, 40 };
	const unsigned int kinds = fuzz_seconds < LONG_RUN ? 1 : 3;
	volatile uint32_t *word = map_words();

	need_engines(MANY);
	if (!is_fake()) {
		fails_in(word, real, true);
		use_engines(0);
		return;
	}
	/* Long enough that one which is not stopped writes behind the CPU. */
	set_fake("delay_us", 300);
	/* Without a descriptor, and not submitted, nothing has begun. */
	for (fake_fault = 1; fake_fault <= 4; fake_fault++)
		for (unsigned int i = 0; i < kinds; i++) {
			set_fake("fault_after", after[i]);
			fails_in(word, fake, fake_fault > 2);
		}
	set_fake("delay_us", 0);
	use_engines(0);
}

/* ---- who dies, what goes --------------------------------------------------------------------- */

static void engine_killed(void)
{
	enum { BYTES = 4 << 20 };
	const int rounds = fuzz_seconds < LONG_RUN ? 10 : 100;
	uint64_t pinned = counters().pages_pinned_now;
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t *cookie =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	need_engines(MANY);
	if (is_fake())
		set_fake("delay_us", 20);
	for (int round = 0; round < rounds; round++) {
		pid_t owner, copier;

		*cookie = 0;
		owner = fork();
		if (!owner) {
			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			__atomic_store_n(cookie, create(shared, BYTES, BOTH), __ATOMIC_RELEASE);
			pause();
		}
		copier = fork();
		if (!copier) {
			struct onecopy_piece piece = { (uintptr_t)own, BYTES };
			uint64_t copied;

			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			map_words();
			while (!__atomic_load_n(cookie, __ATOMIC_ACQUIRE))
				sched_yield();
			for (unsigned int i = 0;; i++) {
				copy(*cookie, 0, own, BYTES, i % 2 | ONECOPY_COPY_DMA);
				copy_pieces(*cookie, 0, &piece, 1,
					    ONECOPY_COPY_DMA | ONECOPY_COPY_ASYNC, 1 + i % 8,
					    &copied);
			}
		}
		usleep(20000 + (useconds_t)round % 10 * 1700);
		kill(round % 2 ? owner : copier, SIGKILL);
		usleep((useconds_t)round % 10 * 300);
		kill(round % 2 ? copier : owner, SIGKILL);
		CHECK(waitpid(owner, NULL, 0) == owner && waitpid(copier, NULL, 0) == copier);
	}
	if (is_fake())
		set_fake("delay_us", 0);
	CHECK(pinned_becomes(pinned));
	use_engines(0);
}

/* Both sides are unmapped while it copies, and the pages stay its own until it has. */
static void memory_goes_under_an_engine(void)
{
	enum { BYTES = 4 << 20 };
	uint64_t pinned = counters().pages_pinned_now, cookie, copied;
	volatile uint32_t *word = map_words();

	need_engines(MANY);
	if (is_fake())
		set_fake("delay_us", 20);
	for (int round = 0; round < 8; round++) {
		uint8_t *shared = memory(BYTES), *own = memory(BYTES);
		struct onecopy_piece piece = { (uintptr_t)own, BYTES };

		cookie = create(shared, BYTES, ONECOPY_REGION_READ);
		word[1] = 0;
		CHECK(!copy_pieces(cookie, 0, &piece, 1, ONECOPY_COPY_DMA | ONECOPY_COPY_ASYNC, 1,
				   &copied));
		CHECK(!munmap(shared, BYTES) && !munmap(own, BYTES));
		/* It may not have begun. */
		CHECK(await_word(&word[1]) == ONECOPY_STATUS_DONE ||
		      word[1] == (ONECOPY_STATUS_FAILED | ESTALE));
	}
	if (is_fake())
		set_fake("delay_us", 0);
	CHECK(pinned_becomes(pinned));
	use_engines(0);
}

static unsigned int channels_in_use(void)
{
	DIR *folder = opendir("/sys/class/dma");
	struct dirent *entry;
	unsigned int count = 0;

	CHECK(folder);
	while ((entry = readdir(folder))) {
		char path[320], text[16] = "";
		int fd;

		snprintf(path, sizeof(path), "/sys/class/dma/%s/in_use", entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		CHECK(read(fd, text, sizeof(text) - 1) > 0);
		close(fd);
		count += atoi(text) > 0;
	}
	closedir(folder);
	return count;
}

/* What is allowed no more is others' at once. */
static void engines_are_given_back(void)
{
	uint8_t *place = memory(8 * PAGE);
	uint64_t cookie = create(place, 4 * PAGE, BOTH);
	unsigned int before;

	need_engines(0);
	before = channels_in_use();
	need_engines(MANY);
	CHECK(!copy(cookie, 0, place + 4 * PAGE, 4 * PAGE, ONECOPY_COPY_DMA));
	CHECK(channels_in_use() > before);
	use_engines(0);
	CHECK(channels_in_use() == before);
}

/* It could write when its pages are others' again. */
static void engine_that_cannot_be_stopped(void)
{
	uint8_t *place = memory(8 * PAGE);
	uint64_t cookie = create(place, 4 * PAGE, BOTH);
	struct onecopy_counters before, after;

	if (access(FAKE "stops", F_OK) || is_set(FAKE "stops"))
		leave_out("the engines can be stopped");
	need_engines(MANY);
	fill(place, 4 * PAGE, 6);
	before = counters();
	CHECK(!copy(cookie, 0, place + 4 * PAGE, 4 * PAGE, ONECOPY_COPY_DMA));
	CHECK(is_filled(place + 4 * PAGE, 4 * PAGE, 6));
	after = counters();
	CHECK(after.copies == before.copies + 1);
	CHECK(after.copies_by_engine == before.copies_by_engine);
	CHECK(after.bytes_by_engine == before.bytes_by_engine);
	CHECK(channels_in_use() == 0);
	use_engines(0);
}

const struct test engine_tests[] = {
	TEST(engine_parts),
	TEST(engine_vectors),
	TEST(engine_between_regions),
	TEST(engine_in_order),
	TEST(engines_are_busy),
	TEST(engine_with_few_places),
	TEST(engine_killed),
	TEST(memory_goes_under_an_engine),
	TEST(engine_fails),
	TEST(engines_are_given_back),
	TEST(engine_that_cannot_be_stopped),
	NO_MORE_TESTS,
};
