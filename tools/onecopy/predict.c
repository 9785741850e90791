/* SPDX-License-Identifier: BSD-3-Clause */
#include "predict.h"

#include "command.h"
#include "lab/experiment/json_text.h"
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beyond it plans get too many to wait for: an Alltoall has p operations on each of p ranks. */
enum { RANKS_MOST = 1024 };

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* Tables and axes go from small to large, each size once. */
static void order(struct size_list *sizes)
{
	unsigned int kept = 0;

	qsort(sizes->at, sizes->count, sizeof(sizes->at[0]), by_size);
	for (unsigned int i = 0; i < sizes->count; i++)
		if (!kept || sizes->at[i] != sizes->at[kept - 1])
			sizes->at[kept++] = sizes->at[i];
	sizes->count = kept;
}

void predict_take_bytes(void *sizes, const char *text)
{
	size_list_take("--bytes", text, 0, sizes);
	order(sizes);
}

uint32_t predict_ranks(const char *text, uint32_t least)
{
	return command_ranks(text, least, RANKS_MOST);
}

void predict_take_profile(void *profile, const char *text)
{
	if (!strchr(text, '/'))
		text = oci_model_profile_name(
			word_take(text, "a machine that ships with onecopy", oci_model_profile_name,
				  ", or the path of a tuning file (with a '/')"));
	*(const char **)profile = text;
}

void predict_take_ranks(void *ranks, const char *text)
{
	*(uint32_t *)ranks = predict_ranks(text, 2);
}

void predict_take_collective(void *choice, const char *text, struct argp_state *state)
{
	struct predict_options *options = choice;

	(void)state;
	if (options->collective)
		usage("'%s' is one argument too many: 'onecopy %s' takes one collective", text,
		      options->command);
	options->call.collective = collective_take(text);
	options->collective = oci_collective_name(options->call.collective);
}

void predict_call(const struct oc_predict_call *call, struct oc_predicted *predicted,
		  struct oc_prediction list[OC_PREDICTIONS_MOST])
{
	char error[1200] = "";
	int failed = oc_inspect_predict(call, predicted, list, error, sizeof(error));

	if (!failed)
		return;
	if (failed == -ENOMEM || !call->profile) {
		say("%s", error);
		exit(1);
	}
	usage("--profile %s: %s", call->profile, error);
}

const char *predict_model_text(const struct oc_predicted *predicted)
{
	static char text[sizeof(predicted->model) + sizeof(predicted->path) + 32];

	snprintf(text, sizeof(text), "%s%s%s%s", predicted->model,
		 predicted->path[0] ? ", from " : "", predicted->path,
		 predicted->calibrated ? "" : " (uncalibrated)");
	return text;
}

json_t *predict_model_json(const struct oc_predicted *predicted)
{
	return json_pack("{s:o, s:o, s:b}", "name", json_text(predicted->model), "file",
			 json_text(predicted->path), "calibrated", predicted->calibrated);
}

json_t *predict_json(const struct oc_prediction *p)
{
	json_t *json = json_pack("{s:s, s:b}", "algorithm", p->algorithm, "baseline", p->baseline);

	if (p->closed)
		json_object_set_new(json, "closed_form",
				    json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total_s",
					      p->total, "start_s", p->cost.start, "bytes_s",
					      p->cost.bytes, "lock_s", p->cost.lock, "contention_s",
					      p->cost.contention, "memory_s", p->cost.memory,
					      "reduce_s", p->cost.reduce, "flags_s",
					      p->cost.flags));
	if (p->virtual_s >= 0)
		json_object_set_new(json, "virtual_time",
				    json_pack("{s:f, s:i}", "total_s", p->virtual_s, "most_copiers",
					      (int)p->most_copiers));
	return json;
}
