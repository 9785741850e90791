/* SPDX-License-Identifier: BSD-3-Clause */
#include "json_text.h"

#include "command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By jansson's own check, which is the one that counts. */
static bool is_utf8(const char *text, size_t bytes)
{
	json_t *json = json_stringn(text, bytes);

	json_decref(json);
	return json != NULL;
}

/* Bytes of the character at `text`; 0: it is none. */
static size_t character(const char *text)
{
	size_t left = strnlen(text, 4);

	for (size_t bytes = 1; bytes <= left; bytes++) {
		if (is_utf8(text, bytes))
			return bytes;
	}
	return 0;
}

json_t *json_text(const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd";
	json_t *json = json_string(text);
	size_t length = 0;
	char *copy;

	if (json)
		return json;
	copy = malloc((sizeof(unknown) - 1) * strlen(text) + 1);
	if (!copy)
		return NULL;
	while (*text) {
		size_t bytes = character(text);

		if (bytes) {
			memcpy(copy + length, text, bytes);
			length += bytes;
			text += bytes;
		} else {
			memcpy(copy + length, unknown, sizeof(unknown) - 1);
			length += sizeof(unknown) - 1;
			text++;
		}
	}
	json = json_stringn(copy, length);
	free(copy);
	return json;
}

int json_text_print(json_t *json, size_t indent)
{
	int failed;

	if (!json) {
		command_say("the JSON cannot be made: no memory");
		return 1;
	}
	failed = json_dumpf(json, stdout, JSON_INDENT(indent) | JSON_PRESERVE_ORDER) ||
		 putchar('\n') < 0;
	json_decref(json);
	/* Of a write that failed the command speaks at its end, of text and JSON alike. */
	if (failed && !ferror(stdout))
		command_say("the JSON cannot be printed: no memory");
	return failed ? 1 : 0;
}
