/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of `onecopy info`, as text and as JSON. */
#ifndef ONECOPY_INFO_H
#define ONECOPY_INFO_H

#include <jansson.h>

enum info_section { INFO_MACHINE = 1, INFO_OPTIONS = 2, INFO_ALGORITHMS = 4 };

void info_print_text(unsigned int sections);
/* A new object with the sections. */
json_t *info_json(unsigned int sections);

/* Why programs of this MPI would not be served, as a sentence; NULL: they are. */
const char *info_version_trouble(const char *name, const char *version);
/* Why a library that was found cannot be used; NULL: it can. */
struct preload;
const char *info_preload_trouble(const struct preload *preload);

#endif
