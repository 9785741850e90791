/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oc_bench_p2p: ping-pong of the C API between two processes, each on a CPU of its own. It needs no
 * MPI. oc_bench_p2p_ompi and oc_bench_p2p_mpich do the same by MPI_Send and MPI_Recv.
 */
#include <onecopy/onecopy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "pingpong.h"
#include "support/fork_team.h"

static struct pingpong_options options;

static void check(struct oc_team *team, int error)
{
	if (!error)
		return;
	fprintf(stderr, "oc_bench_p2p: %s\n", oc_team_error(team));
	exit(1);
}

static void do_send(void *context, const void *buffer, size_t bytes)
{
	struct oc_team *team = context;

	check(team, oc_send(team, !oc_team_rank(team), 0, buffer, bytes));
}

static void do_receive(void *context, void *buffer, size_t bytes)
{
	struct oc_team *team = context;

	check(team, oc_recv(team, !oc_team_rank(team), 0, buffer, bytes, NULL));
}

/* The n-th CPU that we may use, when there are two. */
static void bind_to(unsigned int n)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) < 2)
		return;
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || n--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static int body(struct oc_team *team, void *arg)
{
	struct pingpong p = { .program = "oc_bench_p2p",
			      .rank = (int)oc_team_rank(team),
			      .send = do_send,
			      .receive = do_receive,
			      .context = team };

	(void)arg;
	bind_to((unsigned int)p.rank);
	return pingpong_run(&p, &options);
}

int main(int argc, char **argv)
{
	int status = pingpong_parse(argc, argv, &options);

	oc_set_threads(0);
	return status ? status : oct_fork_team(2, 300, -1, body, NULL) != 0;
}
