/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting on a word of shared memory, against the running kernel. */
#include "base/clock.h"
#include "os/os.h"
#include "support/test.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(futex_wait_times_out_and_sees_a_changed_word)
{
	uint32_t word = 5;
	uint64_t before = oci_clock_ns();

	assert_int_equal(oci_os_futex_wait(&word, 5, 5000000), -ETIMEDOUT);
	assert_true(oci_clock_ns() - before >= 5000000);
	assert_int_equal(oci_os_futex_wait(&word, 4, 5000000), -EAGAIN);
}

static void await_sleep(pid_t pid)
{
	char path[48], text[1024], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		sched_yield();
		assert_true(oci_os_read_file(path, text, sizeof(text)) > 0);
		state = strrchr(text, ')');
	} while (!state || state[2] != 'S');
}

TEST(futex_wakes_another_process)
{
	int error = 0, status, fd = oci_os_shared_file("onecopy-test", 4096);
	uint32_t *word = oci_os_map_shared(fd, 4096, &error);
	pid_t pid;

	assert_non_null(word);
	/* As it is not there in a child otherwise. */
	assert_int_equal(madvise(word, 4096, MADV_DOFORK), 0);
	pid = fork();
	if (!pid) {
		while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
			oci_os_futex_wait(word, 0, UINT64_MAX / 2);
		_exit(0);
	}
	await_sleep(pid);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	oci_os_futex_wake(word, 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	oci_os_unmap(word, 4096);
	close(fd);
}
