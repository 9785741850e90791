/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API: this process is rank 0 and forks the others. */
#include "lab/harness/meet.h"
#include "pingpong.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct meet meet;
static struct oc_team *team;

static void fail(const char *what, int error)
{
	fprintf(stderr, "pingpong: rank %u: %s: %s\n", meet.rank, what,
		team && error != -ENOMEM ? oc_team_error(team) : strerror(-error));
	/* The other ranks notice: as a dead peer, or by their parent's end. */
	_exit(1);
}

void transport_open(struct transport *me, int *argc, char ***argv, uint32_t ranks)
{
	size_t bytes = ranks * sizeof(struct meet_place);
	pid_t parent = getpid();
	int error;

	(void)argc;
	(void)argv;
	meet.ranks = ranks;
	meet.place = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meet.place == MAP_FAILED)
		fail("no memory to meet in", -errno);
	for (uint32_t r = 1; r < ranks && !meet.rank; r++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("a rank cannot be started", -errno);
		if (pid)
			continue;
		meet.rank = r;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	/* A team knows of a heap that is there when it is made. */
	oc_free(oc_alloc(1));
	error = meet_team(&meet, &team);
	if (error)
		fail("the ranks cannot form a team", error);
	*me = (struct transport){ meet.rank, ranks };
}

void transport_close(int status)
{
	int ended, failed = status;

	if (status)
		_exit(status);
	meet_barrier(&meet);
	oc_team_destroy(team);
	fflush(stdout);
	if (meet.rank)
		_exit(0);
	while (wait(&ended) > 0)
		failed |= ended != 0;
	exit(failed ? 1 : 0);
}

void transport_send(uint32_t peer, const void *buffer, size_t bytes)
{
	int error = oc_send(team, peer, 0, buffer, bytes);

	if (error)
		fail("oc_send", error);
}

void transport_recv(uint32_t peer, void *buffer, size_t bytes)
{
	int error = oc_recv(team, peer, 0, buffer, bytes, NULL);

	if (error)
		fail("oc_recv", error);
}

void transport_window(uint32_t peer, const void *send, unsigned int sends, void *recv,
		      unsigned int receives, size_t bytes)
{
	(void)peer;
	(void)send;
	(void)sends;
	(void)recv;
	(void)receives;
	(void)bytes;
	fail("--stream and --both are of the MPIs", -ENOTSUP);
}

/* A blocking message is gone when its call returns. */
void transport_drive(void)
{
}

void transport_alltoall(const void *send, void *recv, size_t bytes)
{
	struct oc_call call = { .collective = OC_ALLTOALL,
				.send = send,
				.recv = recv,
				.bytes = bytes };
	int error = oc_collective(team, &call);

	if (error)
		fail("oc_collective", error);
}

/* By the kernel's word, as oc_alloc() gives ordinary memory where it has no other. */
static bool is_shared(const void *memory)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t at = (uintptr_t)memory;
	bool shared = false;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;
		char rights[8];

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, rights) == 3 &&
		    at >= from && at < to)
			shared = rights[3] == 's';
	}
	if (maps)
		fclose(maps);
	return shared;
}

void *transport_memory(size_t bytes, bool shared)
{
	size_t whole = (bytes + 4095) / 4096 * 4096;
	uint8_t *memory;

	if (!shared) {
		memory = aligned_alloc(4096, whole);
	} else {
		memory = oc_alloc(whole + 4096);
		if (memory && !is_shared(memory))
			return NULL;
		if (memory)
			memory += 4096 - (uintptr_t)memory % 4096;
	}
	if (memory)
		memset(memory, 0, whole);
	return memory;
}
