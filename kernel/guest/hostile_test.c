/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Dual BSD/GPL. Calls at random, from several processes at once, and processes that are killed. */
#include "calls.h"

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Words that mean something, and words that do not. */
static uint64_t odd_word(uint64_t *state, const uint64_t *known, unsigned int count)
{
	switch (next_random(state) % 6) {
	case 0:
		return 0;
	case 1:
		return next_random(state) % 32;
	case 2:
		return next_random(state);
	case 3:
		return UINT64_MAX - next_random(state) % 4097;
	default:
		return known[next_random(state) % count];
	}
}

/* The table of uapi/linux/onecopy.h. */
static bool is_told(int error)
{
	static const int told[] = { E2BIG,	EACCES, EAGAIN,		 EBADF,	   EBUSY,
				    EEXIST,	EFAULT, EINTR,		 EINVAL,   ENFILE,
				    ENOENT,	ENOMEM, ENOTCONN,	 ENOTSOCK, ENOTTY,
				    EOPNOTSUPP, EPERM,	EPROTONOSUPPORT, ERANGE,   ESTALE };

	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
		if (told[i] == error)
			return true;
	return false;
}

static void throw_calls(uint64_t state, time_t until)
{
	static const unsigned long calls[] = { ONECOPY_REGION_CREATE, ONECOPY_REGION_DESTROY,
					       ONECOPY_COPY,	      ONECOPY_COPY,
					       ONECOPY_MAP,	      ONECOPY_MAP,
					       ONECOPY_NOTIFY,	      ONECOPY_COUNTERS };
	uint8_t *place = memory(64 * PAGE);
	struct onecopy_piece pieces[8];
	uint64_t known[32] = { (uintptr_t)place, (uintptr_t)pieces };
	uint64_t words[16];
	uint32_t *halves = (uint32_t *)words;
	unsigned int cookies = 2;
	struct onecopy_piece mapped = { 0, 0 };

	while (time(NULL) < until) {
		unsigned long call = calls[next_random(&state) % 8];

		for (int i = 0; i < 8; i++)
			pieces[i] = (struct onecopy_piece){ (uintptr_t)place + next_random(&state) %
										       (64 * PAGE),
							    next_random(&state) % (4 * PAGE) };
		/* By it the kernel misses pages of a mapping. */
		if (mapped.len && next_random(&state) % 2)
			pieces[0] = mapped;
		/* So that some regions may be mapped. */
		if (next_random(&state) % 2)
			for (int i = 0; i < 8; i++)
				pieces[i] = (struct onecopy_piece){ pieces[i].addr & -PAGE,
								    pieces[i].len & -PAGE };
		for (int i = 0; i < 16; i++)
			words[i] = i >= (int)_IOC_SIZE(call) / 8 && next_random(&state) % 8 ?
					   0 :
					   odd_word(&state, known, cookies);
		/* Shorter and longer ones, too, and what no structure can be. */
		halves[0] = _IOC_SIZE(call);
		if (!(next_random(&state) % 8))
			halves[0] = (uint32_t)next_random(&state) %
				    (next_random(&state) % 4 ? sizeof(words) + 1 : UINT32_MAX);
		halves[1] = (uint32_t)next_random(&state) % 32;
		/* Often enough what is right in all but one word. */
		if (call == ONECOPY_REGION_CREATE && next_random(&state) % 2) {
			words[1] = (uintptr_t)pieces;
			words[2] = 1 + next_random(&state) % 8;
			words[3] = 0;
		} else if (call == ONECOPY_COPY && next_random(&state) % 2) {
			uint32_t count = 1 + (uint32_t)next_random(&state) % 4;

			words[1] = known[next_random(&state) % cookies];
			words[2] = next_random(&state) % PAGE;
			words[3] = 0;
			for (uint32_t i = 0; i < count; i++)
				words[3] += pieces[i].len;
			words[4] = (uintptr_t)pieces;
			halves[10] = count;
			halves[11] = halves[1] & ONECOPY_COPY_ASYNC ? 1 + count : 0;
			words[6] = words[7] = words[8] = 0;
			halves[1] &= ~(uint32_t)ONECOPY_COPY_REGION;
		} else if (call == ONECOPY_MAP && next_random(&state) % 4) {
			words[1] = known[next_random(&state) % cookies];
			words[2] = next_random(&state) % 2 * PAGE;
			words[3] = (1 + next_random(&state) % 4) * PAGE;
			words[4] = 0;
			halves[1] %= 2;
		}
		if (ioctl(device, call, words)) {
			CHECK(is_told(errno));
		} else if (call == ONECOPY_REGION_CREATE) {
			if (cookies == 32)
				cookies = 2;
			known[cookies++] = words[3];
		} else if (call == ONECOPY_MAP) {
			if (mapped.len)
				munmap((void *)(uintptr_t)mapped.addr, mapped.len);
			mapped = (struct onecopy_piece){ words[4], words[3] };
		}
		if (!(next_random(&state) % 64))
			madvise(place + next_random(&state) % 63 * PAGE, PAGE, MADV_DONTNEED);
		if (!(next_random(&state) % 512)) {
			close(device);
			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			map_words();
		}
	}
}

static void random_calls(void)
{
	uint64_t pinned = counters().pages_pinned_now;
	time_t until = time(NULL) + fuzz_seconds;
	pid_t child[4];
	int status;

	/* Copies that overlap are the caller's to blame, and no fault of the module's. */
	if (!access(DMA_FILTER, F_OK))
		write_to(DMA_FILTER, "nobody");
	use_engines(2);
	for (int i = 0; i < 4; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		if (child[i])
			continue;
		device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
		map_words();
		throw_calls(0x9e3779b97f4a7c15ull * (uint64_t)(i + 1), until);
		_exit(0);
	}
	/* Half of them are killed wherever they are. */
	for (int i = 0; i < 2; i++) {
		sleep((unsigned int)fuzz_seconds / 2);
		kill(child[i], SIGKILL);
		CHECK(waitpid(child[i], &status, 0) == child[i]);
		CHECK(WIFSIGNALED(status) || !WEXITSTATUS(status));
	}
	for (int i = 2; i < 4; i++)
		CHECK(child_succeeds(child[i]));
	CHECK(pinned_becomes(pinned));
	use_engines(0);
}

/* Copiers that are killed at any moment, of a process that is, too. */
static void killed(void)
{
	enum { BYTES = 4 << 20 };
	const int rounds = fuzz_seconds < LONG_RUN ? 40 : 200;
	uint64_t pinned = counters().pages_pinned_now;
	uint8_t *shared = memory(BYTES), *own = memory(BYTES);
	uint64_t *cookie =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int round = 0; round < rounds; round++) {
		pid_t owner, copier;

		*cookie = 0;
		owner = fork();
		if (!owner) {
			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			__atomic_store_n(
				cookie,
				create(shared, BYTES, ONECOPY_REGION_READ | ONECOPY_REGION_WRITE),
				__ATOMIC_RELEASE);
			pause();
		}
		copier = fork();
		if (!copier) {
			device = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
			while (!__atomic_load_n(cookie, __ATOMIC_ACQUIRE))
				sched_yield();
			for (unsigned int i = 0;; i++)
				copy(*cookie, 0, own, BYTES,
				     i % 2 | (i % 3 ? 0 : ONECOPY_COPY_KTHREAD));
		}
		usleep(20000 + (useconds_t)round % 40 * 1700);
		kill(round % 2 ? owner : copier, SIGKILL);
		usleep((useconds_t)round % 40 * 300);
		kill(round % 2 ? copier : owner, SIGKILL);
		CHECK(waitpid(owner, NULL, 0) == owner && waitpid(copier, NULL, 0) == copier);
	}
	CHECK(pinned_becomes(pinned));
}

/* Who waits for a thread's turn and is killed does not wait for those before it. */
static void killed_behind_others(void)
{
	enum { JOBS = 1000 };
	const size_t bytes = 1024 * PAGE;
	volatile uint32_t *word = map_words();
	uint64_t from = create(memory(bytes), bytes, ONECOPY_REGION_READ);
	uint64_t to = create(memory(bytes), bytes, ONECOPY_REGION_WRITE);
	uint64_t queued = counters().copies_by_thread + JOBS + 1;
	int begin[2];
	char byte = 0;
	pid_t child;

	CHECK(!pipe(begin));
	child = fork();
	if (!child) {
		if (read(begin[0], &byte, 1) == 1)
			copy(from, 0, memory(PAGE), PAGE, ONECOPY_COPY_KTHREAD);
		_exit(0);
	}
	for (unsigned int i = 1; i <= JOBS; i++) {
		struct onecopy_copy call = { .size = sizeof(call),
					     .flags = ONECOPY_COPY_REGION | ONECOPY_COPY_ASYNC,
					     .cookie = from,
					     .length = bytes,
					     .local_cookie = to,
					     .status = i };

		CHECK(!ioctl(device, ONECOPY_COPY, &call));
	}
	CHECK(write(begin[1], &byte, 1) == 1);
	while (counters().copies_by_thread < queued)
		usleep(100);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(word[JOBS] == ONECOPY_STATUS_PENDING);
	/* The others go on. */
	for (unsigned int i = 1; i < JOBS && *word != ONECOPY_STATUS_PENDING; i++)
		word++;
	CHECK(await_word(word) == ONECOPY_STATUS_DONE);
}

const struct test hostile_tests[] = {
	TEST(killed),
	TEST(killed_behind_others),
	TEST(random_calls),
	NO_MORE_TESTS,
};
