/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far two ranks are from each other: asked again and again, and agreed.
 *
 * What is best for messages of 8 to 64 KiB depends on it by a factor of two (coll/rows.c), hwloc
 * knows nothing of it in a virtual machine, and it changes when ranks migrate. So each rank times,
 * now and then, how long a line comes that its peer has written: 10 to 30 ns between cores that
 * share a cache, 100 and more where they do not.
 *
 * Operations are counted alike on all ranks, so they are the clock. A span of them is cut into
 * strides. At the beginning of each a rank writes its line, and OCI_LANES operations later it reads
 * the peer's, timed: by then the peer has written it, it cannot have written it again, and it has
 * it in its cache still, unless the messages are larger than those that all this is about. With the
 * first write of a span goes out what the rank has found in the span before; with the first read
 * each rank knows both, and operations from there on go by it. A rank that starts an operation
 * before it has come to that read, as others of its own are still under way, has to wait for these,
 * or to choose without.
 *
 * The first spans are short, so that a program need not run for long before it gains by it; the
 * last ones are 4096 operations, for 8 measurements.
 */
#include "base/clock.h"
#include "base/log.h"
#include "team/team.h"

#define OCI_SPAN_FIRST (2ull * OCI_LANES * OCI_DISTANCE_SAMPLES)
#define OCI_SPAN_LAST 4096ull

static uint64_t measure(const uint64_t *word, uint64_t *value)
{
	uint64_t before, start, end, taken;

	oci_clock_ns(); /* its code and data are in the cache from here on */
	before = oci_clock_ns();
	start = oci_clock_ns();
	/* Acquire: pairs with the release in write_line(). The clock waits for loads before it: it
	 * is read behind a fence, where it is no system call. */
	*value = oci_load_acquire(word);
	end = oci_clock_ns();
	taken = end - start;
	return taken > start - before ? taken - (start - before) : 0;
}

uint64_t (*oci_distance_measure)(const uint64_t *word, uint64_t *value) = measure;

static uint64_t stride(const struct oci_distance *d)
{
	return (d->end - d->first) / OCI_DISTANCE_SAMPLES;
}

void oci_distance_init(struct oci_team *team)
{
	struct oci_distance *d = &team->distance;

	/* Rows for near ranks are those of two that have a CPU each and copy through slots. */
	if (team->size != 2 || team->oversubscribed || team->mapped)
		return;
	d->end = OCI_SPAN_FIRST;
	team->due = stride(d); /* there is no operation 0 that one could begin with */
	d->until = OCI_SPAN_FIRST + OCI_LANES;
}

/* The line says of which stride it is, so that it differs from the one before. */
static void write_line(const struct oci_team *team, uint64_t done)
{
	/* Release: pairs with the acquire in measure(). That the peer finds this line there, and no
	 * later one, is by `done`, which is released after it in oci_team_finish() and acquired in
	 * refresh() before the operation that ends with the peer's read could start. */
	oci_store_release(&team->own->progress.near, done << 1 | team->distance.own);
}

/* By the median: a few may have met an interrupt, or a line that the peer's cache had lost. */
static bool is_near(const struct oci_distance *d)
{
	unsigned int below = 0;

	for (unsigned int i = 0; i < d->samples; i++)
		below += d->ns[i] < OCI_NEAR_NS;
	return 2 * below > d->samples;
}

static void begin_span(struct oci_team *team)
{
	struct oci_distance *d = &team->distance;
	uint64_t span = d->end < OCI_SPAN_LAST ? d->end : OCI_SPAN_LAST;

	/* Near ranks may go through larger slots; who has no memory for one says far. */
	d->own = is_near(d) && !oci_slots_reserve_near(team);
	d->samples = 0;
	d->first = d->end;
	d->end += span;
}

static void read_line(struct oci_team *team, uint64_t done)
{
	struct oci_distance *d = &team->distance;
	uint64_t line;
	bool near;

	d->ns[d->samples++] =
		oci_distance_measure(&team->member[!team->rank].region->progress.near, &line);
	if (done != d->first + OCI_LANES)
		return;
	/* The peer's line is of this span's beginning, and ours says of the same time what the peer
	 * reads there: both ranks come to the same. */
	near = d->own && (line & 1);
	if (near != d->near)
		oci_debug("the two ranks %s, says operation %llu",
			  near ? "share a cache" : "share no cache", (unsigned long long)done);
	/* Relaxed: for the hint in oci_slot_acquire(), which may be another thread's. */
	__atomic_store_n(&d->near, near, __ATOMIC_RELAXED);
	d->known = true;
	d->until = d->end + OCI_LANES;
}

void oci_distance_step(struct oci_team *team, uint64_t done)
{
	struct oci_distance *d = &team->distance;

	if (done == d->end)
		begin_span(team);
	if ((done - d->first) % stride(d) == 0) {
		write_line(team, done);
		team->due = done + OCI_LANES;
	} else {
		read_line(team, done);
		team->due = done - OCI_LANES + stride(d);
	}
}
