/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model` and `onecopy explain` have in common: their arguments and their sentences.
 */
#ifndef ONECOPY_PREDICT_H
#define ONECOPY_PREDICT_H

#include <argp.h>
#include <jansson.h>
#include <stdbool.h>

#include "lab/experiment/experiment.h"
#include "lab/inspect/inspect.h"

enum { SIZES_MOST = 64 };

struct size_list {
	size_t at[SIZES_MOST];
	unsigned int count;
};

/* What both commands take. */
struct predict_options {
	struct oc_predict_call call;
	const char *command;	/* "explain" */
	const char *collective; /* NULL: not given */
	bool json;
};

enum { PREDICT_KEY_SHM = 512, PREDICT_KEY_MAPPED };
#define PREDICT_OPTIONS                                                                         \
	{ "ranks", 'n', "N", 0, "Ranks of the communicator on a node (default 2)", 0 },         \
		{ "profile",                                                                    \
		  'p',                                                                          \
		  "NAME|FILE",                                                                  \
		  0,                                                                            \
		  "A machine that ships with onecopy, or a tuning file; default: what jobs go " \
		  "by here",                                                                    \
		  0 },                                                                          \
		{ "no-single-copy",                                                             \
		  PREDICT_KEY_SHM,                                                              \
		  NULL,                                                                         \
		  0,                                                                            \
		  "No pair of ranks can read the other's memory",                               \
		  0 },                                                                          \
		{ "mapped",                                                                     \
		  PREDICT_KEY_MAPPED,                                                           \
		  NULL,                                                                         \
		  0,                                                                            \
		  "All ranks have shared heaps, and all buffers lie there",                     \
		  0 },                                                                          \
	{                                                                                       \
		"json", 'j', NULL, 0, "Print as JSON, times in seconds", 0                      \
	}
/* Their keys, the collective's name, and those of every command. */
error_t predict_parse_key(int key, char *arg, struct argp_state *state,
			  struct predict_options *options);

/* "1M", or "4K,64K,1M", which are put in order; a wrong one ends in command_usage(). */
size_t predict_bytes(const char *option, const char *text);
void predict_sizes(const char *option, const char *text, struct size_list *sizes);
/* `least`: 2 where it is a communicator, as one of one rank moves nothing and is never served. */
uint32_t predict_ranks(const char *text, uint32_t least);
/* A name or a file; a wrong name ends in command_usage(). */
const char *predict_profile(const char *text);

/* Predicts, or says why not and exits: 2 for a file or name that is wrong, else 1. */
void predict_call(const struct oc_predict_call *call, struct oc_predicted *predicted,
		  struct oc_prediction list[OC_PREDICTIONS_MOST]);

/* "default (uncalibrated)", "tuned, from /home/...", in MODEL_TEXT bytes. */
enum { MODEL_TEXT = 640 };
void predict_model_text(const struct oc_predicted *predicted, char *text, size_t n);
json_t *predict_model_json(const struct oc_predicted *predicted);
json_t *predict_json(const struct oc_prediction *p);
/* "knomial" of "knomial:4". */
bool predict_same_name(const char *a, const char *b);

#endif
