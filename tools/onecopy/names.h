/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that a user types, checked against what the library knows; each exits 2 on a wrong one.
 * Letter case does not matter, but for algorithms. */
#ifndef ONECOPY_NAMES_H
#define ONECOPY_NAMES_H

#include "lab/bench/collective.h"
#include "lab/inspect/inspect.h"

/* "knomial:4" of this collective, "auto" or "mpi". */
void name_check_algorithm(enum oc_collective collective, const char *words);
/* As the library spells them. */
const char *name_mechanism(const char *name);
const char *name_log_level(const char *name);
/* Copies "ONECOPY_BCAST" for a collective. */
void name_variable(enum oc_collective collective, char *variable, size_t bytes);

#endif
