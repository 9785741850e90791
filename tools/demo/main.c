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
	KEY_MPIRUN,
	KEY_HPCC,
	KEY_ASP,
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
	{ "only", KEY_ONLY, "PROGRAM", 0, "run one program: asp, gradients or hpcc", 1 },
	{ "json", KEY_JSON, "FILE", 0, "write all samples and statistics to FILE", 1 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "kill a run that takes longer (default 300)", 1 },
	{ "with", KEY_WITH, "CMD", 0,
	  "command put before mpirun on the side with onecopy; '--stats-json FILE' is appended "
	  "to it and FILE read afterwards (default: 'onecopy run' of this build)",
	  2 },
	{ "asp-size", KEY_ASP_SIZE, "N", 0, "vertices of asp's graph (default 3072)", 2 },
	{ "mpirun", KEY_MPIRUN, "PATH", 0, "Open MPI's launcher (default mpirun)", 2 },
	{ "asp", KEY_ASP, "PATH", 0, "the ASP binary (default: of this build)", 2 },
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
	argp_error(state, "--only: no program '%s'; there are asp, gradients and hpcc", name);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct demo_options *opt = state->input;

	switch (key) {
	case KEY_WITH:
		opt->with = arg;
		return 0;
	case KEY_MPIRUN:
		opt->mpirun = arg;
		return 0;
	case KEY_HPCC:
		opt->hpcc = arg;
		return 0;
	case KEY_ASP:
		opt->asp = arg;
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

	snprintf(first, sizeof(first), "%.*s", (int)(end - demo->opt.with), demo->opt.with);
	if (strchr(first, '/') && !strpbrk(first, "'\"\\$~") && access(first, X_OK)) {
		fprintf(stderr, "onecopy-demo: %s: %s; build onecopy (make) or give --with\n",
			first, strerror(errno));
		return -1;
	}
	for (size_t p = 0; p < demo_num_programs; p++) {
		const struct demo_program *program = demo_programs[p];

		if (demo->opt.only && strcmp(demo->opt.only, program->name) != 0)
			continue;
		if (access(program->needs(demo), R_OK)) {
			fprintf(stderr, "onecopy-demo: %s: %s: %s; %s\n", program->name,
				program->needs(demo), strerror(errno), program->remedy);
			return -1;
		}
	}
	return 0;
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

static int build_command(const struct demo *demo, const struct demo_program *program,
			 enum demo_side side, struct demo_args *args)
{
	if (side == DEMO_WITH) {
		if (demo_args_add_words(args, demo->opt.with))
			return -1;
		demo_args_add(args, "--stats-json");
		demo_args_add(args, "%s", demo->files.stats);
	}
	demo_args_add(args, "%s", demo->opt.mpirun);
	demo_args_add(args, "-n");
	demo_args_add(args, "%d", demo->opt.ranks);
	if (demo->opt.ranks <= demo->host.cores) {
		demo_args_add(args, "--bind-to");
		demo_args_add(args, "core");
	} else if (demo->opt.ranks <= demo->host.cpus) {
		demo_args_add(args, "--use-hwthread-cpus");
		demo_args_add(args, "--bind-to");
		demo_args_add(args, "hwthread");
	} else {
		demo_args_add(args, "--oversubscribe");
		demo_args_add(args, "--bind-to");
		demo_args_add(args, "none");
	}
	program->command(demo, args);
	return 0;
}

/* One run, verified or complained about. */
static int run_once(const struct demo *demo, const struct demo_program *program,
		    enum demo_side side, struct demo_result *result)
{
	struct demo_args args = { 0 };
	int ret;

	if (program->prepare && program->prepare(demo))
		return -1;
	unlink(demo->files.stats);
	ret = build_command(demo, program, side, &args);
	if (!ret) {
		ret = demo_child_run(demo, &args, &result->wall_s);
		if (!ret)
			ret = program->read(demo, result);
		if (!ret && side == DEMO_WITH)
			ret = demo_stats_read(demo, result);
		if (ret)
			demo_tail(demo, &args);
	}
	demo_args_free(&args);
	return ret;
}

static int run_rounds(const struct demo *demo, const struct demo_program *program,
		      struct demo_result *results)
{
	static const char *const sides[] = { "without", "with   " };
	int rounds = demo->opt.rounds;

	printf("\n%s: %s\n", program->name, program->what);
	for (int i = 0; i < DEMO_SIDES * rounds; i++) {
		enum demo_side side = i % 2 ? DEMO_WITH : DEMO_WITHOUT;
		struct demo_result *result = &results[side * rounds + i / 2];

		printf("  round %d of %d, %s onecopy ... ", i / 2 + 1, rounds, sides[side]);
		fflush(stdout);
		if (run_once(demo, program, side, result))
			return -1;
		if (strcmp(result->checksum, results[0].checksum) != 0) {
			fprintf(stderr,
				"\nonecopy-demo: %s: not verified: its result has checksum %s, the "
				"first run's has %s\n",
				program->name, result->checksum, results[0].checksum);
			return -1;
		}
		printf("%6.2f s, verified\n", result->wall_s);
	}
	return 0;
}

static int run_all(const struct demo *demo, struct demo_result **results)
{
	size_t runs = (size_t)(DEMO_SIDES * demo->opt.rounds);

	for (size_t p = 0; p < demo_num_programs; p++) {
		if (demo->opt.only && strcmp(demo->opt.only, demo_programs[p]->name) != 0)
			continue;
		results[p] = calloc(runs, sizeof(*results[p]));
		if (!results[p]) {
			fprintf(stderr, "onecopy-demo: no memory\n");
			return -1;
		}
		if (run_rounds(demo, demo_programs[p], results[p]))
			return -1;
	}
	return 0;
}

static void free_results(const struct demo *demo, struct demo_result **results)
{
	for (size_t p = 0; p < demo_num_programs; p++) {
		for (int i = 0; results[p] && i < DEMO_SIDES * demo->opt.rounds; i++)
			json_decref(results[p][i].stats);
		free(results[p]);
	}
	free(results);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Runs MPI programs without and with onecopy, in turn, verifies each run and "
		       "prints what changed and what onecopy served.\vExit status: 0 if every run "
		       "was verified, 1 if not, 2 for a bad option.",
	};
	static char build[PATH_MAX], with[PATH_MAX + 32], asp[PATH_MAX + 32];
	static struct demo demo = {
		.opt = { .mpirun = "mpirun",
			 .hpcc = "/usr/bin/hpcc",
			 .examples = OC_EXAMPLES_DIR,
			 .with = with,
			 .asp = asp,
			 .ranks = 2,
			 .rounds = 3,
			 .timeout_s = 300,
			 .asp_size = 3072 },
	};
	struct demo_result **results;
	int ret;

	if (find_build(build))
		return 1;
	snprintf(with, sizeof(with), "%s/tools/onecopy/onecopy run", build);
	snprintf(asp, sizeof(asp), "%s/examples/asp", build);
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &demo.opt);

	demo_child_setup();
	if (demo_host_read(demo.opt.mpirun, &demo.host) || check_needs(&demo) ||
	    check_json(demo.opt.json))
		return 1;
	results = calloc(demo_num_programs, sizeof(*results));
	if (!results || create_scratch(&demo.files)) {
		free(results);
		return 1;
	}

	demo_report_head(&demo);
	ret = run_all(&demo, results);
	if (!ret) {
		demo_report_table(&demo, results);
		remove_scratch(&demo.files);
		if (demo.opt.json)
			ret = demo_report_json(&demo, results);
	}
	free_results(&demo, results);
	return ret ? 1 : 0;
}
