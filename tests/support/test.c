/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <stdlib.h>

static struct CMUnitTest *tests;
static size_t count;

void oct_test_add(struct CMUnitTest test)
{
	tests = realloc(tests, (count + 1) * sizeof(*tests));
	if (!tests)
		abort();
	tests[count++] = test;
}

int oct_test_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	/* cmocka's macro takes only an array. */
	int failed = _cmocka_run_group_tests("tests", tests, count, setup, teardown);

	free(tests);
	return failed;
}

__attribute__((weak)) int main(void)
{
	return oct_test_run(NULL, NULL);
}
