/* SPDX-License-Identifier: BSD-3-Clause */
/* Flags, calls and local work into terms. */
#include "topo/topo.h"
#include "tune/tuning.h"

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

int oci_tuning_flags(struct oci_tuning *t)
{
	static const char *const name[OCI_MODEL_DISTANCES] = { "flag.cache", "flag.package",
							       "flag.machine" };
	bool any = false;

	for (int d = 0; d < OCI_MODEL_DISTANCES; d++) {
		struct oci_tune_world world = t->world;
		struct oci_tune_point flag, more;
		unsigned int pair[2];
		int error;

		if (!oci_tuning_pair(t, (enum oci_model_distance)d, pair))
			continue;
		oci_tuning_step(t, name[d]);
		world.cpus = pair;
		world.cpu_count = 2;
		error = oci_measure_flags(&world, &flag, &more, t->why, t->why_bytes);
		if (error)
			return error;
		oci_tuning_give(
			t, name[d], flag.value, flag.residual,
			"half of there and back between CPUs %u and %u, first quartile of %u",
			pair[0], pair[1], flag.samples);
		if (!any)
			oci_tuning_give(t, "flag.more", more.value, more.residual,
					"a sixteenth of 16 flags that are up, CPUs %u and %u",
					pair[0], pair[1]);
		any = true;
	}
	if (!any)
		oci_tuning_note(
			t,
			"two cores are needed to time a flag: flags are left out, and so is what a "
			"call costs");
	return 0;
}

int oci_tuning_call(struct oci_tuning *t)
{
	double flag = oci_model_flag_s(t->model, OCI_MODEL_CACHE);
	struct oci_tune_point barrier;
	int error;

	if (flag <= 0)
		return 0;
	oci_tuning_step(t, "a barrier");
	error = oci_measure_barrier(&t->world, &barrier, t->why, t->why_bytes);
	if (error) {
		oci_tuning_note(t, "what a call costs is left out: %s", t->why);
		return 0;
	}
	oci_tuning_give(t, "call", barrier.value > flag ? barrier.value - flag : 0,
			barrier.residual, "a barrier of 2 ranks, %.3g us, less a flag",
			1e6 * barrier.value);
	return 0;
}

int oci_tuning_local(struct oci_tuning *t)
{
	struct oci_tune_point reduce, touch;
	int error;

	oci_tuning_step(t, "sums and first touches");
	error = oci_measure_local(&t->world, &reduce, &touch, t->why, t->why_bytes);
	if (error)
		return error;
	oci_tuning_give(t, "reduce", reduce.value, reduce.residual,
			"sum of 8192 doubles into a buffer");
	oci_tuning_give(t, "touch", touch.value, touch.residual,
			"reading a byte of each of 256 mapped pages for the first time");
	return 0;
}
