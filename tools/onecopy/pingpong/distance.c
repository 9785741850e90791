/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong.h"

#include "lab/harness/shm_barrier.h"

#include <stdio.h>
#include <time.h>

/* Of a whole run, which bench p2p ends after 300. */
#define GIVE_UP_S 240

static struct {
	struct shm_barrier barrier;
	double low_ns, high_ns; /* high 0: all samples count */
	double last_ns;		/* rank 0's latest token */
	double least_ns, most_ns;
	time_t opened;
} distance;

static double token(void)
{
	double ns = shm_barrier_token_ns(&distance.barrier);

	if (!distance.most_ns || ns < distance.least_ns)
		distance.least_ns = ns;
	if (ns > distance.most_ns)
		distance.most_ns = ns;
	return ns;
}

static bool in_range(double ns)
{
	return ns >= distance.low_ns && ns <= distance.high_ns;
}

void distance_open(const struct transport *me, double low_ns, double high_ns)
{
	char name[SHM_BARRIER_NAME_CHARS];

	distance.low_ns = low_ns;
	distance.high_ns = high_ns;
	if (!high_ns)
		return;
	if (me->rank) {
		transport_recv(0, name, sizeof(name));
	} else {
		shm_barrier_name(name);
		for (uint32_t r = 1; r < me->ranks; r++)
			transport_send(r, name, sizeof(name));
	}
	if (shm_barrier_meet(&distance.barrier, name, (int)me->rank, (int)me->ranks, 0)) {
		fprintf(stderr, "pingpong: no shared memory for the token of --token-ns\n");
		transport_close(1);
	}
	distance.barrier.idle = transport_drive;
	distance.opened = time(NULL);
	if (distance.barrier.yield) {
		/* Not all of them run at a time, so there is no distance between them. */
		shm_barrier_close(&distance.barrier);
		distance.high_ns = 0;
	}
}

void distance_begin(void)
{
	if (!distance.high_ns)
		return;
	distance.last_ns = token();
}

bool distance_keeps(void)
{
	struct shm_barrier *barrier = &distance.barrier;
	double before = distance.last_ns;
	bool stop = false, keep;

	if (!distance.high_ns)
		return true;
	distance.last_ns = token();
	if (!barrier->rank) {
		stop = time(NULL) - distance.opened > GIVE_UP_S;
		if (stop)
			fprintf(stderr,
				"pingpong: in %d s too few tokens took %g to %g ns (--token-ns): "
				"they took %.0f to %.0f ns\n",
				GIVE_UP_S, distance.low_ns, distance.high_ns, distance.least_ns,
				distance.most_ns);
	}
	keep = shm_barrier_tell(barrier, in_range(before) && in_range(distance.last_ns));
	if (shm_barrier_tell(barrier, stop))
		transport_close(1);
	return keep;
}
