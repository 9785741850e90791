/* SPDX-License-Identifier: BSD-3-Clause */
/* What `onecopy model --nodes` and `onecopy explain --nodes` show. */
#ifndef ONECOPY_MODEL_NODES_H
#define ONECOPY_MODEL_NODES_H

#include "predict.h"

/* Of the collective of the options, or of all that go in two levels where they name none; plots are
 * drawn in `plot`, NULL: none are. The exit status. */
int model_nodes(const struct predict_options *options, uint32_t nodes,
		const struct size_list *sizes, const char *plot);
/* The one call of the options: how it goes, and why. The exit status. */
int explain_nodes(const struct predict_options *options, uint32_t nodes);

#endif
