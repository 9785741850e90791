// SPDX-License-Identifier: BSD-3-Clause
#include "demo.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Load average above which a warning is printed, before anything of ours runs. */
#define BUSY_LOAD 0.7

static const struct demo_set *set_of(const struct demo_options *opt)
{
	return opt->paper ? &demo_paper : &demo_usual;
}

static void check_names(const struct demo_options *opt)
{
	const struct demo_set *set = set_of(opt);
	struct word_list names = { "" };
	bool found = !opt->only;

	for (unsigned int p = 0; p < set->program_count; p++) {
		found |= opt->only && !strcmp(opt->only, set->programs[p].name);
		word_list_add(&names, set->programs[p].name);
	}
	if (!found)
		usage("--only: no program '%s'; there are: %s", opt->only, names.text);
	if (opt->only_mpi && launcher_of(opt->only_mpi) == LAUNCH_NONE)
		usage("--mpi: '%s' is neither openmpi nor mpich", opt->only_mpi);
	if (opt->paper && opt->only_mpi && launcher_of(opt->only_mpi) != LAUNCH_OPENMPI)
		usage("--paper: its columns are Open MPI's; leave --mpi out");
}

#define AT(member) .place = offsetof(struct demo_options, member)

static const struct option_set options = {
	.rows =
		(const struct option_row[]){
			{ .help = "What is run:" },
			{ "seconds", 0, "N",
			  "end before it takes longer, but for a first round (default 120, or what "
			  "the six rounds take that an interval needs); it ends sooner once all "
			  "intervals are narrow",
			  OPTION_COUNT, AT(seconds), 1, 100000 },
			{ "rounds", 0, "N", "most runs of each program on each side (default 99)",
			  OPTION_COUNT, AT(rounds), 1, DEMO_ROUNDS_MAX },
			{ "quick", 0, NULL,
			  "small programs, each run once: whether everything works", AT(quick) },
			{ "paper", 0, NULL,
			  "instead: the ASP of Ma et al. (ICPP 2011), Table I, at its own row sizes, "
			  "under Open MPI: two copies, one copy (stock), onecopy, shared heap",
			  AT(paper) },
			{ "ranks", 0, "N", "MPI ranks (default 2)", OPTION_COUNT, AT(ranks), 2,
			  DEMO_RANKS_MAX },
			{ "only", 0, "PROGRAM",
			  "run one program: asp, cg, heat, halo, train, gradients or shuffle; with "
			  "--paper '64 KiB' or '128 KiB'",
			  OPTION_TEXT, AT(only) },
			{ "mpi", 0, "NAME", "run under one MPI: openmpi or mpich (default: both)",
			  OPTION_TEXT, AT(only_mpi) },
			{ "json", 0, "FILE",
			  "write all samples, and what onecopy served, to FILE (-: only that)",
			  OPTION_TEXT, AT(json) },
			{ "out", 0, "DIR",
			  "folder of the plots, SVG and PNG (default demo-out/DATE)", OPTION_TEXT,
			  AT(out) },
			{ "timeout", 0, "SECONDS", "kill a run that takes longer (default 300)",
			  OPTION_COUNT, AT(timeout_s), 1, 100000 },
			{ .help = "By what:" },
			{ "mpirun", 0, "CMD", "Open MPI's launcher (default mpirun)", OPTION_TEXT,
			  AT(mpirun[LAUNCH_OPENMPI]) },
			{ "mpirun-mpich", 0, "CMD", "MPICH's launcher (default mpirun.mpich)",
			  OPTION_TEXT, AT(mpirun[LAUNCH_MPICH]) },
			{ "mpi4py-mpich", 0, "DIR",
			  "folder with an mpi4py for MPICH, for the Python programs (default: they run "
			  "under Open MPI only, unless /usr/bin/python3 finds one)",
			  OPTION_TEXT, AT(mpi4py) },
			{ 0 } },
	.about = "Runs MPI programs under Open MPI and MPICH, without onecopy, with it and with "
		 "its shared heap, in turn, verifies each run and says what became faster or "
		 "slower.\vExit status: 0 if every run was verified, 1 if not, 2 for a bad option.",
};

/* ---- what can be run ------------------------------------------------------------------------- */

/* Folder of the running program's build: it lies in BUILD/tools/demo. */
static void find_build(char *build)
{
	host_program_folder(build);
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

/* Bytes that programs may take, by the kernel's word; 0: it does not say. */
static size_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	size_t kib = 0;

	while (file && !kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %zu kB", &kib);
	if (file)
		fclose(file);
	return kib << 10;
}

/* Why this case cannot be run; NULL: it can. */
static const char *trouble(const struct demo *demo, const struct demo_case *one)
{
	const struct demo_program *program = one->program;
	size_t available = memory_available();
	char path[PATH_MAX];

	if (!demo->opt.mpirun[one->mpi] && !*launcher_info(one->mpi)->command)
		return "no launcher of it is on PATH; install it (mpich, openmpi-bin), or name it "
		       "by --mpirun or --mpirun-mpich";
	if (one->mpi == LAUNCH_MPICH && demo->opt.ranks > demo->results.host.cpus)
		return "its ranks do not yield: with more of them than CPUs each call takes "
		       "tens of milliseconds";
	demo_program_path(demo, one, path);
	if (access(path, R_OK))
		return "it is not there; build it (make), with libopenmpi-dev, libmpich-dev and "
		       "gfortran installed";
	if (program->script && one->mpi == LAUNCH_OPENMPI &&
	    system("/usr/bin/python3 -c 'import mpi4py' 2>/dev/null"))
		return "it needs mpi4py; install python3-mpi4py";
	if (program->script && one->mpi == LAUNCH_MPICH && !has_mpi4py(demo))
		return "Debian's mpi4py is for Open MPI; name the folder of one for MPICH by "
		       "--mpi4py-mpich";
	if (available &&
	    available / (size_t)demo->opt.ranks < program->rank_bytes * program->rank_rows * 5 / 4)
		return "its matrix does not fit the memory that is free; take fewer --ranks";
	return NULL;
}

/* ---- main ------------------------------------------------------------------------------------ */

/* 0, or -1: nothing can be run, which is said. */
static int list_cases(struct demo *demo)
{
	const struct demo_options *opt = &demo->opt;
	unsigned int runs = 0;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		if ((opt->only_mpi && mpi != (int)launcher_of(opt->only_mpi)) ||
		    (demo->set->openmpi_only && mpi != LAUNCH_OPENMPI))
			continue;
		for (unsigned int p = 0; p < demo->set->program_count; p++) {
			struct demo_case *one = &demo->cases[demo->case_count];

			if (opt->only && strcmp(opt->only, demo->set->programs[p].name) != 0)
				continue;
			*one = (struct demo_case){ .demo = demo,
						   .program = &demo->set->programs[p],
						   .mpi = (enum launcher)mpi };
			one->skipped = trouble(demo, one);
			runs += !one->skipped;
			demo->case_count++;
		}
	}
	if (!runs)
		say("nothing can be run: %s", demo->cases[0].skipped);
	return runs ? 0 : -1;
}

/* What is in the JSON beside the samples. */
static json_t *settings(const struct demo *demo)
{
	json_t *statistics = json_array(), *skipped = json_array();

	for (unsigned int i = 0; i < demo->case_count; i++) {
		const struct demo_case *one = &demo->cases[i];
		const char *mpi = launcher_info(one->mpi)->word;

		if (one->skipped)
			json_array_append_new(skipped, json_pack("{s:s, s:s, s:s}", "program",
								 one->program->name, "mpi", mpi,
								 "why", one->skipped));
		if (one->counters)
			json_array_append_new(statistics, json_pack("{s:s, s:s, s:O}", "program",
								    one->program->name, "mpi", mpi,
								    "statistics", one->counters));
	}
	return json_pack("{s:I, s:b, s:b, s:o, s:o}", "ranks", (json_int_t)demo->opt.ranks, "quick",
			 demo->opt.quick, "paper", demo->opt.paper, "statistics", statistics,
			 "not_run", skipped);
}

static int run(struct demo *demo)
{
	struct results *results = &demo->results;
	const struct demo_options *opt = &demo->opt;
	int err = opt->quick ? 0 : demo_warm_up(demo);
	char path[PATH_MAX];
	FILE *table;

	err = err ? err : results_run(results);
	/* What an interrupted run has so far is shown, too. */
	if (err && (err != -EINTR || !results->complete))
		return 1;
	demo_judge(demo);
	results->settings = settings(demo);
	err |= opt->json ? results_write_json(results, opt->json) : 0;
	if (opt->json && !strcmp(opt->json, "-"))
		return err;
	if (!err && !results_plot(results, opt->out))
		printf("Plots: %s/ratio-*.svg and latency-*.svg, and as .png\n", opt->out);
	demo_report(demo, stdout);
	snprintf(path, sizeof(path), "%s/table.txt", opt->out);
	table = fopen(path, "w");
	if (table)
		demo_report(demo, table);
	if (table && !fclose(table))
		return err;
	say("%s cannot be written: %s", path, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	static struct demo demo = {
		.opt = { .ranks = 2, .rounds = DEMO_ROUNDS_MAX, .timeout_s = 300 },
	};
	struct demo_options *opt = &demo.opt;
	struct results *results = &demo.results;
	char out[sizeof(results->host.date) + 16];
	double load;
	int err;

	options_parse(&options, argc, argv, opt);
	check_names(opt);
	find_build(demo.build);
	snprintf(demo.with, sizeof(demo.with), "'%s/tools/onecopy/onecopy' run --quiet",
		 demo.build);
	results_begin(results, argc, argv, opt->quick ? 1 : (unsigned int)opt->rounds);
	results->seconds = opt->seconds ? (double)opt->seconds : DEMO_SECONDS;
	results->least = opt->seconds ? 0 : STATS_MIN_RUNS;
	results->enough = demo_enough;
	results_folder(results, "demo-out", out, sizeof(out));
	opt->out = opt->out ? opt->out : out;
	demo.set = set_of(opt);
	demo.binding = binding_of(&results->host, (uint32_t)opt->ranks);
	run_begin();
	if (list_cases(&demo) || results_check_places(opt->json, opt->out))
		return 1;
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		say("the load average is %.1f: other programs blur the times", load);
	demo_plan(&demo);
	err = run(&demo);
	for (unsigned int i = 0; i < demo.case_count; i++)
		json_decref(demo.cases[i].counters);
	results_end(results);
	return err ? 1 : 0;
}
