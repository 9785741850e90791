/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include "command.h"

#include <ctype.h>
#include <stdio.h>

void name_check_algorithm(enum oc_collective collective, const char *words)
{
	const char *expected = "";
	struct oci_forced forced;

	if (oci_forced_parse(collective, words, &forced, &expected))
		usage("'%s' is not an algorithm of %s; valid: %s", words,
		      oci_collective_name(collective), expected);
}

static const char *mechanism_word(unsigned int i)
{
	const struct oc_mechanism_info *info = i ? oc_inspect_mechanism(i - 1) : NULL;

	return !i ? "auto" : info ? info->name : NULL;
}

const char *name_mechanism(const char *name)
{
	return mechanism_word(word_take(name, "a mechanism", mechanism_word, ""));
}

static const char *level_word(unsigned int i)
{
	static const char *const levels[] = { "error", "warn", "info", "debug", NULL };

	return levels[i];
}

const char *name_log_level(const char *name)
{
	return level_word(word_take(name, "a log level", level_word, ""));
}

void name_variable(enum oc_collective collective, char *variable, size_t bytes)
{
	snprintf(variable, bytes, "ONECOPY_%s", oci_collective_name(collective));
	for (char *c = variable; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}
