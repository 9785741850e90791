/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecopy info: what works here and why; the option and algorithm tables; plans as graphs. What it
 * tells is JSON first; the tables for people are made of that. One file of more than 500 lines, as
 * what makes a piece of JSON stands beside what prints it.
 */
#include "command.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/mpi_found.h"
#include "lab/experiment/table.h"
#include "names.h"
#include "parts.h"
#include "predict.h"

#include <errno.h>
#include <onecopy/graph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { INFO_MACHINE = 1, INFO_OPTIONS = 2, INFO_ALGORITHMS = 4 };
enum { MPIS = 8 };

struct info_choice {
	bool json, plan, options, algorithms;
	const char *arguments[3]; /* of --plan */
	int count;
	const char *profile; /* whose machine the ranks of --plan fill; NULL: a flat one */
};

static void take_argument(void *choice, const char *text, struct argp_state *state)
{
	struct info_choice *options = choice;

	(void)state;
	if (!options->plan)
		usage("'%s': 'onecopy info' takes no arguments, except with --plan", text);
	if (options->count == 3)
		usage("'%s' is one argument too many for --plan: expected COLLECTIVE ALGORITHM RANKS",
		      text);
	options->arguments[options->count++] = text;
}

#define AT(member) .place = offsetof(struct info_choice, member)

const struct option_set info_options = {
	.rows =
		(const struct option_row[]){
			{ "json", 'j', NULL, "Print as JSON (everything, unless a part is chosen)",
			  AT(json) },
			{ "options", 0, NULL, "The options, their values here and their defaults",
			  AT(options) },
			{ "algorithms", 0, NULL, "The algorithms of each collective",
			  AT(algorithms) },
			{ "plan", 0, NULL,
			  "The plans of all ranks of COLLECTIVE ALGORITHM RANKS, as a Graphviz graph",
			  AT(plan) },
			{ "profile", 'p', "NAME|FILE",
			  "With --plan: the ranks fill this machine core by core (default: one where no rank is "
			  "nearer to one than to another)",
			  .take = predict_take_profile, AT(profile) },
			{ 0 } },
	.argument = take_argument,
	.arguments = "\n--plan COLLECTIVE ALGORITHM RANKS [--profile NAME|FILE]",
	.about = "Tells which mechanisms work on this machine, which do not, and the sentence that "
		 "says why.\vExit status: 0; 1 if a plan cannot be made or nothing can be written; "
		 "2 if the options are wrong.",
};

static int print_plan(const struct info_choice *options)
{
	enum oc_collective collective;
	char why[1024];
	uint32_t ranks;
	int err;

	if (options->count < 3)
		usage("--plan needs COLLECTIVE ALGORITHM RANKS, such as: onecopy info "
		      "--plan bcast knomial:4 8");
	collective = collective_take(options->arguments[0]);
	name_check_algorithm(collective, options->arguments[1]);
	ranks = predict_ranks(options->arguments[2], 1);
	err = oc_inspect_plan_dot(STDOUT_FILENO, collective, options->arguments[1], ranks,
				  options->profile, why, sizeof(why));
	if (!err)
		return 0;
	if (err == -EINVAL)
		usage("--plan: %s", why);
	say("the plan cannot be printed: %s", strerror(-err));
	return 1;
}

/* What there is of our own to be put under programs, found once. */
struct found {
	struct part part[PARTS];
	const char *trouble[PARTS]; /* why it cannot be used; NULL: it can */
};

static void find_parts(struct found *found)
{
	static char text[PARTS][1024];

	for (int i = 0; i < PARTS; i++) {
		const char *trouble;

		part_find((enum part_kind)i, &found->part[i]);
		trouble = part_trouble(&found->part[i], true);
		if (!trouble && i == PART_HEAP)
			trouble = oc_inspect_heap();
		if (trouble)
			snprintf(text[i], sizeof(text[i]), "%s", trouble);
		found->trouble[i] = trouble ? text[i] : NULL;
	}
}

/* Why programs of an MPI would not be served, as a sentence; "": they are. */
static const char *version_trouble(const struct found *found, const struct mpi_found *mpi)
{
	static char text[256];
	const char *version = mpi->version;
	const struct part *component = &found->part[PART_OPEN_MPI];
	struct part other = *component;
	int major, minor;

	if (!strcmp(mpi->name, "unknown") && !*version)
		return "unknown whether served, as it does not answer '--version' here";
	if (!strcmp(mpi->name, "MPICH")) {
		if (!found->part[PART_MPICH].found)
			return "not served: onecopy's library for MPICH was not found";
		if (found->trouble[PART_MPICH])
			return "not served: onecopy's library for MPICH cannot be loaded (see "
			       "above)";
		/* MPICH and its kin have had one binary interface since 3.1, of 2014. */
		return sscanf(version, "%d.%d", &major, &minor) == 2 && 100 * major + minor < 301 ?
			       "not served: MPICH before 3.1 has another binary interface" :
			       "";
	}
	if (strcmp(mpi->name, "Open MPI"))
		return "not served, unless its programs have MPICH's binary interface";
	if (part_take(&other, version))
		return "";
	if (!component->found)
		return "not served: onecopy's component was not found";
	if (!*component->built_for)
		return "";
	snprintf(text, sizeof(text),
		 "not served: the component was built for Open MPI %s, whose inner layout is "
		 "another; install a build of onecopy for this version, too",
		 component->built_for);
	return text;
}

static json_t *mpis_json(const struct found *found)
{
	json_t *list = json_array();
	struct mpi_found mpi[MPIS];
	int count = mpi_find(mpi, MPIS);

	for (int i = 0; i < count; i++) {
		const char *why = version_trouble(found, &mpi[i]);

		json_array_append_new(list,
				      json_pack("{s:s, s:o, s:o, s:b, s:o}", "name", mpi[i].name,
						"version", json_text(mpi[i].version), "launcher",
						json_text(mpi[i].launcher), "served", !*why, "why",
						json_text(why)));
	}
	return list;
}

static json_t *mechanisms_json(void)
{
	json_t *list = json_array();
	const struct oc_mechanism_info *info;

	for (unsigned int i = 0; (info = oc_inspect_mechanism(i)); i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", info->name,
						"what", info->what, "works", info->works,
						"sentence", json_text(info->sentence), "remedy",
						json_text(info->remedy)));
	return list;
}

/* Who runs what is outstanding while the program computes; `auto`: graphs of 400 kB and more
 * over TCP. */
static json_t *outstanding_json(void)
{
	const struct oci_option_info *info = oci_option_info(0);
	const char *refusal = oc_graph_uring_refusal(), *no_module = "", *graphs;
	bool by_thread;

	for (unsigned int i = 0; strcmp(info->variable, "ONECOPY_ASYNC"); i++)
		info = oci_option_info(i);
	by_thread = strcmp(info->value, "auto") && strcmp(info->value, "caller");
	graphs = strcmp(info->value, "auto") ? info->value : "thread";
	if (!strcmp(graphs, "kmod") && oc_graph_kmod_refusal()) {
		no_module = oc_graph_kmod_refusal();
		graphs = "uring";
	}
	if (refusal && !strcmp(graphs, "uring"))
		graphs = "thread";
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "asked", info->value, "collectives",
			 by_thread ? "thread" : "caller", "graphs", graphs, "refusal",
			 json_text(refusal ? refusal : ""), "no_module", json_text(no_module));
}

static json_t *options_json(void)
{
	json_t *list = json_array();
	const struct oci_option_info *info;

	oc_inspect_algorithm_options();
	for (unsigned int i = 0; (info = oci_option_info(i)); i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:s, s:s, s:s}", "variable", info->variable,
					"value", json_text(info->value), "default", info->fallback,
					"from", info->from, "help", info->help));
	return list;
}

static json_t *algorithms_json(void)
{
	json_t *object = json_object();

	for (int c = 0; c < OC_COLLECTIVES; c++) {
		enum oc_collective collective = (enum oc_collective)c;
		const struct oci_algorithm *a;
		json_t *list = json_array();

		for (unsigned int i = 0; (a = oci_algorithm(collective, i)); i++) {
			json_t *one = json_pack("{s:s, s:s}", "name", a->name, "idea", a->idea);

			if (a->parameter_min || a->parameter_max)
				json_object_set_new(one, "parameter",
						    json_pack("{s:I, s:I, s:I}", "default",
							      (json_int_t)a->parameter_default,
							      "min", (json_int_t)a->parameter_min,
							      "max",
							      (json_int_t)oci_parameter_most(a)));
			json_array_append_new(list, one);
		}
		json_object_set_new(object, oci_collective_name(collective), list);
	}
	return object;
}

/* Where the parts are in the JSON. */
static const struct {
	const char *key, *place, *built_for;
} part_keys[PARTS] = {
	[PART_OPEN_MPI] = { "component", "dir", "built_for_open_mpi" },
	[PART_MPICH] = { "preload", "file", "built_for_mpich" },
	[PART_HEAP] = { "shared_heap", "file", NULL },
};

static json_t *part_json(const struct found *found, enum part_kind kind)
{
	const struct part *part = &found->part[kind];
	const char *trouble = found->trouble[kind];
	json_t *json = json_pack("{s:o, s:b, s:b, s:o}", part_keys[kind].place,
				 json_text(kind == PART_OPEN_MPI ? part->dir : part->path), "found",
				 part->found, "usable", !trouble, "why",
				 json_text(trouble ? trouble : ""));

	if (kind == PART_HEAP) {
		json_object_set_new(json, "large_pages", json_string(oci_large_pages()));
		json_object_set_new(json, "allocator", json_string(oc_inspect_allocator()));
	} else {
		json_object_set_new(json, part_keys[kind].built_for, json_string(part->built_for));
	}
	return json;
}

static void add_machine(json_t *json)
{
	static struct found found;
	struct utsname system = { .sysname = "" };
	json_t *topology = oc_inspect_topology();

	find_parts(&found);
	uname(&system);
	json_object_set_new(json, "kernel",
			    json_pack("{s:s, s:s, s:s}", "name", system.sysname, "release",
				      system.release, "machine", system.machine));
	for (int i = 0; i < PARTS; i++)
		json_object_set_new(json, part_keys[i].key, part_json(&found, (enum part_kind)i));
	json_object_set_new(json, "mpi", mpis_json(&found));
	json_object_set_new(json, "mechanisms", mechanisms_json());
	json_object_set_new(json, "module", oc_inspect_module());
	json_object_set_new(json, "outstanding", outstanding_json());
	json_object_set_new(json, "topology",
			    topology ? topology :
				       json_pack("{s:s}", "error", "hwloc cannot load it"));
	json_object_set_new(json, "team_bytes", json_integer((json_int_t)oc_inspect_team_bytes()));
}

static json_t *info_json(unsigned int sections)
{
	json_t *json = json_pack("{s:s}", "onecopy", oc_version());

	if (sections & INFO_MACHINE)
		add_machine(json);
	if (sections & INFO_OPTIONS)
		json_object_set_new(json, "options", options_json());
	if (sections & INFO_ALGORITHMS)
		json_object_set_new(json, "algorithms", algorithms_json());
	return json;
}

static bool is_set(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

/* A part of ours: where it is, for which version, and what is the matter with it. */
static void add_part(struct table *table, enum part_kind kind, const json_t *json)
{
	const json_t *object = json_object_get(json, part_keys[kind].key);
	const char *place = json_text_at(object, part_keys[kind].place),
		   *version = kind == PART_HEAP ? "" :
						  json_text_at(object, part_keys[kind].built_for);
	struct part part;

	part_find(kind, &part);
	if (!is_set(object, "found"))
		table_add(table, "%s\tnot found: %s", part.name, place);
	else if (*version)
		table_add(table, "%s\t%s, built for %s %s", part.name, place, part.mpi, version);
	else
		table_add(table, "%s\t%s", part.name, place);
	if (!is_set(object, "usable"))
		table_add(table, "\tIt cannot be used: %s", json_text_at(object, "why"));
	if (kind == PART_HEAP && is_set(object, "usable")) {
		table_add(table, "\tAllocator: %s", json_text_at(object, "allocator"));
		table_add(table, "\tLarge pages for shared memory: %s",
			  json_text_at(object, "large_pages"));
	}
}

static void print_versions(const json_t *json)
{
	const json_t *kernel = json_object_get(json, "kernel");
	struct table table = { .align = "ll" };

	table_add(&table, "onecopy\t%s", json_text_at(json, "onecopy"));
	table_add(&table, "kernel\t%s %s, %s", json_text_at(kernel, "name"),
		  json_text_at(kernel, "release"), json_text_at(kernel, "machine"));
	for (int i = 0; i < PARTS; i++)
		add_part(&table, (enum part_kind)i, json);
	table_print(&table, stdout, 0);
}

static void print_mpis(const json_t *mpis)
{
	struct table table = { .align = "llll" };
	size_t i;
	json_t *mpi;

	puts("\nMPI on PATH");
	json_array_foreach(mpis, i, mpi)
		table_add(&table, "%s\t%s\t%s\t%s", json_text_at(mpi, "name"),
			  json_text_at(mpi, "version"), json_text_at(mpi, "launcher"),
			  is_set(mpi, "served") ? "served" : json_text_at(mpi, "why"));
	if (!json_array_size(mpis))
		table_add(&table, "none: neither mpirun nor mpiexec is there");
	table_print(&table, stdout, 2);
}

static void print_mechanisms(const json_t *mechanisms)
{
	struct table table = { .align = "lll" };
	size_t i;
	json_t *one;

	puts("\nMechanisms, between this process and a child of its own");
	json_array_foreach(mechanisms, i, one)
	{
		table_add(&table, "%s\t%s\t%s", json_text_at(one, "name"),
			  is_set(one, "works") ? "works" : "refused", json_text_at(one, "what"));
		table_add(&table, "\t\t%s", json_text_at(one, "sentence"));
		if (*json_text_at(one, "remedy"))
			table_add(&table, "\t\tRemedy: %s", json_text_at(one, "remedy"));
	}
	table_print(&table, stdout, 2);
}

static long long count_at(const json_t *module, const char *key)
{
	return json_number_at(module, key);
}

static void print_module(const json_t *module)
{
	struct table table = { .align = "ll" };

	if (!json_is_object(module))
		return;
	puts("\nKernel module, all processes since it was loaded");
	table_add(&table,
		  "regions\t%lld now, of %lld; %lld ended with their memory; %lld pages pinned",
		  count_at(module, "regions_now"), count_at(module, "regions_created"),
		  count_at(module, "regions_gone"), count_at(module, "pages_pinned_now"));
	table_add(&table, "copies\t%lld, %lld by threads; %lld bytes; %lld refused or broken off",
		  count_at(module, "copies"), count_at(module, "copies_by_thread"),
		  count_at(module, "bytes"), count_at(module, "failures"));
	if (count_at(module, "channels") || count_at(module, "copies_by_engine"))
		table_add(&table,
			  "DMA engines\t%lld channels allowed; %lld copies, %lld bytes; %lld times "
			  "none was free; %lld failures",
			  count_at(module, "channels"), count_at(module, "copies_by_engine"),
			  count_at(module, "bytes_by_engine"), count_at(module, "engines_busy"),
			  count_at(module, "engine_failures"));
	else
		table_add(&table, "DMA engines\tnone may be used (the parameter dma_channels)");
	table_add(&table, "mappings\t%lld now", count_at(module, "maps_now"));
	table_print(&table, stdout, 2);
}

static const char *executor_text(const char *executor)
{
	return !strcmp(executor, "uring")  ? "the kernel, by io_uring, while the program computes" :
	       !strcmp(executor, "kmod")   ? "the kernel module, while the program computes" :
	       !strcmp(executor, "thread") ? "a thread, while the program computes" :
					     "who is in a call";
}

static void print_outstanding(const json_t *json)
{
	const char *asked = json_text_at(json, "asked"), *refusal = json_text_at(json, "refusal");
	const char *collectives = json_text_at(json, "collectives");
	const char *no_module = json_text_at(json, "no_module");

	printf("\nWho runs what is outstanding (ONECOPY_ASYNC=%s)\n", asked);
	printf("  collectives  %s%s\n", executor_text(collectives),
	       !strcmp(asked, "uring") ? ": io_uring cannot copy memory of another process" :
	       !strcmp(asked, "kmod")  ? ": the module runs graphs alone" :
					 "");
	printf("  graphs       %s%s\n", executor_text(json_text_at(json, "graphs")),
	       strcmp(asked, "auto") ? "" : "; below 400 kB, and inside a node, who is in a call");
	if (*no_module)
		printf("               %s\n", no_module);
	if (*refusal)
		printf("               %s\n", refusal);
}

static void add_caches(struct table *table, const char *name, json_int_t caches, json_int_t bytes,
		       json_int_t cores)
{
	bool mib;

	if (!caches) {
		table_add(table, "%s caches\tunknown, as the system does not say", name);
		return;
	}
	mib = bytes >= 1048576 && bytes % 1048576 == 0;
	table_add(table, "%s caches\t%lld of %lld %s, shared by %lld core%s", name,
		  (long long)caches, (long long)(bytes >> (mib ? 20 : 10)), mib ? "MiB" : "KiB",
		  (long long)cores, cores == 1 ? "" : "s");
}

static void print_topology(const json_t *topology, json_int_t team_bytes)
{
	struct table table = { .align = "ll" };
	long long cpus = json_number_at(topology, "cpus"),
		  cores = json_number_at(topology, "cores"),
		  allowed = json_number_at(topology, "cpus_allowed");
	double limit = json_number_value(json_object_get(topology, "cgroup_cpus"));

	puts("\nTopology");
	if (*json_text_at(topology, "error")) {
		printf("  %s\n", json_text_at(topology, "error"));
		return;
	}
	if (cores) {
		table_add(&table, "packages\t%lld",
			  (long long)json_number_at(topology, "packages"));
		table_add(&table, "NUMA nodes\t%lld",
			  (long long)json_number_at(topology, "numa_nodes"));
		add_caches(&table, "L3", json_number_at(topology, "l3s"),
			   json_number_at(topology, "l3_bytes"),
			   json_number_at(topology, "cores_per_l3"));
		add_caches(&table, "L2", json_number_at(topology, "l2s"),
			   json_number_at(topology, "l2_bytes"),
			   json_number_at(topology, "cores_per_l2"));
		table_add(&table, "cores\t%lld (%lld CPUs, of which this process may use %lld)",
			  cores, cpus, allowed);
	} else {
		table_add(&table,
			  "CPUs\t%lld, of which this process may use %lld; which share what is "
			  "unknown, as /sys/devices/system cannot be read",
			  cpus, allowed);
	}
	if (limit > 0)
		table_add(&table, "cgroup limit\t%.2f CPUs", limit);
	table_add(&table, "team memory\t%lld bytes on each rank, for each communicator in use",
		  (long long)team_bytes);
	table_print(&table, stdout, 2);
}

static void print_options(const json_t *options)
{
	struct table table = { .align = "lllll" };
	size_t i;
	json_t *option;

	table_add(&table, "variable\tvalue\tdefault\tfrom\twhat it does");
	json_array_foreach(options, i, option)
	{
		const char *value = json_text_at(option, "value"),
			   *fallback = json_text_at(option, "default");

		table_add(&table, "%s\t%s\t%s\t%s\t%s", json_text_at(option, "variable"),
			  *value ? value : "-", *fallback ? fallback : "-",
			  json_text_at(option, "from"), json_text_at(option, "help"));
	}
	table_print(&table, stdout, 0);
}

static void print_algorithms(json_t *algorithms)
{
	struct table table = { .align = "llll" };
	const char *collective;
	json_t *list, *one;
	size_t i;

	table_add(&table, "collective\talgorithm\tparameter\tidea");
	json_object_foreach(algorithms, collective, list) json_array_foreach(list, i, one)
	{
		const json_t *parameter = json_object_get(one, "parameter");
		long long least = json_number_at(parameter, "min"),
			  most = json_number_at(parameter, "max");
		char range[80] = "-";

		if (parameter)
			snprintf(range, sizeof(range), ":%lld (%lld to %lld)",
				 (long long)json_number_at(parameter, "default"), least, most);
		table_add(&table, "%s\t%s\t%s\t%s", collective, json_text_at(one, "name"), range,
			  json_text_at(one, "idea"));
	}
	table_print(&table, stdout, 0);
}

static void print_text(const json_t *json, unsigned int sections)
{
	if (sections & INFO_MACHINE) {
		print_versions(json);
		print_mpis(json_object_get(json, "mpi"));
		print_mechanisms(json_object_get(json, "mechanisms"));
		print_module(json_object_get(json, "module"));
		print_outstanding(json_object_get(json, "outstanding"));
		print_topology(json_object_get(json, "topology"),
			       json_number_at(json, "team_bytes"));
	}
	if (sections & INFO_OPTIONS)
		print_options(json_object_get(json, "options"));
	if (sections == (INFO_OPTIONS | INFO_ALGORITHMS))
		putchar('\n');
	if (sections & INFO_ALGORITHMS)
		print_algorithms(json_object_get(json, "algorithms"));
}

int info_main(int argc, char **argv)
{
	struct info_choice options = { .json = false };
	unsigned int sections;
	int status = 0;
	json_t *json;

	options_parse(&info_options, argc, argv, &options);
	if (options.profile && !options.plan)
		usage("--profile is for --plan COLLECTIVE ALGORITHM RANKS");
	if (options.plan && (options.json || options.options || options.algorithms))
		usage("--plan prints a graph and nothing else; valid beside it: --profile");
	if (options.plan)
		return print_plan(&options);
	sections = (options.options ? INFO_OPTIONS : 0) |
		   (options.algorithms ? INFO_ALGORITHMS : 0);
	if (!sections)
		sections = options.json ? ~0u : INFO_MACHINE;
	json = info_json(sections);
	if (options.json) {
		status = json_text_print(json, 2);
	} else {
		print_text(json, sections);
		json_decref(json);
	}
	return command_end(status);
}
