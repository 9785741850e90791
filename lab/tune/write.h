/* SPDX-License-Identifier: BSD-3-Clause */
/* A model as a tuning file. */
#ifndef OC_LAB_WRITE_H
#define OC_LAB_WRITE_H

#include "model/model.h"

/* As a tuning file; NULL: out of memory. The text is the caller's, to be freed. */
char *oci_model_text(const struct oci_model *model);
/* Writes that text to `path`, all of it or nothing: a file beside it, flushed and renamed. Missing
 * directories are made. 0 or -errno. */
int oci_model_write(const struct oci_model *model, const char *path);
/* What writing would return, found out beforehand: makes the directories, leaves no file. -EISDIR,
 * -ENOTSUP: something else than a regular file is there. */
int oci_model_write_check(const char *path);

#endif
