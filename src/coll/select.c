/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice among algorithms: a pure function of the call's shape and the model.
 *
 *   1. what is forced, where it fits
 *   2. a cell of the tuning file that names this call
 *   3. the measured rows below, on teams of the kinds they were measured for: PAIR unless the model
 *      was calibrated on this machine, in the state that it is in, CROWD always, as the model has
 * no term for ranks that share a core, and all whose ranks have shared heaps, where the rows choose
 * better (below)
 *   4. the cheapest by the model, of all algorithms with a closed form, each with the parameters
 *      worth trying; the first of equals; none that is there to compare with
 *   5. where the model knows nothing of how these bytes would move, the rows again
 *
 * Each row says up to how many bytes (of a block, as in plan.h) an algorithm is taken, for two
 * ranks, for more, and for more than the CPUs hold. PAIR and CROWD are measured on a 2-core
 * machine: docs/results.md has machine, date, figures and commands. Two CPUs may be near or far,
 * and a virtual machine does not say, nor stay with it: bytes through a slot cross the way between
 * them twice, so from 8 KiB on they win where it is short (up to 1.7 times) and lose where it is
 * long (up to 3 times). PAIR takes what loses nowhere; while the ranks find that they are near
 * (team/distance.c) slots serve larger messages. TEAM, which that machine cannot run, is PAIR with
 * what paper 002 found best for many readers of one process: throttle factors of 4 to 10, a
 * k-nomial tree, no cooperation with a root that all others keep busy. The rows of
 * Reduce_scatter(_block), Scan and Exscan are reasoned from those of Reduce and Allreduce, which
 * move and reduce as many bytes, and wait for a measurement of their own.
 */
#include "coll/select.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct row {
	size_t up_to; /* bytes of a block */
	const char *name;
	uint32_t parameter; /* 0: the algorithm's default */
};

#define ANY SIZE_MAX
#define ROWS 6

enum team_kind { PAIR, TEAM, CROWD, KINDS }; /* two ranks; more; more than CPUs */

static const struct row table[OCI_COLLECTIVES][KINDS][ROWS] = {
	[OCI_BARRIER] = {
		[PAIR] = { { ANY, "flat", 0 } },
		[TEAM] = { { ANY, "flat", 0 } },
		[CROWD] = { { ANY, "flat", 0 } },
	},
	[OCI_BCAST] = {
		[PAIR] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "knomial", 4 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "direct-read", 0 } },
	},
	[OCI_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-read", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-read", 8 } },
	},
	[OCI_GATHER] = {
		[PAIR] = { { 496, "inline", 0 },
			   { 4096, "cico", 0 },
			   { 524288, "throttled-write", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-write", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "throttled-write", 8 } },
	},
	[OCI_ALLGATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "ring-source-read", 0 } },
	},
	[OCI_ALLTOALL] = {
		[PAIR] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "pairwise", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "pairwise", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "pairwise", 0 } },
	},
	[OCI_REDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { 65536, "tree", 2 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OCI_ALLREDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 65536, "cico-sliced", 0 },
			   { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By each block's own size: the thresholds are those of offers, src/plan/offer.c. */
	[OCI_SCATTERV] = {
		[PAIR] = { { ANY, "throttled-read", 8 } },
		[TEAM] = { { ANY, "throttled-read", 8 } },
		[CROWD] = { { ANY, "throttled-read", 8 } },
	},
	[OCI_GATHERV] = {
		[PAIR] = { { ANY, "throttled-write", 8 } },
		[TEAM] = { { ANY, "throttled-write", 8 } },
		[CROWD] = { { ANY, "throttled-write", 8 } },
	},
	[OCI_ALLGATHERV] = {
		[PAIR] = { { ANY, "ring-source-read", 0 } },
		[TEAM] = { { ANY, "ring-source-read", 0 } },
		[CROWD] = { { ANY, "ring-source-read", 0 } },
	},
	[OCI_ALLTOALLV] = {
		[PAIR] = { { ANY, "pairwise", 0 } },
		[TEAM] = { { ANY, "pairwise", 0 } },
		[CROWD] = { { ANY, "pairwise", 0 } },
	},
	[OCI_REDUCE_SCATTER_BLOCK] = {
		[PAIR] = { { 496, "inline", 0 }, { 32768, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	/* By the bytes of the whole input. */
	[OCI_REDUCE_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "sliced", 0 } },
	},
	[OCI_SCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
	[OCI_EXSCAN] = {
		[PAIR] = { { 496, "inline", 0 }, { 16384, "cico", 0 }, { ANY, "chain", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { ANY, "chain", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 65536, "cico", 0 }, { ANY, "chain", 0 } },
	},
};

/*
 * Where every rank has a shared heap: a copy needs no system call, so single copies win from 1 or 2
 * KiB on, and no page is locked, so nothing is throttled that was not before. A collective that is
 * not here goes by the table above. PAIR and CROWD are measured (docs/results.md, "Shared heap"),
 * TEAM is PAIR with the algorithms of TEAM above. Of reading and writing that take as long, reading
 * is taken: it leaves the bytes in the cache of the rank that wants them.
 */
static const struct row mapped[OCI_COLLECTIVES][KINDS][ROWS] = {
	[OCI_BCAST] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { 32768, "direct-read", 0 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "knomial", 4 } },
		[CROWD] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 524288, "knomial", 4 },
			    { ANY, "cooperative", 0 } },
	},
	[OCI_SCATTER] = {
		[PAIR] = { { 496, "inline", 0 }, { 2097152, "throttled-read", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "throttled-read", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-read", 8 } },
	},
	[OCI_GATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 2097152, "throttled-write", 8 },
			   { ANY, "cooperative", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "throttled-write", 8 } },
		[CROWD] = { { 496, "inline", 0 }, { 4096, "cico", 0 }, { ANY, "throttled-write", 8 } },
	},
	[OCI_ALLGATHER] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "ring-source-read", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { ANY, "ring-source-write", 0 } },
	},
	[OCI_ALLTOALL] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "pairwise", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { ANY, "pairwise", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { 131072, "pairwise", 0 },
			    { ANY, "point-to-point", 0 } },
	},
	[OCI_REDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 1024, "cico", 0 }, { 65536, "tree", 2 },
			   { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { 32768, "tree", 3 },
			    { ANY, "sliced", 0 } },
	},
	[OCI_ALLREDUCE] = {
		[PAIR] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "sliced", 0 } },
		[TEAM] = { { 496, "inline", 0 }, { 2048, "cico", 0 }, { ANY, "sliced", 0 } },
		[CROWD] = { { 496, "inline", 0 }, { 8192, "cico", 0 }, { 32768, "tree", 3 },
			    { ANY, "sliced", 0 } },
	},
};

/*
 * What two ranks take while they find that they are near, where PAIR takes something else. Both
 * combine in the same order, so that results do not depend on it.
 */
static const struct {
	size_t above, up_to;
	const char *name;
} near_rows[OCI_COLLECTIVES] = {
	[OCI_BCAST] = { 4096, 65536, "cico" },
	[OCI_SCATTER] = { 4096, 32768, "cico" },
	[OCI_GATHER] = { 4096, 65536, "cico" },
	[OCI_ALLGATHER] = { 4096, 65536, "cico" },
	[OCI_ALLTOALL] = { 4096, 65536, "cico" },
	[OCI_REDUCE] = { 4096, 65536, "cico" },
	[OCI_ALLREDUCE] = { 16384, 65536, "cico-sliced" },
};

static bool fits(const struct oci_shape *shape, const struct oci_choice *choice)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice->algorithm);

	return !a->fits || a->fits(shape, choice->parameter);
}

/* What a row says; the tests see to it that every name in the table is an algorithm's. */
static struct oci_choice choice_of(enum oci_collective collective, const struct row *row)
{
	struct oci_choice choice = { OCI_CHOICE_MPI, row->parameter };
	const struct oci_algorithm *a;

	for (uint8_t i = 0; (a = oci_algorithm(collective, i)) != NULL; i++) {
		if (strcmp(a->name, row->name))
			continue;
		choice.algorithm = i;
		if (!choice.parameter)
			choice.parameter = a->parameter_default;
	}
	return choice;
}

static enum team_kind kind_of(const struct oci_shape *shape)
{
	return shape->oversubscribed ? CROWD : shape->size > 2 ? TEAM : PAIR;
}

bool oci_near_decides(enum oci_collective collective, size_t bytes)
{
	return bytes > near_rows[collective].above && bytes <= near_rows[collective].up_to;
}

static struct oci_choice by_rows(const struct oci_shape *shape)
{
	struct row near_row = { ANY, near_rows[shape->collective].name, 0 };
	enum team_kind kind = kind_of(shape);
	bool by_heap = shape->mapped && mapped[shape->collective][kind][0].name;
	const struct row *row = (by_heap ? mapped : table)[shape->collective][kind], *end;
	struct oci_choice near = { OCI_CHOICE_MPI, 0 };

	if (kind == PAIR && shape->apart == OCI_NEAR && !by_heap &&
	    oci_near_decides(shape->collective, shape->bytes))
		near = choice_of(shape->collective, &near_row);
	if (near.algorithm != OCI_CHOICE_MPI && fits(shape, &near))
		return near;
	for (end = row + ROWS; row < end && row->name; row++) {
		struct oci_choice choice = choice_of(shape->collective, row);

		/* A row may end beyond what fits with this many ranks: the next one takes over. */
		if (shape->bytes <= row->up_to &&
		    (choice.algorithm == OCI_CHOICE_MPI || fits(shape, &choice)))
			return choice;
	}
	return (struct oci_choice){ OCI_CHOICE_MPI, 0 };
}

/* A cell of the tuning file that names this call with something that can run it. */
static bool by_file(const struct oci_shape *shape, const struct oci_model *model,
		    struct oci_choice *choice)
{
	const struct oci_model_cell *cell = oci_model_cell(
		model, oci_collective_name(shape->collective), shape->size, shape->bytes);
	struct oci_forced forced;
	const char *expected;

	if (!cell || oci_forced_parse(shape->collective, cell->algorithm, &forced, &expected) ||
	    !forced.forced)
		return false;
	*choice = forced.choice;
	return choice->algorithm == OCI_CHOICE_MPI || fits(shape, choice);
}

/* Candidates of one algorithm, appended. */
static unsigned int add_candidates(const struct oci_shape *shape, const struct oci_model *model,
				   struct oci_choice choice, struct oci_candidate *list)
{
	static const uint32_t none[] = { 0, 0 };
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice.algorithm);
	const uint32_t given[] = { a->parameter_default, 0 };
	const uint32_t *tries = a->tries ? a->tries : a->parameter_default ? given : none;
	unsigned int count = 0;
	struct oci_costing costing;

	if (!a->cost)
		return 0;
	do {
		choice.parameter = *tries++;
		/* More at a time than there are peers is as all of them. */
		if (count && a->tries && choice.parameter >= shape->size &&
		    a->tries == oci_tries_fanout)
			break;
		if (!fits(shape, &choice))
			continue;
		oci_costing_init(&costing, model, shape, choice.parameter);
		a->cost(&costing);
		list[count++] = (struct oci_candidate){ .choice = choice, .cost = costing.cost };
	} while (*tries && count < OCI_TRIES_MOST);
	return count;
}

unsigned int oci_candidates(const struct oci_shape *shape, const struct oci_model *model,
			    struct oci_candidate list[OCI_CANDIDATES_MOST])
{
	struct oci_choice choice = { 0, 0 };
	unsigned int count = 0;

	for (; oci_algorithm(shape->collective, choice.algorithm) &&
	       count + OCI_TRIES_MOST <= OCI_CANDIDATES_MOST;
	     choice.algorithm++)
		count += add_candidates(shape, model, choice, list + count);
	return count;
}

/* Less by more than what sums of doubles in another order differ by: the first of equals stays. */
static bool is_less(const struct oci_cost *a, const struct oci_cost *b)
{
	return oci_cost_total(a) < oci_cost_total(b) * (1 - 1e-9);
}

static bool by_model(const struct oci_shape *shape, const struct oci_model *model,
		     struct oci_choice *choice)
{
	struct oci_candidate list[OCI_CANDIDATES_MOST];
	unsigned int count = oci_candidates(shape, model, list), best = count;

	for (unsigned int i = 0; i < count; i++) {
		if (oci_algorithm(shape->collective, list[i].choice.algorithm)->baseline &&
		    shape->single_copy)
			continue;
		if (best == count || is_less(&list[i].cost, &list[best].cost))
			best = i;
	}
	if (best == count)
		return false;
	*choice = list[best].choice;
	return true;
}

/* What a flag between two CPUs takes, where the ranks are sure to find the same. */
#define CLEARLY_NEAR_S 60e-9
#define CLEARLY_FAR_S 120e-9

/*
 * Was the model measured where two ranks were as far from each other as these are? Of a machine
 * that changes, `onecopy tune` measures one state, whose name compares it with the other. Where it
 * saw one only, what ranks find later may still be another, if it is clearly on the other side.
 */
static bool of_this_state(const struct oci_state *state, enum oci_apart apart)
{
	if (!strcmp(state->name, "near") && state->flag_s <= CLEARLY_FAR_S)
		return apart == OCI_NEAR;
	if (!strcmp(state->name, "far") && state->flag_s > CLEARLY_FAR_S)
		return apart != OCI_NEAR;
	if (!(state->flag_s > 0))
		return true;
	return !(apart == OCI_NEAR && state->flag_s > CLEARLY_FAR_S) &&
	       !(apart == OCI_FAR && state->flag_s < CLEARLY_NEAR_S);
}

enum oci_apart oci_state_apart(const struct oci_model *model)
{
	const struct oci_state *state = &model->state;
	bool near = !strcmp(state->name, "near") ||
		    (state->flag_s > 0 && state->flag_s < CLEARLY_NEAR_S);

	return model->calibrated && near ? OCI_NEAR : OCI_APART_UNKNOWN;
}

bool oci_state_decides(const struct oci_model *model)
{
	const struct oci_state *state = &model->state;

	return model->calibrated &&
	       !(of_this_state(state, OCI_APART_UNKNOWN) && of_this_state(state, OCI_NEAR) &&
		 of_this_state(state, OCI_FAR));
}

/* Reductions do not change between model and rows in a program's course: the two may combine in
 * different orders. */
static bool in_its_state(const struct oci_shape *shape, const struct oci_model *model)
{
	const char *name = model->state.name;

	if (oci_is_reduction(shape->collective))
		return strcmp(name, "near") && strcmp(name, "far");
	return of_this_state(&model->state, shape->apart);
}

/* Is it the model that decides about such calls, unless they are forced or in a file's cell? */
static bool model_decides(const struct oci_shape *shape, const struct oci_model *model)
{
	enum team_kind kind = kind_of(shape);

	/*
	 * Mapped memory has terms, but copies there are so fast that what the closed forms leave
	 * out decides: on 2 ranks of an AMD EPYC guest, tuned, 2026-11-22, the rows' choice was
	 * within 10 % of the best in 31 of 35 cells and the model's in 20, which took 1.10 times as
	 * long in the geometric mean (docs/results.md, "Mapped memory by the model").
	 */
	if (shape->mapped || kind == CROWD || shape->size < 2 ||
	    (kind == PAIR && (!model->calibrated || !in_its_state(shape, model))))
		return false;
	/*
	 * What near ranks take was measured to win by up to 1.7 times, where the model, tuned on
	 * that machine, found single copies of 64 KiB cheaper (2026-11-22: Gather, Allgather and
	 * Alltoall took 1.5 to 1.9 times as long). Not of reductions: see in_its_state().
	 */
	if (kind == PAIR && shape->apart == OCI_NEAR && !oci_is_reduction(shape->collective) &&
	    oci_near_decides(shape->collective, shape->bytes))
		return false;
	/* How these bytes would move it must know. */
	return oci_model_knows(model, shape->single_copy ? OCI_MODEL_CMA : OCI_MODEL_SHM);
}

/* Quarters of octaves: [2^e (1 + q / 4), 2^e (1 + (q + 1) / 4)). */
static unsigned int class_of(size_t bytes, size_t *first, size_t *last)
{
	unsigned int exponent, quarter;

	if (bytes < 4) {
		*first = *last = bytes;
		return (unsigned int)bytes;
	}
	exponent = 63 - (unsigned int)__builtin_clzl(bytes);
	quarter = (unsigned int)(bytes >> (exponent - 2)) & 3;
	*first = (size_t)(4 + quarter) << (exponent - 2);
	*last = *first + ((size_t)1 << (exponent - 2)) - 1;
	return 4 * exponent + quarter;
}

/* The model's choice for `bytes`, which stand for a class, remembered under `key`. */
static struct oci_choice weighed(const struct oci_shape *shape, const struct oci_model *model,
				 size_t bytes, struct oci_choices *kept, uint32_t key)
{
	/* Sizes of one collective next to each other, so that none of a program's pushes another
	 * out; those of other collectives elsewhere. */
	uint32_t at = ((key >> 1 & 0xff) + (key & 1) * 64 + (key >> 16) * 37) % OCI_KEPT;
	struct oci_shape end = *shape;
	struct oci_choice choice;

	if (kept && kept->kept[at].key == key)
		return kept->kept[at].choice;
	end.bytes = bytes;
	end.unit = 1; /* so that the element of whoever asks first does not matter */
	if (!by_model(&end, model, &choice))
		choice = (struct oci_choice){ OCI_CHOICE_MPI, 0 };
	if (kept) {
		kept->kept[at].key = key;
		kept->kept[at].choice = choice;
	}
	return choice;
}

/*
 * The sizes of a class get what is best for its first; those that this does not fit any more, what
 * is best for its last. So the choice is a function of the size, whatever was asked before.
 */
static bool by_class(const struct oci_shape *shape, const struct oci_model *model,
		     struct oci_choices *kept, struct oci_choice *choice)
{
	size_t end[2];
	uint32_t class = class_of(shape->bytes, &end[0], &end[1]);

	for (uint32_t i = 0; i < 2; i++) {
		/* Not 0, which is that of an empty place. */
		uint32_t key = ((uint32_t)shape->collective + 1) << 16 | class << 1 | i;

		*choice = weighed(shape, model, end[i], kept, key);
		if (choice->algorithm == OCI_CHOICE_MPI)
			return false;
		if (fits(shape, choice))
			return true;
	}
	return by_model(shape, model, choice);
}

struct oci_choice oci_select(const struct oci_shape *shape, const struct oci_model *model,
			     const struct oci_forced *forced, struct oci_choices *kept,
			     enum oci_decided *decided)
{
	enum oci_decided ignored;
	struct oci_choice choice;

	if (!decided)
		decided = &ignored;
	*decided = OCI_BY_FORCE;
	if (forced && forced->forced &&
	    (forced->choice.algorithm == OCI_CHOICE_MPI || fits(shape, &forced->choice)))
		return forced->choice;
	*decided = OCI_BY_FILE;
	if (model->cell_count && by_file(shape, model, &choice))
		return choice;
	*decided = OCI_BY_MODEL;
	if (model_decides(shape, model) && by_class(shape, model, kept, &choice))
		return choice;
	*decided = kind_of(shape) == TEAM || shape->size < 2 ? OCI_BY_RULE : OCI_BY_MEASURED;
	return by_rows(shape);
}

int oci_cell_check(const char *collective, const char *algorithm, const char **expected)
{
	static __thread char names[256];
	struct oci_forced forced;
	size_t at = 0;

	for (unsigned int c = 0; c < OCI_COLLECTIVES; c++) {
		if (!strcmp(collective, oci_collective_name(c)))
			return oci_forced_parse(c, algorithm, &forced, expected);
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", c ? ", " : "",
				       oci_collective_name(c));
	}
	*expected = names;
	return -EINVAL;
}

const struct oci_model *oci_coll_model(void)
{
	return oci_model_current(oci_cell_check);
}
