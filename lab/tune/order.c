/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/order.h"

#include <stdbool.h>

struct key {
	uint32_t thread, package; /* number of this core's; the first CPU in that package */
};

static struct key key_of(const struct oci_topo_place *places, uint32_t i)
{
	struct key key = { 0, i };

	for (uint32_t j = i; j-- > 0;) {
		key.thread += places[j].core == places[i].core &&
			      places[j].core != OCI_TOPO_NOWHERE;
		if (places[j].package == places[i].package)
			key.package = j;
	}
	return key;
}

static bool is_before(struct key a, struct key b)
{
	return a.thread != b.thread ? a.thread < b.thread : a.package < b.package;
}

uint32_t oci_tune_order(struct oci_topo_place *places, unsigned int *cpus, uint32_t count)
{
	static struct key keys[OCI_TUNE_ORDER_MOST];
	uint32_t cores = 0;

	if (!count || count > OCI_TUNE_ORDER_MOST || places[0].package == OCI_TOPO_NOWHERE)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		keys[i] = key_of(places, i);
		cores += !keys[i].thread && places[i].package == places[0].package;
	}
	/* Insertion keeps the order of equals, and most are in order. */
	for (uint32_t i = 1; i < count; i++) {
		struct oci_topo_place place = places[i];
		unsigned int cpu = cpus[i];
		struct key key = keys[i];
		uint32_t at = i;

		for (; at > 0 && is_before(key, keys[at - 1]); at--) {
			places[at] = places[at - 1];
			cpus[at] = cpus[at - 1];
			keys[at] = keys[at - 1];
		}
		places[at] = place;
		cpus[at] = cpu;
		keys[at] = key;
	}
	return cores;
}
