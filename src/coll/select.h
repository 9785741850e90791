/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice among algorithms, and what it weighs. coll/select.c says in which order. */
#ifndef OC_COLL_SELECT_H
#define OC_COLL_SELECT_H

#include "coll/coll.h"
#include "coll/cost.h"
#include "model/model.h"

/* What decided. */
enum oci_decided {
	OCI_BY_FORCE,	 /* an option or the caller */
	OCI_BY_FILE,	 /* a cell of the tuning file */
	OCI_BY_MEASURED, /* a built-in row, measured on teams of this kind */
	OCI_BY_MODEL,	 /* the least cost */
	OCI_BY_RULE,	 /* a built-in row that nobody has measured: the model cannot tell */
};

/*
 * The model's choices of one team, by collective and class of sizes, so that a program which takes
 * turns among sizes does not have them all weighed again and again. Zeroed at first; may be lost at
 * any time. It belongs to one collective, size and model of teams that are alike otherwise: forget
 * it (zero it) when these change.
 */
#define OCI_KEPT 128
struct oci_choices {
	struct {
		uint32_t key; /* 0: none */
		struct oci_choice choice;
	} kept[OCI_KEPT];
};

/*
 * The algorithm for a call: a pure function of all but `kept` (NULL: nothing is remembered), which
 * changes nothing but its time. The same on all ranks. decided may be NULL.
 */
struct oci_choice oci_select(const struct oci_shape *shape, const struct oci_model *model,
			     const struct oci_forced *forced, struct oci_choices *kept,
			     enum oci_decided *decided);

/* The same where nothing is left to the MPI: without what is forced or in a file's cell. */
struct oci_choice oci_select_ours(const struct oci_shape *shape, const struct oci_model *model);

/* All that fit and have a closed form, with their costs. Returns how many. */
#define OCI_TRIES_MOST 16
#define OCI_CANDIDATES_MOST 128
struct oci_candidate {
	struct oci_choice choice;
	struct oci_cost cost;
};
unsigned int oci_candidates(const struct oci_shape *shape, const struct oci_model *model,
			    struct oci_candidate list[OCI_CANDIDATES_MOST]);

/* For reading tuning files: does a cell name what exists? (model/model.h) */
int oci_cell_check(const char *collective, const char *algorithm, const char **expected);
/* The model of this process, for teams. */
const struct oci_model *oci_coll_model(void);

#endif
