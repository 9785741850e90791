/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy bench: its options, of which most of these more than 500 lines are, and the order of its
 * experiments. */
#include "bench.h"
#include "command.h"
#include "lab/tune/tune.h"
#include "names.h"

#include <limits.h>
#include <string.h>

static const struct {
	const char *word;
	enum bench_what what;
} words[] = {
	{ "algorithms", BENCH_ALGORITHMS },
	{ "mechanisms", BENCH_MECHANISMS },
	{ "contention", BENCH_CONTENTION },
	{ "model", BENCH_MODEL },
	{ "p2p", BENCH_P2P },
	{ "messages", BENCH_MESSAGES },
	{ "overlap", BENCH_OVERLAP },
	{ "collectives", BENCH_COLLECTIVES },
	{ "programs", BENCH_PROGRAMS },
	{ "start", BENCH_START },
};

enum {
	WORDS = sizeof(words) / sizeof(words[0]),
	/* Of this library's ranks; of jobs of an MPI; of those whose MPI can be named; of
	   collectives. */
	OWN_RANKS = BENCH_ALGORITHMS | BENCH_MODEL,
	OF_AN_MPI = BENCH_MESSAGES | BENCH_OVERLAP | BENCH_COLLECTIVES | BENCH_PROGRAMS,
	OF_JOBS = OF_AN_MPI | BENCH_P2P | BENCH_START,
	OF_COLLECTIVES = OWN_RANKS | BENCH_OVERLAP | BENCH_COLLECTIVES,
};

/* What Figures 7 to 11 of paper 002 compare. */
static const struct collective_list usual = {
	{ OC_BCAST, OC_SCATTER, OC_GATHER, OC_ALLGATHER, OC_ALLTOALL }, 5
};

static const char *word_of(unsigned int i)
{
	return i < WORDS ? words[i].word : NULL;
}

static void take_mpi(void *choice, const char *text)
{
	struct bench_choice *options = choice;
	bool both = !strcmp(text, "both");
	enum launcher mpi = launcher_of(text);

	if (!both && mpi == LAUNCH_NONE)
		usage("--mpi takes openmpi, mpich or both, not '%s'", text);
	for (int l = 1; l < LAUNCHERS; l++)
		options->mpis[l] |= both || l == (int)mpi;
}

/* One or more, each once. */
static void take_ranks(void *choice, const char *text)
{
	struct bench_choice *options = choice;
	char *copy = must(strdup(text)), *rest = copy, *word;

	options->ranks_count = 0;
	while ((word = strsep(&rest, ","))) {
		uint32_t ranks = predict_ranks(word, 1);
		int at = 0;

		while (at < options->ranks_count && options->ranks_at[at] != ranks)
			at++;
		if (at == BENCH_RANKS_MOST)
			usage("--ranks %s: more than %d numbers", text, BENCH_RANKS_MOST);
		options->ranks_at[at] = ranks;
		options->ranks_count += at == options->ranks_count;
	}
	free(copy);
}

static void take_argument(void *choice, const char *text, struct argp_state *state)
{
	struct bench_choice *options = choice;

	(void)state;
	if (options->what & OF_AN_MPI && launcher_of(text) != LAUNCH_NONE)
		options->mpis[launcher_of(text)] = true;
	else if (options->what == BENCH_MESSAGES && bench_take_flow(&options->flows, text))
		;
	else if (options->what && !(options->what & OF_COLLECTIVES))
		usage("'%s': %s", text,
		      options->what == BENCH_MESSAGES ?
			      "'messages' takes openmpi or mpich, and pingpong, touch, stream, both, halo, "
			      "ring, alltoall, and put, get or accumulate, each also with -allocated" :
		      options->what == BENCH_PROGRAMS ?
			      "'programs' takes openmpi or mpich, and one program by --only" :
			      "only 'algorithms', 'model', 'overlap' and 'collectives' take "
			      "collectives");
	else if (options->what)
		collective_list_add(&options->collectives, collective_take(text));
	else
		options->what = words[word_take(text, "measured by 'onecopy bench'", word_of,
						", or nothing for all but p2p, messages, overlap, "
						"collectives, programs and start")]
					.what;
}

#define AT(member) .place = offsetof(struct bench_choice, member)

const struct option_set bench_options = {
	.rows =
		(const struct option_row[]){
			{ "ranks", 'n', "N",
			  "Ranks, and most copiers (default: the CPUs, at least 2); most ranks of start, ranks of "
			  "overlap, programs, the halo, the ring and the Alltoall of messages (default 2); "
			  "of collectives a list (default 2,4; of MPICH alone 2)",
			  .take = take_ranks },
			{ "bytes", 'b', "LIST",
			  "Sizes of a block or message (default 4K,16K,64K,256K,1M,4M; of p2p and "
			  "messages 1 to 16M; of overlap 4K,64K,1M; of collectives the powers of four from 4 to 4M)",
			  .take = predict_take_bytes, AT(sizes) },
			{ "sizes", 0, "LIST", "As --bytes", .take = predict_take_bytes, AT(sizes) },
			{ "rounds", 0, "N",
			  "Rounds (default 7; of collectives 9; of programs as many as fit the time)",
			  OPTION_COUNT, AT(rounds), 1, ROUNDS_MOST },
			{ "runs", 0, "N", "As --rounds", OPTION_COUNT, AT(rounds), 1, ROUNDS_MOST },
			{ "quick", 0, NULL,
			  "A look: 3 rounds of 64K and 1M, each shorter; of collectives 3 of 4,1K,64K,1M; "
			  "of programs one of small ones: whether everything works",
			  AT(quick) },
			{ "mpi", 0, "NAME",
			  "openmpi, mpich or both (default: both; of collectives openmpi); the words openmpi "
			  "and mpich without --mpi do the same",
			  .take = take_mpi },
			{ "collectives", 0, "LIST",
			  "Instead of words: some of " COLLECTIVE_WORDS "with commas between them",
			  .take = take_collectives, AT(collectives) },
			{ "touch", 0, NULL,
			  "With p2p: also with ranks that read what they received and write what they "
			  "send",
			  AT(touch) },
			{ "spare", 0, NULL,
			  "With overlap: odd ranks sleep instead of computing, so that their CPUs are "
			  "idle; ranks are not bound",
			  AT(spare) },
			{ "mapped", 0, NULL,
			  "With algorithms and model: all buffers lie in shared heaps, which the ranks "
			  "map",
			  AT(mapped) },
			{ "all", 0, NULL,
			  "Each parameter of an algorithm, not its best by the model alone",
			  AT(every_parameter) },
			{ "profile", 'p', "NAME|FILE",
			  "The model that is held against the measurement; default: what jobs go by here",
			  .take = predict_take_profile, AT(profile) },
			{ "json", 'j', "FILE",
			  "Write the results as JSON, every round's too (-: only that)",
			  OPTION_TEXT, AT(json) },
			{ "out", 0, "DIR",
			  "Write index.html, plots (SVG, PNG), table.txt, results.json (default, of programs: "
			  "demo-out/DATE)",
			  OPTION_TEXT, AT(out) },
			{ "no-plots", 0, NULL, "Draw nothing in the directory of --out",
			  AT(no_plots) },
			{ .help = "Of collectives and programs:" },
			{ "with", 0, "CMD",
			  "Put before mpirun in the onecopy configuration (default: this command's run)",
			  OPTION_TEXT, AT(with) },
			{ "mpirun", 0, "CMD",
			  "The launcher of the first MPI, of programs of Open MPI, and its options (default: what "
			  "is on PATH)",
			  OPTION_TEXT, AT(mpirun) },
			{ "timeout", 0, "S", "End a run that takes longer than this (default: 300)",
			  OPTION_COUNT, AT(timeout_s), 1, 100000 },
			{ .help = "Of programs alone:" },
			{ "seconds", 0, "N",
			  "End before it takes longer, but for a first round (default 120, or what the six "
			  "rounds take that an interval needs); it ends sooner once all intervals are narrow",
			  OPTION_COUNT, AT(seconds), 1, 100000 },
			{ "paper", 0, NULL,
			  "Instead: the ASP of Ma et al. (ICPP 2011), Table I, at its own row sizes, under Open "
			  "MPI: two copies, one copy (stock), onecopy, shared heap",
			  AT(paper) },
			{ "only", 0, "PROGRAM",
			  "One of asp, cg, heat, halo, train, gradients, shuffle, hpcc-ptrans and hpcc-ring; "
			  "with --paper '64 KiB' or '128 KiB'",
			  OPTION_TEXT, AT(only) },
			{ "mpirun-mpich", 0, "CMD", "MPICH's launcher (default: what is on PATH)",
			  OPTION_TEXT, AT(mpirun_mpich) },
			{ "mpi4py-mpich", 0, "DIR",
			  "Folder with an mpi4py for MPICH, for the Python programs (default: they run under "
			  "Open MPI only, unless /usr/bin/python3 finds one)",
			  OPTION_TEXT, AT(mpi4py) },
			{ .help = "Of collectives alone:" },
			{ "ways", 0, "LIST",
			  "Ways to measure, some of aligned (the default), osu, nonblocking, persistent, first-10 "
			  "and first-1000, with commas between them, or all: a table each",
			  .take = bench_take_ways, AT(ways) },
			{ "everything", 0, NULL,
			  "All collectives in all ways on 2, 4 and 8 ranks of both MPIs (of MPICH up to the cores), with shared heaps, too, in "
			  "a quarter of an hour (2 cores); the end lists the cells lost",
			  AT(everything) },
			{ "night", 0, NULL,
			  "As --everything, of all sizes up to 1M, each in all of 9 rounds: hours",
			  AT(night) },
			{ "shared-heap", 0, NULL,
			  "Another configuration takes turns: onecopy run --shared-heap, as a table of its own",
			  AT(shared_heap) },
			{ "better", 0, NULL,
			  "The other of Open MPI and MPICH takes turns, too: stock is the faster one of each cell",
			  AT(better) },
			{ "two-copies", 0, NULL,
			  "Stock is the MPI told to copy twice, through shared memory, as in papers; its single copies "
			  "take turns, too, as a table of their own",
			  AT(two_copies) },
			{ "limit", 0, NULL,
			  "memcpy takes turns, too, of the bytes that each collective has to move, by all cores that "
			  "can help: how far each cell is from the physical limit",
			  AT(limit) },
			{ "nodes", 0, "N",
			  "The ranks lie on so many nodes, which --mpirun names, with how ranks are bound",
			  OPTION_COUNT, AT(nodes), 2, OC_NODES_MOST },
			{ "cached", 0, NULL, "The same buffers for each call, as OSU does",
			  .take = take_cached, AT(mode) },
			{ "cold", 0, NULL, "Buffers allocated for each call and freed after it",
			  .take = take_cold, AT(mode) },
			{ "iterations", 0, "N", "Timed calls of a cell in one run", OPTION_COUNT,
			  AT(iterations), 1, 10000000 },
			{ "no-check", 0, NULL, "Do not verify the delivered bytes", AT(no_check) },
			{ "program", 0, "FILE",
			  "The program of the first MPI (default: onecopy-collectives-openmpi or -mpich)",
			  OPTION_TEXT, AT(program) },
			{ "gate", 0, NULL,
			  "Exit with status 3 when a cell is lost or a mean too low", AT(gate) },
			{ 0 } },
	.argument = take_argument,
	.arguments =
		"[algorithms|mechanisms|contention|model|p2p|messages|overlap|collectives|programs|start "
		"[COLLECTIVE...]]",
	.about =
		"Measures, on this machine and without an MPI: the algorithms of a collective against "
		"each other; mechanisms against each other; how copiers of one process hold each "
		"other up; the model against the measurement. Without a word: all of them. With p2p: "
		"messages of the C API against those of the MPIs that are installed. With messages: "
		"those of the MPIs alone, with onecopy and under its shared heap, between two ranks "
		"and between the neighbours of more. With overlap: how far the MPIs' nonblocking "
		"collectives go on while the program computes, and what CPU time that takes. With "
		"collectives: those of the MPIs, stock, with onecopy, and stock again as the control, as "
		"ratios stock/onecopy. With programs: the MPI programs that are built beside this command, "
		"without onecopy, with it and with its shared heap; each run is verified. With start: what "
		"MPI_Init, the first 2000 calls, a new communicator and a program without a "
		"collective take on them, without and with onecopy. Collectives: bcast, scatter, "
		"gather, allgather and alltoall unless others are named; of overlap all; of "
		"collectives those before scatterv. Run it on an idle machine.\vExit status: 0; 1 if "
		"something could not be measured, written or drawn; 2 if the options are wrong; 3: "
		"the gate is closed.",
};

#define P2P_SIZES "1,64,1K,4K,16K,64K,128K,256K,512K,1M,2M,4M,8M,16M"
#define P2P_QUICK_SIZES "64,4K,64K,1M"
#define SIZES "4K,16K,64K,256K,1M,4M"
#define QUICK_SIZES "64K,1M"
#define OVERLAP_SIZES "4K,64K,1M"
#define COLLECTIVES_QUICK_SIZES "4,1K,64K,1M"
#define EVERYTHING_SIZES "4,1K,64K,512K"
#define NIGHT_SIZES "4,16,64,256,1K,4K,16K,64K,256K,1M"
/* A run of a night has hundreds of cells. */
#define NIGHT_RUN_S 3600
/* What the MPIs' int counts, and the memory of most machines, take. */
#define P2P_BYTES_MOST ((size_t)1 << 30)

/* An option of a few things that are measured. */
static void only(const struct bench_choice *options, unsigned int what, bool given,
		 const char *option, const char *whose)
{
	if (given && !(options->what & what))
		usage("%s: only %s it", option, whose);
}

static void check_whose(const struct bench_choice *o)
{
	const struct {
		bool given;
		const char *option;
	} of_collectives[] = {
		{ memchr(o->ways, true, sizeof(o->ways)), "--ways" },
		{ o->night, "--night" },
		{ o->everything, "--everything" },
		{ o->shared_heap, "--shared-heap" },
		{ o->better, "--better" },
		{ o->two_copies, "--two-copies" },
		{ o->limit, "--limit" },
		{ o->nodes, "--nodes" },
		{ o->mode != BUFFERS_ROTATED, "--cached and --cold" },
		{ o->iterations, "--iterations" },
		{ o->no_check, "--no-check" },
		{ o->program, "--program" },
		{ o->gate, "--gate" },
	};

	only(o, BENCH_P2P, o->touch, "--touch", "'p2p' takes");
	only(o, BENCH_OVERLAP, o->spare, "--spare", "'overlap' takes");
	only(o, OWN_RANKS, o->mapped, "--mapped", "'algorithms' and 'model' take");
	only(o, OF_AN_MPI, memchr(o->mpis, true, sizeof(o->mpis)), "--mpi",
	     "'messages', 'overlap', 'collectives' and 'programs' take");
	only(o, OF_COLLECTIVES, o->collectives.n, "--collectives",
	     "'algorithms', 'model', 'overlap' and 'collectives' take");
	only(o, BENCH_COLLECTIVES, o->ranks_count > 1, "--ranks with several numbers",
	     "'collectives' takes");
	only(o, BENCH_COLLECTIVES | BENCH_PROGRAMS, o->with || o->mpirun || o->timeout_s,
	     "--with, --mpirun and --timeout", "'collectives' and 'programs' take");
	only(o, BENCH_PROGRAMS, o->seconds || o->paper || o->only || o->mpirun_mpich || o->mpi4py,
	     "--seconds, --paper, --only, --mpirun-mpich and --mpi4py-mpich", "'programs' takes");
	for (size_t i = 0; i < sizeof(of_collectives) / sizeof(of_collectives[0]); i++)
		only(o, BENCH_COLLECTIVES, of_collectives[i].given, of_collectives[i].option,
		     "'collectives' takes");
	only(o, ~(unsigned int)(BENCH_PROGRAMS | BENCH_CONTENTION | BENCH_START), o->sizes.count,
	     "--bytes", "what has blocks or messages of any size takes");
	only(o, OWN_RANKS, o->every_parameter, "--all", "'algorithms' and 'model' take");
	if (o->quick + o->everything + o->night > 1 && o->what & BENCH_COLLECTIVES)
		usage("--quick, --everything and --night exclude each other: each says how much is "
		      "measured");
}

/* What the options mean together. */
static void check(const struct bench_choice *options)
{
	size_t number_bytes = options->what & OWN_RANKS ? sizeof(double) : sizeof(float);

	if (options->ranks > 2 && options->what == BENCH_P2P)
		usage("--ranks %u: a ping-pong is of 2 ranks", options->ranks);
	for (unsigned int s = 0;
	     s < options->sizes.count && options->what & (BENCH_P2P | BENCH_MESSAGES); s++) {
		if (!options->sizes.at[s] || options->sizes.at[s] > P2P_BYTES_MOST)
			usage("--bytes %zu: a message is of 1 to %zu bytes", options->sizes.at[s],
			      P2P_BYTES_MOST);
	}
	for (unsigned int s = 0; s < options->sizes.count && options->what & BENCH_COLLECTIVES;
	     s++) {
		if (options->sizes.at[s] > INT_MAX)
			usage("--bytes %zu: MPI counts bytes in an int; valid: below 2 GiB",
			      options->sizes.at[s]);
	}
	for (int i = 0; i < options->ranks_count && options->what & (OWN_RANKS | OF_JOBS); i++)
		if (options->ranks_at[i] < 2)
			usage("--ranks 1: a rank alone moves nothing; valid: 2 and more");
	for (int c = 0; c < options->collectives.n; c++) {
		if (options->what & OWN_RANKS && !measure_can(options->collectives.at[c]))
			usage("%s cannot be measured, as its blocks have sizes of their own; valid: "
			      "the collectives of equal blocks",
			      oci_collective_name(options->collectives.at[c]));
		measure_check_sizes(options->collectives.at[c], &options->sizes, number_bytes);
	}
	if (options->better && options->mpis[LAUNCH_OPENMPI] && options->mpis[LAUNCH_MPICH])
		usage("--better takes the faster of both MPIs already: give --mpi one of them");
	if (options->nodes && !options->mpirun)
		usage("--nodes %ld: which nodes these are --mpirun has to say, as in "
		      "--mpirun \"mpirun --hostfile FILE\"",
		      options->nodes);
	if (options->nodes && (bench_has_several(options->mpis, LAUNCHERS) || options->better))
		usage("--nodes %ld: --mpirun names the nodes of one MPI: give --mpi one, without "
		      "--better",
		      options->nodes);
	if (options->nodes &&
	    (options->limit || options->two_copies || options->everything || options->night))
		usage("--%s is of the ranks of one node; valid: without --nodes",
		      options->limit	  ? "limit" :
		      options->two_copies ? "two-copies" :
		      options->everything ? "everything" :
					    "night");
	for (int i = 0; i < options->ranks_count && options->nodes; i++)
		if (options->ranks_at[i] <= (size_t)options->nodes)
			usage("--ranks %zu on %ld nodes: valid: more ranks than nodes",
			      options->ranks_at[i], options->nodes);
	if (options->better && options->two_copies)
		usage("--better and --two-copies exclude each other: each says what stock is");
	if (options->what & BENCH_PROGRAMS)
		bench_programs_check(options);
	if (options->gate && options->rounds < STATS_MIN_RUNS)
		usage("--gate needs at least %d rounds: fewer have no 95 %% interval of the median",
		      STATS_MIN_RUNS);
}

static const char *usual_sizes(const struct bench_choice *o)
{
	if (o->what & (BENCH_P2P | BENCH_MESSAGES))
		return o->quick ? P2P_QUICK_SIZES : P2P_SIZES;
	if (o->what & BENCH_COLLECTIVES)
		return o->night	     ? NIGHT_SIZES :
		       o->everything ? EVERYTHING_SIZES :
		       o->quick	     ? COLLECTIVES_QUICK_SIZES :
				       SIZES_USUAL;
	if (o->quick)
		return QUICK_SIZES;
	return o->what & BENCH_OVERLAP ? OVERLAP_SIZES : SIZES;
}

static void choose_collectives(struct bench_choice *o)
{
	if (o->what & BENCH_COLLECTIVES && !o->everything)
		collective_list_default(&o->collectives);
	else if (o->what & (BENCH_OVERLAP | BENCH_COLLECTIVES))
		for (int c = 0; c < OC_COLLECTIVES; c++)
			collective_list_add(&o->collectives, (enum oc_collective)c);
	else
		o->collectives = usual;
}

static void choose_ranks(const struct bench *bench, struct bench_choice *o)
{
	/* MPICH does not yield: 4 ranks on 2 cores took 30 ms a call. */
	if (o->what & BENCH_COLLECTIVES)
		take_ranks(o, o->everything ? "2,4,8" : o->mpis[LAUNCH_OPENMPI] ? "2,4" : "2");
	else
		o->ranks_at[o->ranks_count++] = o->what & OF_JOBS || bench->cpus < 2 ? 2 :
										       bench->cpus;
}

static long usual_rounds(const struct bench_choice *o)
{
	if (o->what & BENCH_PROGRAMS)
		return o->quick ? 1 : 99;
	return o->quick ? 3 : o->what & BENCH_COLLECTIVES ? 9 : 7;
}

static void fill_defaults(struct bench *bench)
{
	struct bench_choice *options = &bench->options;
	bool everything = options->everything || options->night;

	bench->cpus = oci_tune_cpus(NULL);
	if (!options->what)
		options->what = BENCH_ALL;
	check_whose(options);
	options->everything = everything;
	if (!memchr(options->mpis, true, sizeof(options->mpis)))
		take_mpi(options,
			 options->what & BENCH_COLLECTIVES && !everything ? "openmpi" : "both");
	if (!memchr(options->ways, true, sizeof(options->ways)))
		bench_take_ways(options->ways, everything ? "all" : "aligned");
	options->shared_heap |= everything;
	if (options->night && !options->timeout_s)
		options->timeout_s = NIGHT_RUN_S;
	if (!options->rounds)
		options->rounds = everything && !options->night ? STATS_MIN_RUNS :
								  usual_rounds(options);
	if (!options->sizes.count)
		predict_take_bytes(&options->sizes, usual_sizes(options));
	if (!options->collectives.n)
		choose_collectives(options);
	if (!options->ranks_count)
		choose_ranks(bench, options);
	options->ranks = (uint32_t)options->ranks_at[0];
	check(options);
}

static const struct {
	unsigned int what;
	void (*plan)(struct bench *bench);
} plans[] = {
	{ BENCH_ALGORITHMS | BENCH_MODEL, bench_algorithms_plan },
	{ BENCH_MECHANISMS | BENCH_CONTENTION, bench_copies_plan },
	{ BENCH_P2P, bench_p2p_plan },
	{ BENCH_MESSAGES, bench_messages_plan },
	{ BENCH_OVERLAP, bench_overlap_plan },
	{ BENCH_COLLECTIVES, bench_collectives_plan },
	{ BENCH_PROGRAMS, bench_programs_plan },
	{ BENCH_START, bench_start_plan },
};

static int run(struct bench *bench)
{
	struct results *results = &bench->results;
	int failed;

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
		if (bench->options.what & plans[i].what)
			plans[i].plan(bench);
	failed = results_run(results);
	bench_copies_end();
	bench_start_end(bench);
	bench_collectives_end(bench);
	results_finish(results);
	bench_algorithms_sum_up(bench);
	bench_p2p_sum_up(bench);
	bench_start_sum_up(bench);
	bench_collectives_sum_up(bench);
	bench_programs_sum_up(bench);
	return failed != 0;
}

static bool only_json(const struct bench_choice *options)
{
	return options->json && !strcmp(options->json, "-");
}

int bench_main(int argc, char **argv)
{
	static struct bench bench;
	struct bench_choice *options = &bench.options;
	struct results *results = &bench.results;
	char out[sizeof(results->host.date) + 16];
	bool pass = true;
	int failed, lacks = 0;

	options_parse(&bench_options, argc, argv, options);
	fill_defaults(&bench);
	results_begin(results, argc, argv, (unsigned int)options->rounds);
	results_folder(results, "demo-out", out, sizeof(out));
	if (options->what & BENCH_PROGRAMS && !options->out && !only_json(options))
		options->out = out;
	if (results_check_places(options->json, options->out, "--out DIR"))
		return 1;
	if (options->what & (BENCH_ALGORITHMS | BENCH_MODEL))
		results->about = "'*': what jobs take.";
	results->settings = json_pack("{s:i, s:b, s:b}", "ranks", (int)options->ranks, "quick",
				      options->quick, "mapped", options->mapped);
	failed = run(&bench);
	/* What went wrong was said, and there is nothing to show. */
	if (failed && !results->complete) {
		results_end(results);
		return command_end(1);
	}
	if (!only_json(options))
		results_print(results, stdout);
	if (options->json)
		failed |= results_write_json(results, options->json);
	if (options->out)
		lacks = results_write_folder(results, options->out, !options->no_plots);
	/* Plots are asked for with the folder. */
	failed |= lacks == 1 || (lacks && options->out != out);
	failed |= results->lacks;
	for (unsigned int f = 0; f < results->figure_count; f++)
		failed |= results->figures[f]->note_count && !results->figures[f]->series_count;
	for (unsigned int c = 0; c < results->comparison_count && options->gate; c++)
		pass &= comparison_passes(results->comparisons[c],
					  only_json(options) ? stderr : stdout);
	results_end(results);
	return command_end(failed ? 1 : pass ? 0 : STATUS_GATE);
}
