/* SPDX-License-Identifier: BSD-3-Clause */
/* What may be copied by loads and stores, and for how long that is known. */
#include "copy/access.h"

#include <sys/mman.h>
#include <unistd.h>

#include "os/os.h"
#include "support/test.h"

enum { PAGES = 4096 };

static uint8_t *memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static bool may(const uint8_t *at, size_t bytes, bool write)
{
	return oci_may_access((uintptr_t)at, bytes, write);
}

/* Until all is asked anew; the clock ticks each 10 ms at most. */
static void wait(void)
{
	usleep(OCI_ACCESS_NS / 1000 + 11000);
}

/* False: asking took long, as this process had no CPU meanwhile, and was given up. */
static bool all_is_found(uint8_t *area, size_t page)
{
	assert_int_equal(mprotect(area, 4 * page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(area + page, page, PROT_READ), 0);
	assert_int_equal(mprotect(area + 3 * page, page, PROT_NONE), 0);
	wait();
	if (!may(area, 3 * page, false) || !may(area, page, true))
		return false;
	assert_false(may(area, page + 1, true));
	assert_false(may(area + 2 * page, page + 1, false));
	assert_false(may(area + 3 * page, 1, false));
	assert_int_equal(mprotect(area, 4 * page, PROT_READ | PROT_WRITE), 0);
	/* What was not found is asked for anew at once. */
	return may(area, 4 * page, true);
}

TEST(only_what_is_mapped_and_allowed)
{
	size_t page = oci_os_page_bytes();
	uint8_t *area = memory(4 * page);
	unsigned int tries = 0;

	while (!all_is_found(area, page))
		assert_true(++tries < 20);
	assert_int_equal(mprotect(area, page, PROT_NONE), 0);
	wait();
	assert_false(may(area, 1, false));
	assert_int_equal(munmap(area, 4 * page), 0);
}

/* Of mappings without number no more are asked for than takes a small part of the time. */
TEST(asking_is_given_up_when_it_takes_long)
{
	size_t page = oci_os_page_bytes();
	uint8_t *area = memory(PAGES * page);
	unsigned int found = 0;

	for (unsigned int i = 0; i < PAGES; i += 2)
		assert_int_equal(mprotect(area + i * page, page, PROT_READ), 0);
	oci_os_range_asks = false;
	wait();
	for (unsigned int i = 0; i < PAGES; i += 2)
		found += may(area + i * page, page, false);
	assert_true(found > 0 && found < PAGES / 2);
	wait();
	assert_true(may(area + (PAGES - 2) * page, page, false));
	oci_os_range_asks = true;
	assert_int_equal(munmap(area, PAGES * page), 0);
}
