/* SPDX-License-Identifier: BSD-3-Clause */
/* Where in a JSON text a value is: jansson, which reads the values, forgets it. */
#ifndef OC_MODEL_PLACE_H
#define OC_MODEL_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* A step into an object (key) or an array (key NULL, index). */
struct oci_json_step {
	const char *key;
	size_t index;
};

/* Offset of the value that the steps lead to, or of its key. What is not found there: the last that
 * was found on the way. */
size_t oci_json_place(const char *text, size_t length, const struct oci_json_step *steps,
		      size_t count, bool want_key);

/* Offset of the first bracket that is nested deeper than `most`; length when there is none. */
size_t oci_json_too_deep(const char *text, size_t length, unsigned int most);

/* Line and column of an offset, both from 1; columns count bytes. */
void oci_json_position(const char *text, size_t offset, unsigned int *line, unsigned int *column);

#endif
