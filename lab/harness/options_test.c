/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/harness/options.h"
#include "support/test.h"

#include <errno.h>

TEST(sizes_are_read_with_and_without_units)
{
	static const struct {
		const char *text;
		size_t bytes;
	} good[] = {
		{ "0", 0 },
		{ "4", 4 },
		{ "64B", 64 },
		{ "1K", 1024 },
		{ "64KiB", 64 << 10 },
		{ "4m", 4 << 20 },
		{ "1GiB", 1 << 30 },
	};
	static const char *const bad[] = { "",	   "-1", " 4", "4X", "K", "99999999999999999999",
					   "2000G" };
	size_t bytes, i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(size_parse(good[i].text, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bytes = 1234;
		assert_int_equal(size_parse(bad[i], &bytes), -EINVAL);
		assert_int_equal(bytes, 1234);
	}
}

TEST(a_list_of_sizes_is_in_the_order_of_its_text)
{
	struct size_list list;

	size_list_take("--sizes", "1M,4", 1, &list);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.at[0], 1 << 20);
}

TEST(numbers_out_of_range_or_with_rubbish_are_refused)
{
	double d;
	long l;

	assert_int_equal(long_parse("7", 1, 9, &l), 0);
	assert_int_equal(l, 7);
	assert_int_equal(long_parse("10", 1, 9, &l), -EINVAL);
	assert_int_equal(long_parse("7x", 1, 9, &l), -EINVAL);
	assert_int_equal(double_parse("0.95", 0, 1, &d), 0);
	assert_int_equal(double_parse("nan", 0, 1, &d), -EINVAL);
	assert_int_equal(double_parse("", 0, 1, &d), -EINVAL);
}
