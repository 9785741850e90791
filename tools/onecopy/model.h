/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model` has found out, to be printed and drawn. */
#ifndef ONECOPY_MODEL_H
#define ONECOPY_MODEL_H

#include "predict.h"

enum { MODEL_ALGORITHMS = 32 };

struct model_size {
	size_t bytes;
	struct oc_predicted predicted;
	unsigned int count;
	struct oc_prediction at[MODEL_ALGORITHMS];
	double measured[MODEL_ALGORITHMS]; /* seconds; negative: not */
};

/*
 * Draws COLLECTIVE-RANKS-MODEL.svg and .png in `directory`, which is made if need be, and leaves
 * the script and its data beside them. Says what goes wrong; the exit status for it.
 */
int model_plot(const char *directory, const struct oc_predict_call *call,
	       const struct model_size *sizes, unsigned int count);

#endif
