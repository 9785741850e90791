/* SPDX-License-Identifier: BSD-3-Clause */
/* The C API: this process is rank 0 and forks the other. */
#include "lab/harness/meet.h"
#include "pingpong.h"

#include <errno.h>
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

void transport_open(struct transport *me, int *argc, char ***argv)
{
	pid_t parent = getpid(), pid;
	int error;

	(void)argc;
	(void)argv;
	meet.ranks = 2;
	meet.place = mmap(NULL, 2 * sizeof(struct meet_place), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meet.place == MAP_FAILED)
		fail("no memory to meet in", -errno);
	pid = fork();
	if (pid < 0)
		fail("a rank cannot be started", -errno);
	if (!pid) {
		meet.rank = 1;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	/* A team knows of a heap that is there when it is made. */
	oc_free(oc_alloc(1));
	error = meet_team(&meet, &team);
	if (error)
		fail("the ranks cannot form a team", error);
	*me = (struct transport){ meet.rank, meet.ranks };
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

void transport_window(const struct window *window, size_t bytes)
{
	(void)window;
	(void)bytes;
	fail("--stream, --both, --halo and --ring are of the MPIs", -ENOTSUP);
}

void transport_alltoall(const void *send, void *recv, size_t bytes)
{
	(void)send;
	(void)recv;
	(void)bytes;
	fail("--alltoall is of the MPIs", -ENOTSUP);
}

void *transport_expose(void *memory, size_t bytes)
{
	(void)bytes;
	fail("--put, --get and --accumulate are of the MPIs", -ENOTSUP);
	return memory;
}

void transport_meet(void)
{
}

void transport_operate(enum operation operation, void *origin, size_t bytes)
{
	(void)operation;
	(void)origin;
	(void)bytes;
}

void *transport_memory(size_t bytes, bool shared)
{
	size_t whole = (bytes + 4095) / 4096 * 4096;
	uint8_t *memory;

	if (!shared) {
		memory = aligned_alloc(4096, whole);
	} else {
		memory = oc_alloc(whole + 4096);
		if (memory && !oc_is_shared(memory))
			return NULL;
		if (memory)
			memory += 4096 - (uintptr_t)memory % 4096;
	}
	if (memory)
		memset(memory, 0, whole);
	return memory;
}
