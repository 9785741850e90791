// SPDX-License-Identifier: BSD-3-Clause
/*
 * From times to ratios. Everything is paired by round: the runs of one round follow each other
 * within seconds, so what slows the machine for minutes slows both sides of a ratio.
 */
#include <errno.h>
#include <stdlib.h>

#include "compare.h"

enum group { GROUP_ALL, GROUP_LARGE, GROUP_BARRIER };

static bool group_has(enum group group, const struct compare_cell *cell)
{
	switch (group) {
	case GROUP_ALL:
		return cell->collective != OC_BARRIER;
	case GROUP_LARGE:
		return cell->collective != OC_BARRIER && cell->bytes >= COMPARE_LARGE_BYTES;
	default:
		return cell->collective == OC_BARRIER;
	}
}

/* The ratio @stock/@other of one cell in one round. */
static double ratio_at(const struct compare *compare, int ranks_index, enum config stock,
		       enum config other, int cell, long round)
{
	return compare_us(compare, ranks_index, stock, cell)[round] /
	       compare_us(compare, ranks_index, other, cell)[round];
}

/* The median over the rounds of what memcpy took; of a barrier nothing. */
static int summarise_limit(const struct compare *compare, int ranks_index, int cell, double *us)
{
	struct stats_estimate limit = { .median = 0 };
	int err = 0;

	if (compare_has(compare, CONFIG_LIMIT) && compare->cells[cell].collective != OC_BARRIER) {
		err = stats_estimate(compare_us(compare, ranks_index, CONFIG_LIMIT, cell),
				     (size_t)compare->rounds, &limit);
	}
	*us = limit.median;
	return err;
}

static int summarise_cell(const struct compare *compare, int ranks_index, enum config subject,
			  int cell, double floor, double *scratch, struct cell_summary *out)
{
	size_t rounds = (size_t)compare->rounds;
	struct stats_estimate stock, other, onecopy;
	long round;
	int err;

	out->stock = CONFIG_STOCK;
	err = stats_estimate(compare_us(compare, ranks_index, CONFIG_STOCK, cell), rounds, &stock);
	if (!err && compare_has(compare, CONFIG_OTHER)) {
		err = stats_estimate(compare_us(compare, ranks_index, CONFIG_OTHER, cell), rounds,
				     &other);
		if (!err && other.median < stock.median) {
			out->stock = CONFIG_OTHER;
			stock = other;
		}
	}
	if (!err) {
		err = stats_estimate(compare_us(compare, ranks_index, subject, cell), rounds,
				     &onecopy);
	}
	if (!err) {
		err = summarise_limit(compare, ranks_index, cell, &out->limit_us);
	}
	for (round = 0; round < compare->rounds; round++) {
		scratch[round] = ratio_at(compare, ranks_index, out->stock, subject, cell, round);
	}
	if (!err) {
		err = stats_estimate(scratch, rounds, &out->ratio);
	}
	for (round = 0; round < compare->rounds; round++) {
		scratch[round] =
			ratio_at(compare, ranks_index, CONFIG_STOCK, CONFIG_CONTROL, cell, round);
	}
	if (!err) {
		err = stats_estimate(scratch, rounds, &out->control);
	}
	if (err) {
		return err;
	}
	out->stock_us = stock.median;
	out->onecopy_us = onecopy.median;
	/* Too few rounds have no 95 % interval, so nothing can be said to be lost. */
	out->lost = compare->rounds >= STATS_MIN_RUNS && out->ratio.high < floor;
	return 0;
}

/*
 * Each round's geometric mean, then its median and interval: so the interval says how much the mean
 * as a whole moves from round to round, cells that move together included.
 */
static int summarise_group(const struct compare *compare, const struct ranks_summary *s,
			   enum group group, enum config other, int *cells,
			   struct stats_estimate *out)
{
	double *means = malloc((size_t)compare->rounds * sizeof(*means));
	double *ratios = malloc((size_t)compare->cells_n * sizeof(*ratios));
	long round;
	int cell, n = 0, err = -ENOMEM;

	if (!means || !ratios) {
		goto out;
	}
	for (round = 0; round < compare->rounds; round++) {
		for (n = 0, cell = 0; cell < compare->cells_n; cell++) {
			if (group_has(group, &compare->cells[cell])) {
				ratios[n++] = ratio_at(compare, s->ranks_index,
						       other == CONFIG_CONTROL ?
							       CONFIG_STOCK :
							       s->cells[cell].stock,
						       other, cell, round);
			}
		}
		means[round] = stats_geomean(ratios, (size_t)n);
	}
	*cells = n;
	err = n == 0 ? 0 : stats_estimate(means, (size_t)compare->rounds, out);
out:
	free(ratios);
	free(means);
	return err;
}

static int summarise_groups(const struct compare *compare, struct ranks_summary *summary)
{
	struct group_summary *const groups[] = {
		[GROUP_ALL] = &summary->all,
		[GROUP_LARGE] = &summary->large,
		[GROUP_BARRIER] = &summary->barrier,
	};
	int group, err = 0;

	for (group = 0; group < 3 && !err; group++) {
		err = summarise_group(compare, summary, (enum group)group, summary->subject,
				      &groups[group]->cells, &groups[group]->ratio);
		if (!err) {
			err = summarise_group(compare, summary, (enum group)group, CONFIG_CONTROL,
					      &groups[group]->cells, &groups[group]->control);
		}
	}
	return err;
}

int compare_summaries(const struct compare *compare)
{
	return compare->options.ranks_n * (compare->options.shared_heap ? 2 : 1);
}

int compare_summarise(const struct compare *compare, struct ranks_summary *summaries)
{
	const struct compare_options *o = &compare->options;
	double *scratch = malloc((size_t)compare->rounds * sizeof(*scratch));
	int n, i, cell, err = scratch ? 0 : -ENOMEM;

	for (n = 0; n < compare_summaries(compare) && !err; n++) {
		struct ranks_summary *s = &summaries[n];

		i = n % o->ranks_n;
		s->subject = n < o->ranks_n ? CONFIG_ONECOPY : CONFIG_HEAP;
		s->ranks_index = i;
		s->ranks = o->ranks[i];
		s->oversubscribed = compare_oversubscribed(compare, i);
		s->floor = s->oversubscribed ? o->floor_oversubscribed : o->floor;
		s->lost = 0;
		for (cell = 0; cell < compare->cells_n && !err; cell++) {
			err = summarise_cell(compare, i, s->subject, cell, s->floor, scratch,
					     &s->cells[cell]);
			s->lost += !err && s->cells[cell].lost;
		}
		if (!err) {
			err = summarise_groups(compare, s);
		}
	}
	free(scratch);
	return err;
}

static const char *with_of(const struct ranks_summary *s)
{
	return s->subject == CONFIG_HEAP ? " with shared heaps" : "";
}

/* One demand of the gate; says so if it is not met. A group without cells demands nothing. */
static bool demand(const struct ranks_summary *s, const struct group_summary *group,
		   const char *what, double least, FILE *out)
{
	if (group->cells == 0 || group->ratio.median >= least) {
		return true;
	}
	fprintf(out, "Missed at %d ranks%s: %s is %.2f, below %.2f.\n", s->ranks, with_of(s), what,
		group->ratio.median, least);
	return false;
}

bool compare_gate_passes(const struct compare *compare, const struct ranks_summary *summaries,
			 FILE *out)
{
	const struct compare_options *o = &compare->options;
	bool pass = true;
	int i;

	for (i = 0; i < compare_summaries(compare); i++) {
		const struct ranks_summary *s = &summaries[i];
		bool heap = s->subject == CONFIG_HEAP;

		if (s->lost) {
			fprintf(out, "Missed at %d ranks%s: %d cell%s lost.\n", s->ranks,
				with_of(s), s->lost, s->lost == 1 ? " is" : "s are");
			pass = false;
		}
		if (s->oversubscribed) {
			pass &= demand(s, &s->all, "the geometric mean over all cells",
				       heap ? o->geomean_heap_oversubscribed :
					      o->geomean_oversubscribed,
				       out);
			continue;
		}
		pass &= demand(s, &s->all, "the geometric mean over all cells",
			       heap ? o->geomean_heap : o->geomean, out);
		pass &= demand(s, &s->large, "the geometric mean from 64 KiB up",
			       heap ? o->geomean_heap_large : o->geomean_large, out);
		pass &= demand(s, &s->barrier, "the barrier", o->barrier, out);
	}
	return pass;
}
