/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which the measuring ranks fill the CPUs that they may use: a pure function. */
#ifndef OC_TUNE_ORDER_H
#define OC_TUNE_ORDER_H

#include "lab/topo/machine.h"

struct oci_tune_cpu {
	unsigned int number;
	struct oci_topo_place place;
	uint32_t thread; /* of its core, 0 the first; oci_tune_order() finds it out */
};

/*
 * As the model places ranks: a thread of each core, package by package, then the cores' second
 * threads likewise. `cpus`, one at least, are in the order of their numbers, which may go round the
 * packages. Returns the cores of the first package, 0 where places are not known: more ranks than
 * these reach into another one.
 */
uint32_t oci_tune_order(struct oci_tune_cpu *cpus, uint32_t count);

#endif
