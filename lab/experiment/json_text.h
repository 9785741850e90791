/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON of what others named: paths and host names are bytes, JSON's strings are UTF-8. */
#ifndef EXPERIMENT_JSON_TEXT_H
#define EXPERIMENT_JSON_TEXT_H

#include <jansson.h>

/* A string of `text`, with U+FFFD for each byte that is not UTF-8; NULL: no memory. */
json_t *json_text(const char *text);
/* Prints it and a new line on standard output, and gives it back; NULL is one that could not be
 * made. 0 or 1; says why not, unless ferror(stdout) does, which the command looks at in the end. */
int json_text_print(json_t *json, size_t indent);

/* What an object has under a key: its string, its integer; "" and 0 where it has none. */
const char *json_text_at(const json_t *object, const char *key);
json_int_t json_number_at(const json_t *object, const char *key);

#endif
