/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *format, va_list arguments)
{
	char line[4096];
	int length = snprintf(line, sizeof(line), "onecopy: ");

	vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	strcat(line, "\n");
	fflush(stdout); /* so that the two streams stay in order in a log */
	fputs(line, stderr);
}

void command_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

int command_end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	command_say("standard output: %s", strerror(errno));
	return 1;
}

void command_usage(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	exit(EXIT_USAGE);
}

uint32_t command_ranks(const char *text, uint32_t least, uint32_t most)
{
	unsigned long ranks;
	char *end;

	errno = 0;
	ranks = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || ranks < 1 || ranks > most)
		command_usage("'%s' is not a number of ranks; valid: %u to %u", text, least, most);
	if (ranks < least)
		command_usage("--ranks %lu: a collective of one rank moves nothing; valid: %u and "
			      "more",
			      ranks, least);
	return (uint32_t)ranks;
}

void word_list_add(struct word_list *list, const char *word)
{
	size_t length = strlen(list->text);

	snprintf(list->text + length, sizeof(list->text) - length, "%s%s", length ? ", " : "",
		 word);
}

/*
 * argp's own messages (switched off by ARGP_NO_ERRS) do not say what would have been valid. It
 * tells neither which word was at fault, but has stopped right behind it.
 */
static void refuse_option(struct argp_state *state)
{
	const struct argp_option *option = state->root_argp->options;
	const char *word = state->argv[state->next > 1 ? state->next - 1 : 1];
	struct word_list valid = { "" };

	for (; option->name; option++) {
		char text[128];

		if (!strncmp(word, "--", 2) && !strcmp(word + 2, option->name) && option->arg)
			command_usage("--%s needs a value: --%s %s", option->name, option->name,
				      option->arg);
		snprintf(text, sizeof(text), "--%s%s%s", option->name, option->arg ? " " : "",
			 option->arg ? option->arg : "");
		word_list_add(&valid, text);
	}
	command_usage("'%s' is not an option of '%s'; valid: %s", word, state->argv[0], valid.text);
}

error_t command_parse_key(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case 'h':
		argp_help(state->root_argp, stdout,
			  ARGP_HELP_LONG | ARGP_HELP_USAGE | ARGP_HELP_DOC, state->argv[0]);
		exit(0);
	case ARGP_KEY_ERROR:
		refuse_option(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	error_t err = argp_parse(argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_IN_ORDER,
				 NULL, input);

	if (err)
		command_usage("the options cannot be parsed: %s", strerror(err));
}
