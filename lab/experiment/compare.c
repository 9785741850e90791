/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One series against another. Everything is paired by round: what stands side by side in a round
 * runs within seconds, so what slows the machine for minutes slows both sides of a ratio.
 */
#include "lab/experiment/experiment.h"

#include <math.h>
#include <stdlib.h>

struct figure *comparison_figure(const struct results *results, const struct comparison *comparison,
				 const struct figure *figure)
{
	unsigned int f = 0;

	while (figure && results->figures[f++] != figure)
		;
	for (; f < results->figure_count; f++)
		if (results->figures[f]->group == comparison->group)
			return results->figures[f];
	return NULL;
}

static bool is_wrong(const struct figure_cell *a, const struct figure_cell *b)
{
	return (a && a->wrong) || (b && b->wrong);
}

/* How many times better `b` was than `a` in a round; NaN: one of them is not there, or is wrong. */
static double ratio_at(const struct figure *figure, const struct figure_cell *a,
		       const struct figure_cell *b, unsigned int round)
{
	if (!a || !b || !a->samples || !b->samples || is_wrong(a, b))
		return NAN;
	return figure->more_is_better ? b->samples[round] / a->samples[round] :
					a->samples[round] / b->samples[round];
}

static void estimate(const double *values, unsigned int count, struct stats_estimate *out)
{
	*out = (struct stats_estimate){ NAN, NAN, NAN, 0 };
	if (count && stats_estimate(values, count, out))
		must(NULL);
}

static void estimate_ratio(const struct results *results, const struct figure *figure,
			   const struct figure_cell *a, const struct figure_cell *b,
			   double *scratch, struct stats_estimate *out)
{
	unsigned int count = 0;

	for (unsigned int r = 0; r < results->complete; r++) {
		double ratio = ratio_at(figure, a, b, r);

		if (!isnan(ratio))
			scratch[count++] = ratio;
	}
	estimate(scratch, count, out);
}

/*
 * Of few rounds no interval holds the median with 95 %: nothing is judged then. What identical
 * programs differ by, which the control shows, is neither won nor lost.
 */
static enum verdict judge(const struct compared *cell, double floor)
{
	const struct stats_estimate *ratio = &cell->ratio, *control = &cell->control;

	if (ratio->coverage < 0.95)
		return VERDICT_NONE;
	if (ratio->high < floor && !(ratio->high >= control->low))
		return VERDICT_LOST;
	return ratio->low > 1 && !(ratio->low <= control->high) ? VERDICT_WON : VERDICT_NONE;
}

static const struct figure_cell *there(const struct figure_cell *cell)
{
	return cell && (cell->count || cell->wrong) ? cell : NULL;
}

static void compare_cell(const struct results *results, const struct comparison *comparison,
			 double *scratch, struct compared *out)
{
	const struct figure *figure = out->figure;
	unsigned int x = out->x;
	const struct figure_cell *stock = there(figure_cell_of(figure, comparison->stock, x));
	const struct figure_cell *other = there(figure_cell_of(figure, comparison->other, x));
	const struct figure_cell *controlled = figure_cell_of(figure, comparison->controlled, x);
	const struct figure_cell *control = figure_cell_of(figure, comparison->control, x);

	out->subject = there(figure_cell_of(figure, comparison->subject, x));
	/* Of nothing that moves there is no limit. */
	out->limit = figure->x[x] ? there(figure_cell_of(figure, comparison->limit, x)) : NULL;
	estimate_ratio(results, figure, controlled, control, scratch, &out->control);
	out->other = other && !other->wrong &&
		     (!stock || stock->wrong ||
		      (figure->more_is_better ? other->value.median > stock->value.median :
						other->value.median < stock->value.median));
	out->stock = out->other ? other : stock;
	estimate_ratio(results, figure, out->stock, out->subject, scratch, &out->ratio);
	out->verdict = is_wrong(out->stock, out->subject) || is_wrong(controlled, control) ?
			       VERDICT_WRONG :
			       judge(out, comparison->floor);
}

/* The interval ends at the k-th greatest ratio: with k of them at the floor it cannot lie below. */
bool comparison_may_lose(const struct results *results, const struct figure *figure, unsigned int x,
			 const char *stock, const char *subject, double floor)
{
	const struct figure_cell *a = figure_cell_of(figure, stock, x);
	const struct figure_cell *b = figure_cell_of(figure, subject, x);
	unsigned int above = 0;
	double coverage;

	if (is_wrong(a, b))
		return false;
	for (unsigned int r = 0; r < figure->rounds; r++)
		above += ratio_at(figure, a, b, r) >= floor;
	return above < stats_interval_rank(results->rounds, &coverage);
}

/*
 * Each round's geometric mean, of those rounds alone that have all the cells, then its median and
 * interval: so the interval says how much the mean as a whole moves from round to round, cells that
 * move together included.
 */
static unsigned int ratios_of_group(const struct comparison *comparison, const struct group *group,
				    bool control, unsigned int round, double *ratios)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < comparison->cell_count; i++) {
		const struct compared *cell = &comparison->cells[i];
		const struct figure_cell *a = cell->stock, *b = cell->subject;

		if (!group->has(cell->figure, cell->x))
			continue;
		if (control) {
			a = figure_cell_of(cell->figure, comparison->controlled, cell->x);
			b = figure_cell_of(cell->figure, comparison->control, cell->x);
		}
		ratios[count] = ratio_at(cell->figure, a, b, round);
		count += !isnan(ratios[count]);
	}
	return count;
}

static void mean_of_group(const struct results *results, struct comparison *comparison,
			  struct group *group, bool control, double *ratios, double *means)
{
	unsigned int rounds = 0, most = 0;

	for (unsigned int r = 0; r < results->complete; r++) {
		unsigned int count = ratios_of_group(comparison, group, control, r, ratios);

		most = count > most ? count : most;
	}
	for (unsigned int r = 0; r < results->complete && most; r++)
		if (ratios_of_group(comparison, group, control, r, ratios) == most)
			means[rounds++] = stats_geomean(ratios, most);
	group->cells = most > group->cells ? most : group->cells;
	estimate(means, rounds, control ? &group->control : &group->ratio);
}

void comparison_finish(const struct results *results, struct comparison *comparison)
{
	double *scratch, *means = must(malloc((results->rounds + 1) * sizeof(*means)));
	struct figure *f = NULL;

	comparison->cell_count = comparison->lost = 0;
	while ((f = comparison_figure(results, comparison, f))) {
		for (unsigned int x = 0; x < f->x_count; x++)
			LIST_ADD(comparison->cells, comparison->cell_count,
				 ((struct compared){ .figure = f, .x = x }));
	}
	scratch = must(malloc((comparison->cell_count + results->rounds + 1) * sizeof(*scratch)));
	for (unsigned int i = 0; i < comparison->cell_count; i++) {
		compare_cell(results, comparison, scratch, &comparison->cells[i]);
		comparison->lost += comparison->cells[i].verdict == VERDICT_LOST;
	}
	for (unsigned int g = 0; g < comparison->group_count; g++) {
		mean_of_group(results, comparison, &comparison->groups[g], false, scratch, means);
		mean_of_group(results, comparison, &comparison->groups[g], true, scratch, means);
	}
	free(scratch);
	free(means);
}

bool comparison_passes(const struct comparison *comparison, FILE *out)
{
	bool pass = true;

	if (comparison->lost) {
		fprintf(out, "Missed at %s: %u cell%s lost.\n", comparison->title, comparison->lost,
			comparison->lost == 1 ? " is" : "s are");
		pass = false;
	}
	for (unsigned int g = 0; g < comparison->group_count; g++) {
		const struct group *group = &comparison->groups[g];

		if (!group->cells || !(group->ratio.median < group->least))
			continue;
		fprintf(out, "Missed at %s: %s: the geometric mean is %.2f, below %.2f.\n",
			comparison->title, group->name, group->ratio.median, group->least);
		pass = false;
	}
	return pass;
}
