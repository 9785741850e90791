/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/steady.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "lab/harness/stats.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

/* A look takes some 20 us: the least of four runs of 16 trips. */
#define RUNS 4
#define TRIPS 16
#define SPINS 2000
/* More are lost than kept: beyond it a slow measurement is worth less than a mixed one. */
#define PATIENCE 2

/* Of ordered looks from `i` on: how many one state may hold whose least look this is. */
static size_t held(const double *look, size_t count, size_t i)
{
	size_t n = i;

	while (n < count && look[n] <= look[i] * OCI_STEADY_WIDTH * OCI_STEADY_WIDTH)
		n++;
	return n - i;
}

static double median_outside(const double *look, size_t count, const struct oci_steady *state)
{
	size_t below = 0, above = count;

	while (below < count && look[below] < state->least_s)
		below++;
	while (above > below && look[above - 1] > state->most_s)
		above--;
	count -= above - below;
	if (!count)
		return 0;
	/* Ordered, those inside left out. */
	return count / 2 < below ? look[count / 2] : look[count / 2 + above - below];
}

void oci_steady_at(double flag_s, struct oci_steady *state)
{
	*state = (struct oci_steady){ .flag_s = flag_s,
				      .share = 1,
				      .least_s = flag_s / OCI_STEADY_WIDTH,
				      .most_s = flag_s * OCI_STEADY_WIDTH };
}

void oci_steady_choose(double *look, size_t count, struct oci_steady *state)
{
	size_t most = 0, from = 0, inside = 0;

	*state = (struct oci_steady){ .most_s = INFINITY, .share = 1 };
	if (!count)
		return;
	stats_sort(look, count);
	for (size_t i = 0; i < count; i++) {
		/* Behind a state that has its share only what begins in it may hold more of it. */
		if ((double)most >= OCI_STEADY_SHARE * (double)count &&
		    look[i] > look[from] * OCI_STEADY_WIDTH)
			break;
		if (held(look, count, i) <= most)
			continue;
		most = held(look, count, i);
		from = i;
	}
	oci_steady_at(look[from + most / 2], state);
	for (size_t i = 0; i < count; i++)
		inside += oci_steady_holds(state, look[i]);
	state->share = (double)inside / (double)count;
	state->other_s = median_outside(look, count, state);
}

const char *oci_steady_name(const struct oci_steady *state)
{
	/* A look in twenty is noise. */
	if (state->share > 0.95 || state->other_s <= 0)
		return "only";
	return state->other_s > state->flag_s ? "near" : "far";
}

/* Acquire: whoever raised the flag has written all that it wrote before. Pairs with the release
 * store of the other side of oci_steady_look(). */
static void await(const uint64_t *word, uint64_t value)
{
	for (unsigned int spins = 0; oci_load_acquire(word) < value; spins++) {
		if (spins < SPINS)
			oci_cpu_relax();
		else
			oci_os_yield();
	}
}

double oci_steady_look(struct oci_steady_lines *lines, bool asks, uint64_t *turn)
{
	double least_s = INFINITY;

	for (int run = 0; run < RUNS; run++) {
		uint64_t start = oci_clock_ns();
		double took_s;

		for (int i = 0; i < TRIPS; i++) {
			++*turn;
			/* Release: pairs with await() on the other side. */
			if (asks) {
				oci_store_release(&lines->there, *turn);
				await(&lines->back, *turn);
			} else {
				await(&lines->there, *turn);
				oci_store_release(&lines->back, *turn);
			}
		}
		took_s = 1e-9 * (double)(oci_clock_ns() - start) / (2 * TRIPS);
		least_s = fmin(least_s, took_s);
	}
	return asks ? least_s : 0;
}

void oci_steady_begin(struct oci_steady_batches *b, const struct oci_steady *state, double look_s,
		      double now_s, double seconds)
{
	*b = (struct oci_steady_batches){ .state = state,
					  .begun_s = now_s,
					  .before_s = look_s,
					  .patience_s = PATIENCE * seconds };
}

uint32_t oci_steady_end(struct oci_steady_batches *b, double look_s, double now_s, uint32_t samples)
{
	bool counts = oci_steady_holds(b->state, b->before_s) && oci_steady_holds(b->state, look_s);

	if (!counts && !b->mixed) {
		samples = b->first;
		b->lost_s += now_s - b->begun_s;
		b->mixed = b->lost_s > b->patience_s;
	}
	b->first = samples;
	b->before_s = look_s;
	b->begun_s = now_s;
	return samples;
}
