/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole machine, by hwloc: this one, or a recorded one. */
#ifndef OC_LAB_MACHINE_H
#define OC_LAB_MACHINE_H

#include "topo/topo.h"

struct oci_topo_summary {
	unsigned int packages, numa_nodes, l3s, l2s, cores, cpus;
	size_t l2_bytes, l3_bytes; /* of one cache; 0 when the machine reports none */
	unsigned int cores_per_l2, cores_per_l3;
};

struct oci_topo; /* a loaded topology */

/* This machine (xml NULL), or a recorded one (lstopo XML file). 0 or -errno. Loading costs
 * milliseconds: a process does it once, with oci_topo_local(). */
int oci_topo_load(struct oci_topo **topo, const char *xml);
void oci_topo_destroy(struct oci_topo *topo);
/* This machine, loaded at the first call and kept; NULL when hwloc cannot. Thread safe. */
const struct oci_topo *oci_topo_local(void);

void oci_topo_summary(const struct oci_topo *topo, struct oci_topo_summary *summary);
/* Place of a CPU bitmap (64-bit words, bit n = OS CPU n). */
void oci_topo_place(const struct oci_topo *topo, const uint64_t *mask, unsigned int words,
		    struct oci_topo_place *place);

#endif
