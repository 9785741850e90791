/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/harness/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Of options without a letter: behind all letters. */
enum { KEY_FIRST = 256 };

/* What argp gets as input. */
struct parse {
	const struct option_set *set;
	void *options;
};

static void vsay(const char *format, va_list arguments)
{
	char line[4096];

	vsnprintf(line, sizeof(line), format, arguments);
	fflush(stdout); /* so that the two streams stay in order in a log */
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsay(format, arguments);
	va_end(arguments);
}

void usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsay(format, arguments);
	va_end(arguments);
	exit(EXIT_USAGE);
}

void word_list_add(struct word_list *list, const char *word)
{
	size_t length = strlen(list->text);

	snprintf(list->text + length, sizeof(list->text) - length, "%s%s", length ? ", " : "",
		 word);
}

unsigned int word_take(const char *word, const char *what, const char *(*valid)(unsigned int i),
		       const char *besides)
{
	struct word_list list = { "" };
	const char *one;

	for (unsigned int i = 0; (one = valid(i)) != NULL; i++) {
		if (!strcasecmp(word, one))
			return i;
		word_list_add(&list, one);
	}
	usage("'%s' is not %s; valid: %s%s", word, what, list.text, besides);
}

int long_parse(const char *text, long min, long max, long *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < min || number > max)
		return -EINVAL;
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
	if (errno || end == text || *end || !(number >= min && number <= max))
		return -EINVAL;
	*value = number;
	return 0;
}

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
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || number > (1ULL << 40))
		return -EINVAL;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcasecmp(end, units[i].name) == 0)
			break;
	if (i == sizeof(units) / sizeof(units[0]) || number > ((1ULL << 40) >> units[i].shift))
		return -EINVAL;
	*bytes = (size_t)number << units[i].shift;
	return 0;
}

size_t size_take(const char *option, const char *text, size_t least)
{
	size_t bytes;

	if (size_parse(text, &bytes) || bytes < least)
		usage("'%s' is not a number of bytes for %s; valid: %zu to 1024G, such as 65536, 64K "
		      "or 1M",
		      text, option, least);
	return bytes;
}

void size_list_take(const char *option, const char *text, size_t least, struct size_list *list)
{
	char *copy = strdup(text), *rest = copy, *word;

	if (!copy)
		usage("no memory for the options");
	list->count = 0;
	while ((word = strsep(&rest, ","))) {
		if (list->count == SIZES_MOST)
			usage("%s has more than %d sizes", option, SIZES_MOST);
		list->at[list->count++] = size_take(option, word, least);
	}
	free(copy);
}

static bool is_last(const struct option_row *row)
{
	return !row->name && !row->help;
}

static char *name_of(char *called)
{
	char *slash = strrchr(called, '/');

	return slash ? slash + 1 : called;
}

/* The option that this word is, without a value; its name may be cut short. NULL: none, or several.
 */
static const struct option_row *option_of(const struct option_row *row, const char *word)
{
	const struct option_row *found = NULL;
	size_t length = strlen(word);
	unsigned int count = 0;

	for (; !is_last(row); row++) {
		bool is_key = length == 2 && word[1] == row->key;

		if (!row->name || word[0] != '-' || length < 2)
			continue;
		if (is_key || (word[1] == '-' && !strcmp(row->name, word + 2)))
			return row;
		if (word[1] == '-' && length > 2 && !strncmp(row->name, word + 2, length - 2)) {
			found = row;
			count++;
		}
	}
	return count == 1 ? found : NULL;
}

/*
 * argp's own messages (switched off by ARGP_NO_ERRS) do not say what would have been valid. It
 * tells neither which word was at fault, but has stopped right behind it; in a word of several
 * letters right before it.
 */
static const char *word_at_fault(const struct argp_state *state, const struct option_row *rows)
{
	const char *word = state->argv[state->next > 1 ? state->next - 1 : 1];
	const char *next = state->next < state->argc ? state->argv[state->next] : "";
	const struct option_row *row = option_of(rows, word);
	bool right = word[0] != '-' || (row && !row->value);

	return right && next[0] == '-' && next[1] != '-' ? next : word;
}

static void refuse(const struct argp_state *state, const struct option_row *row)
{
	const char *word = word_at_fault(state, row);
	const struct option_row *known = option_of(row, word);
	struct word_list valid = { "" };

	if (known && known->value)
		usage("%s needs a value: %s %s", word, word, known->value);
	for (; !is_last(row); row++) {
		char text[128], letter[8] = "";

		if (!row->name)
			continue;
		if (row->key)
			snprintf(letter, sizeof(letter), "-%c, ", row->key);
		snprintf(text, sizeof(text), "%s--%s%s%s", letter, row->name, row->value ? " " : "",
			 row->value ? row->value : "");
		word_list_add(&valid, text);
	}
	usage("'%s' is not an option of '%s'; valid: %s, --help", word, name_of(state->argv[0]),
	      valid.text);
}

static void take(const struct option_row *row, void *options, const char *text)
{
	void *place = (char *)options + row->place;

	if (row->take)
		row->take(place, text);
	else if (row->kind == OPTION_FLAG)
		*(bool *)place = true;
	else if (row->kind == OPTION_TEXT && !*text)
		usage("--%s needs a value: --%s %s", row->name, row->name, row->value);
	else if (row->kind == OPTION_TEXT)
		*(const char **)place = text;
	else if (row->kind == OPTION_COUNT ?
			 long_parse(text, (long)row->least, (long)row->most, place) :
			 double_parse(text, row->least, row->most, place))
		usage("--%s takes a %s from %.10g to %.10g, not '%s'", row->name,
		      row->kind == OPTION_COUNT ? "whole number" : "number", row->least, row->most,
		      text);
}

static error_t parse_key(int key, char *text, struct argp_state *state)
{
	const struct parse *parse = state->input;
	const struct option_set *set = parse->set;

	if (key == 'h') {
		argp_help(state->root_argp, stdout,
			  ARGP_HELP_LONG | ARGP_HELP_USAGE | ARGP_HELP_DOC,
			  name_of(state->argv[0]));
		if (!fflush(stdout) && !ferror(stdout))
			exit(0);
		say("standard output: %s", strerror(errno));
		exit(1);
	}
	if (key == ARGP_KEY_ERROR)
		refuse(state, set->rows);
	if (key == ARGP_KEY_ARG && !set->argument)
		usage("'%s': '%s' takes options only; see its --help", text,
		      name_of(state->argv[0]));
	if (key == ARGP_KEY_ARG) {
		set->argument(parse->options, text, state);
		return 0;
	}
	for (int i = 0; !is_last(&set->rows[i]); i++) {
		const struct option_row *row = &set->rows[i];

		if (row->name && key == (row->key ? row->key : KEY_FIRST + i)) {
			take(row, parse->options, text);
			return 0;
		}
	}
	return ARGP_ERR_UNKNOWN;
}

/* argp's own table of them, to be freed. */
static struct argp_option *table_of(const struct option_row *rows)
{
	struct argp_option *table;
	int count = 0, group = 0;

	while (!is_last(&rows[count]))
		count++;
	table = calloc((size_t)count + 2, sizeof(*table));
	if (!table)
		usage("no memory for the options");
	for (int i = 0; i < count; i++) {
		group += !rows[i].name;
		table[i] = (struct argp_option){
			rows[i].name,
			!rows[i].name ? 0 : rows[i].key ? rows[i].key : KEY_FIRST + i,
			rows[i].value,
			0,
			rows[i].help,
			group
		};
	}
	table[count] = (struct argp_option){ "help", 'h', NULL, 0, "Print this help", -1 };
	return table;
}

void options_parse(const struct option_set *set, int argc, char **argv, void *options)
{
	struct argp_option *table = table_of(set->rows);
	const struct argp argp = { table, parse_key, set->arguments, set->about, NULL, NULL, NULL };
	struct parse parse = { set, options };
	error_t err = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER,
				 NULL, &parse);

	free(table);
	if (err)
		usage("the options cannot be parsed: %s", strerror(err));
}

void options_help(const struct option_set *set, const char *name)
{
	struct argp_option *table = table_of(set->rows);
	const struct argp argp = { table, parse_key, set->arguments, set->about, NULL, NULL, NULL };

	argp_help(&argp, stdout, ARGP_HELP_LONG | ARGP_HELP_USAGE | ARGP_HELP_DOC, (char *)name);
	free(table);
}
