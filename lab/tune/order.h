/* SPDX-License-Identifier: BSD-3-Clause */
/* The order in which the measuring ranks fill the CPUs that they may use: a pure function. */
#ifndef OC_TUNE_ORDER_H
#define OC_TUNE_ORDER_H

#include "lab/topo/machine.h"

#define OCI_TUNE_ORDER_MOST 8192

/*
 * As the model places ranks: a thread of each core, package by package, then the cores' second
 * threads likewise. places[i] is that of cpus[i], in the order of their numbers, which may go round
 * the packages; both are put in order. Returns the cores of the first package, 0 where places are
 * not known: more ranks than these reach into another one.
 */
uint32_t oci_tune_order(struct oci_topo_place *places, unsigned int *cpus, uint32_t count);

#endif
