// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/experiment/counters.h"

/* Load average above which a warning is printed, before anything of ours runs. */
#define BUSY_LOAD 0.7

enum option_key {
	KEY_WITH = 256,
	KEY_MPI,
	KEY_MPIRUN,
	KEY_MPIRUN_MPICH,
	KEY_MPI4PY,
	KEY_HPCC,
	KEY_PROGRAMS,
	KEY_ASP_SIZE,
	KEY_EXAMPLES,
	KEY_JSON,
	KEY_ONLY,
	KEY_RANKS,
	KEY_ROUNDS,
	KEY_TIMEOUT,
};

static const struct argp_option options[] = {
	{ "rounds", KEY_ROUNDS, "N", 0, "runs of each program on each side (default 3)", 1 },
	{ "ranks", KEY_RANKS, "N", 0, "MPI ranks (default 2)", 1 },
	{ "only", KEY_ONLY, "PROGRAM", 0,
	  "run one program: asp, cg, heat, intsort, gradients, shuffle or hpcc", 1 },
	{ "mpi", KEY_MPI, "NAME", 0, "run under one MPI: openmpi or mpich (default: both)", 1 },
	{ "json", KEY_JSON, "FILE", 0, "write all samples and statistics to FILE", 1 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "kill a run that takes longer (default 300)", 1 },
	{ "with", KEY_WITH, "CMD", 0,
	  "command put before mpirun on the side with onecopy (default: 'onecopy run' of this "
	  "build)",
	  2 },
	{ "asp-size", KEY_ASP_SIZE, "N", 0, "vertices of asp's graph (default 3072)", 2 },
	{ "mpirun", KEY_MPIRUN, "PATH", 0, "Open MPI's launcher (default mpirun)", 2 },
	{ "mpirun-mpich", KEY_MPIRUN_MPICH, "PATH", 0, "MPICH's launcher (default mpirun.mpich)",
	  2 },
	{ "mpi4py-mpich", KEY_MPI4PY, "DIR", 0,
	  "folder with an mpi4py for MPICH, for the Python programs (default: they run under Open "
	  "MPI only, unless /usr/bin/python3 finds one)",
	  2 },
	{ "programs", KEY_PROGRAMS, "DIR", 0,
	  "folder of the compiled examples (default: of this build)", 2 },
	{ "hpcc", KEY_HPCC, "PATH", 0, "the HPC Challenge binary (default /usr/bin/hpcc)", 2 },
	{ "examples", KEY_EXAMPLES, "DIR", 0, "folder of the examples' sources", 2 },
	{ 0 },
};

static int number(struct argp_state *state, const char *name, const char *text, int min, int max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max)
		argp_error(state, "--%s: '%s' is not a number from %d to %d", name, text, min, max);
	return (int)value;
}

static void check_program_name(struct argp_state *state, const char *name)
{
	for (size_t p = 0; p < demo_num_programs; p++)
		if (strcmp(demo_programs[p]->name, name) == 0)
			return;
	argp_error(
		state,
		"--only: no program '%s'; there are asp, cg, heat, intsort, gradients, shuffle and hpcc",
		name);
}

static void check_mpi_name(struct argp_state *state, const char *name)
{
	if (launcher_of(name) == LAUNCH_NONE)
		argp_error(state, "--mpi: '%s' is neither openmpi nor mpich", name);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct demo_options *opt = state->input;

	switch (key) {
	case KEY_WITH:
		opt->with = arg;
		return 0;
	case KEY_MPI:
		check_mpi_name(state, arg);
		opt->only_mpi = arg;
		return 0;
	case KEY_MPIRUN:
		opt->mpirun[LAUNCH_OPENMPI] = arg;
		return 0;
	case KEY_MPIRUN_MPICH:
		opt->mpirun[LAUNCH_MPICH] = arg;
		return 0;
	case KEY_MPI4PY:
		opt->mpi4py = arg;
		return 0;
	case KEY_HPCC:
		opt->hpcc = arg;
		return 0;
	case KEY_PROGRAMS:
		opt->programs = arg;
		return 0;
	case KEY_EXAMPLES:
		opt->examples = arg;
		return 0;
	case KEY_JSON:
		opt->json = arg;
		return 0;
	case KEY_ONLY:
		check_program_name(state, arg);
		opt->only = arg;
		return 0;
	case KEY_ASP_SIZE:
		opt->asp_size = number(state, "asp-size", arg, 1, 65536);
		return 0;
	case KEY_RANKS:
		opt->ranks = number(state, "ranks", arg, 1, DEMO_RANKS_MAX);
		return 0;
	case KEY_ROUNDS:
		opt->rounds = number(state, "rounds", arg, 1, DEMO_ROUNDS_MAX);
		return 0;
	case KEY_TIMEOUT:
		opt->timeout_s = number(state, "timeout", arg, 1, 100000);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what can be run ------------------------------------------------------------------------- */

/* Folder of the running program's build: it lies in BUILD/tools/demo. */
static void find_build(char *build)
{
	host_program_folder(build, PATH_MAX);
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(build, '/');

		if (slash)
			*slash = '\0';
	}
}

/* Whether /usr/bin/python3 finds an mpi4py for MPICH. */
static bool has_mpi4py(const struct demo *demo)
{
	const char *path = demo->opt.mpi4py;
	char command[PATH_MAX + 256], line[64] = "";
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "%s%s%s /usr/bin/python3 -c 'import mpi4py; mpi4py.rc.initialize = False; "
		 "from mpi4py import MPI; print(MPI.get_vendor()[0])' 2>/dev/null",
		 path ? "PYTHONPATH='" : "", path ? path : "", path ? "'" : "");
	pipe = popen(command, "r");
	if (!pipe)
		return false;
	if (fgets(line, sizeof(line), pipe))
		line[strcspn(line, "\n")] = '\0';
	pclose(pipe);
	return *line && strcmp(line, "Open MPI") != 0;
}

/* Why this program cannot be run under an MPI; NULL: it can. */
static const char *trouble(const struct demo *demo, const struct demo_program *program,
			   enum launcher mpi)
{
	if (!demo->opt.mpirun[mpi] && !*launcher_info(mpi)->command)
		return "no launcher of it is on PATH; install it (mpich, openmpi-bin), or name it "
		       "by --mpirun or --mpirun-mpich";
	if (mpi != LAUNCH_MPICH)
		return NULL;
	if (demo->opt.ranks > demo->results.host.cpus)
		return "its ranks do not yield: with more of them than CPUs each call takes "
		       "tens of milliseconds";
	if (program->kind == DEMO_HPCC)
		return "Debian's hpcc is a program of Open MPI";
	if (program->kind == DEMO_SCRIPT && !has_mpi4py(demo))
		return "Debian's mpi4py is for Open MPI; name the folder of one for MPICH by "
		       "--mpi4py-mpich";
	return NULL;
}

static const char *remedy(const struct demo_program *program)
{
	switch (program->kind) {
	case DEMO_BINARY:
		return "build it (make), with libopenmpi-dev, libmpich-dev and gfortran installed";
	case DEMO_SCRIPT:
		return "name the examples folder by --examples";
	default:
		return "install the package hpcc or name it by --hpcc";
	}
}

/* A path that does not exist gets its sentence here, before the first run. */
static int check_needs(const struct demo *demo)
{
	int runs = 0;

	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];
		char path[PATH_MAX];

		if (one->skipped)
			continue;
		demo_program_path(demo, one, path);
		if (access(path, R_OK)) {
			say("%s: %s: %s; %s", one->program->name, path, strerror(errno),
			    remedy(one->program));
			return -1;
		}
		runs++;
	}
	if (!runs && demo->num_cases)
		say("nothing can be run: %s", demo->cases[0].skipped);
	return runs ? 0 : -1;
}

/* ---- plan and report ------------------------------------------------------------------------- */

static void list_cases(struct demo *demo)
{
	const struct demo_options *opt = &demo->opt;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		if (opt->only_mpi && mpi != (int)launcher_of(opt->only_mpi))
			continue;
		for (size_t p = 0; p < demo_num_programs; p++) {
			struct demo_case *one = &demo->cases[demo->num_cases];

			if (opt->only && strcmp(opt->only, demo_programs[p]->name) != 0)
				continue;
			*one = (struct demo_case){ .demo = demo,
						   .program = demo_programs[p],
						   .mpi = (enum launcher)mpi };
			one->skipped = trouble(demo, one->program, one->mpi);
			demo->num_cases++;
		}
	}
}

/* One after the other, what cannot be run for the same reason together. */
static void say_skipped(struct demo *demo)
{
	const char *before = NULL;

	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];

		if (one->skipped && one->skipped == before)
			printf(", %s", one->program->name);
		else if (one->skipped)
			printf("\nNot run under %s (%s): %s", launcher_info(one->mpi)->name,
			       one->skipped, one->program->name);
		before = one->skipped ? one->skipped : before;
	}
	printf("%s", before ? "\n" : "");
}

static void compare_mpi(struct demo *demo, enum launcher mpi)
{
	static const char *const bound[] = { "more than CPUs", "bound to cores",
					     "bound to hardware threads" };
	struct comparison *c = results_compare(&demo->results, (unsigned int)mpi);

	snprintf(c->title, sizeof(c->title), "%.30s %.30s", launcher_info(mpi)->name,
		 launcher_info(mpi)->version);
	snprintf(c->about, sizeof(c->about),
		 "%d ranks, %s. Every run was verified. ratio: how many times better with onecopy, "
		 "times and rates alike.",
		 demo->opt.ranks, bound[demo->binding]);
	c->stock = demo_side(false);
	c->subject = demo_side(true);
}

static void report(struct demo *demo)
{
	json_t *statistics = json_array(), *skipped = json_array();

	for (int mpi = 1; mpi < LAUNCHERS; mpi++)
		compare_mpi(demo, (enum launcher)mpi);
	results_finish(&demo->results);
	results_print(&demo->results, TABLE_TEXT, stdout);
	say_skipped(demo);
	printf("\nverified means\n");
	for (size_t p = 0; p < demo_num_programs; p++)
		if (!demo->opt.only || strcmp(demo->opt.only, demo_programs[p]->name) == 0)
			printf("  %-10s %s\n", demo_programs[p]->name, demo_programs[p]->checks);
	printf("\nWhat onecopy served in the last run of each; calls and bytes are sums over the "
	       "ranks.\n");
	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];

		if (one->skipped)
			json_array_append_new(skipped, json_pack("{s:s, s:s, s:s}", "program",
								 one->program->name, "mpi",
								 launcher_info(one->mpi)->word,
								 "why", one->skipped));
		if (!one->counters)
			continue;
		printf("\n%s, %s\n", one->program->name, launcher_info(one->mpi)->name);
		counters_print(one->counters, stdout, "");
		json_array_append_new(statistics,
				      json_pack("{s:s, s:s, s:O}", "program", one->program->name,
						"mpi", launcher_info(one->mpi)->word, "statistics",
						one->counters));
	}
	demo->results.settings = json_pack("{s:i, s:s, s:o, s:o}", "ranks", demo->opt.ranks, "with",
					   demo->opt.with, "statistics", statistics, "not_run",
					   skipped);
}

static int create_scratch(char *folder)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(((struct demo *)0)->folder), "%s/onecopy-demo-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(folder))
		return 0;
	say("the folder %s cannot be made: %s", folder, strerror(errno));
	return -1;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Runs MPI programs under Open MPI and MPICH, without and with onecopy, in turn, verifies each run and "
		       "prints what changed and what onecopy served.\vExit status: 0 if every run "
		       "was verified, 1 if not, 2 for a bad option.",
	};
	static char build[PATH_MAX], with[PATH_MAX + 64], programs[PATH_MAX + 32];
	static struct demo demo = {
		.opt = { .hpcc = "/usr/bin/hpcc",
			 .examples = OC_EXAMPLES_DIR,
			 .with = with,
			 .programs = programs,
			 .ranks = 2,
			 .rounds = 3,
			 .timeout_s = 300,
			 .asp_size = 3072 },
	};
	struct results *results = &demo.results;
	int err = 0;
	double load;

	find_build(build);
	snprintf(with, sizeof(with), "'%s/tools/onecopy/onecopy' run --quiet", build);
	snprintf(programs, sizeof(programs), "%s/examples", build);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &demo.opt);

	results_begin(results, argc, argv, (unsigned int)demo.opt.rounds);
	demo.x = (size_t)demo.opt.ranks;
	demo.binding = demo.opt.ranks <= results->host.cores ? BIND_CORES :
		       demo.opt.ranks <= results->host.cpus  ? BIND_THREADS :
							       BIND_NONE;
	run_begin();
	list_cases(&demo);
	if (check_needs(&demo) || results_check_places(demo.opt.json, NULL) ||
	    create_scratch(demo.folder))
		return 1;
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		printf("NOTE: the load average is %.1f: other programs blur the times\n", load);
	for (int i = 0; i < demo.num_cases; i++)
		if (!demo.cases[i].skipped)
			demo_plan_case(&demo, &demo.cases[i]);
	err = results_run(results);
	if (!err) {
		report(&demo);
		counters_remove(demo.folder);
		if (demo.opt.json)
			err = results_write_json(results, demo.opt.json);
	} else {
		say("files of the last run are kept in %s", demo.folder);
	}
	for (int i = 0; i < demo.num_cases; i++)
		json_decref(demo.cases[i].counters);
	results_end(results);
	return err ? 1 : 0;
}
