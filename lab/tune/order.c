/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/order.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct oci_tune_cpu *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->place.package != y->place.package)
		return x->place.package < y->place.package ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

uint32_t oci_tune_order(struct oci_tune_cpu *cpus, uint32_t count)
{
	uint32_t package, cores = 0;

	for (uint32_t i = 0; i < count; i++) {
		cpus[i].thread = 0;
		for (uint32_t j = 0; j < i; j++)
			cpus[i].thread += cpus[j].place.core == cpus[i].place.core &&
					  cpus[i].place.core != OCI_TOPO_NOWHERE;
	}
	qsort(cpus, count, sizeof(*cpus), compare);
	package = cpus[0].place.package;
	while (cores < count && !cpus[cores].thread && cpus[cores].place.package == package)
		cores++;
	return package == OCI_TOPO_NOWHERE ? 0 : cores;
}
