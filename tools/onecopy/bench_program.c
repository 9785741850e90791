/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"
#include "parts.h"

#include <errno.h>
#include <limits.h>

/* More than any run takes; a launcher that hangs must not make us hang. */
#define RUN_SECONDS 300

/* Where onecopy-NAME[-MPI] lies; NULL: it is not there, and why: without a full stop. */
static const char *find_program(const char *name, enum launcher launcher, char *why, size_t n)
{
	/* Relative to the executable's directory: the build tree, then an installation's bin. */
	static const char *const places[2] = { ".", OC_PRELOAD_FROM_BIN };
	static char path[PATH_MAX + 128];
	const struct launcher_info *info = launcher_info(launcher);
	char file[64], dir[PATH_MAX];
	bool there;

	snprintf(file, sizeof(file), "onecopy-%s%s%s", name, info ? "-" : "",
		 info ? info->word : "");
	there = place_find(file, "", places, dir);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (there)
		return path;
	snprintf(why, n, "%.*s is not there; build onecopy with that MPI installed", (int)n - 64,
		 path);
	return NULL;
}

int bench_prepare(struct run *run, const char *name, char *why, size_t n)
{
	enum launcher own = run->variant->launcher;
	static char with[PATH_MAX + 32];
	char self[PATH_MAX];

	if (!host_program(self))
		self[0] = '\0';
	/* As a shell takes it; a quote in it is the one thing that it would not. */
	snprintf(with, sizeof(with), "'%s' run --quiet", self);
	if (!run->with)
		run->with = with;
	if (!run->timeout_s)
		run->timeout_s = RUN_SECONDS;
	if (!run->program)
		run->program = find_program(name, own ? own : run->launcher, why, n);
	return run->program ? 0 : -ENOENT;
}

struct figure *bench_figure(struct bench *bench, enum oc_collective collective, const char *unit,
			    const char *name)
{
	static const size_t no_bytes;
	const struct size_list *sizes = &bench->options.sizes;
	bool barrier = collective == OC_BARRIER;

	return figure_new(&bench->results, barrier ? &no_bytes : sizes->at,
			  barrier ? 1 : sizes->count, unit, "%s", name);
}

void bench_against(struct bench *bench, unsigned int group, const char *stock, const char *subject,
		   const char *title)
{
	struct comparison *c = results_compare(&bench->results, group, stock, subject);

	c->title = title;
	c->about = results_text(&bench->results,
				"us. ratio: %s/%s, within each round; control: stock/stock.", stock,
				subject);
	c->control = "control";
	c->controlled = "stock";
	c->floor = 0.95;
}

FILE *bench_arguments(char *text, size_t n, const struct bench_choice *options)
{
	FILE *out = must(fmemopen(text, n, "w"));

	for (int c = 0; c < options->collectives.n; c++)
		fprintf(out, "%s%s", c ? "," : "--collectives ",
			oci_collective_name(options->collectives.at[c]));
	for (unsigned int s = 0; s < options->sizes.count; s++)
		fprintf(out, "%s%zu", s ? "," : " --sizes ", options->sizes.at[s]);
	return out;
}

int bench_run(struct results *results, struct step *step, struct run *run, const char *name,
	      unsigned int round, struct figure *figure)
{
	char why[512];
	int err = bench_prepare(run, name, why, sizeof(why));

	if (!err)
		err = run_program(results, run, round, why, sizeof(why));
	if (err == -EINTR) {
		progress_end(&results->progress);
		run_explain(run, err, why);
		return err;
	}
	if (err) {
		results->lacks = true;
		bench_leave_out(step, figure, run->variant->name, why);
	}
	return 0;
}

void bench_leave_out(struct step *step, struct figure *figure, const char *name, const char *why)
{
	step->left_out = true;
	figure_note(figure, "%s is left out: %s.", name, why);
}
