/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy run: sets the environment and runs the command. Nothing else: what happens under an MPI
 * is the affair of the component or of the library, and a job must never fail because of us. Both
 * are set always, as a script may start programs of several MPIs: Open MPI's path means nothing to
 * MPICH, and the library passes through in programs of an MPI that it is not made for.
 */
#include "command.h"
#include "foreground.h"
#include "lab/experiment/counters.h"
#include "names.h"
#include "parts.h"

#include <onecopy/onecopy.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct run_choice {
	bool stats, json, quiet, heap;
	const char *stats_json;
	FILE *stats_file; /* open before the job starts: afterwards it would be too late to say */
	char **command;	  /* NULL-terminated, as in argv */
	struct word_list settings; /* what was set in ONECOPY_*, for the line that says it */
};

static void set(struct run_choice *options, const char *variable, const char *value)
{
	char word[256];

	setenv(variable, value, 1);
	snprintf(word, sizeof(word), "%s=%s", variable, value);
	word_list_add(&options->settings, word);
}

static void take_force(void *options, const char *words)
{
	const char *equals = strchr(words, '=');
	enum oc_collective collective;
	char name[64], variable[64];

	if (!equals || equals == words || !equals[1])
		usage("--force %s: expected COLLECTIVE=ALGORITHM, such as bcast=knomial:4", words);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - words), words);
	collective = collective_take(name);
	name_check_algorithm(collective, equals + 1);
	name_variable(collective, variable, sizeof(variable));
	set(options, variable, equals + 1);
}

static void take_log(void *options, const char *level)
{
	set(options, "ONECOPY_LOG", name_log_level(level));
}

static void take_mechanism(void *options, const char *name)
{
	set(options, "ONECOPY_MECHANISM", name_mechanism(name));
}

/* The command and everything behind it, options of its own included. */
static void take_command(void *options, const char *text, struct argp_state *state)
{
	if (!*text)
		usage("the command to run is an empty word; such as: onecopy run mpirun -n 4 ./app");
	((struct run_choice *)options)->command = &state->argv[state->next - 1];
	state->next = state->argc;
}

#define AT(member) .place = offsetof(struct run_choice, member)

const struct option_set run_options = {
	.rows =
		(const struct option_row[]){
			{ "stats", 0, NULL,
			  "Print at the end what was served and what was handed back", AT(stats) },
			{ "stats-json", 0, "FILE", "Write the statistics to FILE as JSON",
			  OPTION_TEXT, AT(stats_json) },
			{ "json", 0, NULL,
			  "Print the statistics as JSON on standard output, behind the program's own",
			  AT(json) },
			{ "log", 0, "LEVEL",
			  "Least severe line that is printed: error, warn, info, debug",
			  .take = take_log },
			{ "mechanism", 0, "NAME",
			  "How bytes move between ranks: auto, or one of 'onecopy info'",
			  .take = take_mechanism },
			{ "force", 0, "COLL=ALG",
			  "Use this algorithm, such as bcast=knomial:4 (see 'onecopy info "
			  "--algorithms'); mpi leaves the collective to the MPI; may be given several "
			  "times",
			  .take = take_force },
			{ "shared-heap", 0, NULL,
			  "Give the programs a malloc whose memory the ranks can map, so that most "
			  "copies need no system call",
			  AT(heap) },
			{ "quiet", 'q', NULL, "Do not say what is done", AT(quiet) },
			{ 0 } },
	.argument = take_command,
	.arguments = "COMMAND [ARGUMENT...]",
	.about =
		"Runs COMMAND (mpirun, mpiexec, srun, or a script that starts several) with onecopy "
		"under the MPI programs that it starts.\vExit status: that of COMMAND, 128 plus the "
		"signal that ended it, 126 if it cannot be run, 127 if it is not found, 2 if the "
		"options are wrong or a file cannot be made. What cannot be written afterwards is said, "
		"and the status stays that of COMMAND.",
};

/*
 * Tells programs to load a part: true. In `words`: what they will find, for the line that says it.
 * Where they find nothing although it is there, or was asked for, a sentence says so, also when
 * quiet: the job runs on.
 */
static bool prepare_part(enum part_kind kind, const char *command, char *words, size_t n)
{
	bool heap = kind == PART_HEAP;
	const char *trouble;
	struct part part;

	part_find(kind, &part);
	part_take_launchers(&part, command);
	snprintf(words, n, "%s %s%s%s%s%s", part.name, part.path,
		 *part.built_for ? ", built for " : "", *part.built_for ? part.mpi : "",
		 *part.built_for ? " " : "", part.built_for);
	trouble = part_trouble(&part, heap);
	if (!trouble && part_export(&part))
		trouble = "there is no memory for the environment";
	if (!trouble)
		return true;
	if (heap)
		say("the programs run without a shared heap: %s cannot be preloaded: %s", part.path,
		    trouble);
	else if (part.found || part.asked)
		say("programs of %s run as without onecopy: %s cannot be %s: %s", part.mpi,
		    part.path, kind == PART_OPEN_MPI ? "loaded" : "preloaded", trouble);
	if (part.found)
		snprintf(words, n, "no %s", part.name);
	else
		snprintf(words, n, "no %s in %s", part.name,
			 *part.dir ? part.dir : "the place of this executable");
	return false;
}

/* One line about what was set; true if there is something to load. */
static bool prepare(const struct run_choice *options)
{
	const char *settings = options->settings.text;
	char words[PARTS][2 * PATH_MAX];
	const char *command = options->command[0];
	bool component =
		prepare_part(PART_OPEN_MPI, command, words[PART_OPEN_MPI], sizeof(words[0]));
	bool library = prepare_part(PART_MPICH, command, words[PART_MPICH], sizeof(words[0]));
	bool heap = options->heap &&
		    prepare_part(PART_HEAP, command, words[PART_HEAP], sizeof(words[0]));

	if (!component && !library) {
		say("%s, and %s, so the program runs as without onecopy; build or install "
		    "them (they need libopenmpi-dev and libmpich-dev), or set "
		    "ONECOPY_COMPONENT_DIR and ONECOPY_PRELOAD_DIR",
		    words[PART_OPEN_MPI], words[PART_MPICH]);
		return false;
	}
	if (!options->quiet)
		say("%s; %s%s%s%s%s", words[PART_OPEN_MPI], words[PART_MPICH], heap ? "; " : "",
		    heap ? words[PART_HEAP] : "", *settings ? "; " : "", settings);
	return true;
}

static const char *why_none(bool loaded)
{
	/* As in the library's table of options. */
	static const char *const off[] = { "off", "0", "no", "false" };
	const char *enable = getenv("ONECOPY");

	if (!loaded)
		return "there is nothing to load (see above)";
	for (size_t i = 0; enable && i < sizeof(off) / sizeof(off[0]); i++)
		if (!strcmp(enable, off[i]))
			return "ONECOPY is off in the environment";
	return "no process of the job left counters. Either no program of an MPI ran, the launcher "
	       "failed or was killed, or the program ended without MPI_Finalize, has sessions of "
	       "MPI-4 alone under MPICH, uses neither Open MPI 4.1 or 5.0 nor MPICH or one of its "
	       "kin, or one whose part of onecopy is missing (a line above says so), uses an MPI that moves device memory (ONECOPY_LOG=info says so), has its MPI "
	       "linked statically or is set-user-ID (the dynamic linker preloads nothing "
	       "then), or its ranks ran on other nodes, where the environment did not reach them";
}

/* Where the ranks leave their counters: readable by them alone, as they are the same user. */
static bool make_directory(char *dir, size_t bytes)
{
	const char *parent = getenv("TMPDIR");

	snprintf(dir, bytes, "%s/onecopy-stats-XXXXXX", parent && *parent ? parent : "/tmp");
	if (mkdtemp(dir) && !setenv("ONECOPY_STATS_DIR", dir, 1))
		return true;
	say("no statistics: the directory %s cannot be made: %s; set TMPDIR to one that can be "
	    "written",
	    dir, strerror(errno));
	return false;
}

static void report(const struct run_choice *options, const char *dir, bool loaded)
{
	json_t *stats = counters_collect(dir);

	counters_remove(dir);
	if (!stats)
		return;
	if (options->stats)
		counters_print(stats, stderr, why_none(loaded));
	if (options->json && (json_dumpf(stats, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER) ||
			      putchar('\n') == EOF || fflush(stdout)))
		say("the statistics cannot be printed: %s", strerror(errno));
	if (options->stats_file &&
	    (json_dumpf(stats, options->stats_file, JSON_INDENT(2) | JSON_PRESERVE_ORDER) ||
	     fflush(options->stats_file)))
		say("the statistics cannot be written to %s: %s", options->stats_json,
		    strerror(errno));
	json_decref(stats);
}

static void open_stats(struct run_choice *options, const char *dir)
{
	options->stats_file = fopen(options->stats_json, "we");
	if (options->stats_file)
		return;
	rmdir(dir);
	usage("--stats-json: %s cannot be written: %s", options->stats_json, strerror(errno));
}

int run_main(int argc, char **argv)
{
	struct run_choice options = { .command = NULL };
	char dir[4096];
	bool loaded, counted;
	int status, started;

	options_parse(&run_options, argc, argv, &options);
	if (!options.command)
		usage("no command to run; usage: onecopy run [OPTION...] COMMAND "
		      "[ARGUMENT...], such as: onecopy run mpirun -n 4 ./app");
	counted = (options.stats || options.stats_json || options.json) &&
		  make_directory(dir, sizeof(dir));
	if (counted && options.stats_json)
		open_stats(&options, dir);
	loaded = prepare(&options);
	/* With nothing to do afterwards there is nobody to stay for. */
	if (!counted)
		return foreground_become(options.command);
	status = foreground_run(options.command, &started);
	if (started)
		report(&options, dir, loaded);
	else
		counters_remove(dir);
	return status;
}
