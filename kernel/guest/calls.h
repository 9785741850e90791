/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Dual BSD/GPL. What the tests of /dev/onecopy have in common. */
#ifndef ONECOPY_GUEST_CALLS_H
#define ONECOPY_GUEST_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../uapi/linux/onecopy.h"

#define PAGE ((size_t)4096)
#define WORDS 16

extern int device; /* the open file of the test that runs */

/* Of random calls; from so many on other tests do more, too. */
#define LONG_RUN 60
extern int fuzz_seconds;

struct test {
	const char *name;
	void (*run)(void);
};

/* clang-format off */
#define TEST(function) { #function, function }
#define NO_MORE_TESTS { NULL, NULL }
/* clang-format on */

extern const struct test map_tests[], allocation_tests[], engine_tests[], graph_tests[],
	memory_tests[], hostile_tests[];

/* Two ends of a connection over the loopback device; graph_test.c. */
void tcp_pair(int pair[2]);

#define LEFT_OUT 77

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("  line %d: not so: %s (errno %d)\n", __LINE__, #condition, errno); \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
/* A call fails with this errno. */
#define REFUSED(call, why) CHECK((call) == -1 && errno == (why))

/* Ends the test, which this kernel cannot run. */
static inline void leave_out(const char *why)
{
	printf("  %s\n", why);
	fflush(stdout);
	_exit(LEFT_OUT);
}

static inline void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) > 0);
	close(fd);
}

static inline void set_parameter(const char *module, const char *name, unsigned int value)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	snprintf(text, sizeof(text), "%u", value);
	write_to(path, text);
}

/* So many channels of DMA engines at most. */
static inline void use_engines(unsigned int channels)
{
	set_parameter("onecopy", "dma_channels", channels);
}

/* CONFIG_DMA_API_DEBUG talks of this driver alone. */
#define DMA_FILTER "/sys/kernel/debug/dma-api/driver_filter"

static inline uint8_t *memory(size_t bytes)
{
	void *place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(place != MAP_FAILED);
	/* Before that it is the kernel's page of zeros. */
	memset(place, 0, bytes);
	return place;
}

static inline void fill(uint8_t *to, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(i * 31 + i / 251 + seed);
}

static inline bool is_filled(const uint8_t *from, size_t bytes, unsigned int seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i] != (uint8_t)(i * 31 + i / 251 + seed))
			return false;
	return true;
}

static inline int create_of(int fd, const struct onecopy_piece *pieces, unsigned int count,
			    unsigned int flags, uint64_t *cookie)
{
	struct onecopy_region_create call = { .size = sizeof(call),
					      .flags = flags,
					      .pieces = (uintptr_t)pieces,
					      .piece_count = count };
	int result = ioctl(fd, ONECOPY_REGION_CREATE, &call);

	*cookie = call.cookie;
	return result;
}

static inline uint64_t create(void *place, size_t bytes, unsigned int flags)
{
	struct onecopy_piece piece = { (uintptr_t)place, bytes };
	uint64_t cookie;

	CHECK(!create_of(device, &piece, 1, flags, &cookie));
	CHECK(cookie);
	return cookie;
}

static inline int destroy(uint64_t cookie)
{
	struct onecopy_region_destroy call = { .size = sizeof(call), .cookie = cookie };

	return ioctl(device, ONECOPY_REGION_DESTROY, &call);
}

static inline int copy_pieces(uint64_t cookie, uint64_t offset, const struct onecopy_piece *pieces,
			      unsigned int count, unsigned int flags, unsigned int status,
			      uint64_t *copied)
{
	struct onecopy_copy call = { .size = sizeof(call),
				     .flags = flags,
				     .cookie = cookie,
				     .offset = offset,
				     .pieces = (uintptr_t)pieces,
				     .piece_count = count,
				     .status = status };
	int result;

	for (unsigned int i = 0; i < count; i++)
		call.length += pieces[i].len;
	result = ioctl(device, ONECOPY_COPY, &call);
	*copied = call.copied;
	return result;
}

/* All or -1. */
static inline int copy(uint64_t cookie, uint64_t offset, void *place, size_t bytes,
		       unsigned int flags)
{
	struct onecopy_piece piece = { (uintptr_t)place, bytes };
	uint64_t copied;
	int result = copy_pieces(cookie, offset, &piece, 1, flags, 0, &copied);

	CHECK(result || copied == bytes);
	return result;
}

static inline struct onecopy_counters counters(void)
{
	struct onecopy_counters call = { .size = sizeof(call) };

	CHECK(!ioctl(device, ONECOPY_COUNTERS, &call));
	CHECK(call.version == ONECOPY_VERSION);
	return call;
}

static inline volatile uint32_t *map_words(void)
{
	void *place =
		mmap(NULL, WORDS * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, device, 0);

	CHECK(place != MAP_FAILED);
	return place;
}

static inline uint32_t await_word(volatile uint32_t *word)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == ONECOPY_STATUS_PENDING)
		usleep(100);
	return *word;
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What a child says by its exit status. */
static inline bool child_succeeds(pid_t child)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* In a child: it goes on without the regions of this process's file. */
#define IN_CHILD(...)                          \
	do {                                   \
		pid_t child_ = fork();         \
		CHECK(child_ >= 0);            \
		if (!child_) {                 \
			__VA_ARGS__;           \
			_exit(0);              \
		}                              \
		CHECK(child_succeeds(child_)); \
	} while (0)

static inline int map_at(uint64_t cookie, uint64_t offset, uint64_t length, unsigned int flags,
			 void *addr, uint8_t **to)
{
	struct onecopy_map call = { .size = sizeof(call),
				    .flags = flags,
				    .cookie = cookie,
				    .offset = offset,
				    .length = length,
				    .addr = (uintptr_t)addr };
	int result = ioctl(device, ONECOPY_MAP, &call);

	*to = (uint8_t *)(uintptr_t)call.addr;
	return result;
}

/* As soon as nobody needs them any more. */
static inline bool pinned_becomes(uint64_t pages)
{
	uint64_t now = counters().pages_pinned_now, before = now;

	/* As long as it gets less: a busy machine's engines take their time. */
	for (int idle = 0; now != pages && idle < 1000; idle++) {
		usleep(10000);
		now = counters().pages_pinned_now;
		if (now != before)
			idle = 0;
		before = now;
	}
	return now == pages;
}

#endif
