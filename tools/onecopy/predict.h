/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model` and `onecopy explain` have in common: their arguments and their sentences.
 */
#ifndef ONECOPY_PREDICT_H
#define ONECOPY_PREDICT_H

#include <jansson.h>
#include <stdbool.h>

#include "lab/experiment/experiment.h"
#include "lab/inspect/inspect.h"

/* What both commands take. */
struct predict_options {
	struct oc_predict_call call;
	const char *command;	/* "explain" */
	const char *collective; /* NULL: not given */
	bool json;
};

/* Their rows; the options begin with a struct predict_options. */
#define PREDICT_ROWS                                                                                    \
	{ "ranks",                                                                                      \
	  'n',                                                                                          \
	  "N",                                                                                          \
	  "Ranks of the communicator on a node (default 2)",                                            \
	  .take = predict_take_ranks,                                                                   \
	  .place = offsetof(struct predict_options, call.ranks) },                                      \
		{ "profile",                                                                            \
		  'p',                                                                                  \
		  "NAME|FILE",                                                                          \
		  "A machine that ships with onecopy, or a tuning file; default: what jobs go by here", \
		  .take = predict_take_profile,                                                         \
		  .place = offsetof(struct predict_options, call.profile) },                            \
		{ "no-single-copy", 0, NULL, "No pair of ranks can read the other's memory",            \
		  .place = offsetof(struct predict_options, call.shm) },                                \
		{ "mapped", 0, NULL, "All ranks have shared heaps, and all buffers lie there",          \
		  .place = offsetof(struct predict_options, call.mapped) },                             \
	{                                                                                               \
		"json", 'j', NULL, "Print as JSON, times in seconds",                                   \
			.place = offsetof(struct predict_options, json)                                 \
	}
void predict_take_ranks(void *ranks, const char *text);
void predict_take_profile(void *profile, const char *text);
/* "4K,64K,1M", which are put in order; a wrong one ends in usage(). */
void predict_take_bytes(void *sizes, const char *text);
/* The collective's name. */
void predict_take_collective(void *options, const char *text, struct argp_state *state);

/* `least`: 2 where it is a communicator, as one of one rank moves nothing and is never served. */
uint32_t predict_ranks(const char *text, uint32_t least);
/* Predicts, or says why not and exits: 2 for a file or name that is wrong, else 1. */
void predict_call(const struct oc_predict_call *call, struct oc_predicted *predicted,
		  struct oc_prediction list[OC_PREDICTIONS_MOST]);

/* "default (uncalibrated)", "tuned, from /home/..."; until the next call. */
const char *predict_model_text(const struct oc_predicted *predicted);
json_t *predict_model_json(const struct oc_predicted *predicted);
json_t *predict_json(const struct oc_prediction *p);

#endif
