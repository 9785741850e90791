/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy info` tells of the kernel module: its counters, or what helps where there is none.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab/inspect/inspect.h"
#include "os/os.h"
#include "support/test.h"

static const struct oc_mechanism_info *kmod(void)
{
	const struct oc_mechanism_info *info;

	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)); i++)
		if (!strcmp(info->name, "kmod"))
			return info;
	return NULL;
}

static json_int_t count(const json_t *module, const char *name)
{
	const json_t *number = json_object_get(module, name);

	assert_true(json_is_integer(number));
	return json_integer_value(number);
}

TEST(where_there_is_no_module_the_remedy_is_told)
{
	json_t *module = oc_inspect_module();

	assert_non_null(kmod());
	if (!access("/dev/onecopy", F_OK)) {
		assert_true(json_is_object(module));
		json_decref(module);
		return;
	}
	assert_true(json_is_null(module));
	assert_false(kmod()->works);
	assert_non_null(strstr(kmod()->sentence, "/dev/onecopy"));
	assert_non_null(strstr(kmod()->remedy, "modprobe onecopy"));
}

TEST(the_counters_count)
{
	enum { PAGES = 4, BYTES = 10000 };
	size_t bytes = PAGES * oci_os_page_bytes();
	int fd = oci_os_kmod_open();
	json_t *before, *during, *after;
	struct iovec own;
	uint8_t *memory;
	uint64_t cookie;

	if (fd < 0)
		oct_skip("there is no /dev/onecopy");
	assert_true(kmod()->works && !*kmod()->remedy);
	memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	memset(memory, 1, 2 * bytes);
	own = (struct iovec){ memory + bytes, BYTES };
	before = oc_inspect_module();
	assert_int_equal(oci_os_kmod_register(fd, (uintptr_t)memory, bytes, true, 0, &cookie), 0);
	assert_int_equal(oci_os_kmod_copy(fd, cookie, 0, &own, 1, BYTES, 0), BYTES);
	during = oc_inspect_module();
	assert_int_equal(munmap(memory, 2 * bytes), 0);
	assert_true(oci_os_kmod_copy(fd, cookie, 0, &own, 1, BYTES, 0) < 0);
	after = oc_inspect_module();
	assert_int_equal(count(during, "regions_created"), count(before, "regions_created") + 1);
	assert_int_equal(count(during, "regions_now"), count(before, "regions_now") + 1);
	assert_int_equal(count(during, "pages_pinned_now"),
			 count(before, "pages_pinned_now") + PAGES);
	assert_int_equal(count(during, "copies"), count(before, "copies") + 1);
	assert_int_equal(count(during, "bytes"), count(before, "bytes") + BYTES);
	assert_int_equal(count(after, "regions_gone"), count(before, "regions_gone") + 1);
	assert_int_equal(count(after, "failures"), count(during, "failures") + 1);
	json_decref(before);
	json_decref(during);
	json_decref(after);
	close(fd);
}
