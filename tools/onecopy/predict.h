/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model` and `onecopy explain` have in common: their arguments and their sentences.
 */
#ifndef ONECOPY_PREDICT_H
#define ONECOPY_PREDICT_H

#include <jansson.h>
#include <onecopy/inspect.h>
#include <stdbool.h>

enum { SIZES_MOST = 64 };

struct size_list {
	size_t at[SIZES_MOST];
	unsigned int count;
};

/* "1M", or "4K,64K,1M"; a wrong one ends in command_usage(). */
size_t predict_bytes(const char *option, const char *text);
void predict_sizes(const char *option, const char *text, struct size_list *sizes);
/* `least`: 2 where it is a communicator, as one of one rank moves nothing and is never served. */
uint32_t predict_ranks(const char *text, uint32_t least);
/* A name or a file; a wrong name ends in command_usage(). */
const char *predict_profile(const char *text);

/* Predicts, or says why not and exits: 2 for a file or name that is wrong, else 1. */
void predict_call(const struct oc_predict_call *call, struct oc_predicted *predicted,
		  struct oc_prediction list[OC_PREDICTIONS_MOST]);

/* "default (uncalibrated)", "tuned, from /home/...". */
void predict_model_text(const struct oc_predicted *predicted, char *text, size_t n);
/* "64K", "1M", "1000". */
void predict_bytes_text(size_t bytes, char *text, size_t n);
json_t *predict_json(const struct oc_prediction *p);
/* "knomial" of "knomial:4". */
bool predict_same_name(const char *a, const char *b);

#endif
