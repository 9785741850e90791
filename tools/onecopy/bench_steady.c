/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the machine stay what it is while it is measured? A flag between two CPUs tells: the host of
 * a virtual machine may move these to other cores, near to each other or far apart, and whatever
 * one CPU has written and another one reads then takes another time.
 */
#include "bench.h"
#include "command.h"
#include "tune/measure.h"

#include <math.h>
#include <sched.h>
#include <string.h>

#define LOOK_S 0.01
/* The slowest look over the fastest one: beyond it, results say so. */
#define STEADY 1.5

static struct {
	unsigned int looks;
	double least_s, most_s;
} seen = { .least_s = INFINITY };

void bench_steady_look(void)
{
	struct oci_tune_world world;
	struct oci_tune_point flag, more;
	unsigned int cpus[2], count = 0;
	cpu_set_t allowed;
	char why[256];

	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			cpus[count++] = cpu;
	}
	if (count < 2 || oci_tune_world_create(&world, cpus, count, LOOK_S, 2))
		return;
	/* A look that fails is one less: it has nothing to say about what is measured. */
	if (!oci_measure_flags(&world, &flag, &more, why, sizeof(why))) {
		seen.looks++;
		seen.least_s = fmin(seen.least_s, flag.value);
		seen.most_s = fmax(seen.most_s, flag.value);
	}
	oci_tune_world_destroy(&world);
}

void bench_steady_sum_up(struct bench *bench)
{
	if (!seen.looks)
		return;
	snprintf(bench->summary[3], sizeof(bench->summary[3]),
		 "A flag between two CPUs took %.0f to %.0f ns in %u looks between measurements%s.",
		 1e9 * seen.least_s, 1e9 * seen.most_s, seen.looks,
		 seen.most_s > STEADY * seen.least_s ?
			 ": the machine was not the same all the time (the host of a virtual "
			 "machine moves its CPUs, or other work runs), so compare times of one row "
			 "only" :
			 "");
}
