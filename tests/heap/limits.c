/* SPDX-License-Identifier: BSD-3-Clause */
/* Where there is no arena, or not enough of one: the program goes on, and the reason is there. */
#include "check.h"
#include "support/refuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* A private heap works like any other. */
static void use_memory(void)
{
	for (size_t bytes = 10; bytes <= 100 * MIB; bytes *= 10) {
		char *memory = malloc(bytes);

		CHECK(memory);
		memset(memory, 1, bytes);
		free(memory);
	}
}

static void private_memory(void)
{
	CHECK(arena()->fd == -1 && !arena()->base && strlen(arena()->why) > 20);
	CHECK(!arena()->alloc(10, 64));
	use_memory();
}

/* As a launcher. What is asked for by alloc() is the arena's there, too. */
static void malloc_of_the_c_library(void)
{
	void *block = malloc(100), *shared;

	CHECK(block && !in_arena(block, 100));
	shared = arena()->alloc(100, 64);
	CHECK(shared && in_arena(shared, 100) && !in_arena(block, 100));
	arena()->free(shared);
	free(block);
	use_memory();
}

/* ONECOPY_HEAP_BYTES=128M */
static void exhausted(void)
{
	enum { BLOCKS = 100 };
	unsigned int inside = 0;
	char *block[BLOCKS];

	CHECK(arena()->bytes == 128 * MIB);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(3 * MIB);
		CHECK(block[i]);
		memset(block[i], i, 3 * MIB);
		inside += in_arena(block[i], 3 * MIB);
	}
	/* mimalloc 3 places eight in 32 MiB, and asks for a piece of 32 MiB at a time. */
	CHECK(inside >= 16 && inside < BLOCKS);
	CHECK(!arena()->alloc(100 * MIB, 64));
	for (int i = 0; i < BLOCKS; i++) {
		CHECK(block[i][0] == i && block[i][3 * MIB - 1] == i);
		free(block[i]);
	}
	use_memory();
}

static void small_address_space(void)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur == 2048 * MIB);
	CHECK(arena()->base && arena()->bytes <= 1024 * MIB);
	use_memory();
	/* Beyond what is left: refused, not crashed. */
	errno = 0;
	CHECK(!malloc(4096 * MIB) && errno == ENOMEM);
}

static void set(int resource, size_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	CHECK(!setrlimit((__rlimit_resource_t)resource, &limit));
}

static void limit_address_space(void)
{
	set(RLIMIT_AS, 2048 * MIB);
	again("small_address_space");
}

static void limit_no_address_space(void)
{
	/* Programs start in it, an arena does not fit. */
	set(RLIMIT_AS, 120 * MIB);
	again("private_small");
}

static void private_small(void)
{
	CHECK(arena()->fd == -1 && strstr(arena()->why, "ulimit -v"));
	free(malloc(1000));
}

static void limit_files(void)
{
	set(RLIMIT_FSIZE, 4096);
	again("private_memory");
}

static void limit_descriptors(void)
{
	closefrom(3);
	set(RLIMIT_NOFILE, 63);
	again("few_descriptors");
}

/* None is taken of those that the program may need itself. */
static void few_descriptors(void)
{
	use_memory();
	CHECK(arena()->fd == -1 && strstr(arena()->why, "ulimit -n"));
	for (int fd = 3; fd < 64; fd++)
		CHECK(fcntl(fd, F_GETFD) == -1);
}

static void without_memfd(void)
{
	CHECK(oct_refuse(SYS_memfd_create, EPERM));
	again("private_memory");
}

const struct scenario limit_scenarios[] = {
	{ "private_memory", private_memory },
	{ "malloc_of_the_c_library", malloc_of_the_c_library },
	{ "exhausted", exhausted },
	{ "small_address_space", small_address_space },
	{ "limit_address_space", limit_address_space },
	{ "limit_no_address_space", limit_no_address_space },
	{ "private_small", private_small },
	{ "limit_files", limit_files },
	{ "limit_descriptors", limit_descriptors },
	{ "few_descriptors", few_descriptors },
	{ "without_memfd", without_memfd },
	{ NULL, NULL },
};
