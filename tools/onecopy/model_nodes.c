/* SPDX-License-Identifier: BSD-3-Clause */
/* onecopy model --nodes, explain --nodes: calls of ranks on several nodes, in two levels and by the
 * MPI alone. */
#include "model_nodes.h"

#include "command.h"
#include "lab/experiment/json_text.h"
#include "lab/experiment/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that fit beside each other, behind the collective's name. */
enum { SIZES_BESIDE = TABLE_COLUMNS - 1 };

struct nodes {
	const struct predict_options *options;
	const struct size_list *sizes;
	uint32_t nodes;
	struct oc_predicted model;
	enum oc_collective collectives[OC_COLLECTIVES];
	unsigned int count;
	struct oc_nodes_predicted (*at)[SIZES_MOST]; /* of each collective */
};

static double gain(const struct oc_nodes_predicted *p)
{
	return p->flat.s / p->levels.s;
}

/* 0; -ENOTSUP: it never goes in two levels; -ENODATA: no network is known, of what the call says
 * all but times. Else the command ends. */
static int predict_one(struct nodes *n, enum oc_collective collective, size_t bytes,
		       struct oc_nodes_predicted *predicted)
{
	struct oc_predict_call call = n->options->call;
	char error[1200] = "";
	int failed;

	call.collective = collective;
	call.bytes = bytes;
	failed = oc_inspect_nodes(&call, n->nodes, &n->model, predicted, error, sizeof(error));
	if (!failed || failed == -ENOTSUP || failed == -ENODATA)
		return failed;
	if (failed == -ENOMEM || !call.profile) {
		say("%s", error);
		exit(1);
	}
	usage("--profile %s: %s", call.profile, error);
}

/* What helps where no network is known. */
#define TUNE_NETWORK                                                                             \
	"onecopy tune --network measures one; valid: --profile with a machine whose network is " \
	"known, such as broadwell, or the file of that"

static void fill(struct nodes *n)
{
	for (int c = 0; c < OC_COLLECTIVES; c++) {
		enum oc_collective collective = (enum oc_collective)c;
		bool goes = true;

		if (n->options->collective && collective != n->options->call.collective)
			continue;
		for (unsigned int s = 0; s < n->sizes->count && goes; s++) {
			int failed =
				predict_one(n, collective, n->sizes->at[s], &n->at[n->count][s]);

			if (failed == -ENODATA)
				usage("the model %s knows no network: " TUNE_NETWORK,
				      n->model.model);
			goes = !failed;
		}
		if (goes)
			n->collectives[n->count++] = collective;
		else if (n->options->collective)
			usage("over several nodes %s is the MPI's own",
			      oci_collective_name(collective));
	}
}

static void parts_text(const struct oci_nodes_predicted *p, char *text, size_t n)
{
	int used = 0;

	*text = '\0';
	for (unsigned int i = 0; i < p->parts && (size_t)used < n; i++) {
		const struct oci_nodes_part *part = &p->part[i];

		used += snprintf(text + used, n - (size_t)used, "%s%s%s %s %.2f", i ? ", " : "",
				 part->between ? "between: " : "",
				 oci_collective_name(part->collective), part->algorithm,
				 1e6 * part->s);
	}
}

static void print_one(const struct nodes *n)
{
	struct table table = { .align = "rrrlrl" };

	table_add(&table, "bytes\ttwo levels\tMPI alone\tby\tgain\t");
	for (unsigned int s = 0; s < n->sizes->count; s++) {
		const struct oc_nodes_predicted *p = &n->at[0][s];
		char bytes[32], parts[512], levels[32] = "-", gains[32] = "-";

		bytes_text(n->sizes->at[s], bytes, sizeof(bytes));
		parts_text(&p->levels, parts, sizeof(parts));
		if (p->levels.parts) {
			snprintf(levels, sizeof(levels), "%.2f", 1e6 * p->levels.s);
			snprintf(gains, sizeof(gains), "%.2f", gain(p));
		}
		table_add(&table, "%s\t%s\t%.2f\t%s\t%s\t%s%s%s%s", bytes, levels, 1e6 * p->flat.s,
			  p->flat.name, gains, parts, p->handed_back ? " (the MPI's own: " : "",
			  p->handed_back ? p->handed_back : "", p->handed_back ? ")" : "");
	}
	table_print(&table, stdout, 0);
}

/* Gains; of what is the MPI's own all the same there is none. */
static void print_all(const struct nodes *n)
{
	struct table table = { .align = "lrrrrrrrrrrr" };
	char row[1024];
	int used = snprintf(row, sizeof(row), "gain");

	for (unsigned int s = 0; s < n->sizes->count; s++) {
		char bytes[32];

		bytes_text(n->sizes->at[s], bytes, sizeof(bytes));
		used += snprintf(row + used, sizeof(row) - (size_t)used, "\t%s", bytes);
	}
	table_add(&table, "%s", row);
	for (unsigned int c = 0; c < n->count; c++) {
		used = snprintf(row, sizeof(row), "%s", oci_collective_name(n->collectives[c]));
		for (unsigned int s = 0; s < n->sizes->count; s++) {
			const struct oc_nodes_predicted *p = &n->at[c][s];
			char text[32] = "-";

			if (!p->handed_back)
				snprintf(text, sizeof(text), "%.2f", gain(p));
			used += snprintf(row + used, sizeof(row) - (size_t)used, "\t%s", text);
		}
		table_add(&table, "%s", row);
	}
	table_print(&table, stdout, 0);
}

static void print_text(const struct nodes *n)
{
	printf("%s on %u nodes of %u ranks, %s. Model: %s.\n\n",
	       n->options->collective ? n->options->collective : "Collectives", n->nodes,
	       n->options->call.ranks,
	       n->options->collective ?
		       "microseconds; by: the quickest algorithm that Open MPI or MPICH has" :
		       "the quickest algorithm that Open MPI or MPICH has by two levels; -: the MPI's own",
	       predict_model_text(&n->model));
	if (n->options->collective)
		print_one(n);
	else
		print_all(n);
}

static json_t *one_json(const struct oc_nodes_predicted *p, size_t bytes)
{
	json_t *parts = json_array();

	for (unsigned int i = 0; i < p->levels.parts; i++) {
		const struct oci_nodes_part *part = &p->levels.part[i];

		json_array_append_new(
			parts, json_pack("{s:b, s:s, s:s, s:I, s:i, s:s, s:f}", "between_nodes",
					 part->between, "by", part->by, "collective",
					 oci_collective_name(part->collective), "bytes",
					 (json_int_t)part->bytes, "times", (int)part->times,
					 "algorithm", part->algorithm, "total_s", part->s));
	}
	if (!p->levels.parts)
		return json_pack("{s:I, s:n, s:o, s:f, s:s, s:n, s:s}", "bytes", (json_int_t)bytes,
				 "two_levels_s", "parts", parts, "mpi_s", p->flat.s,
				 "mpi_algorithm", p->flat.name, "gain", "handed_back",
				 p->handed_back);
	return json_pack("{s:I, s:f, s:o, s:f, s:s, s:f, s:s?}", "bytes", (json_int_t)bytes,
			 "two_levels_s", p->levels.s, "parts", parts, "mpi_s", p->flat.s,
			 "mpi_algorithm", p->flat.name, "gain", gain(p), "handed_back",
			 p->handed_back);
}

static int print_json(const struct nodes *n)
{
	json_t *list = json_array();

	for (unsigned int c = 0; c < n->count; c++) {
		json_t *at = json_array();

		for (unsigned int s = 0; s < n->sizes->count; s++)
			json_array_append_new(at, one_json(&n->at[c][s], n->sizes->at[s]));
		json_array_append_new(list, json_pack("{s:s, s:o}", "collective",
						      oci_collective_name(n->collectives[c]),
						      "sizes", at));
	}
	return json_text_print(json_pack("{s:i, s:i, s:o, s:o}", "nodes", (int)n->nodes, "ranks",
					 (int)n->options->call.ranks, "model",
					 predict_model_json(&n->model), "collectives", list),
			       2);
}

static void add(struct figure *figure, const char *name, unsigned int x, double value)
{
	figure_cell(figure, figure_series(figure, name), x)->plans = value;
}

/* Of one collective both times, of all their gains. */
static int draw(const struct nodes *n, const char *dir)
{
	const struct size_list *sizes = n->sizes;
	/* 0 bytes have no place on a logarithmic axis; sizes are in order. */
	unsigned int first = sizes->at[0] ? 0 : 1;
	const char *collective = n->options->collective;
	struct results results;
	struct figure *figure;
	int failed;

	results_begin(&results, 0, NULL, 1);
	figure = figure_new(&results, sizes->at + first, sizes->count - first,
			    collective ? "us" : "times", "%s-%ux%u-%s",
			    collective ? collective : "nodes", n->nodes, n->options->call.ranks,
			    n->model.model);
	figure->title = results_text(&results, "%s, %u nodes of %u ranks, %.80s",
				     collective ? collective : "Gain of two levels", n->nodes,
				     n->options->call.ranks, predict_model_text(&n->model));
	figure->measured = false;
	figure->predicted = figure->log_y = true;
	for (unsigned int c = 0; c < n->count; c++)
		for (unsigned int s = first; s < sizes->count; s++) {
			const struct oc_nodes_predicted *p = &n->at[c][s];

			if (collective) {
				if (p->levels.parts)
					add(figure, "two levels", s - first, 1e6 * p->levels.s);
				add(figure, "MPI alone", s - first, 1e6 * p->flat.s);
			} else if (!p->handed_back) {
				add(figure, oci_collective_name(n->collectives[c]), s - first,
				    gain(p));
			}
		}
	results.complete = 1;
	results_finish(&results);
	failed = results_plot(&results, dir);
	results_end(&results);
	return failed;
}

int model_nodes(const struct predict_options *options, uint32_t nodes,
		const struct size_list *sizes, const char *plot)
{
	struct nodes n = { .options = options, .sizes = sizes, .nodes = nodes };
	int status = 0;

	if (!options->collective && sizes->count > SIZES_BESIDE && !options->json)
		usage("--bytes has %u sizes; valid: up to %d where no collective is named",
		      sizes->count, SIZES_BESIDE);
	n.at = must(calloc(OC_COLLECTIVES, sizeof(*n.at)));
	fill(&n);
	if (options->json)
		status = print_json(&n);
	else
		print_text(&n);
	if (plot)
		status |= draw(&n, plot);
	free(n.at);
	return command_end(status);
}

/* How a call goes: for people, and for machines. */
static const char *way_of(const struct oc_nodes_predicted *p)
{
	return p->handed_back ? "the MPI's own" :
	       p->shares      ? "in two levels, in shares" :
				"in two levels";
}

static const char *chosen_of(const struct oc_nodes_predicted *p)
{
	return p->handed_back ? "mpi" : p->shares ? "shares" : "two-levels";
}

static void explain_text(const struct nodes *n, const struct oc_nodes_predicted *p, bool timed)
{
	const struct oc_predict_call *call = &n->options->call;
	struct table table = { .align = "llrrlr" };
	char bytes[32];

	bytes_text(call->bytes, bytes, sizeof(bytes));
	printf("%s%s%s%s on %u nodes of %u ranks: %s, because %s.\n",
	       call->nonblocking ? "nonblocking " : "", oci_collective_name(call->collective),
	       call->bytes ? " of " : "", call->bytes ? bytes : "", n->nodes, call->ranks,
	       way_of(p), p->why);
	if (!timed)
		return;
	printf("Model: %s. Microseconds.%s\n\n", predict_model_text(&n->model),
	       p->handed_back && p->levels.parts ? " In two levels it would have these parts:" :
						   "");
	table_add(&table, "part\tby\tbytes\ttimes\talgorithm\ttotal");
	for (unsigned int i = 0; i < p->levels.parts; i++) {
		const struct oci_nodes_part *part = &p->levels.part[i];

		bytes_text(part->bytes, bytes, sizeof(bytes));
		table_add(&table, "%s\t%s\t%s\t%u\t%s\t%.2f", oci_collective_name(part->collective),
			  part->by, bytes, part->times, part->algorithm, 1e6 * part->s);
	}
	if (p->levels.copies_s > 0)
		table_add(&table, "copies\tthe leaders\t\t\t\t%.2f", 1e6 * p->levels.copies_s);
	if (p->levels.parts)
		table_add(&table, "in two levels\t\t\t\t\t%.2f", 1e6 * p->levels.s);
	table_add(&table, "the MPI alone\t\t\t\t%s\t%.2f", p->flat.name, 1e6 * p->flat.s);
	table_print(&table, stdout, 0);
}

static int explain_json(const struct nodes *n, const struct oc_nodes_predicted *p, bool timed)
{
	const struct oc_predict_call *call = &n->options->call;
	json_t *json = json_pack(
		"{s:s, s:b, s:I, s:i, s:i, s:o, s:s, s:s}", "collective",
		oci_collective_name(call->collective), "nonblocking", call->nonblocking, "bytes",
		(json_int_t)call->bytes, "nodes", (int)n->nodes, "ranks", (int)call->ranks, "model",
		predict_model_json(&n->model), "chosen", chosen_of(p), "why", p->why);

	if (timed)
		json_object_update_new(json, one_json(p, call->bytes));
	return json_text_print(json, 2);
}

int explain_nodes(const struct predict_options *options, uint32_t nodes)
{
	struct nodes n = { .options = options, .nodes = nodes };
	struct oc_nodes_predicted p;
	int failed = predict_one(&n, options->call.collective, options->call.bytes, &p), status = 0;

	if (options->json)
		status = explain_json(&n, &p, !failed);
	else
		explain_text(&n, &p, !failed);
	if (failed == -ENODATA && !options->json)
		printf("The model %s knows no network, so nothing can be said of times: " TUNE_NETWORK
		       ".\n",
		       n.model.model);
	return status;
}
