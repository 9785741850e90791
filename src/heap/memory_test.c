/* SPDX-License-Identifier: BSD-3-Clause */
/* oc_alloc() where libonecopy-heap.so is not preloaded: malloc stays what it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <onecopy/onecopy.h>
#include <pthread.h>

#include "heap/heap.h"
#include "support/test.h"

#define MIB ((size_t)1 << 20)

static bool in_arena(const void *memory, size_t bytes)
{
	const struct oci_arena *arena = oci_arena_self(true);
	uint64_t offset = (uint64_t)((const uint8_t *)memory - arena->base);

	return arena->base && offset >= OCI_ARENA_FIRST && offset < arena->bytes &&
	       bytes <= arena->bytes - offset;
}

TEST(malloc_stays_what_it_is)
{
	void *before = malloc(1000), *after;

	assert_non_null(oci_arena_self(true));
	assert_true(oci_arena_self(false) == oci_arena_self(true));
	after = malloc(1000);
	assert_false(in_arena(before, 1) || in_arena(after, 1));
	assert_int_equal(oc_is_shared(before) || oc_is_shared(after) || oc_is_shared(NULL), 0);
	free(before);
	free(after);
}

TEST(blocks_are_shared_aligned_and_apart)
{
	enum { BLOCKS = 200 };
	uint8_t *block[BLOCKS];

	for (size_t bytes = 0; bytes <= 100 * MIB; bytes = bytes * 5 + 1) {
		block[0] = oc_alloc(bytes);
		assert_true(in_arena(block[0], bytes));
		assert_int_equal(oc_is_shared(block[0]), 1);
		assert_int_equal((uintptr_t)block[0] % 64, 0);
		memset(block[0], 1, bytes);
		oc_free(block[0]);
	}
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = oc_alloc((size_t)i * 777);
		assert_non_null(block[i]);
		memset(block[i], i, (size_t)i * 777);
	}
	for (int i = 0; i < BLOCKS; i++) {
		for (size_t at = 0; at < (size_t)i * 777; at += 64)
			assert_int_equal(block[i][at], (uint8_t)i);
		oc_free(block[i]);
	}
	oc_free(NULL);
}

/* 64 MiB stay in the file, besides what mimalloc has begun to use. */
TEST(large_blocks_are_given_back)
{
	const struct oci_arena *arena = oci_arena_self(true);
	uint64_t before = arena->counts().used;
	uint8_t *big = oc_alloc(300 * MIB), *some[100];

	memset(big, 1, 300 * MIB);
	assert_true(arena->counts().used >= 300 * MIB);
	oc_free(big);
	assert_true(arena->counts().used <= before + 96 * MIB);
	for (int i = 0; i < 100; i++) {
		some[i] = oc_alloc(3 * MIB);
		memset(some[i], 1, 3 * MIB);
	}
	for (int i = 0; i < 100; i++)
		oc_free(some[i]);
	assert_true(arena->counts().used <= before + 96 * MIB);
}

#ifdef __SANITIZE_ADDRESS__
/* As malloc: the tests ask for more than there is. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
#endif

/* One that a program takes for each of its steps. */
TEST(large_block_that_comes_again_keeps_its_pages)
{
	const struct oci_arena *arena = oci_arena_self(true);
	uint8_t *first = oc_alloc(38 * MIB), *again, *smaller, *larger;
	uint64_t given_back, used;

	memset(first, 1, 38 * MIB);
	oc_free(first);
	given_back = arena->counts().given_back;
	used = arena->counts().used;
	for (size_t i = 0; i < 20; i++) {
		again = oc_alloc(38 * MIB - i * 4096);
		assert_ptr_equal(again, first);
		oc_free(again);
	}
	assert_int_equal(arena->counts().given_back, given_back);
	assert_int_equal(arena->counts().used, used);
	/* It is for a block of about its length. */
	smaller = oc_alloc(8 * MIB);
	larger = oc_alloc(70 * MIB);
	assert_true(in_arena(smaller, 8 * MIB) && in_arena(larger, 70 * MIB));
	assert_true(smaller + 8 * MIB <= first || smaller >= first + 38 * MIB);
	assert_true(larger + 70 * MIB <= first || larger >= first + 38 * MIB);
	again = oc_alloc(38 * MIB);
	assert_ptr_equal(again, first);
	oc_free(again);
	oc_free(smaller);
	oc_free(larger);
}

TEST(what_is_too_large_is_private)
{
	size_t bytes = oci_arena_self(true)->bytes;
	void *memory = oc_alloc(bytes);

	/* NULL where the machine does not overcommit that much. */
	if (memory)
		assert_false(in_arena(memory, bytes));
	oc_free(memory);
}

static void *give(void *argument)
{
	uint8_t **block = argument;

	oc_free(block[0]);
	block[0] = oc_alloc(5000);
	memset(block[0], 7, 5000);
	return NULL;
}

TEST(blocks_outlive_their_thread)
{
	for (int i = 0; i < 50; i++) {
		uint8_t *block = oc_alloc(5000);
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, give, &block), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_true(in_arena(block, 5000));
		assert_int_equal(block[4999], 7);
		oc_free(block);
	}
}

static int in_child(uint8_t *block, uint8_t *large)
{
	uint8_t *own;

	if (block[99] != 1 || large[4 * MIB] != 2)
		return 1;
	memset(block, 9, 100);
	own = oc_alloc(3 * MIB);
	if (!own || !in_arena(own, 3 * MIB) || in_arena(block, 1))
		return 2;
	if (!oc_is_shared(own) || oc_is_shared(block))
		return 3;
	memset(own, 3, 3 * MIB);
	oc_free(block);
	oc_free(large);
	oc_free(own);
	return 0;
}

TEST(a_forked_child_has_a_copy_and_an_arena_of_its_own)
{
	uint8_t *block = oc_alloc(100), *large = oc_alloc(5 * MIB);
	int status = -1;
	pid_t child;

	memset(block, 1, 100);
	memset(large, 2, 5 * MIB);
	child = fork();
	if (!child)
		_exit(in_child(block, large));
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	assert_int_equal(status, 0);
	assert_int_equal(block[99], 1);
	oc_free(block);
	oc_free(large);
}

int main(void)
{
	if (!oci_arena_self(true)) {
		fprintf(stderr, "skipped: libonecopy-heap.so was not built (libmimalloc-dev)\n");
		return 77;
	}
	return oct_test_run(NULL, NULL);
}
