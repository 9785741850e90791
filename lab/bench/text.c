// SPDX-License-Identifier: BSD-3-Clause
#include "text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	int shift;
} units[] = {
	{ "", 0 },    { "B", 0 },    { "K", 10 }, { "KB", 10 }, { "KiB", 10 }, { "M", 20 },
	{ "MB", 20 }, { "MiB", 20 }, { "G", 30 }, { "GB", 30 }, { "GiB", 30 },
};

int size_parse(const char *text, size_t *bytes)
{
	unsigned long long number;
	char *end;
	size_t i;

	/* strtoull takes "-1" and leading blanks; a size has neither. */
	if (text[0] < '0' || text[0] > '9') {
		return -EINVAL;
	}
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || number == 0 || number > (1ULL << 40)) {
		return -EINVAL;
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i].name) == 0) {
			break;
		}
	}
	if (i == sizeof(units) / sizeof(units[0]) || number > ((1ULL << 40) >> units[i].shift)) {
		return -EINVAL;
	}
	*bytes = (size_t)number << units[i].shift;
	return 0;
}

const char *size_format(size_t bytes, char out[TEXT_SIZE_CHARS])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB" };
	int unit = 0;

	while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, TEXT_SIZE_CHARS, "%zu %s", bytes, names[unit]);
	return out;
}

int size_list_parse(const char *text, struct size_list *list, char error[TEXT_ERROR_CHARS])
{
	struct size_list found = { .n = 0 };
	char *copy = strdup(text), *rest = copy, *word;
	int err = -EINVAL;

	if (!copy) {
		snprintf(error, TEXT_ERROR_CHARS, "Out of memory while reading a list of sizes.");
		return -ENOMEM;
	}
	while ((word = strsep(&rest, ","))) {
		if (found.n == TEXT_MAX_SIZES) {
			snprintf(error, TEXT_ERROR_CHARS, "More than %d sizes were given.",
				 TEXT_MAX_SIZES);
			goto out;
		}
		if (size_parse(word, &found.bytes[found.n])) {
			snprintf(
				error, TEXT_ERROR_CHARS,
				"'%.60s' is not a size: write a number of bytes above 0, with K, M "
				"or G for powers of 1024, as in 4,1K,64K,1M.",
				word);
			goto out;
		}
		found.n++;
	}
	*list = found;
	err = 0;
out:
	free(copy);
	return err;
}

void size_list_powers_of_4(struct size_list *list, size_t min, size_t max)
{
	size_t bytes;

	list->n = 0;
	for (bytes = 1; bytes <= max && list->n < TEXT_MAX_SIZES; bytes *= 4) {
		if (bytes >= min) {
			list->bytes[list->n++] = bytes;
		}
	}
}

int long_parse(const char *text, long min, long max, long *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < min || number > max) {
		return -EINVAL;
	}
	*value = number;
	return 0;
}

int double_parse(const char *text, double min, double max, double *value)
{
	char *end;
	double number;

	errno = 0;
	number = strtod(text, &end);
	/* Written so that a NaN fails too. */
	if (errno || end == text || *end || !(number >= min && number <= max)) {
		return -EINVAL;
	}
	*value = number;
	return 0;
}

int range_parse(const char *text, double max, struct range *range)
{
	struct range found;
	char *end;

	errno = 0;
	found.low = strtod(text, &end);
	if (errno || end == text || *end != ':' || !(found.low >= 0) ||
	    double_parse(end + 1, found.low, max, &found.high)) {
		return -EINVAL;
	}
	*range = found;
	return 0;
}

error_t args_fail(struct argp_state *state, const char *sentence)
{
	argp_error(state, "%s", sentence);
	return EINVAL;
}

static int plain_set(const struct plain_option *o, const char *arg, void *place)
{
	switch (o->kind) {
	case PLAIN_FLAG:
		*(bool *)place = true;
		return 0;
	case PLAIN_TEXT:
		*(const char **)place = arg;
		return 0;
	case PLAIN_COUNT:
		return long_parse(arg, (long)o->least, (long)o->most, place);
	case PLAIN_FRACTION:
		return double_parse(arg, o->least, o->most, place);
	default:
		return size_parse(arg, place);
	}
}

error_t plain_parse(const struct plain_option *options, int key, const char *arg,
		    struct argp_state *state)
{
	for (; options->key; options++) {
		if (options->key == key) {
			return plain_set(options, arg, (char *)state->input + options->place) ?
				       args_fail(state, options->sentence) :
				       0;
		}
	}
	return ARGP_ERR_UNKNOWN;
}

struct args_context {
	void *options;
	bool quiet;
	bool help;
};

static error_t args_parser(int key, char *arg, struct argp_state *state)
{
	struct args_context *context = state->input;
	error_t err;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = context->options;
		/*
		 * getopt, inside argp, writes its own complaints to stderr; its prefix would be the
		 * whole path of the program otherwise.
		 */
		state->name = program_invocation_short_name;
		err = 0;
		break;
	case ARGS_KEY_HELP:
		if (!context->quiet) {
			argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		}
		context->help = true;
		/* What follows --help needs no reading. */
		state->next = state->argc;
		err = 0;
		break;
	default:
		err = ARGP_ERR_UNKNOWN;
	}
	(void)arg;
	return err;
}

int args_parse(const struct argp *argp, int argc, char **argv, void *options, bool quiet)
{
	static const struct argp_option help[] = { ARGS_HELP_OPTION, { 0 } };
	struct argp_child children[] = { { argp, 0, NULL, 0 }, { 0 } };
	struct argp outer = {
		.options = help,
		.parser = args_parser,
		.args_doc = argp->args_doc,
		.doc = argp->doc,
		.children = children,
	};
	struct argp inner = *argp;
	struct args_context context = { .options = options, .quiet = quiet };
	unsigned int flags = ARGP_NO_EXIT | ARGP_NO_HELP | (quiet ? ARGP_NO_ERRS : 0);
	error_t err;

	/* The outer parser prints the texts; argp would print a child's a second time. */
	inner.doc = NULL;
	inner.args_doc = NULL;
	children[0].argp = &inner;
	err = argp_parse(&outer, argc, argv, flags, NULL, &context);
	if (context.help) {
		return STATUS_OK;
	}
	if (err) {
		if (!quiet) {
			argp_help(&outer, stderr, ARGP_HELP_USAGE, program_invocation_short_name);
		}
		return STATUS_USAGE;
	}
	return -1;
}
