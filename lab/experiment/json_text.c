/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/experiment/json_text.h"

#include "lab/experiment/experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *json_text(const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd";
	json_t *json = json_string(text);
	size_t length = 0, bytes;
	char *copy;

	if (json)
		return json;
	copy = malloc((sizeof(unknown) - 1) * strlen(text) + 1);
	for (; copy && *text; text += bytes) {
		/* The character's bytes, by jansson's own check, which is the one that counts. */
		json_t *character = NULL;

		for (bytes = 0; !character && bytes < strnlen(text, 4);)
			character = json_stringn(text, ++bytes);
		if (!character)
			bytes = 1;
		length = (size_t)(stpcpy(copy + length,
					 character ? json_string_value(character) : unknown) -
				  copy);
		json_decref(character);
	}
	json = copy ? json_stringn(copy, length) : NULL;
	free(copy);
	return json;
}

int json_text_print(json_t *json, size_t indent)
{
	int failed;

	if (!json) {
		say("the JSON cannot be made: no memory");
		return 1;
	}
	failed = json_dumpf(json, stdout, JSON_INDENT(indent) | JSON_PRESERVE_ORDER) ||
		 putchar('\n') < 0;
	json_decref(json);
	/* Of a write that failed the command speaks at its end, of text and JSON alike. */
	if (failed && !ferror(stdout))
		say("the JSON cannot be printed: no memory");
	return failed ? 1 : 0;
}

const char *json_text_at(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

json_int_t json_number_at(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}
