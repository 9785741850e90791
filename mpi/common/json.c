/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jansson, loaded when it is first called. Few processes read a tuning file or write statistics;
 * but all that a front end is loaded into, launchers and shells among them, would load jansson with
 * it, 0.04 ms each (EPYC guest, 2026-11-24).
 *
 * These are the functions of jansson.h that the engine calls, under their own names: the linker
 * takes them before those of the library. Where that is missing, a sentence says so, a file is as
 * one that is no JSON, and no statistics are written.
 */
#include "base/log.h"

#include <dlfcn.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* The interface of jansson 2, in all of its versions. */
#define LIBRARY "libjansson.so.4"

/* clang-format off */
#define FUNCTIONS(X) \
	X(json_array) X(json_array_append_new) X(json_array_get) X(json_array_size) \
	X(json_delete) X(json_dumpf) X(json_integer_value) X(json_loadb) X(json_number_value) \
	X(json_object_get) X(json_object_iter) X(json_object_iter_key) X(json_object_iter_next) \
	X(json_object_iter_value) X(json_object_key_to_iter) \
	X(json_string) X(json_string_length) X(json_string_value) X(json_vpack_ex)
/* clang-format on */

static struct {
#define MEMBER(name) __typeof__(name) *name;
	FUNCTIONS(MEMBER)
	bool there;
} real;

static void load(void)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	bool all = library != NULL;

#define FIND(name)                                                              \
	real.name = library ? (__typeof__(name) *)dlsym(library, #name) : NULL; \
	all = all && real.name;
	FUNCTIONS(FIND)
	real.there = all;
	if (!all)
		oci_warn("%s cannot be loaded, so no tuning file is read and no statistics are "
			 "written; install it (Debian: libjansson4)",
			 LIBRARY);
}

static bool is_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return real.there;
}

/* clang-format off */
#define FORWARD(type, none, name, parameters, arguments) \
	type name parameters { return is_there() ? real.name arguments : (none); }

FORWARD(json_t *, NULL, json_array, (void), ())
FORWARD(int, -1, json_array_append_new, (json_t *array, json_t *value), (array, value))
FORWARD(json_t *, NULL, json_array_get, (const json_t *array, size_t at), (array, at))
FORWARD(size_t, 0, json_array_size, (const json_t *array), (array))
FORWARD(int, -1, json_dumpf, (const json_t *json, FILE *out, size_t flags), (json, out, flags))
FORWARD(json_int_t, 0, json_integer_value, (const json_t *integer), (integer))
FORWARD(double, 0, json_number_value, (const json_t *number), (number))
FORWARD(json_t *, NULL, json_object_get, (const json_t *object, const char *key), (object, key))
FORWARD(void *, NULL, json_object_iter, (json_t *object), (object))
FORWARD(const char *, NULL, json_object_iter_key, (void *at), (at))
FORWARD(void *, NULL, json_object_iter_next, (json_t *object, void *at), (object, at))
FORWARD(json_t *, NULL, json_object_iter_value, (void *at), (at))
FORWARD(void *, NULL, json_object_key_to_iter, (const char *key), (key))
FORWARD(json_t *, NULL, json_string, (const char *text), (text))
FORWARD(size_t, 0, json_string_length, (const json_t *string), (string))
FORWARD(const char *, NULL, json_string_value, (const json_t *string), (string))
/* clang-format on */

void json_delete(json_t *json)
{
	if (is_there())
		real.json_delete(json);
}

json_t *json_loadb(const char *text, size_t bytes, size_t flags, json_error_t *error)
{
	if (is_there())
		return real.json_loadb(text, bytes, flags, error);
	*error = (json_error_t){ .line = 1, .column = 1 };
	snprintf(error->text, sizeof(error->text), LIBRARY " cannot be loaded");
	return NULL;
}

json_t *json_pack(const char *format, ...)
{
	json_t *json = NULL;
	va_list values;

	va_start(values, format);
	if (is_there())
		json = real.json_vpack_ex(NULL, 0, format, values);
	va_end(values);
	return json;
}
