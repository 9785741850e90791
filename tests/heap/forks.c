/* SPDX-License-Identifier: BSD-3-Clause */
/* fork, posix_spawn, and another process that maps the arena. */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The child looks only when the parent has changed what both had, and the other way round. */
static void check_apart(void)
{
	size_t bytes = 50 * MIB;
	char *small = strdup("before"), *big = malloc(bytes), byte = 0;
	int go[2], back[2];
	pid_t child;

	CHECK(small && big && !pipe(go) && !pipe(back));
	memset(big, 1, bytes);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(read(go[0], &byte, 1) == 1);
		CHECK(!strcmp(small, "before"));
		for (size_t i = 0; i < bytes; i += 4096)
			CHECK(big[i] == 1);
		memset(big, 3, bytes);
		strcpy(small, "child");
		CHECK(write(back[1], "", 1) == 1);
		free(big);
		free(small);
		for (size_t size = 10; size < 100 * MIB; size *= 7) {
			big = malloc(size);
			CHECK(big);
			memset(big, 4, size);
			free(big);
		}
		_exit(0);
	}
	memset(big, 2, bytes);
	strcpy(small, "after");
	CHECK(write(go[1], "", 1) == 1 && read(back[0], &byte, 1) == 1);
	CHECK(!strcmp(small, "after"));
	for (size_t i = 0; i < bytes; i += 4096)
		CHECK(big[i] == 2);
	reap(child);
	free(big);
	free(small);
	close(go[0]), close(go[1]), close(back[0]), close(back[1]);
}

static void fork_apart(void)
{
	check_apart();
	check_apart();
}

/* A child forks in its turn, with and without an arena of its own. */
static void fork_of_a_child(void)
{
	pid_t child = fork();
	char *memory;

	CHECK(child >= 0);
	if (!child) {
		check_apart();
		CHECK(arena()->base && arena()->fd >= 0);
		memory = arena()->alloc(3 * MIB, 64);
		CHECK(memory && in_arena(memory, 3 * MIB));
		memset(memory, 1, 3 * MIB);
		CHECK(!in_arena(malloc(100), 100));
		check_apart();
		CHECK(memory[12345] == 1);
		arena()->free(memory);
		_exit(0);
	}
	reap(child);
	CHECK(in_arena(malloc(100), 100));
}

static void fork_without_descriptors(void)
{
	struct rlimit limit = { 3, 3 };
	char *memory = strdup("before");
	pid_t child;

	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		CHECK(!strcmp(memory, "before"));
		strcpy(memory, "child");
		_exit(0);
	}
	reap(child);
	CHECK(!strcmp(memory, "before"));
}

static void fork_with_its_file_closed(void)
{
	closefrom(3);
	CHECK(arena()->fd == -1 && arena()->base && strstr(arena()->why, "closed"));
	CHECK(in_arena(malloc(100), 100));
	/* Another file takes the number: it must stay what it is. */
	CHECK(dup2(0, 1000) == 1000 || dup2(1, 1000) == 1000);
	check_apart();
	CHECK(fcntl(1000, F_GETFD) >= 0);
}

/* A file to swap to, where there is none and the system lets us. */
static bool swap_somewhere(const char *path)
{
	/* The header that mkswap(8) writes: version 1, the last page, and how its first page ends.
	 */
	const uint32_t header[2] = { 1, 16 * MIB / 4096 - 1 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool done = fd >= 0 && !posix_fallocate(fd, 0, 16 * MIB);

	done = done && pwrite(fd, header, sizeof(header), 1024) == sizeof(header) &&
	       pwrite(fd, "SWAPSPACE2", 10, 4096 - 10) == 10 && !fsync(fd) && !swapon(path, 0);
	close(fd);
	return done;
}

static bool write_to(const char *folder, const char *name, const char *text)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r+e");
	return file && fputs(text, file) >= 0 && !fclose(file);
}

/* Puts this process into a memory group of its own. The group it is made in, "": there is none. */
static const char *group_alone(char *folder, size_t room)
{
	static const char *const parent[] = { "/sys/fs/cgroup/memory", "/sys/fs/cgroup" };

	for (int version = 0; version < 2; version++) {
		snprintf(folder, room, "%s/onecopy-test-%d", parent[version], (int)getpid());
		if (!mkdir(folder, 0755) && write_to(folder, "cgroup.procs", "0"))
			return parent[version];
		rmdir(folder);
	}
	return "";
}

static size_t swapped_out(void *memory, size_t bytes)
{
	static unsigned char resident[64];
	size_t out = 0, pages = bytes / 4096;

	CHECK(pages <= sizeof(resident) && !mincore(memory, bytes, resident));
	for (size_t page = 0; page < pages; page++)
		out += !(resident[page] & 1);
	return out;
}

/* Pages that are swapped out are no holes. Blocks of no size that large pages are made of. */
static void fork_with_its_file_closed_and_pages_swapped_out(void)
{
	enum { BLOCKS = 100, WORDS = 5000, PAGES = WORDS * sizeof(size_t) / 4096 + 1 };
	char folder[100];
	const char *parent = group_alone(folder, sizeof(folder));
	bool swaps = swap_somewhere("swapped-out");
	size_t *block[BLOCKS], out = 0;
	pid_t child;

	for (size_t i = 0; i < BLOCKS; i++) {
		block[i] = malloc(WORDS * sizeof(size_t));
		CHECK(in_arena(block[i], WORDS * sizeof(size_t)));
		for (size_t at = 0; at < WORDS; at++)
			block[i][at] = i * WORDS + at + 1;
	}
	closefrom(3);
	/* Version 1 of memory groups, and 2. */
	if (!write_to(folder, "memory.force_empty", "0"))
		write_to(folder, "memory.reclaim", "64M");
	for (int i = 0; i < BLOCKS; i++)
		out += swapped_out((void *)((uintptr_t)block[i] & ~(uintptr_t)4095), PAGES * 4096);
	child = fork();
	if (!child) {
		for (size_t i = 0; i < BLOCKS; i++)
			for (size_t at = 0; at < WORDS; at++)
				if (block[i][at] != i * WORDS + at + 1)
					_exit(1);
		_exit(0);
	}
	if (swaps)
		swapoff("swapped-out");
	unlink("swapped-out");
	if (*parent && write_to(parent, "cgroup.procs", "0"))
		rmdir(folder);
	reap(child);
	if (!out) {
		printf("skipped: no page was swapped out: there is no swap, or no memory group of "
		       "its own, and none may be made\n");
		exit(77);
	}
}

static _Atomic bool stop;

static void *churn(void *argument)
{
	static _Thread_local char *block[64];
	unsigned int seed = (unsigned int)(uintptr_t)argument;

	while (!stop) {
		unsigned int at = (unsigned int)rand_r(&seed) % 64;

		free(block[at]);
		block[at] = malloc((size_t)rand_r(&seed) % 3000);
	}
	return NULL;
}

/* A child that allocates although its parent had threads that did. */
static void fork_among_threads(void)
{
	pthread_t thread[3];

	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&thread[i], NULL, churn, (void *)(i + 1)));
	for (int round = 0; round < 100; round++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child) {
			for (int i = 0; i < 2000; i++) {
				char *memory = malloc((size_t)i);

				CHECK(memory);
				memset(memory, 1, (size_t)i);
				free(memory);
			}
			_exit(0);
		}
		reap(child);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static atomic_bool cancelled;
static pid_t made;

/* Nothing here is a place to be cancelled at. */
static void *fork_once_cancelled(void *result)
{
	char *large;

	while (!cancelled)
		;
	large = malloc(64 * MIB);
	if (large)
		large[0] = 1;
	made = fork();
	if (!made)
		_exit(large && large[0] == 1 ? 7 : 8);
	free(large);
	return result;
}

/* fork() and a first large malloc() go on in a thread that is to be cancelled. */
static void fork_of_a_cancelled_thread(void)
{
	void *result = NULL;
	pthread_t thread;
	int status;

	CHECK(!pthread_create(&thread, NULL, fork_once_cancelled, &made));
	CHECK(!pthread_cancel(thread));
	cancelled = true;
	CHECK(!pthread_join(thread, &result) && result == &made);
	CHECK(waitpid(made, &status, 0) == made && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	made = fork();
	CHECK(made >= 0);
	if (!made)
		_exit(0);
	reap(made);
}

static long child_faults(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_CHILDREN, &usage));
	return usage.ru_minflt;
}

/* Only a real fork copies: a page of the parent's is a fault of the child's. */
static void spawn_copies_nothing(void)
{
	char *const words[] = { "true", NULL };
	char *big = malloc(100 * MIB);
	long faults;
	pid_t child;

	CHECK(big);
	memset(big, 1, 100 * MIB);
	for (int i = 0; i < 10; i++) {
		CHECK(!posix_spawnp(&child, "true", NULL, NULL, words, environ));
		reap(child);
	}
	faults = child_faults();
	CHECK(faults < 10 * 2000);
	child = vfork();
	if (!child) {
		execvp("true", words);
		_exit(1);
	}
	reap(child);
	CHECK(child_faults() - faults < 2000);
	CHECK(big[50 * MIB] == 1);
}

/* What a peer does: the nonce says whose file it is, and its bytes are the owner's at once. */
static void mapped_by_a_peer(void)
{
	static uint8_t nonce[16];
	char path[64], *text = strdup("written by the owner"), byte;
	size_t offset = (size_t)((uint8_t *)text - arena()->base), bytes = arena()->bytes;
	int go[2], back[2], fd = arena()->fd;
	pid_t child, owner = getpid();

	memcpy(nonce, arena()->nonce, 16);
	CHECK(!pipe(go) && !pipe(back));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		uint8_t *peer;

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", owner, fd);
		fd = open(path, O_RDWR | O_CLOEXEC);
		CHECK(fd >= 0);
		peer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		CHECK(peer != MAP_FAILED && !memcmp(peer, nonce, 16));
		CHECK(!strcmp((char *)peer + offset, "written by the owner"));
		strcpy((char *)peer + offset, "by the peer");
		CHECK(write(back[1], "", 1) == 1 && read(go[0], &byte, 1) == 1);
		CHECK(!strcmp((char *)peer + offset, "by the owner again"));
		_exit(0);
	}
	CHECK(read(back[0], &byte, 1) == 1 && !strcmp(text, "by the peer"));
	strcpy(text, "by the owner again");
	CHECK(write(go[1], "", 1) == 1);
	reap(child);
}

const struct scenario fork_scenarios[] = {
	{ "fork_apart", fork_apart },
	{ "fork_of_a_child", fork_of_a_child },
	{ "fork_without_descriptors", fork_without_descriptors },
	{ "fork_with_its_file_closed", fork_with_its_file_closed },
	{ "fork_with_its_file_closed_and_pages_swapped_out",
	  fork_with_its_file_closed_and_pages_swapped_out },
	{ "fork_among_threads", fork_among_threads },
	{ "fork_of_a_cancelled_thread", fork_of_a_cancelled_thread },
	{ "spawn_copies_nothing", spawn_copies_nothing },
	{ "mapped_by_a_peer", mapped_by_a_peer },
	{ NULL, NULL },
};
