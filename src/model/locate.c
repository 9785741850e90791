/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/locate.h"

#include <string.h>

static size_t skip_blank(const char *text, size_t length, size_t at)
{
	while (at < length && memchr(" \t\r\n", text[at], 4))
		at++;
	return at;
}

/* From the opening quote to behind the closing one. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
	for (at++; at < length && text[at] != '"'; at++)
		if (text[at] == '\\')
			at++;
	return at < length ? at + 1 : length;
}

/* Behind the value that begins here: counts brackets, so that depth costs no stack. */
static size_t skip_value(const char *text, size_t length, size_t at)
{
	size_t depth = 0;

	while (at < length) {
		char c = text[at];

		if (c == '"') {
			at = skip_string(text, length, at);
			if (!depth)
				return at;
			continue;
		}
		if (!depth && memchr(",]} \t\r\n", c, 7))
			return at;
		if (c == '{' || c == '[')
			depth++;
		at++;
		if ((c == '}' || c == ']') && --depth == 0)
			return at;
	}
	return length;
}

static bool key_is(const char *text, size_t start, size_t end, const char *key)
{
	/* Keys of ours have no escapes: one that is spelt with them is not found, and the object
	 * that it is in stands for it. */
	return end - start == strlen(key) + 2 && !memcmp(text + start + 1, key, strlen(key));
}

/* One step from the value at `at`; length: not there. *key_at is set for steps by key. */
static size_t enter(const char *text, size_t length, size_t at, const struct oci_json_step *step,
		    size_t *key_at)
{
	for (size_t index = 0;; index++) {
		size_t key = skip_blank(text, length, at + 1), end;

		if (key >= length || text[key] == '}' || text[key] == ']')
			return length;
		at = key;
		if (step->key) {
			end = skip_string(text, length, key);
			at = skip_blank(text, length, end); /* the colon */
			at = skip_blank(text, length, at + 1);
			if (at < length && key_is(text, key, end, step->key)) {
				*key_at = key;
				return at;
			}
		} else if (index == step->index) {
			*key_at = key;
			return key;
		}
		at = skip_blank(text, length, skip_value(text, length, at)); /* the comma */
		if (at >= length || text[at] != ',')
			return length;
	}
}

size_t oci_json_locate(const char *text, size_t length, const struct oci_json_step *steps,
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

	for (size_t at = 0; at < length; at++) {
		if (text[at] == '"') {
			at = skip_string(text, length, at) - 1;
			continue;
		}
		if ((text[at] == '{' || text[at] == '[') && ++depth > most)
			return at;
		if ((text[at] == '}' || text[at] == ']') && depth)
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
