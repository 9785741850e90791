/* SPDX-License-Identifier: BSD-3-Clause */
/* One file, as each algorithm is a few lines over the same rounds and trees. */
#include "lab/virtual/flat.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Bytes of a piece, of those algorithms that cut: what `tuned` takes most for large messages. */
enum { SEGMENT = 128 << 10 };

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

/* With a block or message of one of them, down from the parent or up to it. */
static void add_either(struct oci_network *n, bool up, uint32_t parent, uint32_t child,
		       size_t bytes)
{
	oci_network_add(n, up ? child : parent, up ? parent : child, bytes, false);
}

/* ---- trees: down from rank 0, or up to it ---------------------------------------------------- */

/* Rank r's child in the round of distance k is r + k. Near ones first, or far ones. */
static void binomial_round(struct oci_network *n, uint32_t k, bool near_first, bool up, bool sums,
			   size_t bytes)
{
	uint32_t step = near_first ? 1 : 2 * k;

	for (uint32_t r = 0; r < (near_first ? k : n->ranks) && r + k < n->ranks; r += step)
		oci_network_add(n, up ? r + k : r, up ? r : r + k, bytes, up && sums);
	oci_network_round(n);
}

static void binomial(struct oci_network *n, size_t bytes, bool near_first, bool up, bool sums)
{
	uint32_t far = power_in(n->ranks - 1);

	for (uint32_t k = 1; k <= far; k *= 2) {
		bool from_near = near_first != up;

		binomial_round(n, from_near ? k : far / k, near_first, up, sums, bytes);
	}
}

/* Blocks of all ranks, near ones first together, or far ones first apart. */
static void binomial_blocks(struct oci_network *n, size_t bytes, bool up)
{
	uint32_t far = power_in(n->ranks - 1);

	for (uint32_t i = 1; i <= far; i *= 2) {
		uint32_t k = up ? i : far / i;

		for (uint32_t r = 0; r < n->ranks - k; r += 2 * k) {
			uint32_t blocks = n->ranks - r - k < k ? n->ranks - r - k : k;

			add_either(n, up, r, r + k, blocks * bytes);
		}
		oci_network_round(n);
	}
}

/* A piece goes through the tree, whose rank r has this parent: as children come behind, so in turn;
 * upwards from the last. */
static void piece(struct oci_network *n, uint32_t fan, bool up, bool sums, size_t bytes)
{
	for (uint32_t i = 1; i < n->ranks; i++) {
		uint32_t r = up ? n->ranks - i : i, parent = (r - 1) / fan;

		oci_network_add(n, up ? r : parent, up ? parent : r, bytes, up && sums);
		oci_network_round(n);
	}
}

/* Piece by piece; once pieces come at the same pace, the others do. */
static void pieces(struct oci_network *n, uint32_t fan, size_t bytes, bool up, bool sums)
{
	size_t count = bytes > SEGMENT ? (bytes + SEGMENT - 1) / SEGMENT : 1;
	size_t run = count < 3 ? count : 3;
	double before_s = 0;

	for (size_t i = 0; i < run; i++) {
		before_s = oci_network_end(n);
		piece(n, fan, up, sums, bytes / count);
	}
	oci_network_pass(n, (double)(count - run) * (oci_network_end(n) - before_s));
}

/* ---- algorithms ------------------------------------------------------------------------------ */

static void dissemination(struct oci_network *n, size_t bytes)
{
	(void)bytes;
	for (uint32_t k = 1; k < n->ranks; k *= 2)
		shift(n, k, 0, false);
}

static void near_down(struct oci_network *n, size_t bytes)
{
	binomial(n, bytes, true, false, false);
}

static void far_down(struct oci_network *n, size_t bytes)
{
	binomial(n, bytes, false, false, false);
}

static void chain_down(struct oci_network *n, size_t bytes)
{
	pieces(n, 1, bytes, false, false);
}

static void binary_down(struct oci_network *n, size_t bytes)
{
	pieces(n, 2, bytes, false, false);
}

static void linear(struct oci_network *n, size_t bytes, bool up, bool at_once)
{
	for (uint32_t r = 1; r < n->ranks; r++) {
		add_either(n, up, 0, r, bytes);
		if (!at_once)
			oci_network_round(n);
	}
	oci_network_round(n);
}

static void linear_down(struct oci_network *n, size_t bytes)
{
	linear(n, bytes, false, true);
}

static void linear_in_turn(struct oci_network *n, size_t bytes)
{
	linear(n, bytes, false, false);
}

static void linear_up(struct oci_network *n, size_t bytes)
{
	linear(n, bytes, true, true);
}

static void scatter_parts(struct oci_network *n, size_t bytes)
{
	binomial_blocks(n, part(n, bytes), false);
}

static void gather_parts(struct oci_network *n, size_t bytes)
{
	binomial_blocks(n, part(n, bytes), true);
}

static void ring_parts(struct oci_network *n, size_t bytes)
{
	shift_often(n, n->ranks - 1, 1, part(n, bytes), false);
}

static void far_up(struct oci_network *n, size_t bytes)
{
	binomial(n, bytes, true, true, true);
}

static void near_up(struct oci_network *n, size_t bytes)
{
	binomial(n, bytes, false, true, true);
}

static void chain_up(struct oci_network *n, size_t bytes)
{
	pieces(n, 1, bytes, true, true);
}

static void binary_up(struct oci_network *n, size_t bytes)
{
	pieces(n, 2, bytes, true, true);
}

/* Halves of halves are exchanged and summed, from the farthest: each then has its part. */
static void halving(struct oci_network *n, size_t bytes)
{
	fold(n, bytes, false, true);
	for (uint32_t k = power_in(n->ranks) / 2; k; k /= 2) {
		bytes -= bytes / 2;
		exchange(n, k, bytes, true);
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

static void halving_doubling(struct oci_network *n, size_t bytes)
{
	halving(n, bytes);
	doubling_parts(n, bytes);
}

static void doubling(struct oci_network *n, size_t bytes, bool sums)
{
	fold(n, bytes, false, sums);
	for (uint32_t k = 1; k < power_in(n->ranks); k *= 2)
		exchange(n, k, bytes, sums);
	fold(n, bytes, true, false);
}

static void doubling_sums(struct oci_network *n, size_t bytes)
{
	doubling(n, bytes, true);
}

static void ring_sums(struct oci_network *n, size_t bytes)
{
	shift_often(n, n->ranks - 1, 1, part(n, bytes), true);
}

static void ring_twice(struct oci_network *n, size_t bytes)
{
	ring_sums(n, bytes);
	shift_often(n, n->ranks - 1, 1, part(n, bytes), false);
}

static void ring(struct oci_network *n, size_t bytes)
{
	shift_often(n, n->ranks - 1, 1, bytes, false);
}

static void bruck(struct oci_network *n, size_t bytes)
{
	for (uint32_t k = 1; k < n->ranks; k *= 2)
		shift(n, k, bytes * (k < n->ranks - k ? k : n->ranks - k), false);
}

/* Of the distances that ranks exchange blocks over, those with this bit. */
static uint32_t distances_with(uint32_t ranks, uint32_t bit)
{
	uint32_t rest = ranks % (2 * bit);

	return ranks / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
}

static void bruck_blocks(struct oci_network *n, size_t bytes)
{
	for (uint32_t k = 1; k < n->ranks; k *= 2)
		shift(n, k, bytes * distances_with(n->ranks, k), false);
}

/* Of the distances, those at which all of a node send to others are alike. */
static void pairwise_of(struct oci_network *n, size_t bytes, bool sums)
{
	uint32_t p = n->ranks, e = n->each, alike = p > 2 * e ? p - 2 * e + 1 : 0;

	for (uint32_t k = 1; k < p; k++) {
		if (k == e && alike) {
			shift_often(n, alike, k, bytes, sums);
			k += alike - 1;
		} else {
			shift(n, k, bytes, sums);
		}
	}
}

static void pairwise(struct oci_network *n, size_t bytes)
{
	pairwise_of(n, bytes, false);
}

static void pairwise_sums(struct oci_network *n, size_t bytes)
{
	pairwise_of(n, part(n, bytes), true);
}

/* One rank after the other. */
static void in_turn(struct oci_network *n, size_t bytes)
{
	for (uint32_t r = 1; r < n->ranks; r++) {
		oci_network_add(n, r - 1, r, bytes, true);
		oci_network_round(n);
	}
}

static void gather_binomial(struct oci_network *n, size_t bytes)
{
	binomial_blocks(n, bytes, true);
}

static void scatter_binomial(struct oci_network *n, size_t bytes)
{
	binomial_blocks(n, bytes, false);
}

/* All with all at once: by what is busy longest, the cards or the CPUs. A rank reads from those on
 * its node one after the other. */
static void all_at_once(struct oci_network *n, size_t bytes)
{
	const struct oci_model *m = n->model;
	double others = n->ranks - n->each, e = n->each, local_s = 0;
	double messages = (double)bytes > m->net_eager.value ? 6 : 2;
	double card_s = others * e * fmax(m->net_gap.value, (double)bytes * m->net_gap_byte.value);
	double cpu_s = others * messages * m->net_overhead.value;

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
	void (*run)(struct oci_network *n, size_t bytes);
	enum alike alike;
} algorithms[] = {
	{ OC_BARRIER, "dissemination", dissemination, ALWAYS },
	{ OC_BCAST, "linear", linear_down, NEVER },
	/* Whom the root sends to first. Open MPI's trees, MPICH's. */
	{ OC_BCAST, "binomial-near", near_down, NEVER },
	{ OC_BCAST, "binomial-far", far_down, NEVER },
	{ OC_BCAST, "chain", chain_down, NEVER },
	{ OC_BCAST, "binary", binary_down, NEVER },
	{ OC_BCAST, "scatter-ring", scatter_parts, NEVER },
	{ OC_BCAST, "scatter-ring", ring_parts, ALWAYS },
	/* Whom the root gets from first: MPICH's, Open MPI's. */
	{ OC_REDUCE, "binomial-near", near_up, NEVER },
	{ OC_REDUCE, "binomial-far", far_up, NEVER },
	{ OC_REDUCE, "chain", chain_up, NEVER },
	{ OC_REDUCE, "binary", binary_up, NEVER },
	{ OC_REDUCE, "halving-gather", halving, BY_POWERS },
	{ OC_REDUCE, "halving-gather", gather_parts, NEVER },
	{ OC_ALLREDUCE, "recursive-doubling", doubling_sums, BY_POWERS },
	{ OC_ALLREDUCE, "ring", ring_twice, ALWAYS },
	{ OC_ALLREDUCE, "halving-doubling", halving_doubling, BY_POWERS },
	{ OC_SCAN, "recursive-doubling", doubling_sums, BY_POWERS },
	{ OC_SCAN, "linear", in_turn, NEVER },
	{ OC_GATHER, "linear", linear_up, NEVER },
	{ OC_GATHER, "binomial", gather_binomial, NEVER },
	{ OC_GATHERV, "linear", linear_up, NEVER },
	{ OC_SCATTER, "linear", linear_in_turn, NEVER },
	{ OC_SCATTER, "linear-at-once", linear_down, NEVER },
	{ OC_SCATTER, "binomial", scatter_binomial, NEVER },
	{ OC_SCATTERV, "linear", linear_in_turn, NEVER },
	{ OC_SCATTERV, "linear-at-once", linear_down, NEVER },
	{ OC_ALLGATHER, "ring", ring, ALWAYS },
	{ OC_ALLGATHER, "bruck", bruck, ALWAYS },
	{ OC_ALLGATHERV, "ring", ring, ALWAYS },
	{ OC_ALLGATHERV, "bruck", bruck, ALWAYS },
	{ OC_ALLTOALL, "all-at-once", all_at_once, ALWAYS },
	{ OC_ALLTOALL, "pairwise", pairwise, ALWAYS },
	{ OC_ALLTOALL, "bruck", bruck_blocks, ALWAYS },
	{ OC_ALLTOALLV, "all-at-once", all_at_once, ALWAYS },
	{ OC_ALLTOALLV, "pairwise", pairwise, ALWAYS },
	{ OC_REDUCE_SCATTER, "halving", halving, BY_POWERS },
	{ OC_REDUCE_SCATTER, "ring", ring_sums, ALWAYS },
	{ OC_REDUCE_SCATTER, "pairwise", pairwise_sums, ALWAYS },
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
		a->run(&n, bytes);
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
