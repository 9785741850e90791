/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy bench: algorithms, mechanisms, contention and the model, measured on this machine. */
#include "bench.h"
#include "command.h"
#include "lab/tune/tune.h"
#include "names.h"

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
	{ "start", BENCH_START },
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

/* What Figures 7 to 11 of paper 002 compare. */
static const enum oc_collective usual[] = { OC_BCAST, OC_SCATTER, OC_GATHER, OC_ALLGATHER,
					    OC_ALLTOALL };

static const char *word_of(unsigned int i)
{
	return i < WORDS ? words[i].word : NULL;
}

static void add_collective(struct bench_choice *options, const char *name)
{
	enum oc_collective collective;

	if (!(options->what & (BENCH_ALGORITHMS | BENCH_MODEL | BENCH_OVERLAP)))
		usage("'%s': only 'algorithms', 'model' and 'overlap' take collectives", name);
	collective = name_collective(name);
	if (options->what != BENCH_OVERLAP && !measure_can(collective))
		usage("%s cannot be measured, as its blocks have sizes of their own; valid: "
		      "the collectives of equal blocks",
		      name);
	for (unsigned int i = 0; i < options->collective_count; i++)
		if (options->collectives[i] == collective)
			return;
	options->collectives[options->collective_count++] = collective;
}

static enum launcher parse_mpi(const char *text)
{
	enum launcher mpi = launcher_of(text);

	if (mpi == LAUNCH_NONE)
		usage("'%s': with 'messages' openmpi or mpich is valid, or nothing for "
		      "both",
		      text);
	return mpi;
}

static void take_ranks(void *options, const char *text)
{
	((struct bench_choice *)options)->ranks = predict_ranks(text, 1);
}

static void take_argument(void *choice, const char *text, struct argp_state *state)
{
	struct bench_choice *options = choice;

	(void)state;
	if (options->what == BENCH_MESSAGES)
		options->mpi = parse_mpi(text);
	else if (options->what == BENCH_OVERLAP && launcher_of(text) != LAUNCH_NONE)
		options->mpi = launcher_of(text);
	else if (options->what)
		add_collective(options, text);
	else
		options->what = words[word_take(text, "measured by 'onecopy bench'", word_of,
						", or nothing for all but p2p, messages, overlap "
						"and start")]
					.what;
}

#define AT(member) .place = offsetof(struct bench_choice, member)

const struct option_set bench_options = {
	.rows =
		(const struct option_row[]){
			{ "ranks", 'n', "N",
			  "Ranks, and most copiers (default: the CPUs, at least 2); most ranks of start, "
			  "ranks of overlap, of the halo, the ring and the Alltoall of messages (default 2)",
			  .take = take_ranks },
			{ "bytes", 'b', "LIST",
			  "Sizes of a block or message (default 4K,16K,64K,256K,1M,4M; of p2p and "
			  "messages 1 to 16M)",
			  .take = predict_take_bytes, AT(sizes) },
			{ "rounds", 0, "N", "Rounds (default 7)", OPTION_COUNT, AT(rounds), 1,
			  ROUNDS_MOST },
			{ "quick", 0, NULL, "A look: 3 rounds of 64K and 1M, each shorter",
			  AT(quick) },
			{ "touch", 0, NULL,
			  "With p2p: also with ranks that read what they received and write what they "
			  "send",
			  AT(touch) },
			{ "spare", 0, NULL,
			  "With overlap: odd ranks sleep instead of computing, so that their CPUs are "
			  "idle; ranks are not bound",
			  AT(spare) },
			{ "token-ns", 0, "LOW:HIGH",
			  "With p2p: count only what was measured while a token took so long from one "
			  "rank's CPU to the other's, as a virtual machine's host may move its CPUs",
			  .take = take_token_text, AT(token_ns) },
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
			  "Write index.html, plots (SVG, PNG), table.txt, results.json",
			  OPTION_TEXT, AT(out) },
			{ 0 } },
	.argument = take_argument,
	.arguments = "[algorithms|mechanisms|contention|model|p2p|messages|overlap|start "
		     "[COLLECTIVE...]]",
	.about =
		"Measures, on this machine and without an MPI: the algorithms of a collective against "
		"each other; mechanisms against each other; how copiers of one process hold each "
		"other up; the model against the measurement. Without a word: all of them. With p2p: "
		"messages of the C API against those of the MPIs that are installed. With messages: "
		"those of the MPIs alone, with onecopy and under its shared heap, between two ranks "
		"and between the neighbours of more. With overlap: how far the MPIs' nonblocking "
		"collectives go on while the program computes, and what CPU time that takes. With "
		"start: what "
		"MPI_Init, the first 2000 calls, a new communicator and a program without a "
		"collective take on them, without and with onecopy. Collectives: bcast, scatter, "
		"gather, allgather and alltoall unless others are named; of overlap all. Run it on an idle "
		"machine.\vExit status: 0; 1 if something could not be measured, written or drawn; "
		"2 if the options are wrong.",
};

#define P2P_SIZES "1,64,1K,4K,16K,64K,128K,256K,512K,1M,2M,4M,8M,16M"
#define P2P_QUICK_SIZES "64,4K,64K,1M"
#define SIZES "4K,16K,64K,256K,1M,4M"
#define QUICK_SIZES "64K,1M"
#define OVERLAP_SIZES "4K,64K,1M"
/* What the MPIs' int counts, and the memory of most machines, take. */
#define P2P_BYTES_MOST ((size_t)1 << 30)

static void check_p2p(const struct bench_choice *options)
{
	if (options->touch && options->what != BENCH_P2P)
		usage("--touch: only 'p2p' takes it");
	if (options->token_ns && options->what != BENCH_P2P)
		usage("--token-ns: only 'p2p' takes it");
	if (options->ranks > 2 && options->what == BENCH_P2P)
		usage("--ranks %u: a ping-pong is of 2 ranks", options->ranks);
	for (unsigned int s = 0;
	     s < options->sizes.count && options->what & (BENCH_P2P | BENCH_MESSAGES); s++) {
		if (!options->sizes.at[s] || options->sizes.at[s] > P2P_BYTES_MOST)
			usage("--bytes %zu: a message of p2p is of 1 to %zu bytes",
			      options->sizes.at[s], P2P_BYTES_MOST);
	}
}

static void fill_defaults(struct bench *bench)
{
	struct bench_choice *options = &bench->options;

	bench->cpus = oci_tune_cpus(NULL);
	if (!options->what)
		options->what = BENCH_ALL;
	if (!options->rounds)
		options->rounds = options->quick ? 3 : 7;
	if (!options->sizes.count && options->what & (BENCH_P2P | BENCH_MESSAGES))
		predict_take_bytes(&options->sizes, options->quick ? P2P_QUICK_SIZES : P2P_SIZES);
	else if (!options->sizes.count)
		predict_take_bytes(&options->sizes, options->quick		   ? QUICK_SIZES :
						    options->what == BENCH_OVERLAP ? OVERLAP_SIZES :
										     SIZES);
	check_p2p(options);
	if (options->spare && options->what != BENCH_OVERLAP)
		usage("--spare: only 'overlap' takes it");
	if (options->mapped && !(options->what & (BENCH_ALGORITHMS | BENCH_MODEL)))
		usage("--mapped: only 'algorithms' and 'model' take it");
	if (!options->ranks &&
	    options->what & (BENCH_P2P | BENCH_START | BENCH_MESSAGES | BENCH_OVERLAP))
		options->ranks = 2;
	if (!options->ranks)
		options->ranks = bench->cpus > 2 ? bench->cpus : 2;
	if (options->what == BENCH_OVERLAP && !options->collective_count) {
		for (; options->collective_count < OC_COLLECTIVES; options->collective_count++)
			options->collectives[options->collective_count] =
				(enum oc_collective)options->collective_count;
	}
	if (!options->collective_count) {
		memcpy(options->collectives, usual, sizeof(usual));
		options->collective_count = sizeof(usual) / sizeof(usual[0]);
	}
	if (options->ranks < 2 && options->what & (BENCH_ALGORITHMS | BENCH_MODEL | BENCH_P2P |
						   BENCH_START | BENCH_MESSAGES | BENCH_OVERLAP))
		usage("--ranks 1: a rank alone moves nothing; valid: 2 and more");
	for (unsigned int c = 0; c < options->collective_count; c++)
		measure_check_sizes(options->collectives[c], &options->sizes);
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
	results_finish(results);
	bench_algorithms_sum_up(bench);
	bench_p2p_sum_up(bench);
	bench_start_sum_up(bench);
	return failed != 0;
}

int bench_main(int argc, char **argv)
{
	static struct bench bench;
	struct bench_choice *options = &bench.options;
	struct results *results = &bench.results;
	int failed;

	options_parse(&bench_options, argc, argv, options);
	fill_defaults(&bench);
	if (results_check_places(options->json, options->out))
		return 1;
	results_begin(results, argc, argv, (unsigned int)options->rounds);
	if (options->what & (BENCH_ALGORITHMS | BENCH_MODEL))
		results->about = "'*': what jobs take.";
	results->settings = json_pack("{s:i, s:b, s:b, s:s*}", "ranks", (int)options->ranks,
				      "quick", options->quick, "mapped", options->mapped,
				      "token_ns", options->token_ns);
	failed = run(&bench);
	if (!options->json || strcmp(options->json, "-") != 0)
		results_print(results, stdout);
	if (options->json)
		failed |= results_write_json(results, options->json);
	if (options->out)
		failed |= results_write_folder(results, options->out, true) != 0;
	for (unsigned int f = 0; f < results->figure_count; f++)
		failed |= results->figures[f]->note_count && !results->figures[f]->series_count;
	results_end(results);
	return command_end(failed);
}
