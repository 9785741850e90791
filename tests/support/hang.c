/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_hang ranks | threads | slow | work: what watch.sh looks at. Ranks of which one stays out of a
 * Bcast; ranks that meet in a Barrier now and then, for 4 s; a process that only computes, when
 * nobody else does.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/fork_team.h"
#include "support/thread_team.h"

static __attribute__((noinline)) void stays_out(void)
{
	for (;;)
		pause();
}

static __attribute__((noinline)) int comes_alone(struct oc_team *team)
{
	char bytes[64] = "";
	struct oc_call call = { .collective = OC_BCAST,
				.send = bytes,
				.recv = bytes,
				.bytes = sizeof(bytes),
				.root = 1 };

	return oc_collective(team, &call) ? 2 : 3;
}

static int hang(struct oc_team *team)
{
	for (int i = 0; i < 10; i++) {
		if (oct_barrier(team))
			return 1;
	}
	if (oc_team_rank(team) == 1)
		stays_out();
	return comes_alone(team);
}

static int rank_hangs(struct oc_team *team, void *arg)
{
	(void)arg;
	return hang(team);
}

static int rank_is_slow(struct oc_team *team, void *arg)
{
	int failed = 0;

	(void)arg;
	for (int i = 0; i < 20 && !failed; i++) {
		usleep(200000);
		failed = oct_barrier(team);
	}
	return failed;
}

static double seconds_used(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

/* 10 ms of it, by what others leave of the CPU that it is on; a sanitizer's start is over then. */
static int work(void)
{
	volatile unsigned int word = 1;
	double before = seconds_used();

	if (sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 })) {
		perror("oc_hang: sched_setscheduler");
		return 1;
	}
	while (seconds_used() - before < 0.01)
		for (int i = 0; i < 100000; i++)
			word = word * 31 + 7;
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "ranks"))
		return oct_fork_team(3, -1, rank_hangs, NULL);
	if (!strcmp(what, "threads"))
		return oct_thread_team(3, 0, hang);
	if (!strcmp(what, "slow"))
		return oct_fork_team(3, -1, rank_is_slow, NULL);
	if (!strcmp(what, "work"))
		return work();
	fputs("usage: oc_hang ranks | threads | slow | work\n", stderr);
	return 2;
}
