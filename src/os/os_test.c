/* SPDX-License-Identifier: BSD-3-Clause */
/* The wrappers against the running kernel: two processes wherever two matter. More than 500 lines,
 * as it is a list of small cases. */
#include "base/clock.h"
#include "os/os.h"
#include "support/process.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that sleeps until it is killed. It leaves with its parent in any case. */
static pid_t sleeping_child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(shared_file_is_seen_by_a_peer_through_proc)
{
	size_t bytes = 3 * oci_os_page_bytes();
	int error = 0, status, fd = oci_os_shared_file("onecopy-test", bytes);
	pid_t parent = getpid(), pid;
	char *mine;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(lseek(fd, 0, SEEK_END), bytes);
	mine = oci_os_map_shared(fd, bytes, &error);
	assert_non_null(mine);
	strcpy(mine, "from the parent");
	pid = fork();
	if (!pid) {
		int peer;
		char *theirs;

		close(fd); /* inherited; the point is to get at it without */
		peer = oci_os_open_peer_fd(parent, fd);
		theirs = peer < 0 ? NULL : oci_os_map_shared(peer, bytes, &error);
		if (!theirs || strcmp(theirs, "from the parent"))
			_exit(1);
		strcpy(theirs + bytes - 16, "from the child");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(mine + bytes - 16, "from the child");
	assert_int_equal(oci_os_unmap(mine, bytes), 0);
	close(fd);
}

TEST(shared_file_grows_and_keeps_its_bytes)
{
	size_t page = oci_os_page_bytes();
	int error = 0, fd = oci_os_shared_file("onecopy-test", page);
	char byte = 7;
	char *map;

	assert_int_equal(pwrite(fd, &byte, 1, 0), 1);
	assert_int_equal(oci_os_shared_file_grow(fd, page, 5 << 20), 0);
	map = oci_os_map_shared(fd, page + (5 << 20), &error);
	assert_non_null(map);
	assert_int_equal(map[0], 7);
	map[page + (5 << 20) - 1] = 1; /* no SIGBUS */
	oci_os_unmap(map, page + (5 << 20));
	close(fd);
}

TEST(no_room_is_an_error_and_not_a_signal)
{
	struct rlimit before, small;
	int error = 0;

	assert_int_equal(oci_os_shared_file("onecopy-test", 0), -EINVAL);
	assert_int_equal(oci_os_shared_file("onecopy-test", SIZE_MAX), -EFBIG);
	/* More than the machine has: memfd would take it, page by page, until the OOM killer. */
	assert_int_equal(oci_os_shared_file("onecopy-test", (size_t)1 << 50), -ENOMEM);
	getrlimit(RLIMIT_FSIZE, &before);
	small = before;
	small.rlim_cur = 1 << 16;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	error = oci_os_shared_file("onecopy-test", 1 << 20); /* SIGXFSZ would kill this test */
	setrlimit(RLIMIT_FSIZE, &before);
	assert_int_equal(error, -EFBIG);
}

static void ignore_signal(int number)
{
	(void)number;
}

TEST(a_fast_timer_does_not_stop_the_growth)
{
	struct itimerval fast = { { 0, 500 }, { 0, 500 } }, off = { 0 };
	struct sigaction action = { .sa_handler = ignore_signal }, before;
	int fd;

	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &fast, NULL);
	fd = oci_os_shared_file("onecopy-test", 32 << 20);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &before, NULL);
	assert_true(fd >= 0);
	close(fd);
}

TEST(bad_descriptors_and_addresses_are_errno)
{
	int error = 0;

	assert_int_equal(oci_os_open_peer_fd(getpid(), 1 << 20), -ENOENT);
	assert_int_equal(oci_os_open_peer_fd(-1, 0), -EINVAL);
	assert_null(oci_os_map_shared(-1, 4096, &error));
	assert_int_equal(error, -EBADF);
	assert_int_equal(oci_os_unmap((void *)1, 4096), -EINVAL);
}

TEST(vm_read_and_write_move_vectors_to_and_from_a_child)
{
	/* The child inherits these at the same addresses, with these bytes. */
	char source[10] = "abcdefghi", target[10] = { 0 }, kept[10] = { 0 };
	struct iovec local[2] = { { target, 3 }, { target + 3, 6 } };
	struct iovec remote[2] = { { source + 3, 6 }, { source, 3 } };
	pid_t pid = sleeping_child();

	memset(source, '.', 9); /* ours only */
	assert_int_equal(oci_os_vm_read(pid, local, 2, remote, 2), 9);
	assert_string_equal(target, "defghiabc");
	memcpy(target, "XYZ", 3);
	assert_int_equal(oci_os_vm_write(pid, local, 1, remote, 1), 3);
	local[0].iov_base = kept;
	local[0].iov_len = 9;
	remote[0] = (struct iovec){ source, 9 };
	assert_int_equal(oci_os_vm_read(pid, local, 1, remote, 1), 9);
	assert_string_equal(kept, "abcXYZghi");
	kill_child(pid);
	assert_int_equal(oci_os_vm_read(pid, local, 1, remote, 1), -ESRCH);
}

TEST(vm_read_stops_short_at_a_hole)
{
	size_t page = oci_os_page_bytes();
	char *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *target = malloc(2 * page);
	struct iovec local = { target, 2 * page }, remote = { pages, 2 * page };
	pid_t pid;

	assert_ptr_not_equal(pages, MAP_FAILED);
	memset(pages, 1, page);
	munmap(pages + page, page);
	pid = sleeping_child();
	assert_int_equal(oci_os_vm_read(pid, &local, 1, &remote, 1), page);
	remote.iov_base = pages + page;
	assert_int_equal(oci_os_vm_read(pid, &local, 1, &remote, 1), -EFAULT);
	kill_child(pid);
	munmap(pages, page);
	free(target);
}

TEST(vm_read_of_a_very_long_vector_is_short)
{
	enum { COUNT = 1500 };
	static char bytes[COUNT], target[COUNT];
	static struct iovec remote[COUNT];
	struct iovec local = { target, COUNT };

	for (int i = 0; i < COUNT; i++)
		remote[i] = (struct iovec){ bytes + i, 1 };
	assert_int_equal(oci_os_vm_read(getpid(), &local, 1, remote, COUNT), 1024);
}

static void await_end(pid_t pid, const struct oci_os_image *image)
{
	while (!oci_os_process_ended(pid, image))
		usleep(1000);
}

/* With as many descriptors as this process may have, or none. */
static void end_is_told(bool descriptors)
{
	pid_t pid = sleeping_child();
	struct oci_os_image image = oci_os_image(pid);

	oct_starve(!descriptors);
	assert_false(oci_os_process_ended(pid, &image));
	kill(pid, SIGKILL);
	await_end(pid, &image); /* not reaped: a zombie has ended, too */
	assert_int_equal(kill(pid, 0), 0);
	waitpid(pid, NULL, 0);
	assert_true(oci_os_process_ended(pid, &image));
	oct_starve(false);
}

static void *reap(void *pid)
{
	waitpid(*(pid_t *)pid, NULL, 0);
	return NULL;
}

/* Whatever is looked at while its parent reaps it: who has ended once lives no more. */
TEST(the_end_of_a_process_is_told_while_it_is_reaped)
{
	for (int round = 0; round < 200; round++) {
		pid_t pid = sleeping_child();
		struct oci_os_image image = oci_os_image(pid);
		pthread_t reaper;

		kill(pid, SIGKILL);
		await_end(pid, &image);
		assert_int_equal(pthread_create(&reaper, NULL, reap, &pid), 0);
		while (!kill(pid, 0))
			assert_true(oci_os_process_ended(pid, &image));
		assert_int_equal(pthread_join(reaper, NULL), 0);
	}
}

TEST(the_end_of_a_process_is_told_reaped_or_not)
{
	end_is_told(true);
}

TEST(the_end_of_a_process_is_told_without_a_descriptor)
{
	end_is_told(false);
}

static void *sleeps(void *arg)
{
	sleep(60);
	return arg;
}

TEST(a_process_whose_main_thread_has_left_lives)
{
	struct oci_os_image image;
	pid_t pid = fork();
	char path[48], text[1];

	if (!pid) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, sleeps, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	image = oci_os_image(pid);
	/* Its main thread has left when it has no program any more. */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	while (readlink(path, text, sizeof(text)) > 0)
		usleep(1000);
	assert_false(oci_os_process_ended(pid, &image));
	oct_starve(true);
	assert_false(oci_os_process_ended(pid, &image));
	kill(pid, SIGKILL);
	await_end(pid, &image);
	oct_starve(false);
	waitpid(pid, NULL, 0);
}

TEST(a_later_process_and_another_program_are_told_apart)
{
	pid_t pid = sleeping_child();
	struct oci_os_image image = oci_os_image(pid), other = image, nothing = { 0 };

	assert_true(image.start && image.program);
	other.start++;
	assert_true(oci_os_process_ended(pid, &other));
	/* By another clock it says nothing. */
	other.clock++;
	assert_false(oci_os_process_ended(pid, &other));
	other = image;
	other.program += 16;
	assert_true(oci_os_process_ended(pid, &other));
	assert_false(oci_os_process_ended(pid, &nothing));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(oci_os_process_ended(pid, &nothing));
	nothing = oci_os_image(pid);
	assert_true(!nothing.start && !nothing.program);
}

/* A program that gives back what it reads, where no address is randomised; it runs: it has given
 * something back. */
static struct oci_os_image image_of(const char *path, int *end, pid_t *pid)
{
	int both[2];
	char byte = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
	*pid = fork();
	if (!*pid) {
		personality(ADDR_NO_RANDOMIZE);
		dup2(both[1], STDIN_FILENO);
		dup2(both[1], STDOUT_FILENO);
		execl(path, path, NULL);
		_exit(1);
	}
	close(both[1]);
	*end = both[0];
	assert_int_equal(write(*end, "a", 1), 1);
	assert_int_equal(read(*end, &byte, 1), 1);
	return oci_os_image(*pid);
}

TEST(programs_are_told_apart_where_their_stacks_are_alike)
{
	struct oci_os_image cat, tee, mixed;
	pid_t cat_pid, tee_pid;
	int ends[2];

	cat = image_of("/bin/cat", &ends[0], &cat_pid);
	tee = image_of("/bin/tee", &ends[1], &tee_pid);
	mixed = (struct oci_os_image){ tee.start, tee.clock, cat.program };
	assert_true(cat.program && tee.program);
	assert_true(oci_os_process_ended(tee_pid, &mixed));
	assert_false(oci_os_process_ended(tee_pid, &tee));
	assert_false(oci_os_process_ended(cat_pid, &cat));
	close(ends[0]);
	close(ends[1]);
	waitpid(cat_pid, NULL, 0);
	waitpid(tee_pid, NULL, 0);
}

TEST(what_is_no_file_of_a_peer_is_not_opened)
{
	int pipes[2], null = open("/dev/null", O_RDWR), folder = open("/tmp", O_RDONLY);

	assert_int_equal(pipe(pipes), 0);
	assert_true(null >= 0 && folder >= 0);
	assert_int_equal(oci_os_open_peer_fd(getpid(), pipes[0]), -EBADF);
	assert_int_equal(oci_os_open_peer_fd(getpid(), null), -EBADF);
	assert_int_equal(oci_os_open_peer_fd(getpid(), folder), -EBADF);
	close(pipes[0]);
	close(pipes[1]);
	close(null);
	close(folder);
}

TEST(proc_stat_is_read_past_a_hostile_name)
{
	char before[16];
	struct oci_os_image image = oci_os_image(getpid()), same;

	prctl(PR_GET_NAME, before);
	prctl(PR_SET_NAME, "a) S 1 (b");
	same = oci_os_image(getpid());
	assert_int_equal(oci_os_parent(getpid()), getppid());
	assert_false(oci_os_process_ended(getpid(), &image));
	prctl(PR_SET_NAME, before);
	assert_true(image.start > 0);
	assert_true(same.start == image.start && same.program == image.program);
	assert_true(oci_os_image(getppid()).start <= image.start);
	assert_int_equal(oci_os_image(-1).start, 0);
	assert_int_equal(oci_os_parent(-1), 0);
}

TEST(dumpable_is_what_prctl_set)
{
	assert_true(oci_os_dumpable());
	prctl(PR_SET_DUMPABLE, 0);
	assert_false(oci_os_dumpable());
	prctl(PR_SET_DUMPABLE, 1);
}

TEST(ptracer_and_yama_agree)
{
	int scope = oci_os_yama_scope();

	if (scope == -ENOENT)
		assert_int_equal(oci_os_set_ptracer(getppid()), -EINVAL);
	else
		assert_true(scope >= 0 && scope <= 3 && !oci_os_set_ptracer(getppid()));
}

TEST(identities_are_stable_and_random_is_not)
{
	const struct oci_os_node *node = oci_os_node();
	uint8_t first[16], second[16], zero[16] = { 0 };
	char text[64];

	assert_int_equal(node->error, 0);
	assert_memory_not_equal(node->boot_id, zero, 16);
	assert_true(node->pid_namespace != 0);
	assert_ptr_equal(node, oci_os_node());
	assert_int_equal(oci_os_random(first, 16), 0);
	assert_int_equal(oci_os_random(second, 16), 0);
	assert_memory_not_equal(first, second, 16);
	assert_int_equal(oci_os_read_file("/proc/version", text, 6), 5);
	assert_string_equal(text, "Linux");
	assert_int_equal(oci_os_read_file("/nonexistent", text, 6), -ENOENT);
}

/* In a thread, because the mask it narrows is the thread's own. */
static void *narrow_affinity(void *argument)
{
	uint64_t mask[128], one[1];
	unsigned int words = oci_os_affinity(0, mask, 128), cpu = 0;
	cpu_set_t set;

	(void)argument;
	assert_true(words >= 1 && words <= 128);
	while (!(mask[cpu / 64] >> (cpu % 64) & 1))
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(oci_os_cpus_allowed(), 1);
	assert_int_equal(oci_os_affinity(0, one, 1), cpu / 64 + 1);
	if (cpu < 64)
		assert_true(one[0] == (uint64_t)1 << cpu);
	return NULL;
}

TEST(affinity_is_the_threads_mask)
{
	unsigned int before = oci_os_cpus_allowed();
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, narrow_affinity, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(oci_os_cpus_allowed(), before);
	assert_true(before <= oci_os_cpus_online());
	assert_true(oci_os_cgroup_cpus() >= 0);
	oci_os_yield();
}

static void check_ranges(void)
{
	size_t page = oci_os_page_bytes();
	uint8_t *area =
		mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct oci_os_range range;

	assert_ptr_not_equal(area, MAP_FAILED);
	assert_int_equal(mprotect(area + 2 * page, page, PROT_READ), 0);
	assert_int_equal(mprotect(area + 4 * page, page, PROT_NONE), 0);
	assert_int_equal(munmap(area + 6 * page, page), 0);
	assert_int_equal(oci_os_range(area + page, 3 * page, false, &range), 0);
	assert_true(range.from <= (uintptr_t)area + page);
	assert_int_equal(range.to, (uintptr_t)area + 4 * page);
	assert_int_equal(oci_os_range(area + page, 2 * page, true, &range), -EFAULT);
	assert_int_equal(oci_os_range(area + 2 * page, 1, true, &range), -EFAULT);
	assert_int_equal(oci_os_range(area + 3 * page + 7, page - 7, true, &range), 0);
	assert_int_equal(range.from, (uintptr_t)area + 3 * page);
	assert_int_equal(oci_os_range(area + 3 * page + 7, page - 6, false, &range), -EFAULT);
	assert_int_equal(oci_os_range(area + 4 * page, 1, false, &range), -EFAULT);
	assert_int_equal(oci_os_range(area + 5 * page, page + 1, true, &range), -EFAULT);
	assert_int_equal(oci_os_range(area + 6 * page, 1, true, &range), -EFAULT);
	assert_int_equal(oci_os_range(&range, sizeof(range), true, &range), 0);
	assert_int_equal(oci_os_range(NULL, 1, false, &range), -EFAULT);
	assert_int_equal(munmap(area, 6 * page), 0);
	assert_int_equal(munmap(area + 7 * page, page), 0);
}

TEST(what_may_be_read_and_written_is_told_by_either_way)
{
	oci_os_range_asks = true;
	check_ranges();
	oci_os_range_asks = false;
	check_ranges();
	oci_os_range_asks = true;
}

/* Flags at the same offset of two segments are used at the same time. */
TEST(large_mappings_do_not_share_a_hash_of_lines)
{
	const size_t bytes = (size_t)256 << 20;
	int fd = memfd_create("mappings", MFD_CLOEXEC), error = 0;
	uintptr_t seen[4];

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	for (int i = 0; i < 4; i++) {
		uint8_t *at = oci_os_map_shared(fd, bytes, &error);

		assert_non_null(at);
		at[i] = (uint8_t)(i + 1);
		at[bytes - 1] = (uint8_t)(i + 1);
		seen[i] = (uintptr_t)at;
		for (int j = 0; j < i; j++) {
			assert_int_equal(((uint8_t *)seen[j])[i], i + 1);
			assert_true((seen[i] ^ seen[j]) & 0xfe00000);
		}
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(oci_os_unmap((void *)seen[i], bytes), 0);
	close(fd);
}
