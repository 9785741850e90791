/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/write.h"

#include "lab/harness/host.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Digits that give every value back as it is: few, when the values were rounded. */
static unsigned int digits_needed(const struct oci_model *model)
{
	const struct oci_term_info *info;
	unsigned int digits = 6;

	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		const struct oci_term *term = oci_term_in(model, info);

		for (; digits < 17; digits++) {
			char text[40];

			snprintf(text, sizeof(text), "%.*g", (int)digits, term->value);
			if (strtod(text, NULL) == term->value)
				break;
		}
	}
	return digits;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	if (*text)
		json_object_set_new(object, key, json_string(text));
}

static json_t *term_json(const struct oci_term *term, const struct oci_term_info *info)
{
	json_t *object = json_object();

	json_object_set_new(object, "value", json_real(term->value));
	json_object_set_new(object, "unit", json_string(info->unit));
	json_object_set_new(object, "source", json_string(term->source));
	set_text(object, "method", term->method);
	if (term->residual > 0)
		json_object_set_new(object, "residual", json_real(term->residual));
	set_text(object, "host", term->host);
	set_text(object, "date", term->date);
	return object;
}

static json_t *range_json(uint64_t low, uint64_t high)
{
	return json_pack("[I, I]", (json_int_t)low, (json_int_t)high);
}

static json_t *cell_json(const struct oci_model_cell *cell)
{
	json_t *object = json_object();

	json_object_set_new(object, "collective", json_string(cell->collective));
	/* Without an upper end there is no range to write: JSON's integers are signed. */
	if (cell->ranks_min || cell->ranks_max != UINT32_MAX)
		json_object_set_new(object, "ranks", range_json(cell->ranks_min, cell->ranks_max));
	if (cell->bytes_min || cell->bytes_max != SIZE_MAX)
		json_object_set_new(object, "bytes",
				    range_json(cell->bytes_min, cell->bytes_max > INT64_MAX ?
									INT64_MAX :
									cell->bytes_max));
	json_object_set_new(object, "algorithm", json_string(cell->algorithm));
	return object;
}

static json_t *machine_json(const struct oci_machine *machine)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I}", "host", machine->host, "cpu", machine->cpu,
			 "kernel", machine->kernel, "cpus", (json_int_t)machine->cpus, "page_bytes",
			 (json_int_t)machine->page_bytes);
}

char *oci_model_text(const struct oci_model *model)
{
	const struct oci_term_info *info;
	json_t *terms = json_object(), *cells = json_array(), *root;
	char *text;

	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		const struct oci_term *term = oci_term_in(model, info);

		if (term->given)
			json_object_set_new(terms, info->name, term_json(term, info));
	}
	for (size_t i = 0; i < model->cell_count; i++)
		json_array_append_new(cells, cell_json(&model->cells[i]));
	root = json_pack("{s:s, s:i, s:s, s:b, s:o, s:o, s:o}", "onecopy", "tuning", "version", 1,
			 "name", model->name, "calibrated", model->calibrated, "machine",
			 machine_json(&model->machine), "terms", terms, "cells", cells);
	if (!root)
		return NULL;
	text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER |
					JSON_REAL_PRECISION(digits_needed(model)));
	json_decref(root);
	return text;
}

/* Beside the target, so that the rename stays within one file system. A descriptor or -errno. */
static int open_beside(const char *path, char beside[PATH_MAX])
{
	int fd;

	if ((size_t)snprintf(beside, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(beside, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_beside(const char *path, const char *text)
{
	char beside[PATH_MAX];
	int fd = open_beside(path, beside), error = 0;

	if (fd < 0)
		return fd;
	/* mkostemp's mode would keep a file of root's from everyone else's jobs. */
	if (dprintf(fd, "%s\n", text) < 0 || fchmod(fd, 0644) || fsync(fd))
		error = -errno;
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(beside, path))
		error = -errno;
	if (error)
		unlink(beside);
	return error;
}

int oci_model_write_check(const char *path)
{
	char beside[PATH_MAX];
	struct stat status;
	int error, fd;

	if (!*path)
		return -ENOENT;
	/* A rename over a device or a directory would replace it, or fail late. */
	if (!stat(path, &status) && !S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : -ENOTSUP;
	error = host_make_folders(path);
	if (error)
		return error;
	fd = open_beside(path, beside);
	if (fd < 0)
		return fd;
	close(fd);
	return unlink(beside) ? -errno : 0;
}

int oci_model_write(const struct oci_model *model, const char *path)
{
	int error = oci_model_write_check(path);
	char *text;

	if (error)
		return error;
	text = oci_model_text(model);
	if (!text)
		return -ENOMEM;
	error = write_beside(path, text);
	free(text);
	return error;
}
