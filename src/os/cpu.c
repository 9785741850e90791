/* SPDX-License-Identifier: BSD-3-Clause */
#include "os/cgroup.h"
#include "os/os.h"

#if defined(__x86_64__) && __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* 8192 CPUs: the most that a Linux kernel can be configured for on any architecture we run on. */
#define MASK_WORDS 128

/* As oci_os_affinity(); returns the words that the kernel filled, 0 on failure. */
static unsigned int read_mask(pid_t pid, uint64_t mask[MASK_WORDS])
{
	/* Not the libc wrapper: it hides how many bytes the kernel wrote. */
	long bytes = syscall(SYS_sched_getaffinity, pid, MASK_WORDS * sizeof(*mask), mask);

	return bytes < 0 ? 0 : (unsigned int)((size_t)bytes / sizeof(*mask));
}

unsigned int oci_os_cpus_online(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (unsigned int)count : 1;
}

unsigned int oci_os_cpus_allowed(void)
{
	uint64_t mask[MASK_WORDS];
	unsigned int words = read_mask(0, mask), count = 0;

	for (unsigned int i = 0; i < words; i++)
		count += (unsigned int)__builtin_popcountll(mask[i]);
	/* Refused (seccomp)? The machine's CPUs are the better guess. */
	return count ? count : oci_os_cpus_online();
}

unsigned int oci_os_affinity(pid_t pid, uint64_t *mask, unsigned int words)
{
	uint64_t all[MASK_WORDS];
	unsigned int used = read_mask(pid, all);

	while (used && !all[used - 1])
		used--;
	for (unsigned int i = 0; i < words; i++)
		mask[i] = i < used ? all[i] : 0;
	return used;
}

int oci_os_bind(unsigned int cpu)
{
	uint64_t mask[MASK_WORDS] = { 0 };

	if (cpu >= 64 * MASK_WORDS)
		return -EINVAL;
	mask[cpu / 64] = (uint64_t)1 << (cpu % 64);
	return oci_os_bind_to(mask, MASK_WORDS);
}

int oci_os_bind_to(const uint64_t *mask, unsigned int words)
{
	return syscall(SYS_sched_setaffinity, 0, words * sizeof(*mask), mask) ? -errno : 0;
}

void oci_os_sleep_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1ul);
}

bool oci_os_is_virtual(void)
{
#if defined(__x86_64__) && __has_include(<sys/platform/x86.h>)
	/* What glibc (2.33 and later) has asked before main(): each cpuid of a virtual machine is a
	 * trap, of 4 us and more. */
	return __x86_get_cpuid_feature_leaf(CPUID_INDEX_1)->cpuid_array[2] >> 31;
#elif defined(__x86_64__)
	unsigned int a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c >> 31;
#else
	return false;
#endif
}

double oci_os_cgroup_cpus(void)
{
	return oci_cgroup_cpus("/sys/fs/cgroup", oci_cgroup_self());
}

void oci_os_sleep_us(uint32_t us)
{
	struct timespec time = { .tv_nsec = (long)us * 1000 };

	nanosleep(&time, NULL);
}

void oci_os_yield(void)
{
	sched_yield();
}

long oci_os_preemptions(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}
