/* SPDX-License-Identifier: BSD-3-Clause */
#include "names.h"

#include "command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum oc_collective name_collective(const char *name)
{
	struct word_list valid = { "" };

	for (int i = 0; i < OC_COLLECTIVES; i++) {
		const char *known = oci_collective_name((enum oc_collective)i);

		if (!strcasecmp(name, known))
			return (enum oc_collective)i;
		word_list_add(&valid, known);
	}
	usage("'%s' is not a collective of onecopy; valid: %s", name, valid.text);
}

void name_check_algorithm(enum oc_collective collective, const char *words)
{
	const char *expected = "";
	struct oci_forced forced;

	if (oci_forced_parse(collective, words, &forced, &expected))
		usage("'%s' is not an algorithm of %s; valid: %s", words,
		      oci_collective_name(collective), expected);
}

void name_check_mechanism(const char *name)
{
	struct word_list valid = { "auto" };
	const struct oc_mechanism_info *info;

	if (!strcmp(name, "auto"))
		return;
	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)); i++) {
		if (!strcmp(name, info->name))
			return;
		word_list_add(&valid, info->name);
	}
	usage("'%s' is not a mechanism; valid: %s", name, valid.text);
}

void name_check_log_level(const char *name)
{
	static const char *const level[] = { "error", "warn", "info", "debug" };

	for (size_t i = 0; i < sizeof(level) / sizeof(level[0]); i++)
		if (!strcmp(name, level[i]))
			return;
	usage("'%s' is not a log level; valid: error, warn, info, debug", name);
}

void name_variable(enum oc_collective collective, char *variable, size_t bytes)
{
	snprintf(variable, bytes, "ONECOPY_%s", oci_collective_name(collective));
	for (char *c = variable; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}
