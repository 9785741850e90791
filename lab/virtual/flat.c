/* SPDX-License-Identifier: BSD-3-Clause */
/* One file, as each algorithm is a few lines over the same rounds and trees. */
#include "lab/virtual/flat.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Bytes of a piece, of those algorithms that cut: what `tuned` takes most for large messages. */
enum { SEGMENT = 128 << 10 };

/* How an algorithm goes, so that a few functions are many of them. */
enum {
	UP = 1,		/* up to rank 0, else down from it */
	SUMS = 2,	/* who gets something sums it */
	PARTS = 4,	/* its messages are of a rank's part of the bytes, not of all */
	NEAR_FIRST = 8, /* down the tree near children come first; up it, as it is the same tree,
			 * far ones */
	BINARY = 16,	/* through a binary tree, else a chain */
	IN_TURN = 32,	/* one message after the other, else all at once */
	DISTINCT = 64,	/* each rank has another block for each other one */
};

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool is_power(uint32_t n)
{
	return !(n & (n - 1));
}

/* The largest power of two that is no more than n. */
static uint32_t power_in(uint32_t n)
{
	uint32_t p = 1;

	while (p <= n / 2)
		p *= 2;
	return p;
}

static size_t part(const struct oci_network *n, size_t bytes)
{
	return (bytes + n->ranks - 1) / n->ranks;
}

/* Each rank sends to the one that is k further. */
static void shift(struct oci_network *n, uint32_t k, size_t bytes, bool sums)
{
	for (uint32_t r = 0; r < n->kept; r++)
		oci_network_add(n, (r + n->ranks - k % n->ranks) % n->ranks, r, bytes, sums);
	oci_network_round(n);
}

/* So many rounds of the same: once they take the same time, the others do. */
static void shift_often(struct oci_network *n, uint32_t times, uint32_t k, size_t bytes, bool sums)
{
	uint32_t enough = n->alike ? 2 * n->each + 2 : 8, run = times < enough ? times : enough;
	double before_s = 0;

	for (uint32_t i = 0; i < run; i++) {
		before_s = oci_network_end(n);
		shift(n, k, bytes, sums);
	}
	oci_network_pass(n, (times - run) * (oci_network_end(n) - before_s));
}

/* Rank i of the largest power of two: where there are more ranks, the first ones stand for two. */
static uint32_t stands(const struct oci_network *n, uint32_t i)
{
	uint32_t more = n->ranks - power_in(n->ranks);

	return i < more ? 2 * i : i + more;
}

/* Those who do not take part give theirs, or get the result. */
static void fold(struct oci_network *n, size_t bytes, bool back, bool sums)
{
	uint32_t more = n->ranks - power_in(n->ranks);

	for (uint32_t i = 0; i < more; i++)
		oci_network_add(n, 2 * i + !back, 2 * i + back, bytes, sums && !back);
	oci_network_round(n);
}

/* Both of each pair that is k apart send. */
static void exchange(struct oci_network *n, uint32_t k, size_t bytes, bool sums)
{
	uint32_t ranks = n->alike ? n->kept : power_in(n->ranks);

	for (uint32_t i = 0; i < ranks; i++)
		oci_network_add(n, stands(n, i ^ k), stands(n, i), bytes, sums);
	oci_network_round(n);
}

/* Down from the parent, or up to it. */
static void add_either(struct oci_network *n, uint32_t parent, uint32_t child, size_t bytes,
		       unsigned int how)
{
	oci_network_add(n, how & UP ? child : parent, how & UP ? parent : child, bytes, how & SUMS);
}

/* ---- trees: down from rank 0, or up to it ---------------------------------------------------- */

/* Rank r's child in the round of distance k is r + k. Near ones first, or far ones. */
static void binomial_round(struct oci_network *n, uint32_t k, size_t bytes, unsigned int how)
{
	bool near_first = how & NEAR_FIRST;
	uint32_t step = near_first ? 1 : 2 * k;

	for (uint32_t r = 0; r < (near_first ? k : n->ranks) && r + k < n->ranks; r += step)
		add_either(n, r, r + k, bytes, how);
	oci_network_round(n);
}

static void binomial(struct oci_network *n, size_t bytes, unsigned int how)
{
	bool near_first = how & NEAR_FIRST, up = how & UP, from_near = near_first != up;
	uint32_t far = power_in(n->ranks - 1);

	for (uint32_t k = 1; k <= far; k *= 2)
		binomial_round(n, from_near ? k : far / k, bytes, how);
}

/* Blocks of all ranks, near ones first together, or far ones first apart. */
static void binomial_blocks(struct oci_network *n, size_t bytes, unsigned int how)
{
	uint32_t far = power_in(n->ranks - 1);

	for (uint32_t i = 1; i <= far; i *= 2) {
		uint32_t k = how & UP ? i : far / i;

		for (uint32_t r = 0; r < n->ranks - k; r += 2 * k) {
			uint32_t blocks = n->ranks - r - k < k ? n->ranks - r - k : k;

			add_either(n, r, r + k, blocks * bytes, how);
		}
		oci_network_round(n);
	}
}

/* A piece goes through the tree, whose rank r has this parent: as children come behind, so in turn;
 * upwards from the last. */
static void piece(struct oci_network *n, size_t bytes, unsigned int how)
{
	for (uint32_t i = 1; i < n->ranks; i++) {
		uint32_t r = how & UP ? n->ranks - i : i;

		add_either(n, (r - 1) / (how & BINARY ? 2 : 1), r, bytes, how);
		oci_network_round(n);
	}
}

/* Piece by piece; once pieces come at the same pace, the others do. */
static void pieces(struct oci_network *n, size_t bytes, unsigned int how)
{
	size_t count = bytes > SEGMENT ? (bytes + SEGMENT - 1) / SEGMENT : 1;
	size_t run = count < 3 ? count : 3;
	double before_s = 0;

	for (size_t i = 0; i < run; i++) {
		before_s = oci_network_end(n);
		piece(n, bytes / count, how);
	}
	oci_network_pass(n, (double)(count - run) * (oci_network_end(n) - before_s));
}

/* ---- algorithms ------------------------------------------------------------------------------ */

static void dissemination(struct oci_network *n, size_t bytes, unsigned int how)
{
	(void)bytes;
	(void)how;
	for (uint32_t k = 1; k < n->ranks; k *= 2)
		shift(n, k, 0, false);
}

static void linear(struct oci_network *n, size_t bytes, unsigned int how)
{
	for (uint32_t r = 1; r < n->ranks; r++) {
		add_either(n, 0, r, bytes, how);
		if (how & IN_TURN)
			oci_network_round(n);
	}
	oci_network_round(n);
}

/* Halves of halves are exchanged and summed, from the farthest: each then has its part. */
static void halving(struct oci_network *n, size_t bytes, unsigned int how)
{
	fold(n, bytes, false, how & SUMS);
	for (uint32_t k = power_in(n->ranks) / 2; k; k /= 2) {
		bytes -= bytes / 2;
		exchange(n, k, bytes, how & SUMS);
	}
}

/* The other way: parts, pairs of them, until each has all. */
static void doubling_parts(struct oci_network *n, size_t bytes)
{
	uint32_t power = power_in(n->ranks);

	for (uint32_t k = 1; k < power; k *= 2)
		exchange(n, k, (bytes + power / k - 1) / (power / k), false);
	fold(n, bytes, true, false);
}

static void halving_doubling(struct oci_network *n, size_t bytes, unsigned int how)
{
	halving(n, bytes, how);
	doubling_parts(n, bytes);
}

static void doubling(struct oci_network *n, size_t bytes, unsigned int how)
{
	fold(n, bytes, false, how & SUMS);
	for (uint32_t k = 1; k < power_in(n->ranks); k *= 2)
		exchange(n, k, bytes, how & SUMS);
	fold(n, bytes, true, false);
}

static void ring(struct oci_network *n, size_t bytes, unsigned int how)
{
	shift_often(n, n->ranks - 1, 1, bytes, how & SUMS);
}

/* Sums go round, then results. */
static void ring_twice(struct oci_network *n, size_t bytes, unsigned int how)
{
	ring(n, bytes, how);
	ring(n, bytes, how & ~SUMS);
}

/* Of the distances that ranks exchange blocks over, those with this bit. */
static uint32_t distances_with(uint32_t ranks, uint32_t bit)
{
	uint32_t rest = ranks % (2 * bit);

	return ranks / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

static void bruck(struct oci_network *n, size_t bytes, unsigned int how)
{
	for (uint32_t k = 1; k < n->ranks; k *= 2) {
		uint32_t all = k < n->ranks - k ? k : n->ranks - k;

		shift(n, k, bytes * (how & DISTINCT ? distances_with(n->ranks, k) : all), false);
	}
}

/* Of the distances, those at which all of a node send to others are alike. */
static void pairwise(struct oci_network *n, size_t bytes, unsigned int how)
{
	uint32_t p = n->ranks, e = n->each, alike = p > 2 * e ? p - 2 * e + 1 : 0;

	for (uint32_t k = 1; k < p; k++) {
		if (k == e && alike) {
			shift_often(n, alike, k, bytes, how & SUMS);
			k += alike - 1;
		} else {
			shift(n, k, bytes, how & SUMS);
		}
	}
}

/* One rank after the other. */
static void in_turn(struct oci_network *n, size_t bytes, unsigned int how)
{
	for (uint32_t r = 1; r < n->ranks; r++) {
		oci_network_add(n, r - 1, r, bytes, how & SUMS);
		oci_network_round(n);
	}
}

/* All with all at once: by what is busy longest, the cards or the CPUs. A rank reads from those on
 * its node one after the other. */
static void all_at_once(struct oci_network *n, size_t bytes, unsigned int how)
{
	const struct oci_model *m = n->model;
	double others = n->ranks - n->each, e = n->each, local_s = 0;
	double messages = (double)bytes > m->net_eager.value ? 6 : 2;
	double card_s = others * e * fmax(m->net_gap.value, (double)bytes * m->net_gap_byte.value);
	double cpu_s = others * messages * m->net_overhead.value;

	(void)how;
	if (n->each > 1) {
		for (uint32_t r = 0; r < n->each; r++)
			oci_network_add(n, (r + 1) % n->each, r, bytes, false);
		oci_network_round(n);
		local_s = oci_network_end(n);
		oci_network_pass(n, (e - 2) * local_s);
	}
	if (others > 0)
		oci_network_pass(n, fmax(card_s, cpu_s) + m->net_latency.value);
}

/* Where one node may stand for all. */
enum alike {
	NEVER,
	ALWAYS,
	BY_POWERS, /* where there are a power of two nodes, of a power of two ranks each */
};

/* Two rows of one name are one algorithm: all ranks are through with the first before the second.
 */
static const struct algorithm {
	enum oc_collective collective;
	const char *name;
	void (*run)(struct oci_network *n, size_t bytes, unsigned int how);
	unsigned int how;
	enum alike alike;
} algorithms[] = {
	{ OC_BARRIER, "dissemination", dissemination, 0, ALWAYS },
	{ OC_BCAST, "linear", linear, 0, NEVER },
	/* Whom the root sends to first. Open MPI's trees, MPICH's. */
	{ OC_BCAST, "binomial-near", binomial, NEAR_FIRST, NEVER },
	{ OC_BCAST, "binomial-far", binomial, 0, NEVER },
	{ OC_BCAST, "chain", pieces, 0, NEVER },
	{ OC_BCAST, "binary", pieces, BINARY, NEVER },
	{ OC_BCAST, "scatter-ring", binomial_blocks, PARTS, NEVER },
	{ OC_BCAST, "scatter-ring", ring, PARTS, ALWAYS },
	/* Whom the root gets from first: MPICH's, Open MPI's. */
	{ OC_REDUCE, "binomial-near", binomial, UP | SUMS, NEVER },
	{ OC_REDUCE, "binomial-far", binomial, UP | SUMS | NEAR_FIRST, NEVER },
	{ OC_REDUCE, "chain", pieces, UP | SUMS, NEVER },
	{ OC_REDUCE, "binary", pieces, UP | SUMS | BINARY, NEVER },
	{ OC_REDUCE, "halving-gather", halving, SUMS, BY_POWERS },
	{ OC_REDUCE, "halving-gather", binomial_blocks, UP | PARTS, NEVER },
	{ OC_ALLREDUCE, "recursive-doubling", doubling, SUMS, BY_POWERS },
	{ OC_ALLREDUCE, "ring", ring_twice, SUMS | PARTS, ALWAYS },
	{ OC_ALLREDUCE, "halving-doubling", halving_doubling, SUMS, BY_POWERS },
	{ OC_SCAN, "recursive-doubling", doubling, SUMS, BY_POWERS },
	{ OC_SCAN, "linear", in_turn, SUMS, NEVER },
	{ OC_GATHER, "linear", linear, UP, NEVER },
	{ OC_GATHER, "binomial", binomial_blocks, UP, NEVER },
	{ OC_GATHERV, "linear", linear, UP, NEVER },
	{ OC_SCATTER, "linear", linear, IN_TURN, NEVER },
	{ OC_SCATTER, "linear-at-once", linear, 0, NEVER },
	{ OC_SCATTER, "binomial", binomial_blocks, 0, NEVER },
	{ OC_SCATTERV, "linear", linear, IN_TURN, NEVER },
	{ OC_SCATTERV, "linear-at-once", linear, 0, NEVER },
	{ OC_ALLGATHER, "ring", ring, 0, ALWAYS },
	{ OC_ALLGATHER, "bruck", bruck, 0, ALWAYS },
	{ OC_ALLGATHERV, "ring", ring, 0, ALWAYS },
	{ OC_ALLGATHERV, "bruck", bruck, 0, ALWAYS },
	{ OC_ALLTOALL, "all-at-once", all_at_once, 0, ALWAYS },
	{ OC_ALLTOALL, "pairwise", pairwise, 0, ALWAYS },
	{ OC_ALLTOALL, "bruck", bruck, DISTINCT, ALWAYS },
	{ OC_ALLTOALLV, "all-at-once", all_at_once, 0, ALWAYS },
	{ OC_ALLTOALLV, "pairwise", pairwise, 0, ALWAYS },
	{ OC_REDUCE_SCATTER, "halving", halving, SUMS, BY_POWERS },
	{ OC_REDUCE_SCATTER, "ring", ring, SUMS | PARTS, ALWAYS },
	{ OC_REDUCE_SCATTER, "pairwise", pairwise, SUMS | PARTS, ALWAYS },
};
enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

static int run_row(const struct algorithm *a, const struct oci_model *model, size_t bytes,
		   uint32_t nodes, uint32_t each, double *s)
{
	bool alike = a->alike == ALWAYS ||
		     (a->alike == BY_POWERS && is_power(nodes) && is_power(each));
	struct oci_network n;
	int error = oci_network_open(&n, model, nodes, each, alike);

	if (!error)
		a->run(&n, a->how & PARTS ? part(&n, bytes) : bytes, a->how);
	if (n.failed)
		error = -ENOMEM;
	if (!error)
		*s += oci_network_end(&n);
	oci_network_close(&n);
	return error;
}

static bool same(const struct algorithm *a, const struct algorithm *b)
{
	return a->collective == b->collective && !strcmp(a->name, b->name);
}

/* From its first row on. */
static int run(const struct algorithm *a, const struct oci_model *model, size_t bytes,
	       uint32_t nodes, uint32_t each, double *s)
{
	const struct algorithm *first = a;
	int error = 0;

	*s = 0;
	for (; !error && a < algorithms + ALGORITHMS && same(a, first); a++)
		error = run_row(a, model, bytes, nodes, each, s);
	return error;
}

/* An Exscan's messages are a Scan's; of a Reduce_scatter `bytes` is all blocks. */
static enum oc_collective kind_of(enum oc_collective collective, size_t *bytes, uint32_t ranks)
{
	if (collective == OC_REDUCE_SCATTER_BLOCK)
		*bytes *= ranks;
	return collective == OC_EXSCAN		     ? OC_SCAN :
	       collective == OC_REDUCE_SCATTER_BLOCK ? OC_REDUCE_SCATTER :
						       collective;
}

int oci_flat_by(const struct oci_model *model, enum oc_collective collective, const char *name,
		size_t bytes, uint32_t nodes, uint32_t each, double *s)
{
	enum oc_collective kind = kind_of(collective, &bytes, nodes * each);

	for (size_t i = 0; i < ALGORITHMS; i++)
		if (algorithms[i].collective == kind && !strcmp(algorithms[i].name, name))
			return run(&algorithms[i], model, bytes, nodes, each, s);
	return -ENOENT;
}

/* Those that are two others. */
static const struct {
	enum oc_collective collective;
	const char *name;
	enum oc_collective first, second;
} pairs[] = {
	{ OC_ALLREDUCE, "reduce-bcast", OC_REDUCE, OC_BCAST },
	{ OC_ALLGATHER, "gather-bcast", OC_GATHER, OC_BCAST },
	{ OC_ALLGATHERV, "gatherv-bcast", OC_GATHERV, OC_BCAST },
	{ OC_REDUCE_SCATTER, "reduce-scatterv", OC_REDUCE, OC_SCATTERV },
};

static int quickest(const struct oci_model *model, enum oc_collective kind, size_t bytes,
		    uint32_t nodes, uint32_t each, struct oci_flat *best)
{
	for (size_t i = 0; i < ALGORITHMS; i++) {
		double s;
		int error;

		if (algorithms[i].collective != kind ||
		    (i && same(&algorithms[i], &algorithms[i - 1])))
			continue;
		error = run(&algorithms[i], model, bytes, nodes, each, &s);
		if (error)
			return error;
		if (s < best->s)
			*best = (struct oci_flat){ algorithms[i].name, s };
	}
	return 0;
}

static int quickest_pair(const struct oci_model *model, enum oc_collective kind, size_t bytes,
			 uint32_t nodes, uint32_t each, struct oci_flat *best)
{
	size_t ranks = (size_t)nodes * each;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct oci_flat first = { NULL, INFINITY }, second = { NULL, INFINITY };
		bool gathers = oci_receives_each(kind), parts = oci_sends_each(kind);
		int error;

		if (pairs[i].collective != kind)
			continue;
		error = quickest(model, pairs[i].first, bytes, nodes, each, &first);
		if (!error)
			error = quickest(model, pairs[i].second,
					 gathers ? bytes * ranks :
					 parts	 ? bytes / ranks :
						   bytes,
					 nodes, each, &second);
		if (error)
			return error;
		if (first.s + second.s < best->s)
			*best = (struct oci_flat){ pairs[i].name, first.s + second.s };
	}
	return 0;
}

int oci_flat_quickest(const struct oci_model *model, enum oc_collective collective, size_t bytes,
		      uint32_t nodes, uint32_t each, struct oci_flat *flat)
{
	enum oc_collective kind = kind_of(collective, &bytes, nodes * each);
	struct oci_flat best = { NULL, INFINITY };
	int error = quickest(model, kind, bytes, nodes, each, &best);

	if (!error)
		error = quickest_pair(model, kind, bytes, nodes, each, &best);
	if (!error && !best.name)
		error = -ENOTSUP;
	if (!error)
		*flat = best;
	return error;
}
