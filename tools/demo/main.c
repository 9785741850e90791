// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	  "command put before mpirun on the side with onecopy; '--stats-json FILE' is appended "
	  "to it and FILE read afterwards (default: 'onecopy run' of this build)",
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
	for (int mpi = 0; mpi < DEMO_MPIS; mpi++)
		if (strcmp(demo_mpis[mpi].option, name) == 0)
			return;
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
		opt->mpirun[DEMO_OPENMPI] = arg;
		return 0;
	case KEY_MPIRUN_MPICH:
		opt->mpirun[DEMO_MPICH] = arg;
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

/* Folder of the running program's build: it lies in BUILD/tools/demo. */
static int find_build(char *build)
{
	ssize_t len = readlink("/proc/self/exe", build, PATH_MAX - 1);

	if (len < 0) {
		fprintf(stderr, "onecopy-demo: /proc/self/exe: %s\n", strerror(errno));
		return -1;
	}
	build[len] = '\0';
	for (int up = 0; up < 3; up++) {
		char *slash = strrchr(build, '/');

		if (slash)
			*slash = '\0';
	}
	return 0;
}

/* A path that does not exist gets its sentence here, before the first run. */
static int check_needs(const struct demo *demo)
{
	const char *end = strchrnul(demo->opt.with, ' ');
	char first[PATH_MAX];
	int runs = 0;

	snprintf(first, sizeof(first), "%.*s", (int)(end - demo->opt.with), demo->opt.with);
	if (strchr(first, '/') && !strpbrk(first, "'\"\\$~") && access(first, X_OK)) {
		fprintf(stderr, "onecopy-demo: %s: %s; build onecopy (make) or give --with\n",
			first, strerror(errno));
		return -1;
	}
	for (int i = 0; i < demo->num_cases; i++) {
		const struct demo_case *one = &demo->cases[i];
		const char *path = demo_program_path(demo, one->program, one->mpi);

		if (*one->skipped)
			continue;
		if (access(path, R_OK)) {
			fprintf(stderr, "onecopy-demo: %s: %s: %s; %s\n", one->program->name, path,
				strerror(errno), demo_program_remedy(one->program));
			return -1;
		}
		runs++;
	}
	if (!runs && demo->num_cases)
		fprintf(stderr, "onecopy-demo: nothing can be run: %s\n", demo->cases[0].skipped);
	return runs ? 0 : -1;
}

/* Better said now than after all runs. */
static int check_json(const char *path)
{
	FILE *file = path ? fopen(path, "a") : NULL;

	if (path && !file) {
		fprintf(stderr, "onecopy-demo: --json: %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (file)
		fclose(file);
	return 0;
}

static int create_scratch(struct demo_files *files)
{
	const char *tmp = getenv("TMPDIR");
	struct {
		char *path;
		const char *name;
	} in_folder[] = {
		{ files->out, "out.txt" },	     { files->err, "err.txt" },
		{ files->stats, "stats.json" },	     { files->hpcc_in, "hpccinf.txt" },
		{ files->hpcc_out, "hpccoutf.txt" },
	};

	snprintf(files->folder, sizeof(files->folder), "%s/onecopy-demo-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (strlen(files->folder) > PATH_MAX - 32 || !mkdtemp(files->folder)) {
		fprintf(stderr, "onecopy-demo: cannot create the folder %s: %s\n", files->folder,
			strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < sizeof(in_folder) / sizeof(in_folder[0]); i++) {
		stpcpy(stpcpy(stpcpy(in_folder[i].path, files->folder), "/"), in_folder[i].name);
	}
	return 0;
}

static void remove_scratch(const struct demo_files *files)
{
	unlink(files->out);
	unlink(files->err);
	unlink(files->stats);
	unlink(files->hpcc_in);
	unlink(files->hpcc_out);
	rmdir(files->folder);
}

static void free_results(struct demo *demo)
{
	for (int c = 0; c < demo->num_cases; c++) {
		struct demo_result *results = demo->cases[c].results;

		for (int i = 0; results && i < DEMO_SIDES * demo->opt.rounds; i++)
			json_decref(results[i].stats);
		free(results);
	}
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
	static char build[PATH_MAX], with[PATH_MAX + 32], programs[PATH_MAX + 32];
	static struct demo demo = {
		.opt = { .mpirun = { "mpirun", "mpirun.mpich" },
			 .hpcc = "/usr/bin/hpcc",
			 .examples = OC_EXAMPLES_DIR,
			 .with = with,
			 .programs = programs,
			 .ranks = 2,
			 .rounds = 3,
			 .timeout_s = 300,
			 .asp_size = 3072 },
	};
	int ret = 0;

	if (find_build(build))
		return 1;
	snprintf(with, sizeof(with), "%s/tools/onecopy/onecopy run", build);
	snprintf(programs, sizeof(programs), "%s/examples", build);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &demo.opt);

	demo_run_setup();
	host_machine(&demo.host);
	demo_cases_list(&demo);
	if (check_needs(&demo) || check_json(demo.opt.json) || create_scratch(&demo.files))
		return 1;

	demo_report_head(&demo);
	for (int i = 0; i < demo.num_cases && !ret; i++)
		if (!*demo.cases[i].skipped)
			ret = demo_case_run(&demo, &demo.cases[i]);
	if (!ret) {
		demo_report_table(&demo);
		remove_scratch(&demo.files);
		if (demo.opt.json)
			ret = demo_report_json(&demo);
	}
	free_results(&demo);
	return ret ? 1 : 0;
}
