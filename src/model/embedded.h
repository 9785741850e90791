/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of src/model/profiles inside the library; cmake/embed.cmake makes the table. */
#ifndef OC_MODEL_EMBEDDED_H
#define OC_MODEL_EMBEDDED_H

#include <stddef.h>

struct oci_embedded {
	const char *name; /* NULL: the end */
	const char *text;
	size_t length;
};

extern const struct oci_embedded oci_embedded_profiles[];

#endif
