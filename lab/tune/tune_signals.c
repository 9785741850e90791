/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags, calls and local work into terms. */
#include "lab/topo/machine.h"
#include "lab/tune/tuning.h"

#include <errno.h>
#include <math.h>
#include <string.h>

bool oci_tuning_pair(struct oci_tuning *t, enum oci_model_distance distance, unsigned int pair[2])
{
	const struct oci_topo *topo = oci_topo_local();
	struct oci_topo_place a, b;
	uint64_t mask[OCI_TUNING_CPUS / 64];

	for (uint32_t i = 0; topo && i < t->world.cpu_count; i++) {
		enum oci_model_distance found = OCI_MODEL_MACHINE;
		enum oci_topo_level level;

		memset(mask, 0, sizeof(mask));
		mask[t->cpus[i] / 64] = (uint64_t)1 << (t->cpus[i] % 64);
		oci_topo_place(topo, mask, OCI_TUNING_CPUS / 64, i ? &b : &a);
		if (!i)
			continue;
		level = oci_topo_common(&a, &b);
		if (level == OCI_TOPO_CORE)
			continue; /* two threads of a core are not two cores */
		if (level <= OCI_TOPO_L3 &&
		    !(level == OCI_TOPO_L2 && a.l3 != OCI_TOPO_NOWHERE && a.l3 != b.l3))
			found = OCI_MODEL_CACHE;
		else if (level <= OCI_TOPO_PACKAGE)
			found = OCI_MODEL_PACKAGE;
		pair[0] = t->cpus[0];
		pair[1] = t->cpus[i];
		if (found == distance)
			return true;
	}
	return false;
}

static int take_flags(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	struct oci_tune_world world = t->world;
	unsigned int pair[2];

	if (!oci_tuning_pair(t, (enum oci_model_distance)(series - OCI_TUNING_FLAG), pair))
		return -ENXIO;
	world.cpus = pair;
	world.cpu_count = 2;
	return oci_measure_flags(&world, &point[0], &point[1], t->why, t->why_bytes);
}

int oci_tuning_flags(struct oci_tuning *t)
{
	static const char *const name[OCI_MODEL_DISTANCES] = { "flag.cache", "flag.package",
							       "flag.machine" };
	bool any = false;

	for (int d = 0; d < OCI_MODEL_DISTANCES; d++) {
		struct oci_tune_point point[2]; /* a flag, and each more of a row */
		unsigned int pair[2];
		int error;

		if (!oci_tuning_pair(t, (enum oci_model_distance)d, pair))
			continue;
		error = oci_tuning_points(t, OCI_TUNING_FLAG + (unsigned int)d, name[d], take_flags,
					  point, 2);
		if (error)
			return error;
		if (!oci_tuning_is_over(t))
			continue;
		oci_tuning_give(
			t, name[d], point[0].value, point[0].residual,
			"half of there and back between CPUs %u and %u, first quartile of %u",
			pair[0], pair[1], point[0].samples);
		if (!any)
			oci_tuning_give(t, "flag.more", point[1].value, point[1].residual,
					"a sixteenth of 16 flags that are up, CPUs %u and %u",
					pair[0], pair[1]);
		any = true;
	}
	if (!any && oci_tuning_is_over(t))
		oci_tuning_note(
			t,
			"two cores are needed to time a flag: flags are left out, and so is what a "
			"call costs");
	return 0;
}

static int take_call(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	(void)series;
	return oci_measure_calls(&t->world, &point[0], &point[1], t->why, t->why_bytes);
}

int oci_tuning_call(struct oci_tuning *t)
{
	struct oci_tune_point point[2]; /* a barrier; an Allgather of 8 bytes */
	const int further = OCI_MEASURE_SMALL_OPS - OCI_MEASURE_BARRIER_OPS;
	double flag, op, call;

	if (t->no_call || t->world.cpu_count < 2)
		return 0;
	if (oci_tuning_points(t, OCI_TUNING_CALL, "small calls", take_call, point, 2)) {
		t->no_call = true;
		oci_tuning_note(t, "what a call costs is left out: %s", t->why);
		return 0;
	}
	flag = oci_model_flag_s(t->model, OCI_MODEL_CACHE);
	if (!oci_tuning_is_over(t) || flag <= 0)
		return 0;
	op = fmax(point[1].value - point[0].value, 0) / further;
	call = point[0].value - flag - OCI_MEASURE_BARRIER_OPS * op;
	oci_tuning_give(t, "op", op, point[1].residual,
			"an Allgather of 8 bytes on 2 ranks, %.3g us, less a barrier, over the %d "
			"operations that its plan has more",
			1e6 * point[1].value, further);
	oci_tuning_give(t, "call", fmax(call, 0), point[0].residual,
			"a barrier of 2 ranks, %.3g us, less a flag and %d operations",
			1e6 * point[0].value, OCI_MEASURE_BARRIER_OPS);
	return 0;
}

static int take_local(struct oci_tuning *t, unsigned int series, struct oci_tune_point *point)
{
	(void)series;
	return oci_measure_local(&t->world, point, t->why, t->why_bytes);
}

int oci_tuning_local(struct oci_tuning *t)
{
	struct oci_tune_point point[OCI_MEASURE_LOCAL]; /* a sum; first touches */
	int error = oci_tuning_points(t, OCI_TUNING_LOCAL, "sums and first touches", take_local,
				      point, OCI_MEASURE_LOCAL);

	if (error || !oci_tuning_is_over(t))
		return error;
	oci_tuning_give(t, "reduce", point[0].value, point[0].residual,
			"8192 doubles added to as many others, both in cache, by a function as "
			"operations have it");
	oci_tuning_give(t, "touch", point[1].value, point[1].residual,
			"reading a byte of each of 256 mapped pages for the first time");
	oci_tuning_give(
		t, "map.first", point[2].value, point[2].residual,
		"reading a byte of each 64 KiB of 256 mapped pages for the first time, as copies "
		"by a mapping begin, over their number");
	return 0;
}
