// SPDX-License-Identifier: BSD-3-Clause
/*
 * onecopy bench programs: unmodified MPI programs (examples/ of the build) under Open MPI and under
 * MPICH, without onecopy, with it and with its shared heap, in turn: each run is verified, and of
 * each program it is said whether it became faster or slower. One file of more than 500 lines, as
 * the programs, their runs and what is said of them know each other and nobody else does.
 */
#include "bench.h"
#include "lab/experiment/table.h"
#include "lab/tune/tune.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PROGRAMS_MOST = 9,
	VARIANTS_MOST = 4,
	SECONDS = 120, /* where the user says none */
	JOBS_MOST = LAUNCHERS * PROGRAMS_MOST,
};

/* Load average above which a warning is printed, before anything of ours runs. */
#define BUSY_LOAD 0.7
/* An interval is narrow enough if its ends are no further apart than this part of the median. */
#define NARROW 0.04

/* Of a run, in ms: by the program's own clock, and what of it its ranks were in MPI, on average,
 * where it says that. */
enum metric { TOTAL, IN_MPI, METRICS };

struct program {
	const char *name;
	const char *file;   /* of the program, which calls itself so, too; NULL: its name */
	const char *checks; /* what "verified" means here */
	bool script;	    /* Python */
	const char *runs;   /* a script: this package's program, of Open MPI; NULL: mpi4py's */
	const char *arguments, *quick; /* words */
	size_t rank_bytes, rank_rows;  /* of the matrix of asp as in the paper; 0: another one */
};

/* What is compared: with the first variant, the base, all others. */
struct set {
	const struct program *programs;
	const struct variant *variants;
	unsigned int program_count, variant_count;
	bool openmpi_only;
	const char *about; /* lines for the head */
};

/* ---- the programs ---------------------------------------------------------------------------- */

/*
 * Sizes are such that stock spends a third and more of a program's time in MPI on 2 ranks, also
 * where their cores share a cache (EPYC of docs/results, 2026-11-24: 34 to 60 %), and that a run
 * takes half a second with its start: a rank has as little to compute as one of many. intsort is
 * not here, as at no size more than a quarter of its time is communication. Of hpcc a part's time
 * is told.
 */
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct program programs[] = {
	{ .name = "asp",
	  .checks =
		  "all-pairs shortest paths, C: a row on each rank in each graph equals Dijkstra's; "
		  "all runs' matrices have one checksum",
	  .arguments = "--size 16384 --rows 24 --graphs 50",
	  .quick = "--size 4096 --rows 24" },
	{ .name = "cg",
	  .checks = "conjugate gradients, C: every point of every solve equals the known solution",
	  .arguments = "--size 16 --solves 800",
	  .quick = "--size 16 --solves 5" },
	{ .name = "heat",
	  .checks = "heat by Fourier transforms, Fortran: every point and every step's sum equal "
		    "the known solution",
	  .arguments = "--size 32 --steps 4000",
	  .quick = "--size 32 --steps 5" },
	{ .name = "halo",
	  .checks = "a substance in the wind, Fortran: every point equals the known solution; "
		    "messages alone",
	  .arguments = "--size 256 --planes 2 --steps 3000",
	  .quick = "--size 64 --steps 5" },
	{ .name = "train",
	  .checks =
		  "texts sorted by topic, C: every sum of every step is right on every rank, and all "
		  "runs learn the same weights; sums are under way while ranks compute unlike long",
	  .arguments = "--steps 4000",
	  .quick = "--steps 50" },
	{ .name = "gradients",
	  .checks = "averaged gradients, Python: every parameter, loss and statistic on every rank "
		    "is exact",
	  .script = true,
	  .arguments = "--steps 60",
	  .quick = "--floats 65536 --steps 5" },
	{ .name = "shuffle",
	  .checks = "shuffled records, Python: every record is whole, there once, and where it "
		    "belongs",
	  .script = true,
	  .arguments = "--epochs 300",
	  .quick = "--records 100 --epochs 5" },
	{ .name = "hpcc-ptrans",
	  .file = "hpcc",
	  .checks = "HPC Challenge: a transposition of 32 MB, by messages; hpcc checks all of its "
		    "tests",
	  .script = true,
	  .runs = "hpcc",
	  .arguments = "--part ptrans --size 2000",
	  .quick = "--part ptrans --size 300" },
	{ .name = "hpcc-ring",
	  .file = "hpcc",
	  .checks = "HPC Challenge: 2 MB to and from both neighbors in rings; as hpcc-ptrans",
	  .script = true,
	  .runs = "hpcc",
	  .arguments = "--part ring --size 300",
	  .quick = "--part ring --size 300" },
};

static const struct variant variants[] = {
	{ .name = "stock" },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};

static const struct set usual = {
	.programs = programs,
	.program_count = COUNT(programs),
	.variants = variants,
	.variant_count = COUNT(variants),
	.about = "",
};

/*
 * Section VI-E and Table I: 16384 vertices on Zoot's 16 cores, 32768 on IG's 48. What a rank does
 * between two calls is the paper's, as it has as many rows as a core had there.
 */
#define PAPER_CHECKS \
	"8 whole rows of each rank equal Dijkstra's; all runs' matrices have one checksum"

static const struct program papers[] = {
	{ .name = "64 KiB",
	  .file = "asp",
	  .checks = PAPER_CHECKS,
	  .arguments = "--size 16384 --calls 64",
	  .quick = "--size 16384 --calls 8",
	  .rank_bytes = 65536,
	  .rank_rows = 16384 / 16 },
	{ .name = "128 KiB",
	  .file = "asp",
	  .checks = PAPER_CHECKS,
	  .arguments = "--size 32768 --calls 64",
	  .quick = "--size 32768 --calls 8",
	  .rank_bytes = 131072,
	  .rank_rows = 32768 / 48 },
};

static const struct variant paper_variants[] = {
	{ .name = "two copies", .two_copies = true },
	{ .name = "stock" },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};

static const struct set paper = {
	.programs = papers,
	.program_count = COUNT(papers),
	.variants = paper_variants,
	.variant_count = COUNT(paper_variants),
	.openmpi_only = true,
	.about =
		"ASP of Ma et al., Kernel Assisted Collective Intra-node MPI Communication (ICPP "
		"2011),\nTable I: rows of 64 KiB (Zoot) and 128 KiB (IG), as many on a rank as on a "
		"core there;\n64 rows are broadcast, not all. Ratios are over two copies, as the paper's. stock: "
		"one copy, by CMA.",
};

/* A program under an MPI. */
struct job {
	const struct program *program;
	enum launcher mpi;
	const char *skipped; /* why it is not run; NULL: it is */
	unsigned int x;	     /* its place in the MPI's figures */
	struct step *steps[VARIANTS_MOST];
	char checksum[32]; /* of the result, the same in all runs */
	json_t *counters;  /* of the last run with onecopy; owned */
};

static struct {
	const struct bench_choice *options;
	struct results *results;
	const struct set *set;
	enum binding binding;
	bool warming; /* runs are not counted yet */
	struct job jobs[JOBS_MOST];
	unsigned int job_count;
	/* Of each MPI; NULL: nothing is run under it. */
	struct figure *figures[LAUNCHERS][METRICS];
	const char *names[LAUNCHERS][PROGRAMS_MOST];
} demo;

static const struct set *set_of(const struct bench_choice *options)
{
	return options->paper ? &paper : &usual;
}

static const char *base_name(void)
{
	return demo.set->variants[0].name;
}

void bench_programs_check(const struct bench_choice *options)
{
	const struct set *set = set_of(options);
	struct word_list names = { "" };
	bool found = !options->only;

	for (unsigned int p = 0; p < set->program_count; p++) {
		found |= options->only && !strcmp(options->only, set->programs[p].name);
		word_list_add(&names, set->programs[p].name);
	}
	if (!found)
		usage("--only: no program '%s'; there are: %s", options->only, names.text);
	if (set->openmpi_only && !options->mpis[LAUNCH_OPENMPI])
		usage("--paper: its columns are Open MPI's; leave --mpi out");
}

/* ---- what can be run ------------------------------------------------------------------------- */

static const char *file_of(const struct program *program)
{
	return program->file ? program->file : program->name;
}

static const char *launcher_words(enum launcher mpi)
{
	return mpi == LAUNCH_MPICH ? demo.options->mpirun_mpich : demo.options->mpirun;
}

/* The command lies in BUILD/tools/onecopy. */
static void write_path(const struct job *job, char path[PATH_MAX])
{
	bool script = job->program->script;
	char build[PATH_MAX] = "";

	host_program_folder(build);
	for (int up = 0; up < 2; up++)
		build[strrchr(build, '/') ? strrchr(build, '/') - build : 0] = '\0';
	snprintf(path, PATH_MAX, "%.*s/examples/%s%s%s", PATH_MAX - 64, build,
		 !script && job->mpi == LAUNCH_MPICH ? "mpich/" : "", file_of(job->program),
		 script ? ".py" : "");
}

/* Whether /usr/bin/python3 finds an mpi4py for it. */
static bool has_mpi4py(enum launcher mpi)
{
	const char *path = mpi == LAUNCH_MPICH ? demo.options->mpi4py : NULL;
	char command[PATH_MAX + 256];

	snprintf(command, sizeof(command),
		 "%s%s%s /usr/bin/python3 -c 'import mpi4py; mpi4py.rc.initialize = False; "
		 "from mpi4py import MPI; "
		 "raise SystemExit((MPI.get_vendor()[0] == \"Open MPI\") != %s)' 2>/dev/null",
		 path ? "PYTHONPATH='" : "", path ? path : "", path ? "'" : "",
		 mpi == LAUNCH_OPENMPI ? "True" : "False");
	return !system(command);
}

/* Why this case cannot be run; NULL: it can. */
static const char *trouble(const struct job *job)
{
	const struct program *program = job->program;
	size_t matrix = program->rank_bytes * program->rank_rows;
	char path[PATH_MAX];

	if (!launcher_words(job->mpi) && !*launcher_info(job->mpi)->command)
		return "no launcher of it is on PATH; install it (mpich, openmpi-bin), or name it "
		       "by --mpirun or --mpirun-mpich";
	if (job->mpi == LAUNCH_MPICH && (int)demo.options->ranks > demo.results->host.cpus)
		return "its ranks do not yield: with more of them than CPUs each call takes "
		       "tens of milliseconds";
	write_path(job, path);
	if (access(path, R_OK))
		return "it is not there; build it (make), with libopenmpi-dev, libmpich-dev and "
		       "gfortran installed";
	if (program->runs)
		return job->mpi == LAUNCH_MPICH ?
			       "it is run under Open MPI alone, as Debian has it" :
		       program_on_path(program->runs) ?
			       NULL :
			       "it is not on PATH; install the package hpcc";
	if (program->script && !has_mpi4py(job->mpi))
		return job->mpi == LAUNCH_OPENMPI ?
			       "it needs mpi4py; install python3-mpi4py" :
			       "Debian's mpi4py is for Open MPI; name the folder of one for MPICH "
			       "by --mpi4py-mpich";
	if (oci_tune_memory_left() / demo.options->ranks < matrix * 5 / 4)
		return "its matrix does not fit the memory that is free; take fewer --ranks";
	return NULL;
}

static void end_without_jobs(void)
{
	for (unsigned int i = 0; i < demo.job_count; i++)
		if (!demo.jobs[i].skipped)
			return;
	say("nothing can be run: %s", demo.jobs[0].skipped);
	exit(1);
}

static void list_jobs(void)
{
	const char *only = demo.options->only;

	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		if (!demo.options->mpis[mpi] || (demo.set->openmpi_only && mpi != LAUNCH_OPENMPI))
			continue;
		for (unsigned int p = 0; p < demo.set->program_count; p++) {
			struct job *job = &demo.jobs[demo.job_count];

			if (only && strcmp(only, demo.set->programs[p].name) != 0)
				continue;
			*job = (struct job){ .program = &demo.set->programs[p],
					     .mpi = (enum launcher)mpi };
			job->skipped = trouble(job);
			demo.job_count++;
		}
	}
	end_without_jobs();
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The programs print one line of JSON; a launcher's chatter may stand around it. */
static void keep_json(void *context, const char *line)
{
	json_t **found = context, *parsed = line[0] == '{' ? json_loads(line, 0, NULL) : NULL;

	if (!*found && json_is_string(json_object_get(parsed, "program")))
		*found = parsed;
	else
		json_decref(parsed);
}

/* Takes the metrics' numbers, and what has to be the same in all runs. */
static int read_result(struct job *job, const json_t *line, double values[METRICS])
{
	static const char *const keys[METRICS] = { "total_s", "mpi_s" };
	const char *checksum = json_string_value(json_object_get(line, "checksum"));
	const char *name = job->program->name, *file = file_of(job->program);

	if (!line || strcmp(json_string_value(json_object_get(line, "program")), file)) {
		say("%s printed no result", name);
		return -EBADMSG;
	}
	if (!json_is_true(json_object_get(line, "verified"))) {
		say("%s: not verified: it says so itself", name);
		return -EBADMSG;
	}
	for (int m = 0; m < METRICS; m++) {
		const json_t *number = json_object_get(line, keys[m]);

		values[m] = NAN;
		if (m == IN_MPI && job->program->runs)
			continue;
		if (!json_is_number(number)) {
			say("%s: '%s' is missing from its result", name, keys[m]);
			return -EBADMSG;
		}
		values[m] = 1e3 * json_number_value(number);
	}
	checksum = checksum ? checksum : "none";
	if (!job->checksum[0])
		snprintf(job->checksum, sizeof(job->checksum), "%s", checksum);
	if (!strcmp(job->checksum, checksum))
		return 0;
	say("%s: not verified: its result has checksum %s, the first run's has %s", name, checksum,
	    job->checksum);
	return -EBADMSG;
}

/* The program and its arguments, quoted as a shell takes them. */
static void write_command(const struct job *job, char *program, char *arguments, size_t n)
{
	const struct program *p = job->program;
	bool path = p->script && job->mpi == LAUNCH_MPICH && demo.options->mpi4py;
	const char *words = demo.options->quick ? p->quick : p->arguments;
	char file[PATH_MAX];

	write_path(job, file);
	/* Debian's interpreter by its path: mpi4py is built for it, and another may come first in
	 * PATH. */
	snprintf(program, PATH_MAX, "%s", path ? "env" : p->script ? "/usr/bin/python3" : file);
	if (path)
		snprintf(arguments, n, "'PYTHONPATH=%s' /usr/bin/python3 '%s' %s --json",
			 demo.options->mpi4py, file, words);
	else if (p->script)
		snprintf(arguments, n, "'%s' %s --json", file, words);
	else if (p->rank_rows)
		snprintf(arguments, n, "%s --rows %zu --json", words,
			 p->rank_rows * demo.options->ranks);
	else
		snprintf(arguments, n, "%s --json", words);
}

/* step->at: the variant. What is not verified ends it all. */
static int run_job(struct results *results, struct step *step, unsigned int round)
{
	struct job *job = step->context;
	const struct variant *variant = &demo.set->variants[step->at];
	char program[PATH_MAX], arguments[3 * PATH_MAX], why[512];
	double values[METRICS];
	json_t *line = NULL;
	struct run run = { .variant = variant,
			   .launcher = job->mpi,
			   .with = demo.options->with,
			   .mpirun = launcher_words(job->mpi),
			   .ranks = demo.options->ranks,
			   .binding = demo.binding,
			   .program = program,
			   .arguments = arguments,
			   .timeout_s = demo.options->timeout_s,
			   .counted = true,
			   .line = keep_json,
			   .context = &line };
	int err;

	write_command(job, program, arguments, sizeof(arguments));
	bench_prepare(&run, "", why, sizeof(why));
	err = run_program(results, &run, round, why, sizeof(why));
	progress_end(&results->progress);
	if (err) {
		run_explain(&run, err, why);
	} else {
		err = read_result(job, line, values);
		if (err)
			say("The command was: %s", run.command);
	}
	/* Another's program may be of another MPI than this launcher: the others run all the same.
	 */
	if (err && demo.warming && job->program->runs && err != -EINTR) {
		job->skipped = "its first run failed, see above";
		for (unsigned int v = 0; v < demo.set->variant_count; v++)
			job->steps[v]->left_out = true;
		return 0;
	}
	/* Only what an interrupted experiment has so far is shown. */
	if (err && (err != -EINTR || !results->complete))
		exit(1);
	for (int m = 0; m < METRICS && !err && !demo.warming; m++) {
		struct figure *figure = demo.figures[job->mpi][m];

		if (!isnan(values[m]))
			figure_add(figure, figure_cell_of(figure, variant->name, job->x), round,
				   values[m]);
	}
	if (run.counters) {
		json_decref(job->counters);
		job->counters = run.counters;
	}
	json_decref(line);
	return err;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void plan_figures(enum launcher mpi, unsigned int count)
{
	static const size_t places[PROGRAMS_MOST] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	static const char *const stems[] = { "total", "in-mpi" };
	static const char *const rows[] = { "total time", "in MPI" };
	const struct launcher_info *info = launcher_info(mpi);
	const struct set *set = demo.set;

	for (int m = 0; m < METRICS; m++) {
		struct figure *figure = figure_new(demo.results, places, count, "ms", "%s-%s",
						   info->word, stems[m]);

		figure->title = results_text(demo.results, "%s: %s", info->name, rows[m]);
		figure->row = rows[m];
		figure->about =
			m ? "What of the total time a rank is in MPI, on average." :
			    "By the program's own clock, behind MPI_Init; the slowest rank's; of hpcc, a part's.";
		figure->x_names = demo.names[mpi];
		figure->x_name = "program";
		figure->x_is_bytes = false;
		figure->folded = true;
		figure->group = (unsigned int)mpi;
		for (unsigned int v = 0; v < set->variant_count; v++)
			figure_series(figure, set->variants[v].name);
		demo.figures[mpi][m] = figure;
	}
	for (unsigned int v = 1; v < set->variant_count; v++) {
		struct comparison *c = results_compare(demo.results, (unsigned int)mpi, base_name(),
						       set->variants[v].name);

		c->title = results_text(demo.results, "%.20s %.20s, %u ranks", info->name,
					info->version, demo.options->ranks);
		c->stem = info->word;
	}
}

static void plan_runs(void)
{
	unsigned int counts[LAUNCHERS] = { 0 };

	for (unsigned int i = 0; i < demo.job_count; i++) {
		struct job *job = &demo.jobs[i];

		if (job->skipped)
			continue;
		job->x = counts[job->mpi]++;
		demo.names[job->mpi][job->x] = job->program->name;
		results_turn(demo.results);
		for (unsigned int v = 0; v < demo.set->variant_count; v++)
			job->steps[v] = results_step(
				demo.results, run_job, job, v, "%s, %s, %s", job->program->name,
				launcher_info(job->mpi)->name, demo.set->variants[v].name);
	}
	for (int mpi = 1; mpi < LAUNCHERS; mpi++)
		if (counts[mpi])
			plan_figures((enum launcher)mpi, counts[mpi]);
}

/* Runs that are not counted: what was built just now is not in memory yet. */
static void warm_up(void)
{
	struct progress *progress = &demo.results->progress;

	demo.warming = true;
	for (unsigned int i = 0; i < demo.job_count; i++) {
		/* The last one needs all that the others do. */
		struct step *step = demo.jobs[i].steps[demo.set->variant_count - 1];

		if (!step)
			continue;
		progress_show(progress, "first runs, which are not counted",
			      progress_seconds(progress) / demo.results->seconds);
		run_job(demo.results, step, 0);
	}
	demo.warming = false;
	end_without_jobs();
}

/* Whether all intervals are narrow; jobs whose ones are, are no longer run. */
static bool are_narrow(struct results *results)
{
	bool enough = results->complete > 0;

	for (unsigned int c = 0; c < results->comparison_count && enough; c++)
		comparison_finish(results, results->comparisons[c]);
	for (unsigned int i = 0; i < demo.job_count && results->complete; i++) {
		const struct job *job = &demo.jobs[i];
		bool narrow = true;

		for (unsigned int c = 0; c < results->comparison_count; c++) {
			const struct comparison *comparison = results->comparisons[c];
			const struct stats_estimate *ratio = &comparison->cells[job->x].ratio;

			if (comparison->group == (unsigned int)job->mpi)
				narrow &= ratio->coverage >= 0.95 &&
					  ratio->high - ratio->low <= NARROW * ratio->median;
		}
		for (unsigned int v = 0; v < demo.set->variant_count && !job->skipped; v++)
			job->steps[v]->left_out = narrow;
		enough &= narrow || job->skipped;
	}
	return enough;
}

static void print_tables(const struct results *results, FILE *out);

void bench_programs_plan(struct bench *bench)
{
	struct results *results = &bench->results;
	double load;

	demo.options = &bench->options;
	demo.results = results;
	demo.set = set_of(demo.options);
	demo.binding = binding_of(&results->host, demo.options->ranks);
	results->seconds = demo.options->seconds ? (double)demo.options->seconds : SECONDS;
	results->least = demo.options->seconds ? 0 : STATS_MIN_RUNS;
	results->enough = are_narrow;
	results->print = print_tables;
	results->about = demo.set->about;
	run_begin();
	list_jobs();
	if (getloadavg(&load, 1) == 1 && load > BUSY_LOAD)
		say("the load average is %.1f: other programs blur the times", load);
	plan_runs();
	if (!demo.options->quick)
		warm_up();
}

/* ---- what came of it ------------------------------------------------------------------------- */

/* Cells of a comparison are in the order of the figures, and in each in that of the places. */
static const struct compared *cell_of(const struct comparison *comparison, int metric,
				      unsigned int x)
{
	return &comparison
			->cells[(unsigned int)metric * demo.figures[comparison->group][0]->x_count +
				x];
}

static const char *verdict(const struct compared *cell)
{
	static const char *const words[VERDICTS] = { "no difference", "faster", "slower",
						     "wrong bytes" };

	return cell->ratio.coverage < 0.95 ? "not judged" : words[cell->verdict];
}

static void add_row(int mpi, int metric, unsigned int x, struct table *table)
{
	struct figure *const *figures = demo.figures[mpi];
	const struct figure_cell *base = figure_cell_of(figures[metric], base_name(), x);
	const struct figure_cell *total = figure_cell_of(figures[TOTAL], base_name(), x);
	char row[512], value[32];
	int length;

	if (!base->count)
		return;
	figure_value_text(base->value.median, value, sizeof(value));
	length = snprintf(row, sizeof(row), "%s\t%s\t%.0f\t%s",
			  metric == TOTAL ? demo.names[mpi][x] : "", figures[metric]->row,
			  100 * base->value.median / total->value.median, value);
	for (unsigned int c = 0; c < demo.results->comparison_count; c++) {
		const struct comparison *comparison = demo.results->comparisons[c];
		const struct compared *cell;

		if (comparison->group != (unsigned int)mpi)
			continue;
		cell = cell_of(comparison, metric, x);
		figure_value_text(cell->subject->value.median, value, sizeof(value));
		length += snprintf(row + length, sizeof(row) - (size_t)length,
				   "\t%s\t%.2f [%.2f, %.2f] %s", value, cell->ratio.median,
				   cell->ratio.low, cell->ratio.high, verdict(cell));
	}
	table_add(table, "%s", row);
}

static void print_mpi(int mpi, FILE *out)
{
	static const char *const bound[] = { "more than CPUs", "bound to cores",
					     "bound to hardware threads" };
	struct table table = { .align = "llrrrlrlrl" };
	const struct figure *figure = demo.figures[mpi][TOTAL];
	char head[256];

	if (!figure)
		return;
	snprintf(head, sizeof(head), "\t\t%%\t%s, ms", base_name());
	for (unsigned int v = 1; v < demo.set->variant_count; v++)
		snprintf(head + strlen(head), sizeof(head) - strlen(head), "\t%s, ms\t%s / %s",
			 demo.set->variants[v].name, base_name(), demo.set->variants[v].name);
	fprintf(out, "\n%s %s, %u ranks, %s\n\n", launcher_info((enum launcher)mpi)->name,
		launcher_info((enum launcher)mpi)->version, demo.options->ranks,
		bound[demo.binding]);
	table_add(&table, "%s", head);
	for (unsigned int x = 0; x < figure->x_count; x++)
		for (int m = 0; m < METRICS; m++)
			add_row(mpi, m, x, &table);
	table_print(&table, out, 2);
}

/* One after the other, what cannot be run for the same reason together. */
static void print_skipped(FILE *out)
{
	const char *before = NULL;

	for (unsigned int i = 0; i < demo.job_count; i++) {
		const struct job *job = &demo.jobs[i];

		if (job->skipped && before && !strcmp(before, job->skipped))
			fprintf(out, ", %s", job->program->name);
		else if (job->skipped)
			fprintf(out, "\nNot run under %s (%s): %s", launcher_info(job->mpi)->name,
				job->skipped, job->program->name);
		before = job->skipped ? job->skipped : before;
	}
	fprintf(out, "%s", before ? "\n" : "");
}

/* Of the total times, over the MPIs. */
static void judge(const char *subject, char *text, size_t n)
{
	unsigned int counts[VERDICTS] = { 0 }, programs = 0;
	double ratios[JOBS_MOST];

	for (unsigned int c = 0; c < demo.results->comparison_count; c++) {
		const struct comparison *comparison = demo.results->comparisons[c];
		unsigned int all = demo.figures[comparison->group][0]->x_count;

		for (unsigned int x = 0; x < all && !strcmp(comparison->subject, subject); x++) {
			const struct compared *cell = cell_of(comparison, TOTAL, x);

			if (isnan(cell->ratio.median))
				continue;
			counts[cell->verdict]++;
			ratios[programs++] = cell->ratio.median;
		}
	}
	snprintf(text, n,
		 "with %s %u of %u are faster, %u slower, and of %u this machine can show no "
		 "difference (geometric mean %.2f)",
		 subject, counts[VERDICT_WON], programs, counts[VERDICT_LOST], counts[VERDICT_NONE],
		 stats_geomean(ratios, programs));
}

static void say_verdict(void)
{
	struct results *results = demo.results;
	char text[1024] = "";

	if (results->complete < STATS_MIN_RUNS) {
		results_say(results,
			    "Verdict: none; of %u rounds no interval holds the median with 95 %%, "
			    "%d are needed (--rounds, --seconds).",
			    results->complete, STATS_MIN_RUNS);
		return;
	}
	for (unsigned int v = 1; v < demo.set->variant_count; v++) {
		size_t length = strlen(text);

		snprintf(text + length, sizeof(text) - length, "%s", length ? "; " : "");
		judge(demo.set->variants[v].name, text + strlen(text), sizeof(text) - strlen(text));
	}
	results_say(results, "Verdict on total times: %s.", text);
}

static void print_tables(const struct results *results, FILE *out)
{
	(void)results;
	for (int mpi = 1; mpi < LAUNCHERS; mpi++)
		print_mpi(mpi, out);
	print_skipped(out);
	fprintf(out,
		"\n%%: of the total time of %s. in MPI: what a rank spends in MPI, on average. A "
		"program is\nfaster or slower where the interval leaves out 1; without any "
		"difference one in 20 would be.\n\nEvery run was verified:\n",
		base_name());
	for (unsigned int p = 0; p < demo.set->program_count; p++) {
		const struct program *program = &demo.set->programs[p];

		if (!demo.options->only || !strcmp(demo.options->only, program->name))
			fprintf(out, "  %-11s %s\n", program->name, program->checks);
	}
}

/* What is in the JSON beside the samples. */
static void put_settings(json_t *settings)
{
	json_t *statistics = json_array(), *skipped = json_array();

	for (unsigned int i = 0; i < demo.job_count; i++) {
		const struct job *job = &demo.jobs[i];
		const char *mpi = launcher_info(job->mpi)->word, *name = job->program->name;

		if (job->skipped)
			json_array_append_new(skipped, json_pack("{s:s, s:s, s:s}", "program", name,
								 "mpi", mpi, "why", job->skipped));
		if (job->counters)
			json_array_append_new(statistics,
					      json_pack("{s:s, s:s, s:o}", "program", name, "mpi",
							mpi, "statistics", job->counters));
	}
	json_object_set_new(settings, "paper", json_boolean(demo.options->paper));
	json_object_set_new(settings, "statistics", statistics);
	json_object_set_new(settings, "not_run", skipped);
}

void bench_programs_sum_up(struct bench *bench)
{
	if (!(bench->options.what & BENCH_PROGRAMS))
		return;
	put_settings(bench->results.settings);
	say_verdict();
}
