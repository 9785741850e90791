/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of `onecopy info`, as text and as JSON. */
#ifndef ONECOPY_INFO_H
#define ONECOPY_INFO_H

#include <jansson.h>

enum info_section { INFO_MACHINE = 1, INFO_OPTIONS = 2, INFO_ALGORITHMS = 4 };

void info_print_text(unsigned int sections);
/* A new object with the sections. */
json_t *info_json(unsigned int sections);

/* What is wrong with this Open MPI version for the component, as a sentence; NULL: nothing. */
const char *info_version_trouble(const char *name, const char *version);

#endif
