/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "vm.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

/* Random pieces reach that far. */
enum { ROOM = 4 * VM_BYTES };

static uint8_t data[ROOM] __attribute__((aligned(4096)));

static void write_pattern(uint8_t *bytes, uint8_t value)
{
	for (size_t i = 0; i < VM_BYTES; i++)
		bytes[i] = (uint8_t)(value + i * 5 + i / 253);
}

bool vm_is_pattern(const uint8_t *bytes, uint8_t value)
{
	for (size_t i = 0; i < VM_BYTES; i++)
		if (bytes[i] != (uint8_t)(value + i * 5 + i / 253))
			return false;
	return true;
}

static uint8_t *of_malloc(void)
{
	void *memory = NULL;

	CHECK(!posix_memalign(&memory, PAGE, ROOM));
	return memory;
}

static uint8_t *of_mmap(void)
{
	uint8_t *memory = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED && !mprotect(memory, VM_BYTES, PROT_READ | PROT_WRITE));
	return memory;
}

void vm_places_make(uint8_t *place[VM_PLACES])
{
	place[VM_HEAP] = of_malloc();
	place[VM_DATA] = data;
	place[VM_MAPPING] = of_mmap();
	place[VM_HOLED] = of_malloc();
	place[VM_HOLED_MAPPING] = of_mmap();
	for (int i = 0; i < VM_PLACES; i++)
		write_pattern(place[i], (uint8_t)i);
	CHECK(!mprotect(place[VM_HOLED] + 3 * PAGE, PAGE, PROT_NONE));
	CHECK(!mprotect(place[VM_HOLED] + 9 * PAGE, 2 * PAGE, PROT_READ));
	CHECK(!mprotect(place[VM_HOLED_MAPPING] + PAGE, PAGE, PROT_NONE));
	CHECK(!munmap(place[VM_HOLED_MAPPING] + 7 * PAGE, PAGE));
}

/* ---- the other process ---------------------------------------------------------------------- */

static uint8_t *place[VM_PLACES];
static pid_t child;
static int in, out;

static void tell(int64_t answer)
{
	CHECK(write(out, &answer, sizeof(answer)) == sizeof(answer));
}

static void tell_places(uint8_t value)
{
	uint64_t end = 0;

	write_pattern(place[VM_HEAP], value);
	if (getenv("LD_PRELOAD"))
		end = (uintptr_t)arena()->base + arena()->bytes;
	for (int i = 0; i < VM_PLACES; i++)
		tell((int64_t)(uintptr_t)place[i]);
	tell((int64_t)end);
}

/* Until it is killed. Of a child that shares our memory: no stack of its own. */
static void stay(void)
{
	for (;;)
		syscall(SYS_pause);
}

static int vfork_child(void *unused)
{
	(void)unused;
	stay();
	return 0;
}

static pid_t make_child(enum vm_action how)
{
	static uint8_t stack[16384] __attribute__((aligned(16)));
	int ready[2];
	char byte;

	if (how == VM_VFORK)
		return clone(vfork_child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	CHECK(!pipe(ready));
	child = how == VM_FORK_RAW ? (pid_t)syscall(SYS_fork) : fork();
	/* The one by the system call has our very heap. */
	if (!child && how == VM_FORK)
		write_pattern(place[VM_HEAP], 77);
	if (!child)
		CHECK(write(ready[1], "", 1) == 1);
	else
		CHECK(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	if (!child)
		stay();
	return child;
}

/* As a process has it that looks for our heap, for a moment. */
static int64_t open_heap_of_parent(void)
{
	char path[64], link[64];
	ssize_t length;

	for (int fd = 3; fd < 65536; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(), fd);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (!strncmp(link, "/memfd:onecopy-heap", 19)) {
			fd = open(path, O_RDWR | O_CLOEXEC);
			return fd >= 0 && fd < arena()->fd ? 0 : -1;
		}
	}
	return -1;
}

static int64_t act(enum vm_action action)
{
	uint8_t *heap = place[VM_HEAP], *third = heap + 2 * PAGE;
	void *at;
	int id;

	switch (action) {
	case VM_DONTNEED:
		return madvise(heap, VM_BYTES, MADV_DONTNEED);
	case VM_REWRITE:
		write_pattern(heap, 99);
		return 0;
	case VM_FREE_ALL:
		free(heap);
		return 0;
	case VM_FORBID:
		return mprotect(third, PAGE, PROT_NONE);
	case VM_READ_ONLY:
		return mprotect(third, PAGE, PROT_READ);
	case VM_ALLOW:
		return mprotect(third, PAGE, PROT_READ | PROT_WRITE);
	case VM_UNMAP:
		return munmap(third, PAGE);
	case VM_MAP_OVER:
		if (mmap(heap, VM_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != heap)
			return -1;
		write_pattern(heap, 111);
		return 0;
	case VM_ATTACH_OVER:
		id = shmget(IPC_PRIVATE, VM_BYTES, IPC_CREAT | 0600);
		at = shmat(id, heap, SHM_REMAP);
		if (shmctl(id, IPC_RMID, NULL) || at != heap)
			return -1;
		write_pattern(heap, 111);
		return 0;
	case VM_REAP:
		kill(child, SIGKILL);
		return waitpid(child, NULL, 0) == child ? 0 : -1;
	case VM_OPEN_OURS:
		return open_heap_of_parent();
	case VM_HIDE:
		return prctl(PR_SET_DUMPABLE, 0);
	case VM_LARGE:
		return (int64_t)(uintptr_t)malloc(VM_LARGE_BYTES);
	case VM_FORK:
	case VM_FORK_RAW:
	case VM_VFORK:
		child = make_child(action);
		return child;
	case VM_EXEC:
		break;
	}
	return -1;
}

/* peer IN OUT VALUE */
int vm_peer_main(int argc, char **argv)
{
	uint8_t action;

	CHECK(argc == 5 && !strcmp(argv[1], "peer"));
	in = atoi(argv[2]);
	out = atoi(argv[3]);
	vm_places_make(place);
	tell_places((uint8_t)atoi(argv[4]));
	while (read(in, &action, 1) == 1) {
		if (action == VM_EXEC)
			execv("/proc/self/exe", argv);
		tell(act(action));
	}
	return 0;
}

/* ---- its life ------------------------------------------------------------------------------- */

static int64_t hear(const struct vm_peer *peer)
{
	int64_t answer;

	CHECK(read(peer->from, &answer, sizeof(answer)) == sizeof(answer));
	return answer;
}

static void hear_places(struct vm_peer *peer)
{
	for (int i = 0; i <= VM_PLACES; i++)
		peer->place[i] = (uint64_t)hear(peer);
}

static pid_t fork_as(pid_t pid)
{
	struct clone_args arguments = { .exit_signal = SIGCHLD,
					.set_tid = (uintptr_t)&pid,
					.set_tid_size = 1 };

	return pid ? (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments)) : fork();
}

static struct vm_peer *begin(pid_t pid, bool heap)
{
	static uint8_t value;
	struct vm_peer *peer = calloc(1, sizeof(*peer));
	char words[3][16], *arguments[6] = { "oc_heap_vm", "peer", words[0], words[1], words[2] };
	int to[2], from[2];

	CHECK(peer && !pipe(to) && !pipe(from));
	snprintf(words[0], sizeof(words[0]), "%d", to[0]);
	snprintf(words[1], sizeof(words[1]), "%d", from[1]);
	snprintf(words[2], sizeof(words[2]), "%d", ++value);
	peer->value = value;
	/* By the system call the child has our very heap: it may not write there. */
	pid = fork_as(pid);
	if (!pid) {
		/* Its input ends with us. */
		close(to[1]);
		close(from[0]);
		if (heap)
			execv("/proc/self/exe", arguments);
		else
			execve("/proc/self/exe", arguments, (char *[]){ NULL });
		_exit(126);
	}
	peer->pid = pid;
	close(to[0]);
	close(from[1]);
	peer->to = to[1];
	peer->from = from[0];
	if (peer->pid < 0) {
		close(to[1]);
		close(from[0]);
		free(peer);
		return NULL;
	}
	hear_places(peer);
	return peer;
}

struct vm_peer *vm_peer_start(void)
{
	return begin(0, true);
}

struct vm_peer *vm_peer_start_without_heap(void)
{
	return begin(0, false);
}

struct vm_peer *vm_peer_start_as(pid_t pid)
{
	return begin(pid, true);
}

int64_t vm_peer_do(struct vm_peer *peer, enum vm_action action)
{
	uint8_t byte = (uint8_t)action;
	int64_t answer;

	CHECK(write(peer->to, &byte, 1) == 1);
	if (action == VM_EXEC) {
		hear_places(peer);
		return 0;
	}
	answer = hear(peer);
	CHECK(action >= VM_LARGE ? answer > 0 : !answer);
	return answer;
}

void vm_peer_kill(struct vm_peer *peer, bool zombie)
{
	siginfo_t info;

	CHECK(!kill(peer->pid, SIGKILL));
	CHECK(!waitid(P_PID, (id_t)peer->pid, &info, WEXITED | (zombie ? WNOWAIT : 0)));
	close(peer->to);
	close(peer->from);
	peer->to = peer->from = -1;
	/* Threads may still look at it. */
}

void vm_peer_end(struct vm_peer *peer)
{
	vm_peer_kill(peer, false);
	free(peer);
}
