/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages, by one loop (pingpong/), the runs in turns. p2p: the ping-pong of papers 001 and 004
 * over the C API, mechanism by mechanism, and over the MPIs that are installed. messages: MPI_Send
 * and MPI_Recv of these by themselves, with onecopy, and under the shared heap, where onecopy
 * copies large ones; between two ranks, and between the neighbours of many; and, if named, MPI_Put,
 * MPI_Get and MPI_Accumulate.
 */
#include "bench.h"
#include "command.h"
#include "lab/topo/machine.h"

#include <math.h>
#include <sched.h>
#include <string.h>

/* Seconds of a size. */
#define POINT_S 0.02
#define POINT_QUICK_S 0.004

/* In the papers' order: two copies, then one. Those of the MPIs are the baseline of paper 001. */
static const struct variant pingpongs[] = {
	{ .name = "C API" },
	{ .name = "shm: double buffer", .setting = "ONECOPY_MECHANISM=shm" },
	{ .name = "writev", .setting = "ONECOPY_P2P=writev" },
	{ .name = "vmsplice", .setting = "ONECOPY_P2P=vmsplice" },
	{ .name = "cma", .setting = "ONECOPY_MECHANISM=cma" },
	{ .name = "map", .setting = "ONECOPY_MECHANISM=map", .shared_heap = true },
	{ .name = "Open MPI", .launcher = LAUNCH_OPENMPI },
	{ .name = "MPICH", .launcher = LAUNCH_MPICH },
	{ .name = "Open MPI, two copies", .launcher = LAUNCH_OPENMPI, .two_copies = true },
	{ .name = "MPICH, two copies", .launcher = LAUNCH_MPICH, .two_copies = true },
};

/* What runs of an MPI take turns; the first is left out of what is one-sided. */
static const struct variant served[] = {
	{ .name = "two copies", .two_copies = true },
	{ .name = "stock" },
	{ .name = "control" },
	{ .name = "onecopy", .onecopy = true },
	{ .name = "shared heap", .onecopy = true, .shared_heap = true },
};

enum {
	PINGPONGS = sizeof(pingpongs) / sizeof(pingpongs[0]),
	SERVED = sizeof(served) / sizeof(served[0])
};

#define ONE_SIDED(word, function, where, option)                                                   \
	{                                                                                          \
		word, function ", " where,                                                         \
			"Rank 0 does it to a window of rank 1, which waits in the MPI, and calls " \
			"MPI_Win_flush.",                                                          \
			option, false, true, true                                                  \
	}

static const struct flow {
	const char *name, *title, *about, *option;
	bool many;	/* ranks, not two */
	bool uncounted; /* a collective, which onecopy serves as such, or one-sided: no messages */
	bool one_sided; /* only if named, and not with two copies, which Open MPI then has no
			 * windows by */
} flows[] = {
	{ "pingpong", "ping-pong",
	  "Half a round trip: blocking send and receive, the same buffers each time.", "", false,
	  false, false },
	{ "touch", "ping-pong, rewritten",
	  "The same; each rank reads what it received and writes what it sends next, which is timed.",
	  " --touch", false, false, false },
	{ "stream", "bandwidth",
	  "A message's time of 16 that are under way at once from rank 0 to rank 1, which then "
	  "answers.",
	  " --stream", false, false, false },
	{ "both", "both ways",
	  "The same, with as many the other way at once: two messages, one each way.", " --both",
	  false, false, false },
	{ "halo", "halo exchange",
	  "An exchange on a periodic grid, as square as the number of ranks allows: a message to and "
	  "from each neighbour, all at once. Rate: what a rank receives.",
	  " --halo", true, false, false },
	{ "ring", "shift ring",
	  "A shift: each rank sends a message to the next and receives one from the rank before.",
	  " --ring", true, false, false },
	{ "alltoall", "MPI_Alltoall",
	  "A call of MPI_Alltoall, by length of a block. Rate: what all ranks receive from others.",
	  " --alltoall", true, true, false },
	ONE_SIDED("put", "MPI_Put", "created window", " --put"),
	ONE_SIDED("get", "MPI_Get", "created window", " --get"),
	ONE_SIDED("accumulate", "MPI_Accumulate", "created window", " --accumulate"),
	ONE_SIDED("put-allocated", "MPI_Put", "allocated window", " --put --allocated"),
	ONE_SIDED("get-allocated", "MPI_Get", "allocated window", " --get --allocated"),
	ONE_SIDED("accumulate-allocated", "MPI_Accumulate", "allocated window",
		  " --accumulate --allocated"),
};
enum { FLOWS = sizeof(flows) / sizeof(flows[0]) };

/* One experiment: its variants take turns. */
static struct view {
	const struct variant *variants;
	enum launcher launcher; /* of all of them; LAUNCH_NONE: each has its own, or none */
	enum binding binding;
	uint32_t ranks;
	char stem[32]; /* of its figures' names */
	char arguments[2048];
	struct figure *main;
	bool said; /* what a run says of itself is a note once */
	bool uncounted;
} views[LAUNCHERS * FLOWS];
static unsigned int view_count;

static struct comparison *compared; /* of p2p's first view */

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
	char arguments[sizeof(view->arguments) + 32];
	struct run run = { .variant = variant,
			   .launcher = view->launcher,
			   .ranks = view->ranks,
			   .binding = view->binding,
			   .arguments = arguments,
			   .stem = view->stem,
			   .counted = true,
			   .may_serve_nothing = true };
	bool heap = variant->shared_heap, ran;
	json_int_t copies;
	int err;

	snprintf(arguments, sizeof(arguments), "%s%s", view->arguments,
		 heap && !view->launcher ? " --shared" : "");
	err = bench_run(results, step, &run, "pingpong", round, view->main);
	ran = !err && !step->left_out;
	copies = json_integer_value(
		json_object_get(json_object_get(run.counters, "messages"), "copies"));
	json_decref(run.counters);
	if (ran && *run.said && !view->said)
		figure_note(view->main, "%s", run.said);
	view->said |= *run.said && ran;
	if (ran && heap && variant->onecopy && !view->uncounted && !copies && !round)
		figure_note(view->main, "No message went by mapped memory under the shared heap.");
	return err;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* Its figures of times and of rates, which have its stem. */
static struct figure *new_figure(struct bench *bench, const struct view *view, const char *what,
				 const char *unit)
{
	const struct size_list *sizes = &bench->options.sizes;

	return figure_new(&bench->results, sizes->at, sizes->count, unit, "%s-%s", view->stem,
			  what);
}

static void plan_runs(struct bench *bench, struct view *view, unsigned int variants,
		      const char *options)
{
	const struct size_list *sizes = &bench->options.sizes;
	FILE *out = must(fmemopen(view->arguments, sizeof(view->arguments), "w"));

	fprintf(out, "--seconds %g%s", bench->options.quick ? POINT_QUICK_S : POINT_S, options);
	for (unsigned int i = 0; i < sizes->count; i++)
		fprintf(out, "%s%zu", i ? "," : " --bytes ", sizes->at[i]);
	fclose(out);
	results_turn(&bench->results);
	for (unsigned int v = 0; v < variants; v++)
		results_step(&bench->results, run_variant, view, v, "%s: %s", view->stem,
			     view->variants[v].name);
}

static void compare_pingpong(struct bench *bench, const char *where, bool touch)
{
	struct comparison *c = results_compare(&bench->results, view_count, "Open MPI", "C API");

	c->title = results_text(&bench->results, "Ping-pong %s%s: C API and MPIs", where,
				touch ? ", touched" : "");
	c->about =
		"us; of the MPIs, Open MPI and MPICH, the faster one of each size counts, * marks "
		"MPICH. ratio: its time over that of the C API, within each round.";
	c->other = "MPICH";
	if (view_count == 1)
		compared = c;
}

static void plan_pingpong(struct bench *bench, bool sharing, const unsigned int *pair, bool touch)
{
	struct view *view = &views[view_count++];
	const char *where = !pair ? "on one CPU" : sharing ? "sharing a cache" : "sharing no cache";
	const char *touched = touch ? ", data read and written" : "";
	struct figure *rate, *time, *misses;
	char options[128] = "";

	view->variants = pingpongs;
	view->ranks = 2;
	snprintf(view->stem, sizeof(view->stem), "pingpong%s%s",
		 !pair	 ? "-one" :
		 sharing ? "" :
			   "-apart",
		 touch ? "-touch" : "");
	view->main = rate = new_figure(bench, view, "throughput", "GB/s");
	rate->title = results_text(&bench->results, "Ping-pong, 2 ranks %s%s: throughput", where,
				   touched);
	rate->about = results_text(
		&bench->results,
		"Bytes of a message over half a round trip's time, as IMB counts: blocking send and "
		"receive, the same buffers each time%s. Without MPI: the C API, as it chooses or by "
		"one mechanism for all sizes that it can move.",
		touch ? "; each rank reads what it received and writes what it sends next, which "
			"is timed" :
			", which nobody reads or writes");
	rate->compared = rate->more_is_better = true;
	time = new_figure(bench, view, "time", "us");
	time->title = results_text(&bench->results, "Ping-pong, 2 ranks %s%s: half a round trip",
				   where, touched);
	time->about = "The same as times.";
	time->row = "ping-pong";
	time->compared = time->log_y = true;
	time->group = view_count;
	compare_pingpong(bench, where, touch);
	misses = new_figure(bench, view, "misses", "misses a message");
	misses->title = "Ping-pong: cache misses";
	misses->about =
		"Last-level cache misses of both ranks, the kernel's part too, by the processor's "
		"counter.";
	misses->compared = true;
	if (pair)
		snprintf(options, sizeof(options), " --cpus %u,%u", pair[0], pair[1]);
	strcat(options, touch ? " --misses --touch" : " --misses");
	plan_runs(bench, view, PINGPONGS, options);
}

void bench_p2p_plan(struct bench *bench)
{
	static unsigned int pair[2][2]; /* sharing no cache, sharing one */
	bool there[2];

	run_begin();
	for (int sharing = 0; sharing < 2; sharing++)
		there[sharing] = find_pair(sharing, pair[sharing]);
	for (int touch = 0; touch <= bench->options.touch; touch++) {
		for (int sharing = 1; sharing >= 0; sharing--)
			if (there[sharing])
				plan_pingpong(bench, sharing, pair[sharing], touch);
		if (!there[0] && !there[1])
			plan_pingpong(bench, false, NULL, touch);
	}
	for (int sharing = 0; sharing < 2 && (there[0] || there[1]); sharing++) {
		if (!there[sharing])
			figure_note(views[0].main,
				    "No two cores that may be used share %s, by hwloc: that case "
				    "cannot be measured here.",
				    sharing ? "a cache" : "no cache");
	}
}

static void plan_flow(struct bench *bench, const struct flow *flow, enum launcher mpi)
{
	static const char *const subjects[] = { "shared heap", "onecopy" };
	struct view *view = &views[view_count++];
	const char *name = launcher_info(mpi)->name;
	uint32_t ranks = flow->many ? bench->options.ranks : 2;
	struct figure *time, *rate;
	const char *title = flow->title;

	if (flow->many)
		title = results_text(&bench->results, "%s, %u ranks", title, ranks);
	view->variants = served + flow->one_sided;
	view->launcher = mpi;
	view->uncounted = flow->uncounted;
	view->ranks = ranks;
	view->binding = binding_of(&bench->results.host, ranks);
	snprintf(view->stem, sizeof(view->stem), "%s-%s", launcher_info(mpi)->word, flow->name);
	view->main = time = new_figure(bench, view, "time", "us");
	time->title = results_text(&bench->results, "Messages of %s: %s", name, title);
	time->about = flow->about;
	time->row = title;
	time->log_y = time->folded = true;
	time->group = view_count;
	rate = new_figure(bench, view, "throughput", "GB/s");
	rate->title = results_text(&bench->results, "Messages of %s: %s, rate", name, title);
	rate->about = "The same as rates.";
	rate->more_is_better = rate->folded = true;
	for (int s = 0; s < 2; s++)
		bench_against(
			bench, view_count, "stock", subjects[s],
			results_text(&bench->results, "%s, %s: %s", name, title, subjects[s]));
	plan_runs(bench, view, SERVED - flow->one_sided, flow->option);
}

void bench_messages_plan(struct bench *bench)
{
	unsigned int named = bench->options.flows;

	run_begin();
	for (int mpi = 1; mpi < LAUNCHERS; mpi++) {
		for (int f = 0; f < FLOWS; f++)
			if (bench->options.mpis[mpi] &&
			    (named ? named >> f & 1 : !flows[f].one_sided))
				plan_flow(bench, &flows[f], (enum launcher)mpi);
	}
}

bool bench_take_flow(unsigned int *named, const char *word)
{
	for (int f = 0; f < FLOWS; f++) {
		if (!strcmp(flows[f].name, word)) {
			*named |= 1u << f;
			return true;
		}
	}
	return false;
}

/* Where the C API gains least, of all sizes and of the large ones. */
void bench_p2p_sum_up(struct bench *bench)
{
	for (int large = 0; large < 2; large++) {
		const struct compared *least = NULL;
		char at[32];

		for (unsigned int i = 0; compared && i < compared->cell_count; i++) {
			const struct compared *cell = &compared->cells[i];

			if (cell->ratio.median < (least ? least->ratio.median : INFINITY) &&
			    (!large || cell->figure->x[cell->x] >= (size_t)256 << 10))
				least = cell;
		}
		if (!least)
			return;
		figure_x_text(least->figure, least->x, at, sizeof(at));
		if (large)
			results_say(&bench->results, "Of 256K and more: least %.2f times, at %s.",
				    least->ratio.median, at);
		else
			results_say(
				&bench->results,
				"The C API's ping-pong against the faster of the MPIs, Open MPI "
				"%s and MPICH %s: least %.2f times as fast, at %s.",
				launcher_info(LAUNCH_OPENMPI)->version,
				launcher_info(LAUNCH_MPICH)->version, least->ratio.median, at);
	}
}
