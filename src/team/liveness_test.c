/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a peer still there, and the one it was? Whatever the program does to descriptors, and where
 * the kernel gives none: who lives is not taken for dead, who is dead holds up nobody, and nothing
 * is copied into a process that has its number since.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/engine.h"
#include "base/clock.h"
#include "support/fork_team.h"
#include "support/process.h"
#include "support/refuse.h"
#include "support/test.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

enum { WRONG = 2, LARGE = 1 << 20 };

/* What a program does that thinks that all descriptors are its own: closes them, or has pipes
 * there, empty ones or with something in them. */
enum take { TAKE_CLOSE, TAKE_PIPES, TAKE_READABLE };
static void take_descriptors(enum take how)
{
	int ends[2];

	if (how != TAKE_CLOSE && pipe(ends))
		_exit(1);
	if (how == TAKE_READABLE && write(ends[1], "x", 1) != 1)
		_exit(1);
	for (int fd = 3; fd < 1024; fd++) {
		if (how == TAKE_CLOSE)
			close(fd);
		else if (fd != ends[0] && fd != ends[1] && fcntl(fd, F_GETFD) >= 0)
			dup2(ends[0], fd);
	}
}

/* ---- who lives ------------------------------------------------------------------------------- */

static int blocks_arrive(struct oc_team *team)
{
	static uint8_t block[LARGE];
	uint32_t rank = oc_team_rank(team);

	for (uint32_t turn = 0; turn < 4; turn++) {
		memset(block, rank == turn % 2 ? (int)turn + 1 : 0xee, LARGE);
		/* The others look whether it lives. */
		if (rank == 1)
			usleep(50000);
		if (oct_bcast(team, block, LARGE, turn % 2))
			return WRONG;
		for (size_t i = 0; i < LARGE; i++)
			if (block[i] != turn + 1)
				return WRONG + 1;
	}
	return oct_barrier(team);
}

static void *goes_on(void *team)
{
	_exit(blocks_arrive(team));
}

static void *leaves(void *nothing)
{
	pthread_exit(nothing);
}

/* Rank 1 has another thread go on, and its main thread leaves. `used_up`: no rank can open anything
 * any more. */
static int main_thread_leaves(struct oc_team *team, void *used_up)
{
	pthread_t thread;

	/* The first pthread_exit() opens libgcc_s, for which there is no descriptor later. */
	if (oct_barrier(team) || pthread_create(&thread, NULL, leaves, NULL) ||
	    pthread_join(thread, NULL))
		return 1;
	if (used_up) {
		take_descriptors(TAKE_READABLE);
		oct_starve(true);
	}
	if (oc_team_rank(team) != 1)
		return blocks_arrive(team);
	if (pthread_create(&thread, NULL, goes_on, team))
		return 1;
	pthread_exit(NULL);
}

static int main_threads_leave(void)
{
	int used_up = 1;

	return oct_fork_team(2, -1, main_thread_leaves, NULL) +
	       oct_fork_team(4, -1, main_thread_leaves, NULL) +
	       oct_fork_team(2, -1, main_thread_leaves, &used_up) +
	       oct_fork_team(4, -1, main_thread_leaves, &used_up);
}

/* Where a peer's memory is not to be looked at, /proc says who lives, and files without a
 * descriptor say it otherwise. */
static int main_threads_leave_by_shm(void)
{
	setenv("ONECOPY_MECHANISM", "shm", 1);
	return main_threads_leave();
}

TEST(a_rank_whose_main_thread_has_left_lives_and_copies)
{
	oct_may_leak = true; /* no thread or descriptor is there to look with, in these tests */
	assert_int_equal(oct_apart(main_threads_leave), 0);
}

TEST(a_rank_whose_main_thread_has_left_lives_by_shm)
{
	assert_int_equal(oct_apart(main_threads_leave_by_shm), 0);
}

static int no_descriptors(struct oc_team *team, void *arg)
{
	(void)arg;
	if (oct_barrier(team))
		return 1;
	oct_starve(true);
	return blocks_arrive(team);
}

/* As on a kernel before 5.3, and with old seccomp profiles. */
static int without_pidfds(void)
{
	return oct_refuse(SYS_pidfd_open, ENOSYS) ? oct_fork_team(3, -1, no_descriptors, NULL) : 77;
}

TEST(without_pidfds_and_descriptors_ranks_live)
{
	int status = oct_apart(without_pidfds);

	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		oct_skip("no system call can be refused here");
	assert_int_equal(status, 0);
}

/* ---- who does not ---------------------------------------------------------------------------- */

enum end { KILLED, CLOSED, PIPES, NONE_LEFT, OTHER_PROGRAM };
enum { TRIES = 50, MOST_RANKS = 3 };
#define SOON_NS UINT64_C(100000000) /* as wait.c promises */

/* Known to all ranks. */
struct ending {
	enum end end;
	/* Atomic, both: of the ranks that rank 1 is to be missed by, and that have missed it. */
	uint32_t ready, missed;
	uint64_t ended_at_ns, took_ns[MOST_RANKS]; /* atomic: until each of them had the error */
};

static int rank_1_ends(struct oc_team *team, void *arg)
{
	struct ending *ending = arg;
	enum end end = ending->end;
	bool missed;

	if (oct_barrier(team) || oc_peer_ended())
		return 1;
	if (end == CLOSED || end == PIPES)
		take_descriptors(end == PIPES ? TAKE_PIPES : TAKE_CLOSE);
	else if (end == NONE_LEFT)
		oct_starve(true);
	if (oc_team_rank(team) == 1) {
		/* However long a CPU is not theirs: they have seen it alive. Relaxed, both. */
		while (__atomic_load_n(&ending->ready, __ATOMIC_RELAXED) + 1 < oc_team_size(team))
			usleep(1000);
		usleep(20000);
		__atomic_store_n(&ending->ended_at_ns, oci_clock_ns(), __ATOMIC_RELAXED);
		if (end == OTHER_PROGRAM)
			execl("/bin/sleep", "sleep", "60", (char *)NULL);
		raise(SIGKILL);
	}
	__atomic_fetch_add(&ending->ready, 1, __ATOMIC_RELAXED);
	missed = oct_barrier(team) == -EOWNERDEAD && oc_team_dead_rank(team) == 1;
	__atomic_store_n(&ending->took_ns[oc_team_rank(team)],
			 oci_clock_ns() - __atomic_load_n(&ending->ended_at_ns, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	/* Who was told of it may have seen it alive in the same tick, for which a look holds. */
	while (missed && !oc_peer_ended())
		usleep(1000);
	__atomic_fetch_add(&ending->missed, 1, __ATOMIC_RELAXED);
	if (!missed)
		return WRONG;
	/* The one that runs on as another program is no rank any more. While it is killed it has no
	 * program, so the others are to have looked before. */
	while (__atomic_load_n(&ending->missed, __ATOMIC_RELAXED) + 1 < oc_team_size(team))
		usleep(1000);
	if (end == OTHER_PROGRAM)
		kill(team->team.member[1].pid, SIGKILL);
	return oct_barrier(team) == -EOWNERDEAD ? 0 : WRONG + 1;
}

static uint64_t longest_ns(const struct ending *ending)
{
	uint64_t longest = 0;

	for (int r = 0; r < MOST_RANKS; r++)
		if (ending->took_ns[r] > longest)
			longest = ending->took_ns[r];
	return longest;
}

/* The longest that a survivor took; 0 where one had no error. */
static uint64_t end_once(uint32_t ranks, struct ending *ending, enum end end)
{
	*ending = (struct ending){ .end = end };
	return oct_fork_team(ranks, 1, rank_1_ends, ending) ? 0 : longest_ns(ending);
}

/*
 * All survivors of one try have the error soon. Where others have the CPUs, soon is as soon as
 * they miss one whose descriptors stayed, in the tries before and behind it.
 */
static int ends_soon(uint32_t ranks, struct ending *ending)
{
	enum end end = ending->end;
	uint64_t took = 0, before = 0, after;

	for (int i = 0; i < TRIES; i++) {
		took = end_once(ranks, ending, end);
		if (!took)
			return 1;
		if (took <= SOON_NS)
			return 0;
		after = end_once(ranks, ending, KILLED);
		if (!after)
			return 1;
		if (before && took <= (before < after ? before : after))
			return 0;
		before = after;
	}
	print_error(
		"of %u ranks the last one had the error after %.0f ms, after %.0f where descriptors "
		"stayed\n",
		ranks, 1e-6 * (double)took, 1e-6 * (double)before);
	return 1;
}

static int ends(enum end end)
{
	struct ending *ending = mmap(NULL, sizeof(*ending), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int failed = 0;

	ending->end = end;
	for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
		failed += ends_soon(ranks, ending);
	munmap(ending, sizeof(*ending));
	return failed;
}

static int by_shm(void)
{
	setenv("ONECOPY_MECHANISM", "shm", 1);
	return ends(CLOSED) + ends(NONE_LEFT) + ends(OTHER_PROGRAM);
}

TEST(the_dead_are_noticed_when_the_program_closed_every_descriptor)
{
	assert_int_equal(ends(CLOSED), 0);
}

TEST(the_dead_are_noticed_when_every_descriptor_became_a_pipe)
{
	assert_int_equal(ends(PIPES), 0);
}

TEST(the_dead_are_noticed_when_no_descriptor_is_left)
{
	assert_int_equal(ends(NONE_LEFT), 0);
}

TEST(who_becomes_another_program_is_dead)
{
	assert_int_equal(ends(OTHER_PROGRAM), 0);
}

TEST(the_dead_are_noticed_without_single_copies)
{
	assert_int_equal(oct_apart(by_shm), 0);
}

/* Rank 1 dies, which rank 2 waits for; rank 0 waits for rank 3, which comes when it has the error.
 */
static int rank_0_hears_of_it(struct oc_team *team, void *told)
{
	if (oct_barrier(team))
		return 1;
	if (oc_team_rank(team) == 1)
		raise(SIGKILL);
	/* Relaxed, both: nothing else is read by it. */
	while (oc_team_rank(team) == 3 && !__atomic_load_n((uint32_t *)told, __ATOMIC_RELAXED))
		usleep(1000);
	if (oct_barrier(team) != -EOWNERDEAD || oc_team_dead_rank(team) != 1)
		return WRONG;
	if (oc_team_rank(team) == 0)
		__atomic_store_n((uint32_t *)told, 1, __ATOMIC_RELAXED);
	return 0;
}

static int along_a_chain(void)
{
	uint32_t *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	setenv("ONECOPY_BARRIER", "dissemination", 1);
	return oct_fork_team(4, 1, rank_0_hears_of_it, told);
}

TEST(a_death_is_heard_of_by_those_whom_nobody_in_between_tells)
{
	assert_int_equal(oct_apart(along_a_chain), 0);
}

/* ---- who has its number now ------------------------------------------------------------------ */

static char bystander[64] = "untouched";

/* Known to the test's own processes. */
struct later {
	bool skipped;
	bool ready; /* atomic */
};

/*
 * A child of ours with this number and with memory where the dead one had its segment, which ends
 * well if nobody has written to it. 0: not allowed.
 */
static pid_t child_with_number(pid_t number, uint64_t segment, struct later *later)
{
	size_t page = oci_os_page_bytes();
	uintptr_t at = segment & ~(uint64_t)(page - 1);
	struct clone_args how = { .exit_signal = SIGCHLD,
				  .set_tid = (uintptr_t)&number,
				  .set_tid_size = 1 };
	long pid;

	/* The dead one is there until it is reaped. */
	do {
		pid = syscall(SYS_clone3, &how, sizeof(how));
	} while (pid < 0 && errno == EEXIST && !usleep(1000));
	if (pid < 0)
		return 0;
	if (pid == 0) {
		bool mapped = mmap((void *)at, page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;

		__atomic_store_n(&later->ready, true, __ATOMIC_RELEASE);
		usleep(200000);
		_exit(!mapped || strcmp(bystander, "untouched") != 0);
	}
	return (pid_t)pid;
}

static int copies_to_the_next(struct oc_team *team, void *arg)
{
	struct oci_transfer push = { .peer = 1,
				     .direction = OCI_PUSH,
				     .bytes = 8,
				     .whole = 8,
				     .alone = true };
	struct oci_transfer pull = push;
	char mine[8] = "overrun";
	struct later *later = arg;
	pid_t next;
	int status;

	if (oct_barrier(team))
		return 1;
	if (oc_team_rank(team) == 1)
		raise(SIGKILL);
	next = child_with_number(team->team.member[1].pid, team->team.member[1].peer->id.address,
				 later);
	if (!next) {
		later->skipped = true;
		return 0;
	}
	while (!__atomic_load_n(&later->ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	/* Further than a look reaches: a number that is not chosen takes longer to come round. */
	usleep(20000);
	push.local = pull.local = (uintptr_t)mine;
	push.remote = pull.remote = (uintptr_t)bystander;
	pull.direction = OCI_PULL;
	if (oci_transfer_run(&team->team, &push, false) >= 0 ||
	    oci_transfer_run(&team->team, &pull, false) >= 0)
		return WRONG;
	waitpid(next, &status, 0);
	return status || strcmp(mine, "overrun") ? WRONG + 1 : 0;
}

TEST(nothing_is_copied_into_a_later_process_with_the_number)
{
	struct later *later = mmap(NULL, sizeof(*later), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool no;

	assert_int_equal(oct_fork_team(2, 1, copies_to_the_next, later), 0);
	no = later->skipped;
	munmap(later, sizeof(*later));
	if (no)
		oct_skip("to choose a process's number takes CAP_CHECKPOINT_RESTORE");
}

/* ---- how often that is asked ------------------------------------------------------------------
 */

enum { FREED = 300 };

/* Rank 1 has all of its teams while rank 0 frees its own: each may be the one that rank 1 has left
 * by now. */
static int frees_teams_before_its_peer(struct oc_team *team, void *asked)
{
	struct oc_team *freed[FREED];
	int failed = oct_barrier(team);
	long before;

	for (int i = 0; i < FREED && !failed; i++) {
		struct oc_bootstrap bootstrap = oct_again(team);

		failed = oc_team_create(&freed[i], &bootstrap) || oct_made(freed[i]) != 1;
	}
	if (oc_team_rank(team) == 1)
		oct_meet();
	before = oct_field("/proc/self/io", "syscr: %ld");
	for (int i = 0; i < FREED && !failed; i++)
		failed = oc_team_destroy(freed[i]);
	if (oc_team_rank(team) == 0) {
		*(long *)asked = oct_field("/proc/self/io", "syscr: %ld") - before;
		oct_meet();
	}
	return failed;
}

static int free_without_cma(void)
{
	long *asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			   -1, 0);

	setenv("ONECOPY_MECHANISM", "shm", 1);
	if (oct_fork_team(2, -1, frees_teams_before_its_peer, asked))
		return 1;
	return *asked < 1 || *asked > 10 * FREED;
}

TEST(who_lives_is_not_asked_for_each_team_that_it_has_yet_to_leave)
{
	if (access("/proc/self/io", R_OK))
		oct_skip("/proc/self/io, which counts calls of read(), cannot be read");
	assert_int_equal(oct_apart(free_without_cma), 0);
}
