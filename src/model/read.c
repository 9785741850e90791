/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuning files and profiles: text into a model, or a sentence with the place that is wrong.
 *
 * Whoever wrote the text may mean harm: depth is bounded before jansson recurses, every key and
 * type is checked, and nothing is taken over unless all of it is right.
 */
#include "model/machine.h"
#include "model/model.h"
#include "model/reader.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
/* An object in "terms" or "cells" and a range in it: no file of ours is deeper. */
#define DEEPEST 8

static int read_machine(struct oci_reader *r, json_t *machine)
{
	static const char *const known[] = { "host",	   "cpu",     "kernel", "cpus",
					     "page_bytes", "comment", NULL };
	struct oci_machine *m = &r->model->machine;
	uint64_t cpus = 0, page = 0;
	int error;

	if (!json_is_object(machine))
		return oci_reader_fail(r, "expected an object, found %s", oci_reader_type(machine));
	if ((error = oci_reader_keys(r, machine, known)) ||
	    (error = oci_reader_text(r, machine, "host", true, m->host, sizeof(m->host))) ||
	    (error = oci_reader_text(r, machine, "cpu", true, m->cpu, sizeof(m->cpu))) ||
	    (error = oci_reader_text(r, machine, "kernel", false, m->kernel, sizeof(m->kernel))) ||
	    (error = oci_reader_count(r, machine, "cpus", UINT32_MAX, &cpus)) ||
	    (error = oci_reader_count(r, machine, "page_bytes", (uint64_t)1 << 40, &page)))
		return error;
	m->cpus = (uint32_t)cpus;
	m->page_bytes = (size_t)page;
	return 0;
}

static int check_machine(struct oci_reader *r)
{
	char expected[160], found[160];
	struct oci_machine here;
	const char *key;
	int error;

	oci_machine_self(&here);
	key = oci_machine_differs(&r->model->machine, &here, expected, sizeof(expected), found,
				  sizeof(found));
	if (!key)
		return 0;
	oci_reader_enter(r, "machine", 0);
	oci_reader_enter(r, key, 0);
	error = oci_reader_fail(
		r,
		"made on another machine: expected %s %s as here, found %s; onecopy tune "
		"measures this one",
		key, expected, found);
	oci_reader_leave(r);
	oci_reader_leave(r);
	return error;
}

static int read_term(struct oci_reader *r, const struct oci_term_info *info, json_t *value)
{
	static const char *const known[] = { "value", "unit", "source",	 "method", "residual",
					     "host",  "date", "comment", NULL };
	struct oci_term *term = oci_term_of(r->model, info);
	char unit[16] = "";
	int error;

	if (!json_is_object(value))
		return oci_reader_fail(r,
				       "expected an object with value, unit and source, found %s",
				       oci_reader_type(value));
	if ((error = oci_reader_keys(r, value, known)) ||
	    (error = oci_reader_number(r, value, "value", info->least, info->most, &term->value)) ||
	    (error = oci_reader_text(r, value, "unit", true, unit, sizeof(unit))))
		return error;
	if (strcmp(unit, info->unit)) {
		oci_reader_enter(r, "unit", 0);
		error = oci_reader_fail(r, "expected the unit \"%s\", found \"%s\"", info->unit,
					unit);
		oci_reader_leave(r);
		return error;
	}
	if ((error = oci_reader_text(r, value, "source", true, term->source,
				     sizeof(term->source))) ||
	    (error = oci_reader_text(r, value, "method", false, term->method,
				     sizeof(term->method))) ||
	    (error = oci_reader_text(r, value, "host", false, term->host, sizeof(term->host))) ||
	    (error = oci_reader_text(r, value, "date", false, term->date, sizeof(term->date))))
		return error;
	if (json_object_get(value, "residual") &&
	    (error = oci_reader_number(r, value, "residual", 0, 1e6, &term->residual)))
		return error;
	term->given = true;
	return 0;
}

static int read_terms(struct oci_reader *r, json_t *terms)
{
	const char *key;
	json_t *value;
	int error = 0;

	if (!json_is_object(terms))
		return oci_reader_fail(r, "expected an object, found %s", oci_reader_type(terms));
	json_object_foreach(terms, key, value)
	{
		const struct oci_term_info *info = oci_term_named(key);

		oci_reader_enter(r, key, 0);
		if (info)
			error = read_term(r, info, value);
		else
			error = oci_reader_fail_at(
				r, oci_reader_key(r),
				"expected the name of a term, such as \"cma.alpha\" (onecopy "
				"tune writes all of them), found \"%.64s\"",
				key);
		oci_reader_leave(r);
		if (error)
			return error;
	}
	return 0;
}

/* "ranks": 8, or [2, 64]; absent: all. */
static int take_range(struct oci_reader *r, json_t *cell, const char *key, uint64_t most,
		      uint64_t *low, uint64_t *high)
{
	json_t *value = json_object_get(cell, key);
	int error = 0;

	*low = 0;
	*high = most;
	if (!value)
		return 0;
	oci_reader_enter(r, key, 0);
	if (!json_is_array(value)) {
		error = oci_reader_bytes(r, value, low);
		*high = *low;
	} else if (json_array_size(value) != 2) {
		error = oci_reader_fail(r, "expected two numbers, first and last, found %zu",
					json_array_size(value));
	} else {
		for (size_t i = 0; i < 2 && !error; i++) {
			oci_reader_enter(r, NULL, i);
			error = oci_reader_bytes(r, json_array_get(value, i), i ? high : low);
			oci_reader_leave(r);
		}
	}
	if (!error && *low > *high)
		error = oci_reader_fail(r,
					"expected the smaller number first, found %llu before %llu",
					(unsigned long long)*low, (unsigned long long)*high);
	else if (!error && *high > most)
		error = oci_reader_fail(r, "expected at most %llu, found %llu",
					(unsigned long long)most, (unsigned long long)*high);
	oci_reader_leave(r);
	return error;
}

static int read_cell(struct oci_reader *r, json_t *value, struct oci_model_cell *cell)
{
	static const char *const known[] = { "collective", "ranks",   "bytes",
					     "algorithm",  "comment", NULL };
	uint64_t ranks[2], bytes[2];
	const char *expected = "";
	int error;

	if (!json_is_object(value))
		return oci_reader_fail(r, "expected an object, found %s", oci_reader_type(value));
	if ((error = oci_reader_keys(r, value, known)) ||
	    (error = oci_reader_text(r, value, "collective", true, cell->collective,
				     sizeof(cell->collective))) ||
	    (error = oci_reader_text(r, value, "algorithm", true, cell->algorithm,
				     sizeof(cell->algorithm))) ||
	    (error = take_range(r, value, "ranks", UINT32_MAX, &ranks[0], &ranks[1])) ||
	    (error = take_range(r, value, "bytes", SIZE_MAX, &bytes[0], &bytes[1])))
		return error;
	cell->ranks_min = (uint32_t)ranks[0];
	cell->ranks_max = (uint32_t)ranks[1];
	cell->bytes_min = (size_t)bytes[0];
	cell->bytes_max = (size_t)bytes[1];
	if (r->check && r->check(cell->collective, cell->algorithm, &expected))
		return oci_reader_fail(r, "expected %s, found \"%s\" with \"%s\"", expected,
				       cell->collective, cell->algorithm);
	return 0;
}

static int read_cells(struct oci_reader *r, json_t *cells)
{
	size_t count = json_array_size(cells);
	int error = 0;

	if (!json_is_array(cells))
		return oci_reader_fail(r, "expected an array, found %s", oci_reader_type(cells));
	r->model->cells = count ? calloc(count, sizeof(*r->model->cells)) : NULL;
	if (count && !r->model->cells)
		return -ENOMEM;
	for (size_t i = 0; i < count && !error; i++) {
		oci_reader_enter(r, NULL, i);
		error = read_cell(r, json_array_get(cells, i), &r->model->cells[i]);
		oci_reader_leave(r);
	}
	r->model->cell_count = count;
	return error;
}

/* A part of the file by its key; absent parts are left out. */
static int read_part(struct oci_reader *r, json_t *root, const char *key,
		     int (*part)(struct oci_reader *, json_t *))
{
	json_t *value = json_object_get(root, key);
	int error;

	if (!value)
		return 0;
	oci_reader_enter(r, key, 0);
	error = part(r, value);
	oci_reader_leave(r);
	return error;
}

static int take_switch(struct oci_reader *r, json_t *value)
{
	if (!json_is_boolean(value))
		return oci_reader_fail(r, "expected true or false, found %s",
				       oci_reader_type(value));
	r->model->calibrated = json_is_true(value);
	return 0;
}

static int read_root(struct oci_reader *r, json_t *root, unsigned int flags)
{
	/* "distance" is of files made by 0.2.0, and says nothing any more. */
	static const char *const known[] = { "onecopy", "version",  "name",  "calibrated",
					     "machine", "distance", "terms", "cells",
					     "comment", NULL };
	char kind[16] = "";
	uint64_t version = 0;
	int error = 0;

	if (!json_is_object(root))
		return oci_reader_fail(r, "expected an object, found %s", oci_reader_type(root));
	/* Before the keys, which another version may have others of. */
	if ((error = oci_reader_text(r, root, "onecopy", true, kind, sizeof(kind))) ||
	    (error = oci_reader_count(r, root, "version", UINT32_MAX, &version)))
		return error;
	if (strcmp(kind, "tuning")) {
		oci_reader_enter(r, "onecopy", 0);
		return oci_reader_fail(r, "expected \"tuning\", found \"%s\"", kind);
	}
	if (version != VERSION) {
		oci_reader_enter(r, "version", 0);
		return oci_reader_fail(r,
				       "expected version %d, which this onecopy reads, found %llu",
				       VERSION, (unsigned long long)version);
	}
	if ((error = oci_reader_keys(r, root, known)) ||
	    (error = oci_reader_text(r, root, "name", true, r->model->name,
				     sizeof(r->model->name))) ||
	    (error = read_part(r, root, "calibrated", take_switch)))
		return error;
	if (!oci_reader_need(r, root, "machine", "what it was made on", &error) ||
	    !oci_reader_need(r, root, "terms", "an object", &error))
		return error;
	/* Whose file it is comes first: what is wrong in another machine's file is no matter. */
	if ((error = read_part(r, root, "machine", read_machine)) ||
	    (!(flags & OCI_MODEL_ANY_MACHINE) && (error = check_machine(r))) ||
	    (error = read_part(r, root, "terms", read_terms)))
		return error;
	return read_part(r, root, "cells", read_cells);
}

static bool in_word(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

/* jansson has stopped behind the word that it could not use; the reader of its message looks for
 * where that begins. */
static size_t word_before(const char *text, size_t length, int position)
{
	size_t at = position > 0 ? (size_t)position - 1 : 0;

	if (at >= length)
		at = length ? length - 1 : 0;
	while (at && in_word(text[at]) && in_word(text[at - 1]))
		at--;
	return at;
}

int oci_model_parse(const char *name, const char *text, size_t length, unsigned int flags,
		    oci_model_cell_check *check, struct oci_model *model,
		    struct oci_model_error *error)
{
	struct oci_model *read = malloc(sizeof(*read));
	struct oci_reader r = { .name = name,
				.text = text,
				.length = length,
				.model = read,
				.check = check,
				.error = error };
	size_t deep = oci_json_too_deep(text, length, DEEPEST);
	json_error_t json_error;
	json_t *root;
	int result;

	error->text[0] = '\0';
	if (!read)
		return -ENOMEM;
	oci_model_init(read);
	if (deep < length) {
		result = oci_reader_fail_at(
			&r, deep, "expected at most %d brackets inside each other", DEEPEST);
		goto free_read;
	}
	root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &json_error);
	if (!root) {
		result = oci_reader_fail_at(&r, word_before(text, length, json_error.position),
					    "expected a tuning file in JSON: %s", json_error.text);
		goto free_read;
	}
	result = read_root(&r, root, flags);
	json_decref(root);
	if (!result) {
		*model = *read;
		free(read);
		return 0;
	}
	oci_model_destroy(read);
free_read:
	free(read);
	return result;
}
