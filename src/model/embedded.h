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
/* The bytes of the model, which has no cells. */
extern const unsigned char oci_embedded_default[sizeof(struct oci_model)];

#endif
