/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/reader.h"

#include "base/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is quoted from a file must not steer the terminal that it is printed on. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static int vfail(struct oci_reader *r, size_t offset, const char *format, va_list arguments)
{
	char *text = r->error->text;
	size_t room = sizeof(r->error->text);
	unsigned int line, column;
	int used;

	oci_json_position(r->text, offset, &line, &column);
	used = snprintf(text, room, "%s:%u:%u: ", r->name, line, column);
	if (used > 0 && (size_t)used < room)
		vsnprintf(text + used, room - (size_t)used, format, arguments);
	make_printable(text);
	return -EINVAL;
}

__attribute__((format(printf, 2, 3))) int oci_reader_fail(struct oci_reader *r, const char *format,
							  ...)
{
	va_list arguments;
	int error;

	va_start(arguments, format);
	error = vfail(r, oci_json_locate(r->text, r->length, r->step, r->depth, false), format,
		      arguments);
	va_end(arguments);
	return error;
}

__attribute__((format(printf, 3, 4))) int oci_reader_fail_at(struct oci_reader *r, size_t offset,
							     const char *format, ...)
{
	va_list arguments;
	int error;

	va_start(arguments, format);
	error = vfail(r, offset, format, arguments);
	va_end(arguments);
	return error;
}

size_t oci_reader_key(const struct oci_reader *r)
{
	return oci_json_locate(r->text, r->length, r->step, r->depth, true);
}

void oci_reader_enter(struct oci_reader *r, const char *key, size_t index)
{
	r->step[r->depth++] = (struct oci_json_step){ key, index };
}

void oci_reader_leave(struct oci_reader *r)
{
	r->depth--;
}

const char *oci_reader_type(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_NULL:
		return "null";
	default:
		return "true or false";
	}
}

int oci_reader_keys(struct oci_reader *r, json_t *object, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		const char *const *name = known;
		char list[256] = "";
		size_t at;

		while (*name && strcmp(*name, key))
			name++;
		if (*name)
			continue;
		for (name = known; *name; name++)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", *name);
		oci_reader_enter(r, key, 0);
		at = oci_reader_key(r);
		oci_reader_leave(r);
		return oci_reader_fail_at(r, at, "expected one of %s, found \"%.64s\"", list, key);
	}
	return 0;
}

json_t *oci_reader_need(struct oci_reader *r, json_t *object, const char *key, const char *expected,
			int *error)
{
	json_t *value = json_object_get(object, key);

	if (!value)
		*error = oci_reader_fail(r, "expected \"%s\": %s, found an object without it", key,
					 expected);
	return value;
}

/* A string of at most bytes - 1 printable bytes into `text`. */
static int take_text(struct oci_reader *r, const json_t *value, char *text, size_t bytes)
{
	const char *from = json_string_value(value);

	if (!from)
		return oci_reader_fail(r, "expected a string, found %s", oci_reader_type(value));
	if (json_string_length(value) >= bytes)
		return oci_reader_fail(r, "expected at most %zu bytes of text, found %zu",
				       bytes - 1, json_string_length(value));
	for (const char *c = from; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return oci_reader_fail(
				r, "expected printable text, found a control character");
	memcpy(text, from, json_string_length(value) + 1);
	return 0;
}

int oci_reader_text(struct oci_reader *r, json_t *object, const char *key, bool needed, char *text,
		    size_t bytes)
{
	json_t *value = json_object_get(object, key);
	int error = 0;

	if (!value)
		return needed ? oci_reader_fail(
					r, "expected \"%s\": a string, found an object without it",
					key) :
				0;
	oci_reader_enter(r, key, 0);
	error = take_text(r, value, text, bytes);
	oci_reader_leave(r);
	return error;
}

int oci_reader_number(struct oci_reader *r, json_t *object, const char *key, double least,
		      double most, double *number)
{
	json_t *value;
	double found;
	int error = 0;

	value = oci_reader_need(r, object, key, "a number", &error);
	if (!value)
		return error;
	oci_reader_enter(r, key, 0);
	found = json_number_value(value);
	if (!json_is_number(value))
		error = oci_reader_fail(r, "expected a number, found %s", oci_reader_type(value));
	else if (!(found >= least && found <= most)) /* so that no NaN passes */
		error = oci_reader_fail(r, "expected a number from %g to %g, found %g", least, most,
					found);
	else
		*number = found;
	oci_reader_leave(r);
	return error;
}

int oci_reader_count(struct oci_reader *r, json_t *object, const char *key, uint64_t most,
		     uint64_t *count)
{
	json_t *value;
	int error = 0;

	value = oci_reader_need(r, object, key, "a whole number", &error);
	if (!value)
		return error;
	oci_reader_enter(r, key, 0);
	if (!json_is_integer(value))
		error = oci_reader_fail(r, "expected a whole number, found %s",
					json_is_real(value) ? "a fraction" :
							      oci_reader_type(value));
	else if (json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most)
		error = oci_reader_fail(r, "expected a whole number from 0 to %llu, found %lld",
					(unsigned long long)most,
					(long long)json_integer_value(value));
	else
		*count = (uint64_t)json_integer_value(value);
	oci_reader_leave(r);
	return error;
}

int oci_reader_bytes(struct oci_reader *r, const json_t *value, uint64_t *bytes)
{
	const char *text = json_string_value(value);
	size_t parsed = 0;

	if (json_is_integer(value) && json_integer_value(value) >= 0)
		*bytes = (uint64_t)json_integer_value(value);
	else if (text && oci_option_bytes(text, &parsed))
		*bytes = parsed;
	else
		return oci_reader_fail(
			r, "expected a whole number, 0 or more, or such as \"64K\", found %s",
			json_is_integer(value) ? "a negative one" : oci_reader_type(value));
	return 0;
}
