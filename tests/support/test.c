/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct CMUnitTest *tests;
static size_t count, skipped;

void oct_test_add(struct CMUnitTest test)
{
	tests = realloc(tests, (count + 1) * sizeof(*tests));
	if (!tests)
		abort();
	tests[count++] = test;
}

void oct_test_skipped(const char *format, ...)
{
	va_list arguments;

	skipped++;
	printf("skipped: ");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
}

int oct_test_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	/* cmocka's macro takes only an array. */
	int failed = _cmocka_run_group_tests("tests", tests, count, setup, teardown);

	free(tests);
	return failed || skipped < count || !count ? failed : 77;
}

__attribute__((weak)) int main(void)
{
	return oct_test_run(NULL, NULL);
}
