/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of src/model/profiles inside the library: cmake/embed.cmake makes the table, and
 * cmake/default_model.c the default one's model. */
#ifndef OC_MODEL_EMBEDDED_H
#define OC_MODEL_EMBEDDED_H

#include "model/model.h"

#include <stddef.h>

struct oci_embedded {
	const char *name; /* NULL: the end */
	const char *text;
	size_t length;
};

extern const struct oci_embedded oci_embedded_profiles[];
/* The model, which has no cells, by its bytes. */
extern const union oci_embedded_model {
	unsigned char bytes[sizeof(struct oci_model)];
	struct oci_model model;
} oci_embedded_default;

#endif
