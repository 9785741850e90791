/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point: the ping-pong of papers 001 and 004 over the C API, mechanism by mechanism, and
 * over the MPIs that are installed; their Alltoall with and without onecopy.
 */
#include "bench_p2p.h"

#include "bench.h"
#include "command.h"
#include "lab/topo/machine.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define POINT_S 0.02
#define POINT_QUICK_S 0.004
/* What an Alltoall is measured at, of the sizes asked for: Figure 7 of paper 001, and around. */
#define ALLTOALL_LEAST ((size_t)1 << 10)
#define ALLTOALL_MOST ((size_t)4 << 20)

enum { VIEWS_MOST = 4, SERIES_MOST = 16, ALLTOALLS_MOST = 3 };

struct series {
	const char *name;
	enum p2p_launcher launcher;
	const char *setting;
	bool onecopy, shared;
};

/* In the papers' order: two copies, then one. */
static const struct series pingpongs[] = {
	{ "C API", P2P_NONE, NULL, false, false },
	{ "shm: double buffer", P2P_NONE, "ONECOPY_MECHANISM=shm", false, false },
	{ "writev", P2P_NONE, "ONECOPY_P2P=writev", false, false },
	{ "vmsplice", P2P_NONE, "ONECOPY_P2P=vmsplice", false, false },
	{ "cma", P2P_NONE, "ONECOPY_MECHANISM=cma", false, false },
	{ "map", P2P_NONE, "ONECOPY_MECHANISM=map", false, true },
	{ "Open MPI", P2P_OPENMPI, NULL, false, false },
	{ "MPICH", P2P_MPICH, NULL, false, false },
};

static const struct series alltoalls[] = {
	{ "Open MPI", P2P_OPENMPI, NULL, false, false },
	{ "Open MPI, onecopy", P2P_OPENMPI, NULL, true, false },
	{ "Open MPI, onecopy, shared heap", P2P_OPENMPI, NULL, true, true },
	{ "MPICH", P2P_MPICH, NULL, false, false },
	{ "MPICH, onecopy", P2P_MPICH, NULL, true, false },
	{ "MPICH, onecopy, shared heap", P2P_MPICH, NULL, true, true },
};

enum {
	PINGPONGS = sizeof(pingpongs) / sizeof(pingpongs[0]),
	ALLTOALLS = sizeof(alltoalls) / sizeof(alltoalls[0])
};

/* One experiment: all series, from the same CPUs. */
struct view {
	const struct series *series;
	unsigned int series_count;
	struct p2p_run run; /* what all have in common */
	char stem[32];	    /* of its figures' names */
	struct figure *rate, *time, *gain, *misses;
	bool left_out[SERIES_MOST];
};

static struct {
	struct view views[VIEWS_MOST + ALLTOALLS_MOST];
	unsigned int count;
	struct size_list alltoall_sizes;
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

/* ---- plan ------------------------------------------------------------------------------------ */

static struct figure *new_figure(struct bench *bench, const struct view *view, const char *what,
				 const char *title, const char *unit)
{
	struct figure *figure = figure_new(bench, view->run.sizes->at, view->run.sizes->count);

	snprintf(figure->name, sizeof(figure->name), "%s-%s", view->stem, what);
	snprintf(figure->title, sizeof(figure->title), "%s", title);
	figure->unit = unit;
	return figure;
}

static void plan_pingpong(struct bench *bench, bool sharing, const unsigned int *pair, bool touch)
{
	struct view *view = &p2p.views[p2p.count++];
	const char *where = !pair ? "on one CPU" : sharing ? "sharing a cache" : "sharing no cache";
	char title[128];

	view->series = pingpongs;
	view->series_count = PINGPONGS;
	view->run = (struct p2p_run){ .ranks = 2,
				      .touch = touch,
				      .misses = true,
				      .sizes = &bench->options.sizes,
				      .cpus = { pair ? pair[0] : 0, pair ? pair[1] : 0 },
				      .cpu_count = pair ? 2 : 0 };
	snprintf(view->stem, sizeof(view->stem), "pingpong%s%s",
		 !pair	 ? "-one" :
		 sharing ? "" :
			   "-apart",
		 touch ? "-touch" : "");
	snprintf(title, sizeof(title), "Ping-pong, 2 ranks %s%s: throughput", where,
		 touch ? ", data read and written" : "");
	view->rate = new_figure(bench, view, "throughput", title, "GB/s");
	view->rate->more_is_better = view->rate->compared = true;
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
	view->time = new_figure(bench, view, "time", title, "us");
	view->time->log_y = view->time->compared = true;
	snprintf(view->time->about, sizeof(view->time->about), "The same as times.");
	bench->steps += PINGPONGS * bench->options.rounds;
}

static void plan_alltoall(struct bench *bench, uint32_t ranks)
{
	struct view *view = &p2p.views[p2p.count++];
	char title[128];

	view->series = alltoalls;
	view->series_count = ALLTOALLS;
	view->run =
		(struct p2p_run){ .ranks = ranks, .alltoall = true, .sizes = &p2p.alltoall_sizes };
	snprintf(view->stem, sizeof(view->stem), "alltoall-%u", ranks);
	snprintf(title, sizeof(title), "MPI_Alltoall, %u ranks: aggregate throughput", ranks);
	view->rate = new_figure(bench, view, "throughput", title, "GB/s");
	view->rate->more_is_better = view->rate->compared = true;
	snprintf(
		view->rate->about, sizeof(view->rate->about),
		"Bytes that all ranks send to others in a call over the time of a call, in a loop of "
		"calls with the same buffers; bytes: of a block.");
	/* Who spins without yielding, where others wait for the CPU, is not measured but waited
	 * for. */
	for (unsigned int s = 0; s < ALLTOALLS && ranks > bench->cpus; s++)
		view->left_out[s] = alltoalls[s].launcher == P2P_MPICH;
	if (ranks > bench->cpus)
		figure_note(
			view->rate,
			"%u ranks share %u CPUs, and the scheduler is measured with them. MPICH, "
			"whose ranks do not yield, is left out.",
			ranks, bench->cpus);
	bench->steps += ALLTOALLS * bench->options.rounds;
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
	p2p_find(P2P_PINGPONG);
	plan_places(bench);
	for (uint32_t ranks = 2; ranks <= 8 && p2p.alltoall_sizes.count; ranks *= 2) {
		if (ranks <= options->ranks)
			plan_alltoall(bench, ranks);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void leave_out(struct view *view, unsigned int s, const char *why)
{
	view->left_out[s] = true;
	figure_note(view->rate, "%s is left out: %s.", view->series[s].name, why);
}

/* Made when something was counted: most virtual machines cannot. */
static void add_misses(struct bench *bench, struct view *view, const char *name,
		       const struct p2p_value *values)
{
	struct figure *figure = view->misses;

	if (!figure) {
		figure = view->misses = new_figure(bench, view, "misses", "Ping-pong: cache misses",
						   "misses a message");
		figure->compared = true;
		snprintf(figure->about, sizeof(figure->about),
			 "Last-level cache misses of both ranks, the kernel's part too, by the "
			 "processor's counter.");
	}
	for (unsigned int x = 0; x < view->run.sizes->count; x++)
		figure_add(figure, figure_cell(figure, figure_series(figure, name), x),
			   values[x].misses);
}

static void add_values(struct bench *bench, struct view *view, const char *name,
		       const struct p2p_value *values)
{
	double moved = 1;

	if (view->run.alltoall)
		moved = view->run.ranks * (view->run.ranks - 1.0);
	for (unsigned int x = 0; x < view->run.sizes->count; x++) {
		struct figure *rate = view->rate;
		double bytes = moved * (double)view->run.sizes->at[x];

		figure_add(rate, figure_cell(rate, figure_series(rate, name), x),
			   1e-9 * bytes / values[x].s);
		if (view->time)
			figure_add(view->time,
				   figure_cell(view->time, figure_series(view->time, name), x),
				   1e6 * values[x].s);
	}
	if (view->run.misses && values[0].misses >= 0)
		add_misses(bench, view, name, values);
}

static void run_series(struct bench *bench, struct view *view, unsigned int s)
{
	const struct series *series = &view->series[s];
	struct p2p_value values[SIZES_MOST];
	struct p2p_run run = view->run;
	char what[96], why[512], said[512];

	snprintf(what, sizeof(what), "%s: %s", run.alltoall ? "alltoall" : "ping-pong",
		 series->name);
	bench_step(bench, what);
	if (view->left_out[s])
		return;
	run.launcher = series->launcher;
	run.setting = series->setting;
	run.onecopy = series->onecopy;
	run.shared = series->shared;
	run.seconds = bench->options.quick ? POINT_QUICK_S : POINT_S;
	memcpy(run.token_ns, bench->options.token_ns, sizeof(run.token_ns));
	if (p2p_missing(&run)) {
		leave_out(view, s, p2p_missing(&run));
		return;
	}
	if (p2p_execute(&run, values, why, sizeof(why), said, sizeof(said))) {
		leave_out(view, s, why);
		return;
	}
	if (*said && view->run.misses) {
		view->run.misses = false;
		figure_note(view->rate, "%s", said);
	}
	add_values(bench, view, series->name, values);
}

int bench_p2p_round(struct bench *bench, unsigned int round)
{
	for (unsigned int v = 0; v < p2p.count; v++) {
		struct view *view = &p2p.views[v];

		/* In file order at first, so that figures list them so. */
		for (unsigned int i = 0; i < view->series_count; i++)
			run_series(bench, view, (i + round) % view->series_count);
	}
	return 0;
}

/* ---- what it comes to ------------------------------------------------------------------------ */

static const struct figure_cell *cell_of(const struct figure *figure, const char *name,
					 unsigned int x)
{
	for (unsigned int s = 0; s < figure->series_count; s++) {
		if (!strcmp(figure->series[s], name))
			return figure_cell(figure, s, x);
	}
	return NULL;
}

/* The best time of any MPI in a round; NaN when none was measured. */
static double mpi_time(const struct view *view, unsigned int x, unsigned int round)
{
	double best = NAN;

	for (unsigned int s = 0; s < view->series_count; s++) {
		const struct figure_cell *cell = cell_of(view->time, view->series[s].name, x);

		if (view->series[s].launcher == P2P_NONE || !cell || round >= cell->count)
			continue;
		if (isnan(best) || cell->samples[round] < best)
			best = cell->samples[round];
	}
	return best;
}

static struct figure *gain_figure(struct bench *bench, const struct view *view)
{
	char title[128];
	struct figure *figure;

	snprintf(title, sizeof(title), "%.*s: gain over the MPIs",
		 (int)strcspn(view->rate->title, ":"), view->rate->title);
	figure = new_figure(bench, view, "gain", title, "times");
	figure->more_is_better = true;
	snprintf(
		figure->about, sizeof(figure->about),
		"The time of the faster MPI over that of the C API, taken within each round: above 1 "
		"the C API is faster.");
	return figure;
}

static void compare(struct bench *bench, struct view *view)
{
	for (unsigned int s = 0; s < view->series_count; s++) {
		const char *name = view->series[s].name;

		if (view->series[s].launcher != P2P_NONE || !cell_of(view->time, name, 0))
			continue;
		for (unsigned int x = 0; x < view->run.sizes->count; x++) {
			const struct figure_cell *cell = cell_of(view->time, name, x);

			for (unsigned int r = 0; r < cell->count; r++) {
				double best = mpi_time(view, x, r);

				if (isnan(best))
					continue;
				if (!view->gain)
					view->gain = gain_figure(bench, view);
				figure_add(
					view->gain,
					figure_cell(view->gain, figure_series(view->gain, name), x),
					best / cell->samples[r]);
			}
		}
	}
}

void bench_p2p_end(struct bench *bench)
{
	for (unsigned int v = 0; v < p2p.count; v++) {
		if (p2p.views[v].time)
			compare(bench, &p2p.views[v]);
	}
}

void bench_p2p_sum_up(struct bench *bench)
{
	const struct figure *gain = p2p.count ? p2p.views[0].gain : NULL;
	double least = INFINITY, large = INFINITY;
	size_t least_at = 0, large_at = 0;
	char at[2][32];

	for (unsigned int x = 0; gain && x < gain->x_count; x++) {
		const struct figure_cell *cell = cell_of(gain, "C API", x);

		if (!cell || !cell->count)
			continue;
		if (cell->median < least) {
			least = cell->median;
			least_at = gain->x[x];
		}
		if (gain->x[x] >= (size_t)256 << 10 && cell->median < large) {
			large = cell->median;
			large_at = gain->x[x];
		}
	}
	if (isinf(least))
		return;
	predict_bytes_text(least_at, at[0], sizeof(at[0]));
	bench_say(bench, 0,
		  "The C API's ping-pong against the faster of the MPIs, Open MPI %s and MPICH %s: "
		  "least %.2f times as fast, at %s.",
		  p2p_version(P2P_OPENMPI), p2p_version(P2P_MPICH), least, at[0]);
	if (isinf(large))
		return;
	predict_bytes_text(large_at, at[1], sizeof(at[1]));
	bench_say(bench, 1, "Of 256K and more: least %.2f times, at %s.", large, at[1]);
}
