/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/topo.h"

#include "base/log.h"
#include "os/os.h"
#include "topo/sysfs.h"

#define MASK_WORDS 128 /* 8192 CPUs, as in os/cpu.c */

static void place_nowhere(struct oci_topo_place *place)
{
	*place = (struct oci_topo_place){ OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE,
					  OCI_TOPO_NOWHERE, OCI_TOPO_NOWHERE, 0 };
}

bool oci_topo_self(struct oci_topo_place *place, uint32_t ranks)
{
	uint64_t mask[MASK_WORDS];
	unsigned int words = oci_os_affinity(0, mask, MASK_WORDS);
	bool is_virtual = oci_os_is_virtual();

	words = words < MASK_WORDS ? words : MASK_WORDS;
	if (oci_sysfs_place(OCI_SYSFS, mask, words, ranks <= 2 && is_virtual, place)) {
		oci_info("%s does not say where this process's CPUs are: every rank counts as "
			 "equally far from every other",
			 OCI_SYSFS);
		place_nowhere(place);
		return false;
	}
	return !is_virtual && (place->l2 != OCI_TOPO_NOWHERE || place->l3 != OCI_TOPO_NOWHERE ||
			       oci_sysfs_cache_share(OCI_SYSFS));
}

static uint32_t at_level(const struct oci_topo_place *place, enum oci_topo_level level)
{
	switch (level) {
	case OCI_TOPO_CORE:
		return place->core;
	case OCI_TOPO_L2:
		return place->l2;
	case OCI_TOPO_L3:
		return place->l3;
	case OCI_TOPO_NUMA:
		return place->numa;
	case OCI_TOPO_PACKAGE:
		return place->package;
	case OCI_TOPO_MACHINE:
		break;
	}
	return 0; /* there is one machine */
}

static bool share(const struct oci_topo_place *a, const struct oci_topo_place *b,
		  enum oci_topo_level level)
{
	return at_level(a, level) == at_level(b, level) && at_level(a, level) != OCI_TOPO_NOWHERE;
}

enum oci_topo_level oci_topo_common(const struct oci_topo_place *a, const struct oci_topo_place *b)
{
	enum oci_topo_level level = OCI_TOPO_CORE;

	while (level < OCI_TOPO_MACHINE && !share(a, b, level))
		level++;
	return level;
}

static bool differ(const struct oci_topo_place *a, const struct oci_topo_place *b,
		   enum oci_topo_level level)
{
	return at_level(a, level) != OCI_TOPO_NOWHERE && at_level(b, level) != OCI_TOPO_NOWHERE &&
	       at_level(a, level) != at_level(b, level);
}

bool oci_topo_apart(const struct oci_topo_place *a, const struct oci_topo_place *b)
{
	/* No cache is of two packages. What lies in an L2 lies in its L3, unless there is none. */
	return differ(a, b, OCI_TOPO_PACKAGE) || differ(a, b, OCI_TOPO_L3) ||
	       (a->l3 == OCI_TOPO_NOWHERE && b->l3 == OCI_TOPO_NOWHERE &&
		differ(a, b, OCI_TOPO_L2));
}

unsigned int oci_topo_group(const struct oci_topo_place *places, unsigned int count,
			    enum oci_topo_level level, uint32_t *group)
{
	unsigned int groups = 0;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int first = 0;

		while (first < i && !share(&places[first], &places[i], level))
			first++;
		group[i] = first;
		groups += first == i;
	}
	return groups;
}
