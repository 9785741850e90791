/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice among algorithms: a pure function of the call's shape and the model.
 *
 *   1. what is forced, where it fits
 *   2. a cell of the tuning file that names this call
 *   3. the measured rows (rows.c), on teams of the kinds that they were measured for: two ranks,
 *      unless the model was calibrated on this machine;
 *      more ranks than CPUs, always, as the model has no term for ranks that share a core; and
 *      all whose ranks have shared heaps, where the rows choose better (below)
 *   4. the cheapest by the model, of all algorithms with a closed form, each with the parameters
 *      worth trying; the first of equals; none that is there to compare with
 *   5. where the model knows nothing of how these bytes would move, the rows again
 */
#include "coll/select.h"
#include "coll/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
	return choice->algorithm == OCI_CHOICE_MPI || oci_choice_fits(shape, choice);
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

	if (!a->cost)
		return 0;
	do {
		choice.parameter = *tries++;
		/* More at a time than there are peers is as all of them. */
		if (count && a->tries && choice.parameter >= shape->size &&
		    a->tries == oci_tries_fanout)
			break;
		if (!oci_choice_fits(shape, &choice))
			continue;
		list[count++] = (struct oci_candidate){
			.choice = choice,
			.cost = oci_cost_of(a, model, shape, choice.parameter),
		};
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

/* Is it the model that decides about such calls, unless they are forced or in a file's cell? */
static bool model_decides(const struct oci_shape *shape, const struct oci_model *model)
{
	enum oci_team_kind kind = oci_team_kind(shape);

	/*
	 * Mapped memory has terms, but copies there are so fast that what the closed forms leave
	 * out decides: on 2 ranks of an AMD EPYC guest, tuned, 2026-11-22, the rows' choice was
	 * within 10 % of the best in 31 of 35 cells and the model's in 20, which took 1.10 times as
	 * long in the geometric mean (docs/results/experiments.md, "Mapped memory by the model").
	 */
	if (shape->mapped || kind == OCI_CROWD || shape->size < 2 ||
	    (kind == OCI_PAIR && !model->calibrated))
		return false;
	/*
	 * What near ranks take was measured to win by up to 1.7 times, where the model, tuned on
	 * that machine, found single copies of 64 KiB cheaper (2026-11-22: Gather, Allgather and
	 * Alltoall took 1.5 to 1.9 times as long). Reductions go by the model for all sizes: rows
	 * and model may combine in different orders.
	 */
	if (kind == OCI_PAIR && oci_topo_near(shape->common) &&
	    !oci_is_reduction(shape->collective) &&
	    oci_near_decides(shape->collective, shape->bytes))
		return false;
	/* How these bytes would move it must know. */
	return oci_model_knows(model, oci_cost_mechanism(shape, model));
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
	uint32_t at = ((key >> 1 & 0xff) + (key & 1) * 64 + (key >> 14) * 37) % OCI_KEPT;
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
		/* All that calls of one team differ in. Not 0, which is that of an empty place. */
		uint32_t key = ((uint32_t)shape->collective + 1) << 16 |
			       (uint32_t)shape->large_slots << 15 |
			       (uint32_t)shape->in_place << 14 | class << 1 | i;

		*choice = weighed(shape, model, end[i], kept, key);
		if (choice->algorithm == OCI_CHOICE_MPI)
			return false;
		if (oci_choice_fits(shape, choice))
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
	    (forced->choice.algorithm == OCI_CHOICE_MPI || oci_choice_fits(shape, &forced->choice)))
		return forced->choice;
	*decided = OCI_BY_FILE;
	if (model->cell_count && by_file(shape, model, &choice))
		return choice;
	*decided = OCI_BY_MODEL;
	if (model_decides(shape, model) && by_class(shape, model, kept, &choice))
		return choice;
	*decided = oci_team_kind(shape) == OCI_TEAM || shape->size < 2 ? OCI_BY_RULE :
									 OCI_BY_MEASURED;
	return oci_by_rows(shape);
}

struct oci_choice oci_select_ours(const struct oci_shape *shape, const struct oci_model *model)
{
	struct oci_choice choice = oci_by_rows(shape);

	if (choice.algorithm == OCI_CHOICE_MPI)
		by_model(shape, model, &choice);
	return choice;
}

int oci_cell_check(const char *collective, const char *algorithm, const char **expected)
{
	static __thread char names[256];
	struct oci_forced forced;
	size_t at = 0;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
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
