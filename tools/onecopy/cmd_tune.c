/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy tune: measures this machine and writes the tuning file that jobs find by themselves. */
#include "command.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/mpi_found.h"
#include "lab/experiment/progress.h"
#include "lab/inspect/inspect.h"
#include "lab/tune/tune.h"
#include "lab/tune/write.h"
#include "tune_network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tune_choice {
	struct oci_tune_options tune;
	const char *output;	      /* NULL: where jobs of this user look */
	const char *hosts;	      /* NULL: this host */
	const char *network, *mpirun; /* the MPI's word, its launcher; NULL: not asked for */
	bool json, system;
	bool overruled; /* ONECOPY_TUNING is set, which jobs heed first */
};

static void take_ranks(void *options, const char *text)
{
	uint32_t ranks = command_ranks(text, 1, OCI_TUNE_MOST_RANKS), cpus = oci_tune_cpus(NULL);

	if (ranks > cpus)
		usage("--ranks %u is more than the %u CPUs that may be used here: ranks that share a "
		      "CPU do not contend for a lock, so nothing would be measured; valid: 1 to %u",
		      ranks, cpus, cpus);
	((struct tune_choice *)options)->tune.ranks = ranks;
}

static void take_seconds(void *options, const char *text)
{
	const double least = 0.001, most = 60;

	if (double_parse(text, least, most, &((struct tune_choice *)options)->tune.seconds))
		usage("--seconds %s: expected for how long each point is measured; valid: %g to %g "
		      "seconds",
		      text, least, most);
}

static void take_output(void *options, const char *text)
{
	if (!*text)
		usage("--output needs the name of a file, or - for standard output");
	((struct tune_choice *)options)->output = text;
}

static void take_hosts(void *options, const char *text)
{
	size_t room = sizeof(((struct oci_machine *)0)->host);

	if (!*text || strlen(text) >= room)
		usage("'%s' is not a pattern of host names; valid: 1 to %zu bytes, such as 'node*'",
		      text, room - 1);
	((struct tune_choice *)options)->hosts = text;
}

static void take_network(void *options, const char *text)
{
	if (!launcher_of(text))
		usage("--network %s: expected an MPI; valid: openmpi, mpich", text);
	((struct tune_choice *)options)->network = text;
}

#define AT(member) .place = offsetof(struct tune_choice, member)

const struct option_set tune_options = {
	.rows =
		(const struct option_row[]){
			{ "quick", 0, NULL, "Some 15 seconds instead of about a minute; coarser",
			  AT(tune.quick) },
			{ "seconds", 0, "S",
			  "Take samples of each point for so long (default: 1, with --quick 0.2)",
			  .take = take_seconds },
			{ "ranks", 0, "N",
			  "Measure contention with up to N copiers (default: the CPUs that may be used)",
			  .take = take_ranks },
			{ "output", 'o', "FILE",
			  "Write there (-: standard output); jobs find it through ONECOPY_TUNING=FILE",
			  .take = take_output },
			{ "system", 0, NULL, "Write to /etc/onecopy, for all users of this host",
			  AT(system) },
			{ "hosts", 0, "PATTERN",
			  "The file is good for hosts of this name with the same processor, such as "
			  "'node*'",
			  .take = take_hosts },
			{ "network", 0, "MPI",
			  "Measure the network between two hosts instead, by openmpi or mpich, and add "
			  "it to the file",
			  .take = take_network },
			{ "mpirun", 0, "CMD",
			  "With --network: the launcher and its options that say the hosts, such as "
			  "'mpirun --host node1,node2'",
			  OPTION_TEXT, AT(mpirun) },
			{ "json", 'j', NULL, "Print where the file is and what is in it as JSON",
			  AT(json) },
			{ 0 } },
	.about =
		"Measures this machine (copies, page locks and contention for them, flags, memory) "
		"and writes a tuning file, by which jobs choose their algorithms from then on. Run it "
		"on an idle machine.\vExit status: 0; 1 if measuring or writing failed; 2 if the "
		"options are wrong.",
};

static void show_step(void *context, const char *what, double done)
{
	progress_show(context, what, done);
}

static void show_note(void *context, const char *sentence)
{
	progress_end(context);
	say("%s", sentence);
}

/* Where the file goes: as asked for, or where this user's jobs look first. */
static void find_output(const struct tune_choice *options, char *path, size_t bytes)
{
	const char *variable = getenv("ONECOPY_TUNING");
	bool found;

	if (options->output && options->system)
		usage("--output and --system both say where to write; valid: one of them");
	if (options->output) {
		found = (size_t)snprintf(path, bytes, "%s", options->output) < bytes;
	} else if (options->system) {
		found = oci_model_place(OCI_MODEL_PLACE_HOST, path, bytes);
	} else if (variable && *variable && strcmp(variable, "none")) {
		found = (size_t)snprintf(path, bytes, "%s", variable) < bytes;
	} else {
		found = oci_model_place(OCI_MODEL_PLACE_USER, path, bytes);
		if (!found)
			usage("there is no home directory to write to: neither "
			      "XDG_CONFIG_HOME nor HOME is set to an absolute path; valid: --output FILE, or "
			      "--system");
	}
	if (!found)
		usage("the name of the file is too long; valid: up to %zu bytes", bytes - 1);
}

/* A minute of measuring is not to be lost to a directory that cannot be written. */
static int check_output(const char *path)
{
	int error = oci_model_write_check(path);

	if (error)
		say("%s cannot be written: %s; --output FILE writes elsewhere", path,
		    error == -ENOTSUP ? "it is not a regular file" : strerror(-error));
	return error;
}

/* What a job will see: the same reader, the same conditions. */
static int read_back(const char *path, const struct oci_model *model, bool any_host)
{
	struct oci_model_error error;
	struct oci_model again;

	if (oci_model_read(path, OCI_MODEL_ANY_OWNER | (any_host ? OCI_MODEL_ANY_MACHINE : 0u),
			   oc_inspect_cell_check, &again, &error)) {
		say("what was written cannot be read back: %s", error.text);
		return 1;
	}
	if (oci_model_hash(&again) != oci_model_hash(model)) {
		say("%s does not hold what was written to it", path);
		oci_model_destroy(&again);
		return 1;
	}
	oci_model_destroy(&again);
	return 0;
}

static const char *in_unit(const struct oci_term_info *info, double value, char *text, size_t n)
{
	/* "2 packages", "1 package". */
	int letters = *info->unit == '1' ? 0 :
					   (int)strlen(info->unit) - (value == 1 && info->unit[1]);

	if (!strcmp(info->unit, "s") || !strcmp(info->unit, "s/page"))
		snprintf(text, n, "%.4g us%s", 1e6 * value, info->unit + 1);
	else if (!strcmp(info->unit, "s/B"))
		snprintf(text, n, "%.4g GB/s", value > 0 ? 1e-9 / value : 0);
	else
		snprintf(text, n, "%.10g%s%.*s", value, letters ? " " : "", letters, info->unit);
	return text;
}

static void print_terms(const struct oci_model *model)
{
	const struct oci_term_info *info;

	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		const struct oci_term *term = oci_term_in(model, info);
		char text[64];

		if (!term->given)
			continue;
		printf("  %-22s %-18s", info->name, in_unit(info, term->value, text, sizeof(text)));
		if (term->residual > 0)
			printf(" +- %3.0f %%  ", 100 * term->residual);
		else
			printf("%11s", "");
		printf(" %s\n", info->what);
	}
}

/* The file's own text with its path in front: what a program would read it for. */
static int print_json(const char *path, const struct oci_model *model)
{
	char *text = oci_model_text(model);

	if (!text)
		return 1;
	if (path) {
		json_t *name = json_text(path);

		printf("{\n\"path\": ");
		json_dumpf(name, stdout, JSON_ENCODE_ANY);
		printf(",\n\"tuning\": %s\n}\n", text);
		json_decref(name);
	} else {
		printf("%s\n", text);
	}
	free(text);
	return 0;
}

static int report(const struct tune_choice *options, const char *path,
		  const struct oci_model *model)
{
	bool standard_output = !strcmp(path, "-");
	int status = 0;

	if (standard_output || options->json)
		status = print_json(standard_output ? NULL : path, model);
	else
		print_terms(model);
	if (!standard_output && !options->json && options->output) {
		char *whole = realpath(path, NULL);

		printf("Written to %s, where jobs find it with ONECOPY_TUNING=%s\n", path,
		       whole ? whole : path);
		free(whole);
	} else if (!standard_output && !options->json) {
		printf("Written to %s, where jobs find it%s\n", path,
		       options->overruled ? " without ONECOPY_TUNING, which is set here" : "");
	}
	return command_end(status);
}

static int measure_machine(const struct tune_choice *options, struct oci_model *model)
{
	struct progress progress;
	const struct oci_tune_listener listener = { show_step, show_note, &progress };
	char why[512];
	int error;

	progress_begin(&progress);
	/* The file that is being replaced must not be complained of by the teams that measure. */
	setenv("ONECOPY_TUNING", "none", 1);
	error = oci_tune(&options->tune, &listener, model, why, sizeof(why));
	progress_end(&progress);
	if (error)
		say("measuring failed: %s", *why ? why : strerror(-error));
	return error;
}

/* What measuring this machine says nothing of, and somebody has put into the file that is replaced.
 */
static void keep(struct oci_model *old, struct oci_model *model)
{
	const struct oci_term_info *info;
	bool network = false;

	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		const struct oci_term *term = oci_term_in(old, info);

		if (strncmp(info->name, "net.", 4) != 0 || !term->given)
			continue;
		*oci_term_of(model, info) = *term;
		network = true;
	}
	model->cells = old->cells;
	model->cell_count = old->cell_count;
	if (model->cell_count)
		say("kept from the file before, whatever is measured: %zu cell%s",
		    model->cell_count, model->cell_count == 1 ? "" : "s");
	if (network)
		say("kept from the file before: the network's terms");
}

/* As jobs would read it, here or, with --hosts, elsewhere; one that they would not take is put
 * aside.
 */
static void keep_from(const char *path, bool any_machine, struct oci_model *model)
{
	char aside[sizeof(model->path) + 8];
	struct oci_model_error error;
	struct oci_model old;
	int failed = oci_model_read(
		path, OCI_MODEL_ANY_OWNER | (any_machine ? OCI_MODEL_ANY_MACHINE : 0u),
		oc_inspect_cell_check, &old, &error);

	if (!failed) {
		keep(&old, model);
	} else if (failed != -ENOENT) {
		snprintf(aside, sizeof(aside), "%s.before", path);
		say("%s", error.text);
		if (rename(path, aside))
			say("so nothing is kept from the file before");
		else
			say("so nothing is kept from the file before, which is now %s", aside);
	}
}

/* The file that is there gets the network's terms; what it says of the machine stays. */
static int measure_network(const struct tune_choice *options, const char *path,
			   struct oci_model *model)
{
	struct oci_model_error error;

	if (oci_model_read(path, OCI_MODEL_ANY_OWNER | OCI_MODEL_ANY_MACHINE, oc_inspect_cell_check,
			   model, &error)) {
		say("%s; onecopy tune without --network measures the machine first", error.text);
		return 1;
	}
	return tune_network(options->network, options->mpirun, model);
}

int tune_main(int argc, char **argv)
{
	struct tune_choice options = { .json = false };
	static struct oci_model model;
	char path[sizeof(model.path)]; /* a longer one no job would take */
	int error;

	options_parse(&tune_options, argc, argv, &options);
	options.overruled = getenv("ONECOPY_TUNING") != NULL;
	if (options.mpirun && !options.network)
		usage("--mpirun says how the hosts of --network are reached; valid: with it");
	if (options.network &&
	    (options.tune.quick || options.tune.ranks || options.tune.seconds > 0))
		usage("--quick, --seconds and --ranks say how this machine is measured; valid: without "
		      "--network");
	find_output(&options, path, sizeof(path));
	if (options.network && !strcmp(path, "-"))
		usage("--network adds to a file; valid: --output FILE, or the file of this user's jobs");
	if (strcmp(path, "-") && check_output(path))
		return 1;
	if (options.network ? measure_network(&options, path, &model) :
			      measure_machine(&options, &model))
		return 1;
	if (options.hosts)
		snprintf(model.machine.host, sizeof(model.machine.host), "%s", options.hosts);
	if (strcmp(path, "-")) {
		if (!options.network)
			keep_from(path, options.hosts, &model);
		error = oci_model_write(&model, path);
		if (error) {
			say("%s cannot be written: %s; --output FILE writes elsewhere", path,
			    strerror(-error));
			return 1;
		}
		if (read_back(path, &model, options.hosts || options.network))
			return 1;
	}
	return report(&options, path, &model);
}
