/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A walk through a parsed JSON text that knows where it is, so that whatever is wrong is told with
 * its place. Used by read.c alone.
 *
 * Functions that take a member of an object are called at that object, and write on success only.
 */
#ifndef OC_MODEL_READER_H
#define OC_MODEL_READER_H

#include "model/locate.h"
#include "model/model.h"

#include <jansson.h>

#define OCI_READER_STEPS 4

struct oci_reader {
	const char *name, *text;
	size_t length;
	struct oci_model *model;
	oci_model_cell_check *check;
	struct oci_model_error *error;
	struct oci_json_step step[OCI_READER_STEPS]; /* where the reader is */
	size_t depth;
};

/* Writes the sentence for the value that the reader is at, or for an offset; returns -EINVAL. */
int oci_reader_fail(struct oci_reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int oci_reader_fail_at(struct oci_reader *r, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for the key under which an object has a value. */
size_t oci_reader_key(const struct oci_reader *r);

void oci_reader_enter(struct oci_reader *r, const char *key, size_t index);
void oci_reader_leave(struct oci_reader *r);

/* "an object", "a number", ... */
const char *oci_reader_type(const json_t *value);
/* Every key of an object is one of `known`, which ends with NULL. */
int oci_reader_keys(struct oci_reader *r, json_t *object, const char *const *known);
/* A member; NULL and *error when there is none. */
json_t *oci_reader_need(struct oci_reader *r, json_t *object, const char *key, const char *expected,
			int *error);
/* A string of at most bytes - 1 printable bytes; one that is not needed may be absent. */
int oci_reader_text(struct oci_reader *r, json_t *object, const char *key, bool needed, char *text,
		    size_t bytes);
int oci_reader_number(struct oci_reader *r, json_t *object, const char *key, double least,
		      double most, double *number);
int oci_reader_count(struct oci_reader *r, json_t *object, const char *key, uint64_t most,
		     uint64_t *count);
/* The value that the reader is at, as bytes: 4096 or "4K". */
int oci_reader_bytes(struct oci_reader *r, const json_t *value, uint64_t *bytes);

#endif
