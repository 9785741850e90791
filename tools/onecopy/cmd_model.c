/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy model: every algorithm of a collective against size, as predicted and as measured. */
#include "command.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/progress.h"
#include "lab/experiment/table.h"
#include "measure.h"
#include "model_nodes.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_ALGORITHMS = 32 };

struct model_size {
	size_t bytes;
	struct oc_predicted predicted;
	unsigned int count;
	struct oc_prediction at[MODEL_ALGORITHMS];
	double measured[MODEL_ALGORITHMS]; /* seconds; negative: not */
};

struct model_choice {
	struct predict_options common;
	const char *plot;
	struct size_list sizes;
	long nodes; /* 0: the ranks are on one */
	bool measured;
	const char *words; /* of --algorithms; NULL: not given */
	const char *algorithms[MODEL_ALGORITHMS];
};

#define AT(member) .place = offsetof(struct model_choice, member)

const struct option_set model_options = {
	.rows =
		(const struct option_row[]){
			{ "bytes", 'b', "LIST",
			  "Sizes of a block (default 1K,4K,16K,64K,256K,1M,4M)",
			  .take = predict_take_bytes, AT(sizes) },
			{ "algorithms", 'a', "LIST",
			  "These alone, each with its parameter, in this order: "
			  "direct-read,hierarchical:65536",
			  OPTION_TEXT, AT(words) },
			{ "nodes", 'N', "N",
			  "Over so many nodes: in two levels against the MPI alone; of all collectives "
			  "that go so, unless one is given",
			  OPTION_COUNT, AT(nodes), 2, OC_NODES_MOST },
			{ "measured", 0, NULL, "Measure on this machine, beside what is predicted",
			  AT(measured) },
			{ "plot", 0, "DIR", "Draw SVG and PNG in this directory, with gnuplot",
			  OPTION_TEXT, AT(plot) },
			PREDICT_ROWS,
			{ 0 } },
	.argument = predict_take_collective,
	.arguments = "[COLLECTIVE]",
	.about =
		"Predicts every algorithm of a collective for each size, on this machine or "
		"another: by the plans of all ranks in virtual time, and by the closed form that "
		"selection goes by. Each algorithm is shown with its best parameter, unless "
		"--algorithms names some. With --nodes: what calls over several nodes gain.\vExit status: 0; 1 if a size could not be measured, a plot "
		"not be drawn or the output not be written; 2 if the options are wrong.",
};

/* The best parameter of each algorithm: those that were run in virtual time. */
static void keep_best(const struct oc_prediction *list, unsigned int count, struct model_size *size)
{
	for (unsigned int i = 0; i < count && size->count < MODEL_ALGORITHMS; i++) {
		if (list[i].virtual_s < 0)
			continue;
		size->at[size->count] = list[i];
		size->measured[size->count] = -1;
		size->count++;
	}
}

/* 0, or 1 when something was not measured, which it says. */
static int measure(const struct model_choice *options, struct model_size *size,
		   struct progress *progress)
{
	const char *names[MODEL_ALGORITHMS];
	char error[256] = "";
	struct measure m = { .collective = options->common.call.collective,
			     .ranks = options->common.call.ranks,
			     .bytes = size->bytes,
			     .mapped = options->common.call.mapped != 0,
			     .count = size->count,
			     .algorithms = names,
			     .seconds = size->measured };

	for (unsigned int i = 0; i < size->count; i++)
		names[i] = size->at[i].algorithm;
	if (measure_run(&m, error, sizeof(error))) {
		progress_end(progress);
		say("%zu bytes were not measured: %s", size->bytes, error);
		return 1;
	}
	for (unsigned int i = 0; i < size->count; i++) {
		if (size->measured[i] >= 0)
			continue;
		progress_end(progress);
		/* The team may be of no use after it. */
		say("%zu bytes are measured only up to %s, which refused the call", size->bytes,
		    names[i]);
		return 1;
	}
	return 0;
}

static void microseconds(char *text, size_t n, double s, bool known)
{
	if (known)
		snprintf(text, n, "%.2f", 1e6 * s);
	else
		snprintf(text, n, "-");
}

static void print_text(const struct model_choice *options, const struct model_size *sizes)
{
	struct table table = { .align = options->measured ? "rlrrrl" : "rlrrl" };

	printf("%s on %u ranks, microseconds. Model: %s.\n\n",
	       oci_collective_name(options->common.call.collective), options->common.call.ranks,
	       predict_model_text(&sizes[0].predicted));
	table_add(&table, "bytes\talgorithm\tplans\tclosed form\t%s",
		  options->measured ? "measured\t" : "");
	for (unsigned int s = 0; s < options->sizes.count; s++) {
		const struct model_size *size = &sizes[s];

		if (!size->count) {
			char bytes[32];

			bytes_text(size->bytes, bytes, sizeof(bytes));
			table_add(&table, "%s\tnone of these can do it\t\t\t%s", bytes,
				  options->measured ? "\t" : "");
		}
		for (unsigned int i = 0; i < size->count; i++) {
			const struct oc_prediction *p = &size->at[i];
			char bytes[32], plans[32], closed[32], measured[32];
			bool chosen = !strcmp(p->algorithm, size->predicted.chosen);

			bytes_text(size->bytes, bytes, sizeof(bytes));
			microseconds(plans, sizeof(plans), p->virtual_s, true);
			microseconds(closed, sizeof(closed), p->total, p->closed);
			microseconds(measured, sizeof(measured), size->measured[i],
				     size->measured[i] >= 0);
			table_add(&table, "%s\t%s\t%s\t%s\t%s%s%s", i ? "" : bytes, p->algorithm,
				  plans, closed, options->measured ? measured : "",
				  options->measured ? "\t" : "",
				  chosen      ? "chosen" :
				  p->baseline ? "only compared" :
						"");
		}
	}
	table_print(&table, stdout, 0);
}

static json_t *size_json(const struct model_size *size, bool measured)
{
	json_t *algorithms = json_array();

	for (unsigned int i = 0; i < size->count; i++) {
		json_t *one = predict_json(&size->at[i]);

		if (measured && size->measured[i] >= 0)
			json_object_set_new(one, "measured_s", json_real(size->measured[i]));
		json_array_append_new(algorithms, one);
	}
	return json_pack("{s:I, s:s, s:s, s:o}", "bytes", (json_int_t)size->bytes, "chosen",
			 size->predicted.chosen, "why", size->predicted.why, "algorithms",
			 algorithms);
}

static int print_json(const struct model_choice *options, const struct model_size *sizes)
{
	json_t *list = json_array(), *json;

	for (unsigned int s = 0; s < options->sizes.count; s++)
		json_array_append_new(list, size_json(&sizes[s], options->measured));
	json = json_pack("{s:s, s:i, s:o, s:o}", "collective",
			 oci_collective_name(options->common.call.collective), "ranks",
			 (int)options->common.call.ranks, "model",
			 predict_model_json(&sizes[0].predicted), "sizes", list);
	return json_text_print(json, 2);
}

static int fill(const struct model_choice *options, struct model_size *sizes)
{
	static struct oc_prediction list[OC_PREDICTIONS_MOST];
	struct progress progress;
	char bytes[32];
	int failed = 0;

	progress_begin(&progress);
	for (unsigned int s = 0; s < options->sizes.count; s++) {
		struct oc_predict_call call = options->common.call;

		bytes_text(options->sizes.at[s], bytes, sizeof(bytes));
		if (options->measured || progress_seconds(&progress) > 1)
			progress_show(&progress, bytes, (double)s / options->sizes.count);
		call.bytes = sizes[s].bytes = options->sizes.at[s];
		call.virtual_time = 1;
		predict_call(&call, &sizes[s].predicted, list);
		keep_best(list, sizes[s].predicted.count, &sizes[s]);
		if (options->measured)
			failed |= measure(options, &sizes[s], &progress);
	}
	progress_end(&progress);
	return failed;
}

/* 0 bytes have no place on the plot's axis, which is logarithmic: some other size has to be there.
 * What was worked out is not to be lost to a directory that cannot be written.
 */
static void check_plot(const struct model_choice *options)
{
	const struct size_list *sizes = &options->sizes;

	if (options->plot && !sizes->at[sizes->count - 1])
		usage("--plot draws over bytes, and 0 is no place on its axis; valid for "
		      "--bytes: 1 and more");
	if (results_check_places(NULL, options->plot, "--plot DIR"))
		exit(1);
}

/* An algorithm's cell, whatever its parameter there; but with one where they were asked for. */
static void add_prediction(const struct model_choice *options, struct figure *figure,
			   unsigned int x, const struct oc_prediction *p, double measured_s)
{
	char name[64];
	struct figure_cell *cell;
	size_t length = options->words ? strlen(p->algorithm) : strcspn(p->algorithm, ":");

	snprintf(name, sizeof(name), "%.*s", (int)length, p->algorithm);
	cell = figure_cell(figure, figure_series(figure, name), x);
	cell->plans = 1e6 * p->virtual_s;
	if (p->closed)
		cell->closed = 1e6 * p->total;
	if (measured_s >= 0)
		figure_add(figure, cell, 0, 1e6 * measured_s);
}

/* COLLECTIVE-RANKS-MODEL.svg and .png in the directory, with script and data beside them. */
static int plot(const struct model_choice *options, const struct model_size *sizes)
{
	const struct size_list *list = &options->sizes;
	/* 0 bytes have no place on a logarithmic axis; sizes are in order. */
	unsigned int first = list->at[0] ? 0 : 1;
	const char *name = oci_collective_name(options->common.call.collective);
	struct results results;
	struct figure *figure;
	int failed;

	results_begin(&results, 0, NULL, 1);
	figure = figure_new(&results, list->at + first, list->count - first, "us", "%s-%u-%s", name,
			    options->common.call.ranks, sizes[0].predicted.model);
	figure->title = results_text(&results, "%s, %u ranks, %.80s", name,
				     options->common.call.ranks,
				     predict_model_text(&sizes[0].predicted));
	figure->measured = false;
	figure->predicted = figure->log_y = true;
	for (unsigned int s = first; s < list->count; s++) {
		for (unsigned int i = 0; i < sizes[s].count; i++)
			add_prediction(options, figure, s - first, &sizes[s].at[i],
				       sizes[s].measured[i]);
	}
	results.complete = 1;
	results_finish(&results);
	failed = results_plot(&results, options->plot);
	results_end(&results);
	return failed;
}

/* The words of --algorithms, each an algorithm of the collective. */
static void list_algorithms(struct model_choice *options)
{
	struct oc_predict_call *call = &options->common.call;
	char *rest = options->words ? must(strdup(options->words)) : NULL, *word; /* kept */

	while (rest && (word = strsep(&rest, ",")) != NULL) {
		name_check_algorithm(call->collective, word);
		if (!strcmp(word, "auto") || !strcmp(word, "mpi"))
			usage("'%s' is no algorithm of onecopy; see onecopy info "
			      "--algorithms for those of %s",
			      word, oci_collective_name(call->collective));
		if (call->algorithm_count == MODEL_ALGORITHMS)
			usage("--algorithms has more than %d", MODEL_ALGORITHMS);
		options->algorithms[call->algorithm_count++] = word;
	}
	call->algorithms = options->algorithms;
}

int model_main(int argc, char **argv)
{
	struct model_choice options = {
		.common = { .call = { .ranks = 2 }, .command = "model" },
	};
	struct model_size *sizes;
	int status;

	predict_take_bytes(&options.sizes, "1K,4K,16K,64K,256K,1M,4M");
	options_parse(&model_options, argc, argv, &options);
	if (options.common.collective && options.common.call.collective == OC_BARRIER) {
		if (options.plot)
			usage("--plot draws over bytes, and a barrier has none");
		options.sizes = (struct size_list){ .count = 1 };
	}
	if (options.nodes) {
		if (options.words || options.measured)
			usage("--%s is of the ranks of one node; valid: without --nodes",
			      options.words ? "algorithms" : "measured");
		check_plot(&options);
		return model_nodes(&options.common, (uint32_t)options.nodes, &options.sizes,
				   options.plot);
	}
	if (!options.common.collective)
		usage("'onecopy model' needs a collective, such as: onecopy model scatter "
		      "--ranks 64 --profile knl");
	if (options.measured && !measure_can(options.common.call.collective))
		usage("--measured cannot call %s, whose blocks have sizes of their own; "
		      "valid: the collectives of equal blocks",
		      oci_collective_name(options.common.call.collective));
	list_algorithms(&options);
	if (options.measured)
		measure_check_sizes(options.common.call.collective, &options.sizes, sizeof(double));
	check_plot(&options);
	sizes = calloc(options.sizes.count, sizeof(*sizes));
	if (!sizes) {
		say("no memory for %u sizes", options.sizes.count);
		return 1;
	}
	status = fill(&options, sizes);
	if (options.common.json)
		status |= print_json(&options, sizes);
	else
		print_text(&options, sizes);
	if (options.plot)
		status |= plot(&options, sizes);
	free(sizes);
	return command_end(status);
}
