/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the machine stay what it is while it is measured? A flag between two CPUs tells: the host of
 * a virtual machine may move these to other cores, near to each other or far apart, and whatever
 * one CPU has written and another one reads then takes another time.
 */
#include "bench.h"
#include "command.h"
#include "lab/tune/measure.h"
#include "measure.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#define LOOK_S 0.01
/* The slowest look over the fastest one: beyond it, results say so. */
#define STEADY 1.5

/* How long the machine's states are looked for where no model tells which to measure in. */
#define STATE_S 1.0

static struct {
	unsigned int looks;
	double least_s, most_s;
	struct oci_steady state; /* that is measured in */
	bool by_model;
	unsigned int turns, lost, mixed;
} seen = { .least_s = INFINITY };

/* Of the first two CPUs that may be used; false: there are not as many. */
static bool make_world(struct oci_tune_world *world, unsigned int cpus[2])
{
	unsigned int count = 0;
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			cpus[count++] = cpu;
	}
	return count == 2 && !oci_tune_world_create(world, cpus, count, LOOK_S, 2);
}

const struct oci_steady *bench_steady_state(double flag_s)
{
	struct oci_tune_world world;
	unsigned int cpus[2];
	char why[256];

	if (seen.state.flag_s > 0)
		return &seen.state;
	seen.by_model = flag_s > 0;
	if (flag_s > 0) {
		oci_steady_at(flag_s, &seen.state);
	} else if (make_world(&world, cpus)) {
		/* Where nothing can be seen everything counts. */
		oci_measure_state(&world, STATE_S, &seen.state, why, sizeof(why));
		oci_tune_world_destroy(&world);
	}
	return seen.state.flag_s > 0 ? &seen.state : NULL;
}

void bench_steady_count(const struct measure *m)
{
	seen.turns += m->turns;
	seen.lost += m->lost;
	seen.mixed += m->mixed;
}

void bench_steady_look(void)
{
	struct oci_tune_world world;
	struct oci_tune_point flag, more;
	unsigned int cpus[2];
	char why[256];

	if (!make_world(&world, cpus))
		return;
	/* A look that fails is one less: it has nothing to say about what is measured. */
	if (!oci_measure_flags(&world, &flag, &more, why, sizeof(why))) {
		seen.looks++;
		seen.least_s = fmin(seen.least_s, flag.value);
		seen.most_s = fmax(seen.most_s, flag.value);
	}
	oci_tune_world_destroy(&world);
}

void bench_steady_text(char *text, size_t n)
{
	*text = '\0';
	if (seen.turns)
		snprintf(
			text, n,
			"Calls count that were made while a flag took %.0f to %.0f ns, %s; %u of %u turns "
			"were not%s.",
			1e9 * seen.state.least_s, 1e9 * seen.state.most_s,
			seen.by_model ? "the state that the model was measured in" :
					"the state that the machine is in, or the nearer one",
			seen.lost, seen.turns,
			seen.mixed ? ", and where too few were, all count" : "");
}

void bench_steady_sum_up(struct bench *bench)
{
	char text[400];

	bench_steady_text(text, sizeof(text));
	if (*text)
		bench_say(bench, 4, "%s", text);
	if (!seen.looks)
		return;
	bench_say(
		bench, 3,
		"A flag between two CPUs took %.0f to %.0f ns in %u looks between measurements%s.",
		1e9 * seen.least_s, 1e9 * seen.most_s, seen.looks,
		seen.most_s > STEADY * seen.least_s ?
			": the machine was not the same all the time (the host of a virtual "
			"machine moves its CPUs, or other work runs), so compare times of one row "
			"only" :
			"");
}
