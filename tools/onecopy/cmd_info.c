/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy info: what works here and why; the option and algorithm tables; plans as graphs. */
#include "command.h"
#include "info.h"
#include "names.h"
#include "predict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_OPTIONS = 256, KEY_ALGORITHMS, KEY_PLAN };

struct info_options {
	bool json, plan;
	unsigned int sections;
	char *arguments[3]; /* of --plan */
	int count;
	const char *profile; /* whose machine the ranks of --plan fill; NULL: a flat one */
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct info_options *options = state->input;

	switch (key) {
	case 'j':
		options->json = true;
		return 0;
	case KEY_OPTIONS:
		options->sections |= INFO_OPTIONS;
		return 0;
	case KEY_ALGORITHMS:
		options->sections |= INFO_ALGORITHMS;
		return 0;
	case KEY_PLAN:
		options->plan = true;
		return 0;
	case 'p':
		options->profile = predict_profile(arg);
		return 0;
	case ARGP_KEY_ARG:
		if (!options->plan)
			command_usage("'%s': 'onecopy info' takes no arguments, except with --plan",
				      arg);
		if (options->count == 3)
			command_usage("'%s' is one argument too many for --plan: expected "
				      "COLLECTIVE ALGORITHM RANKS",
				      arg);
		options->arguments[options->count++] = arg;
		return 0;
	default:
		return command_parse_key(key, arg, state);
	}
}

static const struct argp_option info_options[] = {
	{ "json", 'j', NULL, 0, "Print as JSON (everything, unless a part is chosen)", 0 },
	{ "options", KEY_OPTIONS, NULL, 0, "The options, their values here and their defaults", 0 },
	{ "algorithms", KEY_ALGORITHMS, NULL, 0, "The algorithms of each collective", 0 },
	{ "plan", KEY_PLAN, NULL, 0,
	  "The plans of all ranks of COLLECTIVE ALGORITHM RANKS, as a Graphviz graph", 0 },
	{ "profile", 'p', "NAME|FILE", 0,
	  "With --plan: the ranks fill this machine core by core (default: a flat one), which "
	  "algorithms by hierarchy go by",
	  0 },
	COMMAND_HELP_OPTION,
	{ 0 }
};

const struct argp info_argp = {
	.options = info_options,
	.parser = parse_key,
	.args_doc = "\n--plan COLLECTIVE ALGORITHM RANKS",
	.doc = "Tells which mechanisms work on this machine, which do not, and the sentence that "
	       "says why.\vExit status: 0, or 2 if the options are wrong.",
};

static int print_plan(const struct info_options *options)
{
	enum oc_collective collective;
	unsigned long ranks;
	char *end;
	int err;

	if (options->count < 3)
		command_usage("--plan needs COLLECTIVE ALGORITHM RANKS, such as: onecopy info "
			      "--plan bcast knomial:4 8");
	collective = name_collective(options->arguments[0]);
	name_check_algorithm(collective, options->arguments[1]);
	ranks = strtoul(options->arguments[2], &end, 10);
	if (*end || end == options->arguments[2] || ranks < 1 || ranks > 1024)
		command_usage("'%s' is not a number of ranks; valid: 1 to 1024",
			      options->arguments[2]);
	err = oc_inspect_plan_dot(STDOUT_FILENO, collective, options->arguments[1], (uint32_t)ranks,
				  options->profile);
	if (!err)
		return 0;
	if (err == -EINVAL)
		command_usage("%s of %s on %lu ranks has no plan to show: auto and mpi are no "
			      "algorithms, and some algorithms need at least 2 ranks",
			      options->arguments[1], options->arguments[0], ranks);
	if (err == -ENOENT)
		command_usage("--profile %s cannot be read; onecopy explain --profile says why",
			      options->profile);
	command_say("the plan cannot be printed: %s", strerror(-err));
	return 1;
}

int info_main(int argc, char **argv)
{
	struct info_options options = { .json = false };

	command_parse(&info_argp, argc, argv, &options);
	if (options.profile && !options.plan)
		command_usage("--profile is for --plan COLLECTIVE ALGORITHM RANKS");
	if (options.plan)
		return print_plan(&options);
	if (options.json) {
		json_t *json = info_json(options.sections ? options.sections : ~0u);

		json_dumpf(json, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(json);
	} else {
		info_print_text(options.sections ? options.sections : INFO_MACHINE);
	}
	if (fflush(stdout) || ferror(stdout)) {
		command_say("standard output: %s", strerror(errno));
		return 1;
	}
	return 0;
}
