/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point: the ping-pong of papers 001 and 004 over the C API, mechanism by mechanism, and
 * over the MPIs that are installed; their Alltoall with and without onecopy.
 */
#include "bench.h"
#include "command.h"
#include "lab/topo/machine.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Seconds of a size. */
#define POINT_S 0.02
#define POINT_QUICK_S 0.004
/* More than any run takes; a launcher that hangs must not make us hang. */
#define RUN_SECONDS 300
/* What an Alltoall is measured at, of the sizes asked for: Figure 7 of paper 001, and around. */
#define ALLTOALL_LEAST ((size_t)1 << 10)
#define ALLTOALL_MOST ((size_t)4 << 20)

enum { VIEWS_MOST = 4, ALLTOALLS_MOST = 3 };

/* In the papers' order: two copies, then one. */
static const struct variant pingpongs[] = {
	{ .name = "C API" },
	{ .name = "shm: double buffer", .setting = "ONECOPY_MECHANISM=shm" },
	{ .name = "writev", .setting = "ONECOPY_P2P=writev" },
	{ .name = "vmsplice", .setting = "ONECOPY_P2P=vmsplice" },
	{ .name = "cma", .setting = "ONECOPY_MECHANISM=cma" },
	{ .name = "map", .setting = "ONECOPY_MECHANISM=map", .shared_heap = true },
	{ .name = "Open MPI", .launcher = LAUNCH_OPENMPI },
	{ .name = "MPICH", .launcher = LAUNCH_MPICH },
};

static const struct variant alltoalls[] = {
	{ "Open MPI", LAUNCH_OPENMPI, false, false, NULL },
	{ "Open MPI, onecopy", LAUNCH_OPENMPI, true, false, NULL },
	{ "Open MPI, onecopy, shared heap", LAUNCH_OPENMPI, true, true, NULL },
	{ "MPICH", LAUNCH_MPICH, false, false, NULL },
	{ "MPICH, onecopy", LAUNCH_MPICH, true, false, NULL },
	{ "MPICH, onecopy, shared heap", LAUNCH_MPICH, true, true, NULL },
};

enum {
	PINGPONGS = sizeof(pingpongs) / sizeof(pingpongs[0]),
	ALLTOALLS = sizeof(alltoalls) / sizeof(alltoalls[0])
};

/* One experiment: all variants, from the same CPUs. */
struct view {
	const struct variant *variants;
	uint32_t ranks;
	const struct size_list *sizes;
	char stem[32];	 /* of its figures' names */
	char more[2048]; /* what all runs of it have as arguments */
	struct figure *rate;
	bool not_counted; /* no cache misses, which a note says */
};

static struct {
	struct view views[VIEWS_MOST + ALLTOALLS_MOST];
	unsigned int count;
	struct size_list alltoall_sizes;
	struct comparison *compared; /* of the first view */
} p2p;

/* ---- where the ranks sit --------------------------------------------------------------------- */

static enum oci_topo_level common_level(unsigned int a, unsigned int b)
{
	struct oci_topo_place place[2];
	unsigned int cpus[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		uint64_t mask[CPU_SETSIZE / 64] = { 0 };

		mask[cpus[i] / 64] = 1ull << cpus[i] % 64;
		oci_topo_place(oci_topo_local(), mask, CPU_SETSIZE / 64, &place[i]);
	}
	return oci_topo_common(&place[0], &place[1]);
}

/* Two CPUs of different cores that share a cache, or that share none, as close as there are. */
static bool find_pair(bool sharing, unsigned int pair[2])
{
	enum oci_topo_level best = OCI_TOPO_MACHINE + 1;
	cpu_set_t allowed;

	CPU_ZERO(&allowed);
	if (!oci_topo_local() || sched_getaffinity(0, sizeof(allowed), &allowed))
		return false;
	for (unsigned int a = 0; a < CPU_SETSIZE; a++) {
		for (unsigned int b = a + 1; b < CPU_SETSIZE && CPU_ISSET(a, &allowed); b++) {
			enum oci_topo_level level;

			if (!CPU_ISSET(b, &allowed))
				continue;
			level = common_level(a, b);
			if (level == OCI_TOPO_CORE || level >= best ||
			    sharing != (level <= OCI_TOPO_L3))
				continue;
			best = level;
			pair[0] = a;
			pair[1] = b;
		}
	}
	return best <= OCI_TOPO_MACHINE;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int run_variant(struct results *results, struct step *step, unsigned int round)
{
	struct view *view = step->context;
	const struct variant *variant = &view->variants[step->at];
	char why[512], arguments[sizeof(view->more) + 32];
	struct run run = { .variant = variant,
			   .with = bench_with(),
			   .ranks = view->ranks,
			   .program =
				   bench_program("pingpong", variant->launcher, why, sizeof(why)),
			   .arguments = arguments,
			   .stem = view->stem,
			   .timeout_s = RUN_SECONDS,
			   .counted = true };
	int err;

	snprintf(arguments, sizeof(arguments), "%s%s", view->more,
		 variant->shared_heap && variant->launcher == LAUNCH_NONE ? " --shared" : "");
	err = run.program ? run_program(results, &run, round, why, sizeof(why)) : -ENOENT;
	json_decref(run.counters);
	if (err == -EINTR)
		return err;
	if (err)
		bench_leave_out(step, view->rate, variant->name, why);
	else if (*run.said && !view->not_counted)
		figure_note(view->rate, "%s", run.said);
	view->not_counted |= *run.said && !err;
	return 0;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static struct figure *new_figure(struct bench *bench, const struct view *view, const char *what,
				 const char *title, const char *unit)
{
	struct figure *figure = figure_new(&bench->results, view->sizes->at, view->sizes->count,
					   unit, "%s-%s", view->stem, what);

	snprintf(figure->title, sizeof(figure->title), "%s", title);
	figure->compared = true;
	return figure;
}

/* The steps of a view, and what its runs have in common. */
static void plan_runs(struct bench *bench, struct view *view, unsigned int variants,
		      const char *options)
{
	const struct size_list *sizes = view->sizes;
	int length = snprintf(view->more, sizeof(view->more), "--ranks %u --seconds %g %s",
			      view->ranks, bench->options.quick ? POINT_QUICK_S : POINT_S, options);

	for (unsigned int i = 0; i < sizes->count; i++)
		length += snprintf(view->more + length, sizeof(view->more) - (size_t)length,
				   "%s%zu", i ? "," : " --bytes ", sizes->at[i]);
	if (bench->options.token_ns)
		snprintf(view->more + length, sizeof(view->more) - (size_t)length, " --token-ns %s",
			 bench->options.token_ns);
	results_turn(&bench->results);
	for (unsigned int v = 0; v < variants; v++) {
		struct step *step = results_step(&bench->results, run_variant, view, v, "%s: %s",
						 view->stem, view->variants[v].name);

		/* Who spins without yielding, where others wait for the CPU, is not measured but
		 * waited for. */
		step->left_out = view->ranks > bench->cpus && view->ranks > 2 &&
				 view->variants[v].launcher == LAUNCH_MPICH;
	}
}

static void plan_pingpong(struct bench *bench, bool sharing, const unsigned int *pair, bool touch)
{
	struct view *view = &p2p.views[p2p.count++];
	const char *where = !pair ? "on one CPU" : sharing ? "sharing a cache" : "sharing no cache";
	struct comparison *comparison;
	char title[128], options[128] = "";
	struct figure *time;

	view->variants = pingpongs;
	view->ranks = 2;
	view->sizes = &bench->options.sizes;
	snprintf(view->stem, sizeof(view->stem), "pingpong%s%s",
		 !pair	 ? "-one" :
		 sharing ? "" :
			   "-apart",
		 touch ? "-touch" : "");
	snprintf(title, sizeof(title), "Ping-pong, 2 ranks %s%s: throughput", where,
		 touch ? ", data read and written" : "");
	view->rate = new_figure(bench, view, "throughput", title, "GB/s");
	view->rate->more_is_better = true;
	snprintf(
		view->rate->about, sizeof(view->rate->about),
		"Bytes of a message over half a round trip's time, as IMB counts: blocking send and "
		"receive, the same buffers each time%s. Without MPI: the C API, as it chooses or by "
		"one mechanism for all sizes that it can move.",
		touch ? "; each rank reads what it received and writes what it sends next, which "
			"is timed" :
			", which nobody reads or writes");
	snprintf(title, sizeof(title), "Ping-pong, 2 ranks %s%s: half a round trip", where,
		 touch ? ", data read and written" : "");
	time = new_figure(bench, view, "time", title, "us");
	time->log_y = true;
	snprintf(time->about, sizeof(time->about), "The same as times.");
	snprintf(time->row, sizeof(time->row), "ping-pong");
	time->group = p2p.count;
	comparison = results_compare(&bench->results, p2p.count);
	snprintf(comparison->title, sizeof(comparison->title), "Ping-pong %s%s: C API and MPIs",
		 where, touch ? ", touched" : "");
	snprintf(comparison->about, sizeof(comparison->about),
		 "us; of the MPIs, Open MPI and MPICH, the faster one of each size counts, * marks "
		 "MPICH. ratio: its time over that of the C API, within each round.");
	comparison->subject = "C API";
	comparison->stock = "Open MPI";
	comparison->other = "MPICH";
	if (p2p.count == 1)
		p2p.compared = comparison;
	snprintf(new_figure(bench, view, "misses", "Ping-pong: cache misses", "misses a message")
			 ->about,
		 sizeof(time->about),
		 "Last-level cache misses of both ranks, the kernel's part too, by the processor's "
		 "counter.");
	if (pair)
		snprintf(options, sizeof(options), "--cpus %u,%u", pair[0], pair[1]);
	strcat(options, touch ? " --misses --touch" : " --misses");
	plan_runs(bench, view, PINGPONGS, options);
}

static void plan_alltoall(struct bench *bench, uint32_t ranks)
{
	struct view *view = &p2p.views[p2p.count++];
	char title[128];

	view->variants = alltoalls;
	view->ranks = ranks;
	view->sizes = &p2p.alltoall_sizes;
	snprintf(view->stem, sizeof(view->stem), "alltoall-%u", ranks);
	snprintf(title, sizeof(title), "MPI_Alltoall, %u ranks: aggregate throughput", ranks);
	view->rate = new_figure(bench, view, "throughput", title, "GB/s");
	view->rate->more_is_better = true;
	snprintf(
		view->rate->about, sizeof(view->rate->about),
		"Bytes that all ranks send to others in a call over the time of a call, in a loop of "
		"calls with the same buffers; bytes: of a block.");
	if (ranks > bench->cpus)
		figure_note(
			view->rate,
			"%u ranks share %u CPUs, and the scheduler is measured with them. MPICH, "
			"whose ranks do not yield, is left out.",
			ranks, bench->cpus);
	plan_runs(bench, view, ALLTOALLS, "--alltoall");
}

static void plan_places(struct bench *bench)
{
	static unsigned int pair[2][2]; /* sharing no cache, sharing one */
	bool there[2];

	for (int sharing = 0; sharing < 2; sharing++)
		there[sharing] = find_pair(sharing, pair[sharing]);
	for (int touch = 0; touch <= bench->options.touch; touch++) {
		for (int sharing = 1; sharing >= 0; sharing--) {
			if (there[sharing])
				plan_pingpong(bench, sharing, pair[sharing], touch);
		}
		if (!there[0] && !there[1])
			plan_pingpong(bench, false, NULL, touch);
	}
	for (int sharing = 0; sharing < 2 && (there[0] || there[1]); sharing++) {
		if (!there[sharing])
			figure_note(p2p.views[0].rate,
				    "No two cores that may be used share %s, by hwloc: that case "
				    "cannot be measured here.",
				    sharing ? "a cache" : "no cache");
	}
}

void bench_p2p_plan(struct bench *bench)
{
	struct bench_options *options = &bench->options;

	for (unsigned int i = 0; i < options->sizes.count; i++) {
		if (options->sizes.at[i] >= ALLTOALL_LEAST && options->sizes.at[i] <= ALLTOALL_MOST)
			p2p.alltoall_sizes.at[p2p.alltoall_sizes.count++] = options->sizes.at[i];
	}
	run_begin();
	plan_places(bench);
	for (uint32_t ranks = 2; ranks <= 8 && p2p.alltoall_sizes.count; ranks *= 2) {
		if (ranks <= options->ranks)
			plan_alltoall(bench, ranks);
	}
}

void bench_p2p_sum_up(struct bench *bench)
{
	double least[2] = { INFINITY, INFINITY }; /* of all sizes, of the large ones */
	size_t at[2] = { 0, 0 };
	char text[2][32];

	for (unsigned int x = 0; p2p.compared && x < p2p.compared->cell_count; x++) {
		double ratio = p2p.compared->cells[x].ratio.median;
		size_t bytes = bench->options.sizes.at[x];

		for (int large = 0; large < 2; large++) {
			if (!(ratio < least[large]) || (large && bytes < (size_t)256 << 10))
				continue;
			least[large] = ratio;
			at[large] = bytes;
		}
	}
	if (isinf(least[0]))
		return;
	bytes_text(at[0], text[0], sizeof(text[0]));
	results_say(&bench->results,
		    "The C API's ping-pong against the faster of the MPIs, Open MPI %s and MPICH "
		    "%s: least %.2f times as fast, at %s.",
		    launcher_info(LAUNCH_OPENMPI)->version, launcher_info(LAUNCH_MPICH)->version,
		    least[0], text[0]);
	if (isinf(least[1]))
		return;
	bytes_text(at[1], text[1], sizeof(text[1]));
	results_say(&bench->results, "Of 256K and more: least %.2f times, at %s.", least[1],
		    text[1]);
}
