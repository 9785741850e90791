/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shelf asks of malloc and gives back to it is counted: the linker's --wrap. */
#include "base/shelf.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As shelf.c has it: so many are kept, none of more bytes; none has fewer. */
enum { KEPT = 16, KEPT_BYTES = 4 << 20, LEAST = 4 << 10 };
enum { SMALL = 100, LARGE = 1 << 20, BEYOND = KEPT_BYTES + 1, MANY = KEPT + 4 };

void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static void *live[64];
static bool no_memory;

static int live_blocks(void)
{
	int count = 0;

	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		count += live[i] != NULL;
	return count;
}

static bool is_live(const void *memory)
{
	bool found = false;

	/* It lies in what malloc gave, behind what the shelf has there for itself. */
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		found |= live[i] && (uintptr_t)memory - (uintptr_t)live[i] <= 128;
	return found;
}

static void replace(void *old, void *with)
{
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++) {
		if (live[i] == old) {
			live[i] = with;
			return;
		}
	}
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	void *memory = no_memory ? NULL : __real_aligned_alloc(alignment, bytes);

	if (memory)
		replace(NULL, memory);
	return memory;
}

void __wrap_free(void *memory)
{
	if (memory)
		replace(memory, NULL);
	__real_free(memory);
}

static void *get(size_t bytes)
{
	void *memory = oci_shelf_get(bytes);

	assert_non_null(memory);
	assert_int_equal((uintptr_t)memory % 128, 0);
	memset(memory, 1, bytes);
	return memory;
}

TEST(what_was_used_last_is_taken_back)
{
	void *first = get(LARGE), *second = get(LARGE);

	assert_ptr_not_equal(first, second);
	oci_shelf_put(second);
	oci_shelf_put(first);
	oci_shelf_put(NULL);
	/* For fewer bytes, too. */
	assert_ptr_equal(get(LARGE / 2), first);
	assert_ptr_equal(get(LARGE), second);
	assert_int_equal(live_blocks(), 2);
	oci_shelf_put(first);
	oci_shelf_put(second);
}

TEST(a_few_bytes_take_no_large_block)
{
	void *large = get(LARGE), *small;

	oci_shelf_put(large);
	small = get(SMALL);
	assert_ptr_equal(get(LARGE), large);
	oci_shelf_put(small);
	oci_shelf_put(large);
	/* Nor do many a small one, which has more than was asked for. */
	assert_ptr_equal(get(LARGE), large);
	assert_ptr_equal(get(LEAST), small);
	oci_shelf_put(small);
	oci_shelf_put(large);
}

TEST(a_full_shelf_gives_back_what_was_used_longest_ago)
{
	void *old[MANY];

	for (int i = 0; i < MANY; i++)
		old[i] = get(SMALL);
	for (int i = 0; i < MANY; i++)
		oci_shelf_put(old[i]);
	assert_int_equal(live_blocks(), KEPT);
	for (int i = MANY; i-- > MANY - KEPT;)
		assert_ptr_equal(get(SMALL), old[i]);
	assert_int_equal(live_blocks(), KEPT);
	for (int i = MANY - KEPT; i < MANY; i++)
		oci_shelf_put(old[i]);
}

TEST(a_very_large_block_is_given_back_at_once)
{
	void *block = get(BEYOND);

	assert_true(is_live(block));
	oci_shelf_put(block);
	assert_false(is_live(block));
	block = get(KEPT_BYTES);
	oci_shelf_put(block);
	assert_ptr_equal(get(KEPT_BYTES), block);
	oci_shelf_put(block);
}

TEST(without_memory_there_is_what_is_kept)
{
	void *kept = get(KEPT_BYTES), *none;

	oci_shelf_put(kept);
	no_memory = true;
	none = oci_shelf_get(BEYOND);
	no_memory = false;
	assert_null(none);
	/* More than malloc is to be asked for. */
	assert_null(oci_shelf_get(SIZE_MAX));
	assert_ptr_equal(get(KEPT_BYTES), kept);
	oci_shelf_put(kept);
}

/* Another thread of the parent's may have been about to change the list. */
TEST(a_child_takes_nothing_of_its_parents)
{
	void *block = get(LARGE);
	int status = -1;
	pid_t child;

	oci_shelf_put(block);
	child = fork();
	if (!child) {
		oci_shelf_fork_child();
		_exit(oci_shelf_get(LARGE) == block);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_ptr_equal(get(LARGE), block);
	oci_shelf_put(block);
}
