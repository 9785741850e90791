/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads with two ends: the reader is this process, or a child of it; the sender the other one. More
 * than 500 lines, as it is a list of cases. */
#include "copy/invite.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "copy/access.h"
#include "copy/chunks.h"
#include "os/os.h"
#include "support/refuse.h"
#include "support/test.h"
#include "team/team.h"

enum { MOST = 6 << 20, PAGE = 4096 };
/* Bits of `stop`, of two that read from each other. */
enum { CHILD_HELPED = 1, PARENT_HELPED = 2, PARENT_OVER = 4 };

/* At the same address in all processes. */
static struct {
	uint8_t *from; /* the sender's: private to each process */
	uint8_t *to, *again;
	uint32_t *stop; /* shared */
} area;

static uint8_t value(size_t at)
{
	return (uint8_t)(at * 7 + at / 251 + at / 65537);
}

static uint64_t seed = 1;
static size_t pick(size_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(seed >> 33) % below;
}

static uint8_t *memory(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void prepare(void)
{
	if (oci_os_cpus_allowed() < 2)
		oct_skip("two that copy at once take two CPUs");
	if (!area.from) {
		area.from = memory(MOST, MAP_PRIVATE);
		area.to = memory(MOST, MAP_PRIVATE);
		area.again = memory(MOST, MAP_PRIVATE);
		area.stop = (uint32_t *)memory(PAGE, MAP_SHARED);
	}
	__atomic_store_n(area.stop, 0, __ATOMIC_RELAXED);
	for (size_t i = 0; i < MOST; i++)
		area.from[i] = value(i);
	oci_invite_allow(2);
}

/* What a sender does that only waits. */
static void wait_in_progress(void)
{
	while (!__atomic_load_n(area.stop, __ATOMIC_RELAXED))
		if (oci_invite_turn())
			oci_invite_help();
	_exit(0);
}

static pid_t start(void (*sender)(void))
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* What the parent has mapped of others, and its segment, are not the child's. */
	oci_invite_fork_child();
	oci_team_fork_child();
	oci_invite_allow(2);
	if (sender)
		sender();
	wait_in_progress();
	return 0;
}

static void stop(pid_t pid)
{
	__atomic_store_n(area.stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* All of it, by this process alone while the sender has no segment yet. */
static ssize_t read_some(pid_t pid, size_t to, size_t from, size_t bytes, size_t *pushed)
{
	ssize_t moved =
		oci_invite_read(pid, area.to + to, (uintptr_t)area.from + from, bytes, pushed);
	struct iovec here = { area.to + to, bytes }, there = { area.from + from, bytes };

	return moved == -EAGAIN ? oci_os_vm_read(pid, &here, 1, &there, 1) : moved;
}

static void check(size_t to, size_t from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (area.to[to + i] != value(from + i))
			fail_msg("byte %zu of %zu is wrong", i, bytes);
}

/* Until the sender takes part. */
static void wait_for_help(pid_t pid)
{
	size_t pushed = 0;

	while (!pushed)
		assert_int_equal(read_some(pid, 0, 0, 1 << 20, &pushed), 1 << 20);
}

TEST(bytes_are_right_whoever_copies_them)
{
	size_t pushed, all = 0;
	pid_t pid;

	prepare();
	pid = start(NULL);
	wait_for_help(pid);
	for (int round = 0; round < 200 || !all; round++) {
		size_t bytes = 1 + pick(3 << 20), to = 64 + pick(9000), from = pick(9000);

		memset(area.to, 0xa5, to + bytes + 64);
		assert_int_equal(read_some(pid, to, from, bytes, &pushed), bytes);
		check(to, from, bytes);
		for (size_t i = 1; i <= 64; i++)
			assert_true(area.to[to - i] == 0xa5 && area.to[to + bytes - 1 + i] == 0xa5);
		all += pushed;
	}
	stop(pid);
}

/* ---- what the kernel says -------------------------------------------------------------------- */

/* Pages of the sender's that cannot be read, some hundred KiB apart; the child has them likewise.
 */
static size_t hole(void)
{
	return (1 + pick(MOST / PAGE - 2)) * PAGE;
}

TEST(counts_and_errors_are_the_kernels)
{
	size_t pushed;
	pid_t pid;

	prepare();
	/* At the end, where only some reads get to. */
	assert_int_equal(mprotect(area.from + MOST - 16 * PAGE, PAGE, PROT_NONE), 0);
	pid = start(NULL);
	wait_for_help(pid);
	for (int round = 0; round < 100; round++) {
		size_t bytes = 1 + pick(3 << 20), from = pick(MOST - bytes), at = hole();
		size_t to = pick(MOST - bytes);
		struct iovec here = { area.again + to, bytes }, there = { area.from + from, bytes };
		ssize_t kernels, ours;

		/* In every other one this process's page cannot be written. */
		if (round % 2) {
			mprotect(area.to + at, PAGE, PROT_READ);
			mprotect(area.again + at, PAGE, PROT_READ);
		}
		/* Behind the end of what was found, the clock of which ticks each 10 ms at most. */
		usleep(round % 2 ? OCI_ACCESS_NS / 1000 + 11000 : 0);
		if (round % 10 == 9)
			there.iov_base = area.from + MOST - 16 * PAGE + pick(PAGE);
		if (round % 10 == 9)
			here.iov_len = there.iov_len = bytes = 1 + pick(8 * PAGE);
		kernels = oci_os_vm_read(pid, &here, 1, &there, 1);
		ours = oci_invite_read(pid, area.to + to, (uintptr_t)there.iov_base, bytes,
				       &pushed);
		if (ours != -EAGAIN) {
			assert_int_equal(ours, kernels);
			if (ours > 0)
				assert_memory_equal(area.to + to, area.again + to, ours);
		}
		mprotect(area.to + at, PAGE, PROT_READ | PROT_WRITE);
		mprotect(area.again + at, PAGE, PROT_READ | PROT_WRITE);
	}
	mprotect(area.from + MOST - 16 * PAGE, PAGE, PROT_READ | PROT_WRITE);
	stop(pid);
}

TEST(a_process_without_a_segment_is_not_invited)
{
	size_t pushed;

	prepare();
	assert_int_equal(
		oci_invite_read(getppid(), area.to, (uintptr_t)area.from, 1 << 20, &pushed),
		-EAGAIN);
	assert_int_equal(oci_invite_read(getpid(), area.to, (uintptr_t)area.from, 1 << 20, &pushed),
			 -EAGAIN);
}

/* ---- ends that go ---------------------------------------------------------------------------- */

/* The place where somebody has invited us. */
static struct oci_invitation *invited(void)
{
	while (!(oci_invited->places >> 32))
		if (oci_invite_turn() && !(oci_invited->places >> 32))
			oci_invite_help(); /* so that there is a segment */
	return &oci_invited->invitation[__builtin_ctzll(oci_invited->places >> 32)];
}

/* Takes a chunk and dies. */
static void let_steal(void)
{
	struct oci_invitation *v;
	struct oci_chunks chunks;
	uint64_t index;

	/* It may come too late to take one. */
	do {
		v = invited();
		chunks = oci_invite_chunks(v, v->bytes);
	} while (!oci_chunks_help(&chunks, &index));
	kill(getpid(), SIGKILL);
}

TEST(a_sender_that_dies_with_a_chunk_is_not_waited_for)
{
	bool stolen = false;

	prepare();
	/* It may come too late to take a chunk. */
	while (!stolen) {
		pid_t pid = start(let_steal);
		size_t pushed;
		ssize_t moved;
		int status;

		do
			moved = oci_invite_read(pid, area.to, (uintptr_t)area.from, 4 << 20,
						&pushed);
		while (moved == -EAGAIN);
		while (moved == 4 << 20)
			moved = oci_invite_read(pid, area.to, (uintptr_t)area.from, 4 << 20,
						&pushed);
		/* What is its end is read by this process, and the kernel knows it no more. */
		stolen = moved > 0 && moved < 4 << 20;
		assert_true(moved == -ESRCH || moved == -EAGAIN || stolen);
		if (stolen)
			check(0, 0, (size_t)moved);
		__atomic_store_n(area.stop, 1, __ATOMIC_RELAXED);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		__atomic_store_n(area.stop, 0, __ATOMIC_RELAXED);
	}
}

TEST(a_reader_that_dies_leaves_its_place)
{
	int status;
	pid_t pid;

	prepare();
	while (oci_invited != oci_segment_invitations())
		if (oci_invite_turn())
			oci_invite_help();
	pid = fork();
	if (!pid) {
		pid_t parent = getppid();
		struct oci_invitations *all;
		struct oci_peer *peer;

		oci_invite_fork_child();
		oci_team_fork_child();
		if (oci_peer_find(&peer, parent))
			_exit(1);
		all = oci_peer_invitations(peer);
		all->invitation[0] = (struct oci_invitation){ .pid = (uint64_t)getpid(),
							      .segment = (uintptr_t)area.to,
							      .from = (uintptr_t)area.from,
							      .bytes = 1 << 20 };
		__atomic_fetch_or(&all->places, 1ull | 1ull << 32, __ATOMIC_RELEASE);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	while (oci_invited->places >> 32)
		if (oci_invite_turn())
			oci_invite_help();
}

/* ---- what is quicker ------------------------------------------------------------------------- */

/* As fill_slots(), but it takes 2 ms for a chunk, in which a read alone would be over ten times. */
static void fill_slowly(struct oci_invitation *v, int64_t slots)
{
	struct oci_chunks chunks = oci_invite_chunks(v, v->bytes);
	uint64_t given = oci_chunks_given(&chunks), begun = oci_clock_ns(), index;

	oci_store_relaxed(&v->slots, (uint64_t)slots);
	/* Acquire: the slot has been read, pairs with the release in empty_slot(). */
	if (given - oci_load_acquire(&v->emptied) >= OCI_INVITATION_SLOTS ||
	    !oci_chunks_help(&chunks, &index))
		return;
	memcpy((uint8_t *)oci_segment_base() + slots +
		       given % OCI_INVITATION_SLOTS * OCI_INVITATION_SLOT_BYTES,
	       area.from + oci_chunk_at(&chunks, index), oci_chunk_length(&chunks, index));
	while (oci_clock_ns() - begun < 2000000)
		oci_invite_turn(); /* nor does it seem to be elsewhere */
	oci_chunks_helped(&chunks, true);
}

static void help_slowly(void)
{
	int64_t slots = 0;

	while (!__atomic_load_n(area.stop, __ATOMIC_RELAXED)) {
		if (!oci_invite_turn())
			continue;
		if (!slots) {
			oci_invite_help(); /* so that there is a segment */
			slots = oci_segment_alloc(OCI_INVITATION_SLOTS * OCI_INVITATION_SLOT_BYTES);
		}
		/* Sequentially consistent: as in look_at(). One reader takes place 0. */
		__atomic_store_n(&oci_invited->reading, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&oci_invited->places, __ATOMIC_SEQ_CST) & OCI_OPEN(0))
			fill_slowly(&oci_invited->invitation[0], slots);
		oci_store_release(&oci_invited->reading, 0);
	}
	_exit(0);
}

TEST(a_sender_that_is_slower_than_a_read_is_left_alone)
{
	unsigned int shared = 0;
	size_t pushed;
	pid_t pid;

	prepare();
	pid = start(help_slowly);
	wait_for_help(pid);
	/* Some dozens are until that is known; fewer reads than until it is looked at again. */
	for (int round = 0; round < 3000 && shared < 100; round++) {
		assert_int_equal(read_some(pid, 0, 0, 1 << 20, &pushed), 1 << 20);
		shared += pushed != 0;
	}
	assert_in_range(shared, 0, 99);
	check(0, 0, 1 << 20);
	stop(pid);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refuse(uint32_t call)
{
	if (!oct_refuse(call, EPERM))
		_exit(1);
}

static void refuse_reads(void)
{
	refuse(SYS_process_vm_readv);
}

static void refuse_writes(void)
{
	refuse(SYS_process_vm_writev);
}

static pid_t start_and_read(void)
{
	pid_t pid = start(NULL);

	wait_for_help(pid);
	return pid;
}

/* That one lives is looked at once a tick. */
static void stop_and_see(pid_t pid)
{
	stop(pid);
	__atomic_store_n(area.stop, 0, __ATOMIC_RELAXED);
	while (!oci_peers_any_dead())
		usleep(1000);
}

TEST(senders_that_have_ended_are_forgotten)
{
	pid_t pid;

	prepare();
	stop_and_see(start_and_read());
	oci_invite_forget_dead();
	assert_false(oci_peers_any_dead());
	/* Asking for another one does it, too. */
	stop_and_see(start_and_read());
	pid = start_and_read();
	assert_false(oci_peers_any_dead());
	stop(pid);
}

TEST(a_sender_that_may_not_write_to_others_copies_its_part)
{
	pid_t pid;

	prepare();
	pid = start(refuse_writes);
	wait_for_help(pid);
	check(0, 0, 1 << 20);
	stop(pid);
}

TEST(a_sender_that_cannot_tell_who_reads_declines)
{
	size_t pushed;
	pid_t pid;

	prepare();
	pid = start(refuse_reads);
	for (int round = 0; round < 200; round++) {
		memset(area.to, 0xa5, 1 << 20);
		assert_int_equal(read_some(pid, 0, 0, 1 << 20, &pushed), 1 << 20);
		assert_int_equal(pushed, 0);
		check(0, 0, 1 << 20);
	}
	stop(pid);
}

/* Its chunks lie in all slots when it may look at the reader no more. */
static void lose_the_right(void)
{
	struct oci_invitation *v;
	struct oci_chunks chunks;
	uint64_t index, count = 0;
	int64_t slots = 0;

	/* It may come too late to take one. */
	while (!count) {
		v = invited();
		chunks = oci_invite_chunks(v, v->bytes);
		if (!slots)
			slots = oci_segment_alloc(OCI_INVITATION_SLOTS * OCI_INVITATION_SLOT_BYTES);
		while (count < OCI_INVITATION_SLOTS && oci_chunks_help(&chunks, &index))
			memcpy((uint8_t *)oci_segment_base() + slots +
				       count++ * OCI_INVITATION_SLOT_BYTES,
			       (const uint8_t *)(uintptr_t)v->from + oci_chunk_at(&chunks, index),
			       oci_chunk_length(&chunks, index));
	}
	oci_store_relaxed(&v->slots, (uint64_t)slots);
	refuse_reads();
	usleep(30000); /* it is looked at once a tick */
	while (count--)
		oci_chunks_helped(&chunks, true);
	/* While the reader reads the first of them. One that follows another at once looks. */
	oci_invite_help();
	oci_invite_help();
	wait_in_progress();
}

TEST(chunks_of_a_sender_that_cannot_tell_any_more_who_reads_are_right)
{
	size_t pushed = 0;
	ssize_t moved;
	pid_t pid;

	prepare();
	pid = start(lose_the_right);
	do {
		memset(area.to, 0xa5, 4 << 20);
		moved = oci_invite_read(pid, area.to, (uintptr_t)area.from, 4 << 20, &pushed);
		assert_true(moved == -EAGAIN || moved == 4 << 20);
	} while (!pushed);
	check(0, 0, 4 << 20);
	stop(pid);
}

/* ---- both ways ------------------------------------------------------------------------------- */

/* Reads from that process until either has been helped. False: a wrong byte, or not within so many
 * reads. */
static bool read_both_ways(pid_t pid, uint32_t bit)
{
	const uint32_t both = CHILD_HELPED | PARENT_HELPED;
	uint32_t helped = 0;
	size_t pushed;

	for (int round = 0; round < 100 || ((helped & both) != both && round < 10000); round++) {
		memset(area.to, 0xa5, 1 << 20);
		oci_invite_turn(); /* and does not help */
		if (read_some(pid, 0, 4096, 1 << 20, &pushed) != 1 << 20 ||
		    memcmp(area.to, area.from + 4096, 1 << 20) != 0)
			return false;
		helped = __atomic_or_fetch(area.stop, pushed ? bit : 0, __ATOMIC_RELAXED);
	}
	return (helped & both) == both;
}

static void read_back(void)
{
	bool served = read_both_ways(getppid(), CHILD_HELPED);

	/* The parent may still read from here. */
	while (!(__atomic_load_n(area.stop, __ATOMIC_RELAXED) & PARENT_OVER))
		usleep(100);
	_exit(!served);
}

/* Nobody helps but from inside its own read. */
TEST(both_serve_each_other_while_they_read)
{
	int status;
	bool served;
	pid_t pid;

	oci_invite_near_ns = UINT64_MAX;
	prepare();
	pid = start(read_back);
	served = read_both_ways(pid, PARENT_HELPED);
	__atomic_fetch_or(area.stop, PARENT_OVER, __ATOMIC_RELAXED);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(served);
	assert_int_equal(status, 0);
	oci_invite_near_ns = OCI_NEAR_NS;
}
