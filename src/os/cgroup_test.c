/* SPDX-License-Identifier: BSD-3-Clause */
/* Control groups as files of a temporary folder, because no test may change the real ones. */
#include "os/cgroup.h"
#include "support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];
static const char *membership; /* as in /proc/self/cgroup */

/* Writes text to a file under root, with the folders above it. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/onecopy-cgroup-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	membership = "";
	return 0;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void assert_cpus(double expected)
{
	double found = oci_cgroup_cpus(root, membership);

	assert_true(found > expected - 1e-9 && found < expected + 1e-9);
}

TEST_WITH(no_group_is_no_limit, make_root, remove_root)
{
	assert_cpus(0);
	assert_true(oci_cgroup_memory_left(root, membership) == SIZE_MAX);
	membership = "nonsense\n0:\n:\n";
	assert_cpus(0);
}

TEST_WITH(v2_takes_the_tightest_limit_up_to_the_root, make_root, remove_root)
{
	membership = "0::/slice/job\n";
	put("slice/job/cpu.max", "max 100000\n");
	assert_cpus(0);
	put("slice/cpu.max", "150000 100000\n");
	assert_cpus(1.5);
	put("slice/job/cpu.max", "400000 100000\n");
	assert_cpus(1.5);
	put("cpu.max", "50000 100000\n"); /* the root of a container's namespace has one */
	assert_cpus(0.5);
}

TEST_WITH(v2_path_of_the_host_still_finds_the_containers_root, make_root, remove_root)
{
	membership = "0::/docker/0123456789\n";
	put("cpu.max", "200000 100000\n");
	assert_cpus(2);
}

TEST_WITH(v1_reads_the_quota_of_its_controller, make_root, remove_root)
{
	membership = "9:name=systemd:/\n3:cpuset:/other\n2:cpuacct,cpu:/a/b\n4:memory:/a\n";
	put("cpu/a/b/cpu.cfs_quota_us", "-1\n");
	put("cpu/a/b/cpu.cfs_period_us", "100000\n");
	assert_cpus(0);
	put("cpu/a/cpu.cfs_quota_us", "300000\n");
	put("cpu/a/cpu.cfs_period_us", "100000\n");
	assert_cpus(3);
	put("memory/a/memory.limit_in_bytes", "9223372036854771712\n");
	put("memory/a/memory.usage_in_bytes", "1000\n");
	assert_true(oci_cgroup_memory_left(root, membership) == SIZE_MAX);
	put("memory/a/memory.limit_in_bytes", "5000\n");
	put("memory/a/memory.stat", "cache 1\ninactive_file 3\ntotal_inactive_file 600\n");
	assert_int_equal(oci_cgroup_memory_left(root, membership), 4600);
}

TEST_WITH(v2_memory_counts_what_can_be_dropped, make_root, remove_root)
{
	membership = "0::/job\n";
	put("job/memory.max", "max\n");
	put("job/memory.current", "700\n");
	assert_true(oci_cgroup_memory_left(root, membership) == SIZE_MAX);
	put("job/memory.max", "1000\n");
	assert_int_equal(oci_cgroup_memory_left(root, membership), 300);
	put("job/memory.stat", "anon 5\ninactive_file 100\n");
	assert_int_equal(oci_cgroup_memory_left(root, membership), 400);
	put("job/memory.current", "2000\n"); /* lowered below what is in use */
	assert_int_equal(oci_cgroup_memory_left(root, membership), 0);
}
