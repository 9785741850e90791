/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OC_MODEL_MACHINE_H
#define OC_MODEL_MACHINE_H

#include "model/model.h"

/*
 * The first thing in which `here` is not what a file was made on: its key in the file ("cpu"), and
 * both as text. NULL: the file is for this machine.
 */
const char *oci_machine_differs(const struct oci_machine *file, const struct oci_machine *here,
				char *expected, size_t expected_bytes, char *found,
				size_t found_bytes);

/* The model name in the text of /proc/cpuinfo; empty when there is none. */
void oci_machine_cpu_name(const char *cpuinfo, char *name, size_t bytes);

#endif
