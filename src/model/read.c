/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tuning files and profiles: text into a model, or a sentence with the place that is wrong.
 *
 * Whoever wrote the text may mean harm: depth is bounded before jansson recurses, every key and
 * type is checked, and nothing is taken over unless all of it is right. One file of more than 500
 * lines: half of it is the tables of what a file may have, which nothing else asks.
 */
#include "base/options.h"
#include "model/embedded.h"
#include "model/model.h"
#include "model/place.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1
/* An object in "terms" or "cells" and a range in it: no file of ours is deeper. */
#define DEEPEST 8
#define STEPS 4

/* A walk through the parsed text that knows where it is. After an error it stays there. */
struct reader {
	const char *name, *text;
	size_t length;
	unsigned int flags;
	struct oci_model *model;
	oci_model_cell_check *check;
	struct oci_model_error *error;
	struct oci_json_step step[STEPS];
	size_t depth;
};

static void enter(struct reader *r, const char *key, size_t index)
{
	r->step[r->depth++] = (struct oci_json_step){ key, index };
}

static void leave(struct reader *r)
{
	r->depth--;
}

/* Of the value that the reader is at, or of its key. */
static size_t place(const struct reader *r, bool key)
{
	return oci_json_place(r->text, r->length, r->step, r->depth, key);
}

/* Writes the sentence for an offset; returns -EINVAL. */
__attribute__((format(printf, 3, 4))) static int fail_at(struct reader *r, size_t at,
							 const char *format, ...)
{
	char *text = r->error->text;
	size_t room = sizeof(r->error->text);
	unsigned int line, column;
	va_list arguments;
	int used;

	oci_json_position(r->text, at, &line, &column);
	used = snprintf(text, room, "%s:%u:%u: ", r->name, line, column);
	va_start(arguments, format);
	if (used > 0 && (size_t)used < room)
		vsnprintf(text + used, room - (size_t)used, format, arguments);
	va_end(arguments);
	/* What is quoted from a file must not steer the terminal that it is printed on. */
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	return -EINVAL;
}
#define FAIL(r, ...) fail_at(r, place(r, false), __VA_ARGS__)

/* ---- members of an object -------------------------------------------------------------------- */

enum kind { IGNORED, PART, SWITCH, TEXT, NUMBER, COUNT, RANGE };

/* A member that an object may have. */
struct field {
	const char *name;
	enum kind kind;
	bool needed;
	int (*part)(struct reader *r, json_t *value); /* PART */
	void *to;	    /* others: bool, char[], double, uint64_t, or two uint64_t */
	size_t bytes;	    /* TEXT: room */
	double least, most; /* NUMBER; COUNT and RANGE: most */
};
#define TEXT_INTO(text) .kind = TEXT, .to = (text), .bytes = sizeof(text)

/* What an error calls it. */
static const char *type_of(const json_t *value)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "an object",	[JSON_ARRAY] = "an array",
		[JSON_STRING] = "a string",	[JSON_INTEGER] = "a number",
		[JSON_REAL] = "a fraction",	[JSON_TRUE] = "true or false",
		[JSON_FALSE] = "true or false", [JSON_NULL] = "null",
	};

	return names[json_typeof(value)];
}

/* A string of at most bytes - 1 printable bytes. */
static int read_text(struct reader *r, const json_t *value, char *text, size_t bytes)
{
	const char *from = json_string_value(value);

	if (!from)
		return FAIL(r, "expected a string, found %s", type_of(value));
	if (json_string_length(value) >= bytes)
		return FAIL(r, "expected at most %zu bytes of text, found %zu", bytes - 1,
			    json_string_length(value));
	for (const char *c = from; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return FAIL(r, "expected printable text, found a control character");
	memcpy(text, from, json_string_length(value) + 1);
	return 0;
}

static int read_number(struct reader *r, const json_t *value, const struct field *f)
{
	double found = json_number_value(value);

	if (!json_is_number(value))
		return FAIL(r, "expected a number, found %s", type_of(value));
	if (!(found >= f->least && found <= f->most)) /* so that no NaN passes */
		return FAIL(r, "expected a number from %g to %g, found %g", f->least, f->most,
			    found);
	*(double *)f->to = found;
	return 0;
}

static int read_count(struct reader *r, const json_t *value, const struct field *f)
{
	json_int_t found = json_integer_value(value);

	if (!json_is_integer(value))
		return FAIL(r, "expected a whole number, found %s", type_of(value));
	if (found < 0 || (double)found > f->most)
		return FAIL(r, "expected a whole number from 0 to %.0f, found %lld", f->most,
			    (long long)found);
	*(uint64_t *)f->to = (uint64_t)found;
	return 0;
}

/* 4096 or "4K". */
static int read_bytes(struct reader *r, const json_t *value, uint64_t *bytes)
{
	const char *text = json_string_value(value);
	size_t parsed = 0;

	if (json_is_integer(value) && json_integer_value(value) >= 0)
		*bytes = (uint64_t)json_integer_value(value);
	else if (text && oci_option_bytes(text, &parsed))
		*bytes = parsed;
	else
		return FAIL(r, "expected a whole number, 0 or more, or such as \"64K\", found %s",
			    json_is_integer(value) ? "a negative one" : type_of(value));
	return 0;
}

/* "ranks": 8, or [2, 64]. */
static int read_range(struct reader *r, const json_t *value, const struct field *f)
{
	uint64_t range[2];
	int error;

	if (json_is_array(value) && json_array_size(value) != 2)
		return FAIL(r, "expected two numbers, first and last, found %zu",
			    json_array_size(value));
	for (size_t i = 0; i < 2; i++) {
		if (json_is_array(value))
			enter(r, NULL, i);
		error = read_bytes(r, json_is_array(value) ? json_array_get(value, i) : value,
				   &range[i]);
		if (error)
			return error;
		if (json_is_array(value))
			leave(r);
	}
	if (range[0] > range[1])
		return FAIL(r, "expected the smaller number first, found %llu before %llu",
			    (unsigned long long)range[0], (unsigned long long)range[1]);
	if ((double)range[1] > f->most)
		return FAIL(r, "expected at most %.0f, found %llu", f->most,
			    (unsigned long long)range[1]);
	memcpy(f->to, range, sizeof(range));
	return 0;
}

static int read_field(struct reader *r, json_t *value, const struct field *f)
{
	switch (f->kind) {
	case PART:
		return f->part(r, value);
	case TEXT:
		return read_text(r, value, f->to, f->bytes);
	case NUMBER:
		return read_number(r, value, f);
	case COUNT:
		return read_count(r, value, f);
	case RANGE:
		return read_range(r, value, f);
	case SWITCH:
		*(bool *)f->to = json_is_true(value);
		return json_is_boolean(value) ?
			       0 :
			       FAIL(r, "expected true or false, found %s", type_of(value));
	default:
		return 0;
	}
}

/* Every key of an object is that of a field. */
static int check_keys(struct reader *r, json_t *object, const struct field *fields, size_t count)
{
	char list[256] = "";
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		size_t i = 0;

		while (i < count && strcmp(fields[i].name, key) != 0)
			i++;
		if (i < count)
			continue;
		for (i = 0; i < count; i++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", fields[i].name);
		enter(r, key, 0);
		return fail_at(r, place(r, true), "expected one of %s, found \"%.64s\"", list, key);
	}
	return 0;
}

/* Reads the fields in their order. */
static int read_fields(struct reader *r, json_t *object, const struct field *fields, size_t count)
{
	static const char *const what[] = { [PART] = "an object",
					    [TEXT] = "a string",
					    [NUMBER] = "a number",
					    [COUNT] = "a whole number" };

	if (!json_is_object(object))
		return FAIL(r, "expected an object, found %s", type_of(object));
	for (const struct field *f = fields; f < fields + count; f++) {
		json_t *value = json_object_get(object, f->name);
		int error;

		if (!value && f->needed)
			return FAIL(r, "expected \"%s\": %s, found an object without it", f->name,
				    what[f->kind]);
		if (!value)
			continue;
		enter(r, f->name, 0);
		error = read_field(r, value, f);
		if (error)
			return error;
		leave(r);
	}
	return 0;
}

static int read_object(struct reader *r, json_t *object, const struct field *fields, size_t count)
{
	int error = check_keys(r, object, fields, count);

	return error ? error : read_fields(r, object, fields, count);
}
#define LENGTH(array) (sizeof(array) / sizeof(array[0]))

/* ---- the parts of a file --------------------------------------------------------------------- */

static int read_machine(struct reader *r, json_t *machine)
{
	struct oci_machine *m = &r->model->machine, here;
	uint64_t cpus = 0, page = 0;
	char expected[160], found[160];
	const struct field fields[] = {
		{ "host", TEXT_INTO(m->host), .needed = true },
		{ "cpu", TEXT_INTO(m->cpu), .needed = true },
		{ "kernel", TEXT_INTO(m->kernel) },
		{ "cpus", COUNT, .to = &cpus, .most = UINT32_MAX, .needed = true },
		{ "page_bytes", COUNT, .to = &page, .most = 0x1p40, .needed = true },
		{ .name = "comment" },
	};
	int error = read_object(r, machine, fields, LENGTH(fields));
	const char *key;

	if (error)
		return error;
	m->cpus = (uint32_t)cpus;
	m->page_bytes = (size_t)page;
	if (r->flags & OCI_MODEL_ANY_MACHINE)
		return 0;
	oci_machine_self(&here);
	key = oci_machine_differs(m, &here, expected, sizeof(expected), found, sizeof(found));
	if (!key)
		return 0;
	enter(r, key, 0);
	return FAIL(r,
		    "made on another machine: expected %s %s as here, found %s; onecopy tune "
		    "measures this one",
		    key, expected, found);
}

static int read_term(struct reader *r, const struct oci_term_info *info, json_t *value)
{
	struct oci_term *term = oci_term_of(r->model, info);
	char unit[16] = "";
	const struct field fields[] = {
		{ "value", NUMBER, .to = &term->value, .least = info->least, .most = info->most,
		  .needed = true },
		{ "unit", TEXT_INTO(unit), .needed = true },
		{ "source", TEXT_INTO(term->source), .needed = true },
		{ "method", TEXT_INTO(term->method) },
		{ "residual", NUMBER, .to = &term->residual, .most = 1e6 },
		{ "host", TEXT_INTO(term->host) },
		{ "date", TEXT_INTO(term->date) },
		{ .name = "comment" },
	};
	int error = read_object(r, value, fields, LENGTH(fields));

	if (error)
		return error;
	if (strcmp(unit, info->unit) != 0) {
		enter(r, "unit", 0);
		return FAIL(r, "expected the unit \"%s\", found \"%s\"", info->unit, unit);
	}
	term->given = true;
	return 0;
}

/* In files made by 0.2.0; no cost went by them. */
static bool is_gone(const char *term)
{
	return !strcmp(term, "touch") || !strcmp(term, "map.first");
}

static int read_terms(struct reader *r, json_t *terms)
{
	const char *key;
	json_t *value;
	int error;

	if (!json_is_object(terms))
		return FAIL(r, "expected an object, found %s", type_of(terms));
	json_object_foreach(terms, key, value)
	{
		const struct oci_term_info *info = oci_term_named(key);

		if (is_gone(key))
			continue;
		enter(r, key, 0);
		if (!info)
			return fail_at(r, place(r, true),
				       "expected the name of a term, such as \"cma.alpha\" "
				       "(onecopy tune writes all of them), found \"%.64s\"",
				       key);
		error = read_term(r, info, value);
		if (error)
			return error;
		leave(r);
	}
	return 0;
}

static int read_cell(struct reader *r, json_t *value, struct oci_model_cell *cell)
{
	uint64_t ranks[2] = { 0, UINT32_MAX }, bytes[2] = { 0, SIZE_MAX };
	const char *expected = "";
	const struct field fields[] = {
		{ "collective", TEXT_INTO(cell->collective), .needed = true },
		{ "ranks", RANGE, .to = ranks, .most = UINT32_MAX },
		{ "bytes", RANGE, .to = bytes, .most = 0x1p64 },
		{ "algorithm", TEXT_INTO(cell->algorithm), .needed = true },
		{ .name = "comment" },
	};
	int error = read_object(r, value, fields, LENGTH(fields));

	if (error)
		return error;
	cell->ranks_min = (uint32_t)ranks[0];
	cell->ranks_max = (uint32_t)ranks[1];
	cell->bytes_min = (size_t)bytes[0];
	cell->bytes_max = (size_t)bytes[1];
	if (r->check && r->check(cell->collective, cell->algorithm, &expected))
		return FAIL(r, "expected %s, found \"%s\" with \"%s\"", expected, cell->collective,
			    cell->algorithm);
	return 0;
}

static int read_cells(struct reader *r, json_t *cells)
{
	struct oci_model *m = r->model;
	size_t count = json_array_size(cells);

	if (!json_is_array(cells))
		return FAIL(r, "expected an array, found %s", type_of(cells));
	m->cells = count ? calloc(count, sizeof(*m->cells)) : NULL;
	if (count && !m->cells)
		return -ENOMEM;
	for (; m->cell_count < count; m->cell_count++) {
		int error;

		enter(r, NULL, m->cell_count);
		error = read_cell(r, json_array_get(cells, m->cell_count),
				  &m->cells[m->cell_count]);
		if (error)
			return error;
		leave(r);
	}
	return 0;
}

static int read_kind(struct reader *r, json_t *value)
{
	char kind[16] = "";
	int error = read_text(r, value, kind, sizeof(kind));

	if (error || !strcmp(kind, "tuning"))
		return error;
	return FAIL(r, "expected \"tuning\", found \"%s\"", kind);
}

static int read_version(struct reader *r, json_t *value)
{
	uint64_t version = 0;
	const struct field field = { .to = &version, .most = UINT32_MAX };
	int error = read_count(r, value, &field);

	if (error || version == VERSION)
		return error;
	return FAIL(r, "expected version %d, which this onecopy reads, found %llu", VERSION,
		    (unsigned long long)version);
}

static int read_root(struct reader *r, json_t *root)
{
	/* Whose file it is comes first: what is wrong in another machine's file is no matter. */
	const struct field fields[] = {
		{ "onecopy", PART, .part = read_kind, .needed = true },
		{ "version", PART, .part = read_version, .needed = true },
		{ "name", TEXT_INTO(r->model->name), .needed = true },
		{ "calibrated", SWITCH, .to = &r->model->calibrated },
		{ "machine", PART, .part = read_machine, .needed = true },
		{ .name = "distance" }, /* of files made by 0.2.0; it says nothing any more */
		{ "terms", PART, .part = read_terms, .needed = true },
		{ "cells", PART, .part = read_cells },
		{ .name = "comment" },
	};
	/* Before the keys, which another version may have others of. */
	int error = read_fields(r, root, fields, 2);

	return error ? error : read_object(r, root, fields, LENGTH(fields));
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

static int read_all(struct reader *r)
{
	size_t deep = oci_json_too_deep(r->text, r->length, DEEPEST);
	json_error_t error;
	json_t *root;
	int result;

	if (deep < r->length)
		return fail_at(r, deep, "expected at most %d brackets inside each other", DEEPEST);
	root = json_loadb(r->text, r->length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return fail_at(r, word_before(r->text, r->length, error.position),
			       "expected a tuning file in JSON: %s", error.text);
	result = read_root(r, root);
	json_decref(root);
	return result;
}

int oci_model_parse(const char *name, const char *text, size_t length, unsigned int flags,
		    oci_model_cell_check *check, struct oci_model *model,
		    struct oci_model_error *error)
{
	struct oci_model *read = malloc(sizeof(*read));
	struct reader r = { .name = name,
			    .text = text,
			    .length = length,
			    .flags = flags,
			    .model = read,
			    .check = check,
			    .error = error };
	int result;

	error->text[0] = '\0';
	if (!read)
		return -ENOMEM;
	oci_model_init(read);
	result = read_all(&r);
	if (result)
		oci_model_destroy(read);
	else
		*model = *read;
	free(read);
	return result;
}

/* ---- profiles -------------------------------------------------------------------------------- */

const char *oci_model_profile_name(unsigned int index)
{
	const struct oci_embedded *profile = oci_embedded_profiles;

	while (index-- && profile->name)
		profile++;
	return profile->name;
}

int oci_model_profile(const char *name, struct oci_model *model)
{
	const struct oci_embedded *profile = oci_embedded_profiles;
	struct oci_model_error error;

	while (profile->name && strcmp(profile->name, name))
		profile++;
	if (!profile->name)
		return -ENOENT;
	return oci_model_parse(profile->name, profile->text, profile->length, OCI_MODEL_ANY_MACHINE,
			       NULL, model, &error);
}
