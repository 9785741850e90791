/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that a user types, checked against what the library knows; each exits 2 on a wrong one. */
#ifndef ONECOPY_NAMES_H
#define ONECOPY_NAMES_H

#include "lab/inspect/inspect.h"

/* The collective called `name` (letter case does not matter). */
enum oc_collective name_collective(const char *name);
/* "knomial:4" of this collective, "auto" or "mpi". */
void name_check_algorithm(enum oc_collective collective, const char *words);
void name_check_mechanism(const char *name);
void name_check_log_level(const char *name);
/* Copies "ONECOPY_BCAST" for a collective. */
void name_variable(enum oc_collective collective, char *variable, size_t bytes);

#endif
