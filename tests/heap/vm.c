/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process_vm_readv() and process_vm_writev() under the shared heap, against the kernel's: the same
 * results, errors and bytes, whatever is asked for. A program of its own, with the engine, as the
 * heap by itself only passes on; the other process is the same program again (vm_peer.c).
 * One file of more than 500 lines: all its tests ask the kernel and ours alike, by the same
 * helpers.
 */
#include "vm.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy/vm.h"
#include "support/test.h"

#include <onecopy/onecopy.h>

/* ---- both ways of asking -------------------------------------------------------------------- */

struct call {
	pid_t pid;
	bool push;
	struct iovec local[24], remote[24];
	unsigned long locals, remotes, flags;
};

static ssize_t ask_kernel(const struct call *c)
{
	return syscall(c->push ? SYS_process_vm_writev : SYS_process_vm_readv, c->pid, c->local,
		       c->locals, c->remote, c->remotes, c->flags);
}

static ssize_t ask(const struct call *c)
{
	return (c->push ? process_vm_writev : process_vm_readv)(c->pid, c->local, c->locals,
								c->remote, c->remotes, c->flags);
}

static struct call one(pid_t pid, bool push, void *local, uint64_t remote, size_t bytes)
{
	return (struct call){ .pid = pid,
			      .push = push,
			      .local = { { local, bytes } },
			      .remote = { { (void *)(uintptr_t)remote, bytes } },
			      .locals = 1,
			      .remotes = 1 };
}

/* One read by each; 0 and errno must be alike, and the bytes. The answer. */
static ssize_t read_both(pid_t pid, uint64_t remote, size_t bytes)
{
	uint8_t *ours = malloc(bytes), *theirs = malloc(bytes);
	struct call call = one(pid, false, theirs, remote, bytes);
	ssize_t expected, got;
	int error;

	assert_true(ours && theirs);
	memset(ours, 0x55, bytes);
	memset(theirs, 0x55, bytes);
	errno = 0;
	expected = ask_kernel(&call);
	error = errno;
	call.local[0].iov_base = ours;
	errno = 0;
	got = ask(&call);
	assert_int_equal(got, expected);
	if (got < 0)
		assert_int_equal(errno, error);
	assert_memory_equal(ours, theirs, bytes);
	free(ours);
	free(theirs);
	return got < 0 ? -error : got;
}

static uint64_t mapped(void)
{
	return oci_vm_mapped().copies;
}

/* A read that must have gone by mapped memory. */
static void read_mapped(pid_t pid, uint64_t remote, size_t bytes)
{
	uint64_t before = mapped();

	assert_int_equal(read_both(pid, remote, bytes), bytes);
	assert_int_equal(mapped(), before + 1);
}

/* A read that must not; the answer. */
static ssize_t read_passed_on(pid_t pid, uint64_t remote, size_t bytes)
{
	uint64_t before = mapped();
	ssize_t got = read_both(pid, remote, bytes);

	assert_int_equal(mapped(), before);
	return got;
}

/* Until it is mapped: a first look may be put off. */
static void find(const struct vm_peer *peer)
{
	uint64_t before = mapped();

	for (int i = 0; i < 2000 && mapped() == before; i++) {
		read_both(peer->pid, peer->place[VM_HEAP], 100);
		usleep(mapped() == before ? 1000 : 0);
	}
	assert_true(mapped() > before);
}

static struct vm_peer *start(void)
{
	struct vm_peer *peer = vm_peer_start();

	assert_non_null(peer);
	find(peer);
	return peer;
}

static struct vm_peer *peer;

static int begin(void **state)
{
	(void)state;
	peer = start();
	return 0;
}

static int end(void **state)
{
	(void)state;
	vm_peer_end(peer);
	return 0;
}

/* With another process, `peer`, that is mapped. */
#define TEST_WITH_PEER(name) TEST_WITH(name, begin, end)

/* ---- random calls --------------------------------------------------------------------------- */

static uint64_t seed = 1;

static uint64_t pick(uint64_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % below;
}

/* Local places, of which each has what a peer has. */
static uint8_t *place[VM_PLACES];

/* Somewhere in a place, over its end at times. */
static struct iovec piece_of(uint64_t base, unsigned int kind)
{
	size_t at = pick(VM_BYTES), bytes = 0;

	if (pick(20) == 0)
		return (struct iovec){ (void *)(uintptr_t)(pick(2) ? 0 : pick(UINT64_MAX)),
				       pick(2) ? 0 : pick(1 << 20) };
	switch (pick(6)) {
	case 0:
		bytes = pick(8);
		break;
	case 1:
		bytes = pick(8192);
		break;
	case 2:
		bytes = pick(2 * VM_BYTES);
		break;
	default:
		bytes = pick(VM_BYTES - at + 1);
		break;
	}
	/* Else most calls would meet what cannot be accessed. */
	if (kind >= VM_HOLED && pick(3))
		bytes %= 4096;
	return (struct iovec){ (void *)(uintptr_t)(base + at), bytes };
}

static unsigned long fill(struct iovec *list, const uint64_t *places, unsigned int best)
{
	unsigned long count = pick(4) ? 1 : pick(24);

	for (unsigned long i = 0; i < count; i++) {
		unsigned int kind = pick(3) ? best : (unsigned int)pick(VM_PLACES);

		list[i] = piece_of(places[kind], kind);
	}
	return count;
}

static pid_t ended; /* the number of a process that is no more */

static struct call random_call(const struct vm_peer *peer)
{
	struct call call = { .pid = pick(50) ? peer->pid :
				    pick(2)  ? getpid() :
					       ended,
			     .push = pick(2),
			     .flags = pick(100) ? 0 : pick(3) };
	uint64_t own[VM_PLACES];

	for (int i = 0; i < VM_PLACES; i++)
		own[i] = (uintptr_t)place[i];
	call.locals = fill(call.local, own, pick(2) ? VM_HEAP : VM_DATA);
	call.remotes = fill(call.remote, peer->place, VM_HEAP);
	/* Memory of ours as the other's is whatever is running: not looked at. */
	if (call.pid == getpid())
		call.remotes = fill(call.remote, own, VM_HEAP);
	return call;
}

/* What can be looked at of a place, page by page, by the kernel. */
static void look_at(pid_t pid, const uint64_t *places, uint8_t *into)
{
	for (int i = 0; i < VM_PLACES; i++)
		for (size_t at = 0; at < VM_BYTES; at += 4096, into += 4096) {
			struct call call = one(pid, false, into, places[i] + at, 4096);

			if (ask_kernel(&call) != 4096)
				memset(into, 0xee, 4096);
		}
}

static void set_to(pid_t pid, const uint64_t *places, uint8_t *pattern)
{
	for (int i = 0; i < VM_PLACES; i++)
		for (size_t at = 0; at < VM_BYTES; at += 4096) {
			struct call call = one(pid, true, pattern + at, places[i] + at, 4096);

			ask_kernel(&call);
		}
}

enum { ALL = VM_PLACES * VM_BYTES };

TEST_WITH_PEER(random_calls_are_answered_as_the_kernel_answers_them)
{
	uint8_t *mine = malloc(4 * ALL), *theirs = mine + ALL, *mine_too = mine + 2 * ALL,
		*theirs_too = mine + 3 * ALL, *pattern = malloc(2 * VM_BYTES);
	uint64_t before = mapped(), own[VM_PLACES], passed = 0;
	int rounds = getenv("OC_TEST_ROUNDS") ? atoi(getenv("OC_TEST_ROUNDS")) : 3000;

	for (int i = 0; i < VM_PLACES; i++)
		own[i] = (uintptr_t)place[i];
	for (int i = 0; i < 2 * VM_BYTES; i++)
		pattern[i] = (uint8_t)(i * 7 + i / 251);
	for (int round = 0; round < rounds; round++) {
		struct call call = random_call(peer);
		ssize_t expected = 0, got;
		int error = 0;

		for (int way = 0; way < 2; way++) {
			set_to(getpid(), own, pattern);
			set_to(peer->pid, peer->place, pattern + VM_BYTES / 2);
			errno = 0;
			if (!way) {
				expected = ask_kernel(&call);
				error = errno;
			} else {
				got = ask(&call);
			}
			if (way && (got != expected || (got < 0 && errno != error)))
				fail_msg("round %d: %zd (%s), not %zd (%s)", round, got,
					 strerror(errno), expected, strerror(error));
			look_at(getpid(), own, way ? mine_too : mine);
			look_at(peer->pid, peer->place, way ? theirs_too : theirs);
		}
		if (memcmp(mine, mine_too, ALL) || memcmp(theirs, theirs_too, ALL))
			fail_msg("round %d: other bytes than the kernel's", round);
		passed += expected < 0;
	}
	/* Each way was gone often enough. */
	assert_true(mapped() > before + (uint64_t)rounds / 10);
	assert_true(passed > (uint64_t)rounds / 50);
	free(mine);
	free(pattern);
}

/* ---- lists that cannot be read -------------------------------------------------------------- */

TEST_WITH_PEER(lists_that_cannot_be_read_are_the_kernels_to_refuse)
{
	uint8_t *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec good = { malloc(100), 100 };
	struct iovec there = { (void *)(uintptr_t)peer->place[VM_HEAP], 100 };
	struct iovec *const bad[] = { NULL, (void *)forbidden, (void *)-16l, (void *)8 };

	for (int i = 0; i < 4; i++) {
		assert_int_equal(process_vm_readv(peer->pid, bad[i], 1, &there, 1, 0), -1);
		assert_int_equal(errno, EFAULT);
		assert_int_equal(process_vm_readv(peer->pid, &good, 1, bad[i], 1, 0), -1);
		assert_int_equal(errno, EFAULT);
	}
	assert_int_equal(process_vm_readv(peer->pid, NULL, 0, NULL, 0, 0), 0);
	assert_int_equal(process_vm_readv(peer->pid, &good, 1, &there, 1ul << 40, 0), -1);
	assert_int_equal(errno, EINVAL);
	free(good.iov_base);
	munmap(forbidden, 4096);
}

/* The kernel moves 2 GiB less a page in one call. */
TEST_WITH_PEER(more_than_the_kernel_moves_at_once_is_cut_where_it_cuts)
{
	uint64_t there = (uint64_t)vm_peer_do(peer, VM_LARGE);
	uint8_t *here = malloc(VM_LARGE_BYTES);
	struct call call = { .pid = peer->pid, .locals = 16, .remotes = 16 };

	assert_true(there && here);
	for (int i = 0; i < 16; i++) {
		call.local[i] = (struct iovec){ here, VM_LARGE_BYTES };
		call.remote[i] = (struct iovec){ (void *)(uintptr_t)there, VM_LARGE_BYTES };
	}
	assert_int_equal(ask(&call), 0x7ffff000);
	free(here);
}

/* ---- what the other process does ------------------------------------------------------------ */

TEST_WITH_PEER(memory_that_the_other_gives_back_is_zero)
{
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
	vm_peer_do(peer, VM_DONTNEED);
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
	vm_peer_do(peer, VM_REWRITE);
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
	vm_peer_do(peer, VM_FREE_ALL);
	read_both(peer->pid, peer->place[VM_HEAP], VM_BYTES);
}

TEST_WITH_PEER(memory_that_the_other_forbids_itself_is_the_kernels)
{
	struct call push;
	uint8_t byte = 1;

	vm_peer_do(peer, VM_FORBID);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES), 2 * 4096);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP] + 2 * 4096, 1), -EFAULT);
	read_mapped(peer->pid, peer->place[VM_HEAP], 2 * 4096);
	vm_peer_do(peer, VM_READ_ONLY);
	push = one(peer->pid, true, &byte, peer->place[VM_HEAP] + 2 * 4096, 1);
	assert_int_equal(ask(&push), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP] + 2 * 4096, 1), 1);
	vm_peer_do(peer, VM_ALLOW);
	assert_int_equal(read_both(peer->pid, peer->place[VM_HEAP], VM_BYTES), VM_BYTES);
}

TEST_WITH_PEER(memory_that_the_other_unmaps_is_the_kernels)
{
	vm_peer_do(peer, VM_UNMAP);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES), 2 * 4096);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP] + 2 * 4096, 1), -EFAULT);
}

TEST_WITH_PEER(memory_that_the_other_maps_over_its_heap_is_read)
{
	vm_peer_do(peer, VM_MAP_OVER);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES), VM_BYTES);
}

TEST_WITH_PEER(memory_that_the_other_attaches_over_its_heap_is_read)
{
	vm_peer_do(peer, VM_ATTACH_OVER);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES), VM_BYTES);
}

/* CAP_SYS_PTRACE, where we have it. */
static void may_trace(bool may)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (may)
		data[0].effective |= data[0].permitted & 1u << CAP_SYS_PTRACE;
	else
		data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

TEST_WITH_PEER(memory_that_we_may_not_read_any_more_is_the_kernels_to_refuse)
{
	uint8_t here[100];
	struct call write = one(peer->pid, true, here, peer->place[VM_HEAP], sizeof(here));

	vm_peer_do(peer, VM_HIDE);
	may_trace(false);
	usleep(20000);
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES), -EPERM);
	assert_int_equal(ask(&write), -1);
	assert_int_equal(errno, EPERM);
	may_trace(true);
}

TEST_WITH_PEER(memory_that_was_never_used_is_the_kernels)
{
	assert_int_equal(read_passed_on(peer->pid, peer->place[VM_END] - 4096, 4096), -EFAULT);
	read_passed_on(peer->pid, peer->place[VM_END] - 100, 4096);
}

TEST(our_heap_in_the_other_is_not_taken_for_its)
{
	struct vm_peer *peer = vm_peer_start();

	assert_non_null(peer);
	assert_int_equal(vm_peer_do(peer, VM_OPEN_OURS), 0);
	find(peer);
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
	vm_peer_end(peer);
}

TEST_WITH_PEER(children_of_the_other_have_memory_of_their_own)
{
	enum vm_action how[] = { VM_FORK, VM_FORK_RAW, VM_VFORK };

	for (int i = 0; i < 3; i++) {
		pid_t child = (pid_t)vm_peer_do(peer, how[i]);

		assert_true(child > 0);
		assert_int_equal(read_passed_on(child, peer->place[VM_HEAP], VM_BYTES), VM_BYTES);
		read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
		vm_peer_do(peer, VM_REAP);
	}
}

/* ---- death ---------------------------------------------------------------------------------- */

TEST(a_process_that_has_ended_is_not_found_at_once)
{
	for (int i = 0; i < 20; i++) {
		struct vm_peer *peer = start();
		uint64_t at = peer->place[VM_HEAP];
		pid_t pid = peer->pid;

		read_mapped(pid, at, VM_BYTES);
		vm_peer_kill(peer, i % 2);
		/* Dead, reaped or not: the kernel knows no memory of it. */
		assert_int_equal(read_passed_on(pid, at, VM_BYTES), -ESRCH);
		if (i % 2)
			assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

TEST_WITH_PEER(another_program_in_the_same_process_is_not_taken_for_it)
{
	uint64_t at = peer->place[VM_HEAP];

	vm_peer_do(peer, VM_EXEC);
	/* It may or may not have something there. */
	for (int i = 0; i < 100; i++)
		read_both(peer->pid, at, 4096);
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
}

TEST(another_process_with_the_same_number_is_not_taken_for_it)
{
	struct vm_peer *peer = start(), *next;
	pid_t pid = peer->pid;

	vm_peer_kill(peer, false);
	next = vm_peer_start_as(pid);
	if (!next) {
		fprintf(stderr, "skipped: numbers of processes cannot be chosen here\n");
		return;
	}
	assert_int_equal(next->pid, pid);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(read_both(pid, next->place[VM_HEAP], VM_BYTES), VM_BYTES);
		usleep(1000);
	}
	read_mapped(pid, next->place[VM_HEAP], VM_BYTES);
	vm_peer_end(next);
}

/* ---- this process --------------------------------------------------------------------------- */

static void read_in_child(const struct vm_peer *peer)
{
	/* A child that the system call made has the parent's heap: no malloc(), neither here nor in
	 * what _exit() runs where lines are counted. */
	static uint8_t expected[VM_BYTES], got[VM_BYTES];
	struct call call = one(peer->pid, false, expected, peer->place[VM_HEAP], VM_BYTES);
	uint64_t before = mapped();

	if (ask_kernel(&call) != VM_BYTES)
		syscall(SYS_exit_group, 1);
	call.local[0].iov_base = got;
	if (ask(&call) != VM_BYTES || memcmp(expected, got, VM_BYTES) || mapped() != before)
		syscall(SYS_exit_group, 2);
	syscall(SYS_exit_group, 0);
}

TEST_WITH_PEER(children_of_ours_ask_the_kernel)
{
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
	for (int raw = 0; raw < 2; raw++) {
		int status = -1;
		pid_t child = raw ? (pid_t)syscall(SYS_fork) : fork();

		if (!child)
			read_in_child(peer);
		assert_true(child > 0 && waitpid(child, &status, 0) == child);
		assert_int_equal(status, 0);
	}
	read_mapped(peer->pid, peer->place[VM_HEAP], VM_BYTES);
}

TEST(a_process_without_a_heap_is_the_kernels)
{
	struct vm_peer *peer = vm_peer_start_without_heap();

	for (int i = 0; i < 20; i++) {
		assert_int_equal(read_passed_on(peer->pid, peer->place[VM_HEAP], VM_BYTES),
				 VM_BYTES);
		usleep(1000);
	}
	vm_peer_end(peer);
}

/* ---- threads -------------------------------------------------------------------------------- */

static struct vm_peer *_Atomic common;
static atomic_bool stop;
static atomic_uint wrong, done;

static void *read_all_the_time(void *unused)
{
	uint8_t *got = malloc(VM_BYTES);

	(void)unused;
	while (!stop) {
		struct vm_peer *peer = common;
		struct call call = one(peer->pid, false, got, peer->place[VM_HEAP], VM_BYTES);
		ssize_t moved = ask(&call);

		if (moved == VM_BYTES) {
			wrong += !vm_is_pattern(got, peer->value);
			done++;
		} else if (moved >= 0 || (errno != ESRCH && errno != EFAULT)) {
			wrong++;
		}
	}
	free(got);
	return NULL;
}

/* Processes come and go under the threads that read them. */
TEST(threads_read_while_processes_end)
{
	enum { THREADS = 4, PEERS = 12 };
	struct vm_peer *peers[PEERS + 1] = { start() };
	pthread_t thread[THREADS];

	common = peers[0];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_all_the_time, NULL), 0);
	for (int i = 1; i <= PEERS; i++) {
		peers[i] = start();
		common = peers[i];
		usleep(20000);
		vm_peer_kill(peers[i - 1], false);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(wrong, 0);
	assert_true(done > 1000);
	vm_peer_end(peers[PEERS]);
}

/* ---- the start ------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
	if (argc > 1)
		return vm_peer_main(argc, argv);
	vm_places_make(place);
	ended = fork();
	if (!ended)
		_exit(0);
	waitpid(ended, NULL, 0);
	oc_serve_messages();
	return oct_test_run(NULL, NULL);
}
