/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lab/inspect/large.h"
#include "support/test.h"

static const struct oci_large_settings usual = {
	.enabled = "always [madvise] never\n",
	.shmem = "always within_size advise [never] deny force\n",
	.nodes = "0\n",
	.collapse = true,
};

static void says(const struct oci_large_settings *settings, const char *words, const char *file)
{
	const char *text = oci_large_text(settings);

	assert_non_null(strstr(text, words));
	if (file)
		assert_non_null(strstr(text, file));
	else
		assert_null(strstr(text, "write "));
}

TEST(each_obstacle_has_its_remedy)
{
	struct oci_large_settings s = usual;

	says(&s, "4 MiB and more", NULL);
	s.collapse = false;
	says(&s, "MADV_COLLAPSE", "always to /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	s.nodes = "0-1\n";
	says(&s, "first touch", "always to /sys/kernel/mm/transparent_hugepage/shmem_enabled");
	s = usual;
	s.shmem = "always within_size advise never [deny] force\n";
	says(&s, "denied", "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
	s.enabled = "always madvise [never]\n";
	says(&s, "switched off", "madvise to /sys/kernel/mm/transparent_hugepage/enabled");
	s.enabled = "";
	says(&s, "this kernel has no", NULL);
}

TEST(the_kernels_own_large_pages_need_nothing)
{
	static const char *const set[] = { "[always] within_size advise never deny force\n",
					   "always [within_size] advise never deny force\n",
					   "always within_size advise never deny [force]\n" };
	struct oci_large_settings s = usual;

	s.nodes = "0-3\n";
	s.collapse = false;
	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		s.shmem = set[i];
		says(&s, "by the kernel", NULL);
	}
}

TEST(this_machine_has_an_answer)
{
	assert_true(strlen(oci_large_pages()) > 20);
}
