/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy explain: what is chosen for a call and why, term by term. */
#include "command.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/table.h"
#include "model_nodes.h"
#include "names.h"
#include "predict.h"

#include <stdio.h>
#include <string.h>

struct explain_choice {
	struct predict_options common;
	bool all;
	long nodes; /* 0: the ranks are on one */
};

static void take_bytes(void *options, const char *text)
{
	((struct explain_choice *)options)->common.call.bytes = size_take("--bytes", text, 0);
}

static void take_collective(void *choice, const char *text, struct argp_state *state)
{
	struct explain_choice *options = choice;
	enum oc_collective collective;

	if (collective_is_nonblocking(text, &collective)) {
		options->common.call.nonblocking = true;
		text = oci_collective_name(collective);
	}
	predict_take_collective(&options->common, text, state);
}

#define AT(member) .place = offsetof(struct explain_choice, member)

const struct option_set explain_options = {
	.rows =
		(const struct option_row[]){
			{ "bytes", 'b', "SIZE", "Bytes of a block (default 64K)",
			  .take = take_bytes },
			{ "shared-cpus", 0, NULL, "There are more ranks than CPUs",
			  AT(common.call.shared_cpus) },
			{ "nonblocking", 0, NULL, "The call is nonblocking or persistent",
			  AT(common.call.nonblocking) },
			{ "near", 0, NULL, "All ranks share a cache", AT(common.call.near) },
			{ "nodes", 'N', "N",
			  "Over so many nodes of --ranks ranks: what two levels make of the call",
			  OPTION_COUNT, AT(nodes), 2, OC_NODES_MOST },
			{ "all", 0, NULL, "Each parameter of an algorithm, not its best alone",
			  AT(all) },
			PREDICT_ROWS,
			{ 0 } },
	.argument = take_collective,
	.arguments = "COLLECTIVE",
	.about =
		"Tells which algorithm is chosen for a call and why: all that could run it, with "
		"what each costs by the model, term by term.\vExit status: 0; 1 if the output could "
		"not be written; 2 if the options are wrong.",
};

static void print_text(const struct explain_choice *options, const struct oc_predicted *predicted,
		       const struct oc_prediction *list)
{
	struct table table = { .align = "lrrrrrrrr" };
	const char *chosen;
	bool open = false, baselines = false;
	bool barrier = options->common.call.collective == OC_BARRIER;
	char bytes[32];

	bytes_text(options->common.call.bytes, bytes, sizeof(bytes));
	printf("%s%s%s%s on %u ranks: %s, because %s.\n",
	       options->common.call.nonblocking ? "nonblocking " : "",
	       oci_collective_name(options->common.call.collective), barrier ? "" : " of ",
	       barrier ? "" : bytes, options->common.call.ranks, predicted->chosen, predicted->why);
	printf("Model: %s. Microseconds; 'memory' is what a rank copies itself, 'reduce' what it adds up.\n\n",
	       predict_model_text(predicted));
	table_add(&table,
		  "algorithm\ttotal\tstart\tbytes\tlocks\tcontention\tmemory\treduce\tsignals");
	for (unsigned int i = 0; i < predicted->count; i++) {
		const struct oc_prediction *p = &list[i];

		if (!options->all && !p->best && strcmp(p->algorithm, predicted->chosen))
			continue;
		chosen = !strcmp(p->algorithm, predicted->chosen) ? "* " : p->baseline ? "- " : "";
		baselines |= *chosen == '-';
		open |= !p->closed;
		if (!p->closed)
			table_add(&table, "%s%s\t-", chosen, p->algorithm);
		else
			table_add(&table, "%s%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f",
				  chosen, p->algorithm, 1e6 * p->total, 1e6 * p->cost.start,
				  1e6 * p->cost.bytes, 1e6 * p->cost.lock, 1e6 * p->cost.contention,
				  1e6 * p->cost.memory, 1e6 * p->cost.reduce, 1e6 * p->cost.flags);
	}
	table_print(&table, stdout, 0);
	if (open)
		puts("\nA total of -: there is no closed form; onecopy model predicts it.");
	if (baselines)
		puts("\n- before a name: there to compare with; chosen by its option, or where no two "
		     "ranks can copy at once.");
}

static int print_json(const struct explain_choice *options, const struct oc_predicted *predicted,
		      const struct oc_prediction *list)
{
	json_t *candidates = json_array(), *json;

	for (unsigned int i = 0; i < predicted->count; i++)
		json_array_append_new(candidates, predict_json(&list[i]));
	json = json_pack("{s:s, s:I, s:i, s:o, s:s, s:s, s:o}", "collective",
			 oci_collective_name(options->common.call.collective), "bytes",
			 (json_int_t)options->common.call.bytes, "ranks",
			 (int)options->common.call.ranks, "model", predict_model_json(predicted),
			 "chosen", predicted->chosen, "why", predicted->why, "candidates",
			 candidates);
	return json_text_print(json, 2);
}

int explain_main(int argc, char **argv)
{
	struct explain_choice options = { .common = { .call = { .bytes = 65536, .ranks = 2 },
						      .command = "explain" } };
	static struct oc_prediction list[OC_PREDICTIONS_MOST];
	struct oc_predicted predicted;
	int status = 0;

	options_parse(&explain_options, argc, argv, &options);
	if (!options.common.collective)
		usage("'onecopy explain' needs a collective, such as: onecopy explain bcast "
		      "--bytes 1M --ranks 16");
	if (options.common.call.collective == OC_BARRIER)
		options.common.call.bytes = 0;
	/* What forces an algorithm here forces it in the jobs started from here. */
	options.common.call.forced = 1;
	if (options.nodes) {
		if (options.all || options.common.call.near || options.common.call.shared_cpus)
			usage("--%s is of the ranks of one node; valid: without --nodes",
			      options.all	       ? "all" :
			      options.common.call.near ? "near" :
							 "shared-cpus");
		return command_end(explain_nodes(&options.common, (uint32_t)options.nodes));
	}
	predict_call(&options.common.call, &predicted, list);
	if (options.common.json)
		status = print_json(&options, &predicted, list);
	else
		print_text(&options, &predicted, list);
	return command_end(status);
}
