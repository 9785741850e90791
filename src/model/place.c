/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/place.h"

#include <jansson.h>
#include <string.h>

static size_t skip_blank(const char *text, size_t length, size_t at)
{
	while (at < length && memchr(" \t\r\n", text[at], 4))
		at++;
	return at;
}

/* Behind the value that begins here, and what follows it: jansson reads it once more. */
static size_t skip_value(const char *text, size_t length, size_t at, const char *key, bool *is_key)
{
	json_error_t error;
	json_t *value = json_loadb(text + at, length - at, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK,
				   &error);

	if (key)
		*is_key = json_is_string(value) && !strcmp(json_string_value(value), key);
	if (!value)
		return length;
	json_decref(value);
	return skip_blank(text, length, at + (size_t)error.position);
}

/* One step from the value at `at`; length: not there. *key_at is set when it is. */
static size_t enter(const char *text, size_t length, size_t at, const struct oci_json_step *step,
		    size_t *key_at)
{
	for (size_t index = 0;; index++) {
		size_t member = skip_blank(text, length, at + 1);
		bool found = index == step->index;

		at = member;
		if (step->key) {
			at = skip_value(text, length, member, step->key, &found);
			at = skip_blank(text, length, at + 1); /* behind the colon */
		}
		if (at < length && found) {
			*key_at = member;
			return at;
		}
		at = at < length ? skip_value(text, length, at, NULL, NULL) : length;
		if (at >= length || text[at] != ',')
			return length;
	}
}

size_t oci_json_place(const char *text, size_t length, const struct oci_json_step *steps,
		      size_t count, bool want_key)
{
	size_t at = skip_blank(text, length, 0), key_at = at;

	for (size_t i = 0; i < count; i++) {
		size_t next;

		if (at >= length || text[at] != (steps[i].key ? '{' : '['))
			return at < length ? at : 0;
		next = enter(text, length, at, &steps[i], &key_at);
		if (next >= length)
			return at;
		at = next;
	}
	return want_key ? key_at : at;
}

size_t oci_json_too_deep(const char *text, size_t length, unsigned int most)
{
	unsigned int depth = 0;
	bool quoted = false;

	for (size_t at = 0; at < length; at++) {
		if (text[at] == '"')
			quoted = !quoted;
		else if (quoted)
			at += text[at] == '\\';
		else if ((text[at] == '{' || text[at] == '[') && ++depth > most)
			return at;
		else if ((text[at] == '}' || text[at] == ']') && depth)
			depth--;
	}
	return length;
}

void oci_json_position(const char *text, size_t offset, unsigned int *line, unsigned int *column)
{
	*line = 1;
	*column = 1;
	for (size_t at = 0; at < offset; at++) {
		(*column)++;
		if (text[at] == '\n') {
			(*line)++;
			*column = 1;
		}
	}
}
