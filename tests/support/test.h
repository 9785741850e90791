/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unit tests, by cmocka: a file has its TEST()s and nothing else, and its program runs them in the
 * order in which they stand.
 *
 *	TEST(a_sum_of_nothing_is_zero)
 *	{
 *		assert_int_equal(sum(NULL, 0), 0);
 *	}
 */
#ifndef OC_TESTS_TEST_H
#define OC_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Cmocka's goes from byte to byte: for megabytes only where they differ. */
#undef assert_memory_equal
#define assert_memory_equal(a, b, bytes) \
	(memcmp(a, b, bytes) ? _assert_memory_equal(a, b, bytes, __FILE__, __LINE__) : (void)0)

#define TEST(name) TEST_WITH(name, NULL, NULL)
/* Functions of cmocka that run before and after it; NULL: none. */
#define TEST_WITH(name, setup, teardown)                                                 \
	static void name(void **state);                                                  \
	__attribute__((constructor)) static void oct_add_##name(void)                    \
	{                                                                                \
		oct_test_add((struct CMUnitTest){ #name, name, setup, teardown, NULL }); \
	}                                                                                \
	static void name(__attribute__((unused)) void **state)

void oct_test_add(struct CMUnitTest test);

/* With AddressSanitizer, where each takes three times as long, a loop of many cases that builds
 * without it run whole takes one in so many. */
#ifdef __SANITIZE_ADDRESS__
enum { OCT_ONE_IN = 4 };
#else
enum { OCT_ONE_IN = 1 };
#endif

/* Leaves a test that cannot run here: what it lacks, as printf(). A program whose tests all did so
 * is a skipped one; of another cmake/check.sh names what is missing. */
#define oct_skip(...)                          \
	do {                                   \
		oct_test_skipped(__VA_ARGS__); \
		skip();                        \
	} while (0)
void oct_test_skipped(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For a file that has a main() of its own, which prepares something: the status to leave with. The
 * functions run before the first test and after the last one; NULL: none. */
int oct_test_run(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
