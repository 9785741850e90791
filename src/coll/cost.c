/* SPDX-License-Identifier: BSD-3-Clause */
/* The terms that closed forms add up: one language, of small words. */
#include "coll/cost.h"
#include "base/least.h"
#include "coll/build.h"
#include "coll/tree.h"
#include "pattern/knomial.h"

#include <math.h>

/* Paper 002 tries 2 to 16; more is all at once or close to it. */
const uint32_t oci_tries_segment[] = { OCI_SEGMENT_DEFAULT, 65536, 524288, 0 };
const uint32_t oci_tries_fanout[] = { 1, 2, 3, 4, 6, 8, 10, 12, 16, 32, 64, 128, 0 };
const uint32_t oci_tries_ring[] = { 1, 2, 3, 4, 5, 6, 7, 8, 0 };
const uint32_t oci_tries_radix[] = { 1, 2, 3, 0 };

enum oci_model_mechanism oci_cost_mechanism(const struct oci_shape *shape,
					    const struct oci_model *model)
{
	if (shape->mapped && oci_model_knows(model, OCI_MODEL_MAP))
		return OCI_MODEL_MAP;
	if (shape->kmod && oci_model_knows(model, OCI_MODEL_KMOD))
		return OCI_MODEL_KMOD;
	return shape->single_copy ? OCI_MODEL_CMA : OCI_MODEL_SHM;
}

/* In blocks of a call: what one rank reads and writes in it, of a Bcast its one buffer. */
static size_t blocks_of(enum oc_collective collective, size_t p, bool is_root)
{
	if (oci_is_v(collective))
		return 0;
	return oci_send_blocks(collective, p, is_root) + oci_recv_blocks(collective, p, is_root);
}

size_t oci_cost_working(const struct oci_shape *shape, const struct oci_model *model)
{
	size_t p = shape->size, bytes = shape->bytes, caches, ranks;

	/* Those are of all blocks. */
	if (oci_has_parts(shape->collective))
		bytes /= p;
	/* The root's cache: with rank 0 on the first core it is as full as any. */
	caches = (size_t)(model->packages.value * model->package_cores.value /
			  model->cache_cores.value);
	ranks = p < (size_t)model->cache_cores.value ? p : (size_t)model->cache_cores.value;
	if (caches > 0 && p > caches * ranks)
		ranks = (p + caches - 1) / caches;
	return bytes * (blocks_of(shape->collective, p, true) +
			(ranks - 1) * blocks_of(shape->collective, p, false));
}

static struct oci_costing costing_of(const struct oci_algorithm *algorithm,
				     const struct oci_model *model, const struct oci_shape *shape,
				     uint32_t parameter)
{
	uint32_t p = shape->size, count[OCI_MODEL_DISTANCES] = { 0 };
	struct oci_costing c = { .model = model,
				 .mechanism = oci_cost_mechanism(shape, model),
				 .shape = shape,
				 .parameter = parameter,
				 .piece = algorithm->piece,
				 .working = oci_cost_working(shape, model),
				 .domains = 1 };

	c.cost.start = model->call.value;
	for (uint32_t r = 1; r < p; r++) {
		uint32_t domain = oci_model_domain(model, r);

		count[oci_model_distance(model, 0, r)]++;
		if (domain >= c.domains)
			c.domains = domain + 1;
	}
	if (p > 1) {
		c.near = (double)count[OCI_MODEL_PACKAGE] / (p - 1);
		c.far = (double)count[OCI_MODEL_MACHINE] / (p - 1);
	}
	return c;
}

struct oci_cost oci_cost_of(const struct oci_algorithm *algorithm, const struct oci_model *model,
			    const struct oci_shape *shape, uint32_t parameter)
{
	struct oci_costing c = costing_of(algorithm, model, shape, parameter);

	algorithm->cost(&c);
	return c.cost;
}

/* The share of a copy, or of the whole that it is a piece of, which the cache does not hold. */
static double beyond_cache(const struct oci_costing *c, size_t bytes)
{
	return oci_model_beyond(c->model, c->whole > bytes ? c->whole : bytes, c->working);
}

/* At a mix of distances, and not faster than the memory domain, of which `users` have each a part.
 */
static double bytes_s(const struct oci_costing *c, enum oci_model_direction direction, size_t bytes,
		      double users)
{
	double beyond = beyond_cache(c, bytes);
	double alone = (1 - c->far) * oci_model_bytes_of_s(c->model, c->mechanism, direction, bytes,
							   OCI_MODEL_CACHE, beyond) +
		       c->far * oci_model_bytes_of_s(c->model, c->mechanism, direction, bytes,
						     OCI_MODEL_MACHINE, beyond);
	double shared = (double)bytes * oci_model_domain_of_s(c->model, users, beyond);

	return shared > alone ? shared : alone;
}

/* `meeting` of them at a lock, `users` in the memory domain. */
static void copies(struct oci_costing *c, enum oci_model_direction direction, double times,
		   size_t bytes, double meeting, double users)
{
	double lock = oci_model_lock_s(c->model, c->mechanism, bytes, 1);

	if (!bytes)
		return;
	c->cost.start += times * oci_model_alpha_s(c->model, c->mechanism, direction);
	c->cost.bytes += times * bytes_s(c, direction, bytes, users);
	c->cost.lock += times * lock;
	c->cost.contention +=
		times * (oci_model_lock_s(c->model, c->mechanism, bytes, meeting) - lock);
}

void oci_cost_copies(struct oci_costing *c, enum oci_model_direction direction, double times,
		     size_t bytes, double copiers)
{
	copies(c, direction, times, bytes, copiers, copiers);
}

void oci_cost_blocks(struct oci_costing *c, enum oci_model_direction direction, double times,
		     size_t bytes, double copiers)
{
	copies(c, direction, times, bytes,
	       oci_model_contending(c->model, c->mechanism, copiers, bytes), copiers);
}

/* A copy uses its rank's domain and its peer's: of the p copies p / D begin in a domain, and of the
 * others 1 / D of those from elsewhere end there. */
static double users_all(const struct oci_costing *c)
{
	double domains = c->domains, ranks = c->shape->size;

	return ranks / domains * (2 - 1 / domains);
}

void oci_cost_copies_all(struct oci_costing *c, enum oci_model_direction direction, double times,
			 size_t bytes)
{
	copies(c, direction, times, bytes, 1, users_all(c));
}

/* In the ring: are these two apart, by where the team's ranks sit, or else by the model's? */
static bool apart(const struct oci_costing *c, uint32_t a, uint32_t b, bool packages)
{
	const struct oci_hierarchy *h = c->shape->hierarchy;

	if (h && (!packages || h->kind[0] == OCI_TOPO_PACKAGE))
		return oci_hierarchy_group(h, 0, a) != oci_hierarchy_group(h, 0, b);
	if (packages)
		return oci_model_package(c->model, a) != oci_model_package(c->model, b);
	return oci_model_domain(c->model, a) != oci_model_domain(c->model, b);
}

/* Of the p ways of a ring: how many lead to another memory domain, or to another package. */
static uint32_t crossings(const struct oci_costing *c, uint32_t j, bool packages)
{
	const struct oci_hierarchy *h = c->shape->hierarchy;
	uint32_t p = c->shape->size, count = 0;

	if (j || !h) {
		for (uint32_t r = 0; r < p; r++)
			count += apart(c, r, (r + (j ? j : 1)) % p, packages);
		return count;
	}
	/* By hierarchy: as many as there are groups. */
	if (packages && h->kind[0] != OCI_TOPO_PACKAGE)
		return 0;
	for (uint32_t r = 0; r < p; r++)
		count += oci_hierarchy_group(h, 0, r) == r;
	return count;
}

void oci_cost_ring(struct oci_costing *c, double times, size_t bytes, uint32_t j)
{
	double ranks = c->shape->size, near = c->near, far = c->far;
	/* A rank's domain serves its own copy, and one more for each way that leads there. */
	double users = ranks / c->domains * (1 + crossings(c, j, false) / ranks);

	c->far = crossings(c, j, true) > 0;
	c->near = c->far > 0 ? 0 : near / (1 - far > 0 ? 1 - far : 1);
	oci_cost_flags(c, times);
	copies(c, OCI_MODEL_PULL, times, bytes, 1, c->domains > 1 ? users : ranks);
	c->near = near;
	c->far = far;
}

/* Seconds of one. What a peer has written comes from his cache, as from a mapping of his memory. */
static double touch_s(const struct oci_costing *c, enum oci_touch touch, size_t bytes)
{
	double beyond = beyond_cache(c, bytes);

	if (touch == OCI_TOUCH_SLOT)
		return oci_model_fill_of_s(c->model, bytes, beyond);
	if (touch == OCI_TOUCH_PEERS && oci_model_knows(c->model, OCI_MODEL_MAP))
		return (1 - c->far) * oci_model_bytes_of_s(c->model, OCI_MODEL_MAP, OCI_MODEL_PULL,
							   bytes, OCI_MODEL_CACHE, beyond) +
		       c->far * oci_model_bytes_of_s(c->model, OCI_MODEL_MAP, OCI_MODEL_PULL, bytes,
						     OCI_MODEL_MACHINE, beyond);
	return oci_model_memcpy_of_s(c->model, bytes, beyond);
}

/* Of all ranks each keeps its own domain busy; all others share that of the slot. */
void oci_cost_touch(struct oci_costing *c, enum oci_touch touch, enum oci_touchers by, double times,
		    size_t bytes)
{
	double ranks = c->shape->size, users = by == OCI_BY_ALL ? ranks / c->domains : ranks - 1;
	double seconds = touch_s(c, touch, bytes);

	if (by != OCI_BY_ONE)
		seconds = oci_larger(seconds, beyond_cache(c, bytes) * (double)bytes *
						      oci_model_domain_s(c->model, users));
	c->cost.memory += times * seconds;
}

void oci_cost_fill_ahead(struct oci_costing *c, size_t bytes, size_t piece, double before)
{
	size_t first = bytes < piece ? bytes : piece;
	double pieces = oci_cost_pieces(bytes, piece), follow = oci_cost_total(&c->cost) - before;
	double one, late;

	c->whole = bytes;
	one = touch_s(c, OCI_TOUCH_SLOT, first);
	late = touch_s(c, OCI_TOUCH_SLOT, bytes) - one - follow * (1 - 1 / pieces);
	c->whole = 0;
	c->cost.memory += one + (late > 0 ? late : 0);
}

void oci_cost_stage(struct oci_costing *c, double times, size_t bytes)
{
	oci_cost_touch(c, c->piece ? OCI_TOUCH_SLOT : OCI_TOUCH_OWN, OCI_BY_ONE, times, bytes);
}

void oci_cost_stage_ahead(struct oci_costing *c, double before)
{
	if (c->piece)
		oci_cost_fill_ahead(c, c->shape->bytes, c->piece, before);
	else
		oci_cost_stage(c, 1, c->shape->bytes);
}

double oci_cost_stage_pieces(const struct oci_costing *c)
{
	return c->piece ? oci_cost_pieces(c->shape->bytes, c->piece) : 1;
}

void oci_cost_reduce(struct oci_costing *c, enum oci_touch touch, double times, size_t bytes)
{
	double memory = touch_s(c, touch, bytes), apply = oci_model_reduce_s(c->model, bytes);

	c->cost.reduce += times * oci_larger(memory, apply);
}

static double flag_s(const struct oci_costing *c,
		     double (*of)(const struct oci_model *, enum oci_model_distance))
{
	return (1 - c->near - c->far) * of(c->model, OCI_MODEL_CACHE) +
	       c->near * of(c->model, OCI_MODEL_PACKAGE) + c->far * of(c->model, OCI_MODEL_MACHINE);
}

void oci_cost_flags(struct oci_costing *c, double flags)
{
	c->cost.flags += flags * flag_s(c, oci_model_flag_s);
}

void oci_cost_flag_row(struct oci_costing *c, double flags)
{
	if (flags <= 0)
		return;
	oci_cost_flags(c, 1);
	c->cost.flags += (flags - 1) * flag_s(c, oci_model_flag_more_s);
}

void oci_cost_ops(struct oci_costing *c, double ops)
{
	c->cost.start += ops * c->model->op.value;
}

/* A chunk of a message of `bytes`, whose pages so many lock at a time. */
static double chunk_s(const struct oci_costing *c, enum oci_model_direction direction, size_t chunk,
		      double copiers, double users)
{
	return oci_model_alpha_s(c->model, c->mechanism, direction) +
	       oci_model_lock_s(c->model, c->mechanism, chunk, copiers) +
	       bytes_s(c, direction, chunk, users);
}

/* An end that has begun a chunk finishes it: with two ends whole chunks count. How many of the
 * first end's own take as long as both, who would meet after so many of his. */
static double whole_chunks(double chunks, double meet, double own, double help)
{
	double few = floor(meet), more = few + 1;
	double first = oci_larger(few * own, (chunks - few) * help);
	double second = oci_larger(more * own, (chunks - more) * help);

	return oci_smaller(first, second) / own;
}

void oci_cost_shared(struct oci_costing *c, enum oci_model_direction direction, uint32_t shares,
		     size_t bytes)
{
	enum oci_model_direction other = direction == OCI_MODEL_PULL ? OCI_MODEL_PUSH :
								       OCI_MODEL_PULL;
	size_t chunk = oci_chunk_bytes(bytes, OCI_CHUNKS_SHARE),
	       last = chunk < bytes ? chunk : bytes;
	double chunks = oci_cost_pieces(bytes, chunk);
	double own, help, each;

	if (!bytes)
		return;
	c->whole = bytes;
	/* A chunk by one of the `shares` that copy from or to one process, and by the one who helps
	 * them: he locks theirs, one at a time. All of them keep busy until nothing is left. */
	own = chunk_s(c, direction, last, shares, shares + 1.0);
	help = chunk_s(c, other, last, 1, shares + 1.0);
	/* Chunks of each, at least one of which is his own. */
	each = chunks / (1 + own / help / shares);
	if (each < 1)
		each = 1;
	if (shares == 1)
		each = whole_chunks(chunks, each, own, help);
	copies(c, direction, each, last, shares, shares + 1.0);
	c->whole = 0;
}

size_t oci_cost_parts(const struct oci_shape *shape, uint32_t of, uint32_t parts)
{
	struct oci_plan plan = { .nparts = of };
	struct oci_params params = { .bytes = shape->bytes, .size = shape->size };

	oci_params_derive(&params, &plan, shape->unit);
	if (params.part_bytes > shape->bytes / parts)
		return shape->bytes;
	return parts * params.part_bytes;
}

size_t oci_cost_part(const struct oci_shape *shape)
{
	return oci_cost_parts(shape, shape->size, 1);
}

uint32_t oci_cost_tree(const struct oci_shape *shape, uint32_t *children)
{
	struct oci_plan_key key = { .size = shape->size };
	struct oci_tree t = oci_tree_by_hierarchy(&key, false);
	uint32_t child = 0, deepest = 1;

	t.hierarchy = shape->hierarchy;
	*children = shape->size - 1;
	if (!shape->hierarchy)
		return 1;
	*children = 0;
	while ((child = oci_tree_ascending(&t, 0, child)) != 0)
		++*children;
	for (uint32_t v = 1; v < shape->size; v++) {
		uint32_t depth = 0;

		for (uint32_t at = v; at; at = oci_tree_parent(&t, at))
			depth++;
		if (depth > deepest)
			deepest = depth;
	}
	return deepest;
}

uint32_t oci_cost_fanin(const struct oci_costing *c)
{
	uint32_t children = 0;

	while (oci_knomial_child(0, c->parameter, c->shape->size, children))
		children++;
	return children;
}

/* What copies have cost since cost.bytes was `before` is no less than the memory domains need where
 * the ranks move so many messages at the same time, which no cache holds. */
static void all_bytes(struct oci_costing *c, double before, double times)
{
	size_t n = c->shape->bytes;
	double beyond = c->model->cache_bytes.given ? oci_model_beyond(c->model, n, c->working) : 1;
	double least = beyond * times * (double)n * oci_model_domain_s(c->model, 1) / c->domains;

	if (c->cost.bytes - before < least)
		c->cost.bytes = before + least;
}

void oci_cost_copies_tree(struct oci_costing *c, uint32_t k)
{
	double have = 1, ranks = c->shape->size, domains = c->domains;

	while (have < ranks) {
		double copiers = fmin(have * k, ranks - have);
		double users = copiers / domains * (2 - 1 / domains);

		copies(c, OCI_MODEL_PULL, 1, c->shape->bytes, k, fmax(users, k));
		have += copiers;
	}
}

void oci_cost_piecewise(struct oci_costing *c, double times, size_t piece, double copiers)
{
	c->whole = c->shape->bytes;
	oci_cost_copies(c, OCI_MODEL_PULL, times, piece, copiers);
	c->whole = 0;
}

double oci_cost_slice(struct oci_costing *c, size_t part)
{
	double others = c->shape->size - 1.0, pieces = oci_cost_pieces(part, OCI_REDUCE_BYTES);

	c->whole = c->shape->bytes;
	oci_cost_copies_all(c, OCI_MODEL_PULL, others * pieces,
			    part < OCI_REDUCE_BYTES ? part : OCI_REDUCE_BYTES);
	c->whole = 0;
	oci_cost_reduce(c, OCI_TOUCH_OWN, others, part);
	oci_cost_ops(c, 3 * pieces * others);
	return pieces;
}

void oci_cost_slot_parts(struct oci_costing *c)
{
	size_t part = oci_cost_part(c->shape);
	double others = c->shape->size - 1.0;

	c->whole = c->shape->bytes;
	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, 1, c->shape->bytes);
	oci_cost_flags(c, 2 * others);
	oci_cost_reduce(c, OCI_TOUCH_PEERS, others, part);
	oci_cost_touch(c, OCI_TOUCH_SLOT, OCI_BY_ONE, 1, part);
	oci_cost_touch(c, OCI_TOUCH_PEERS, OCI_BY_ONE, others, part);
	c->whole = 0;
	oci_cost_ops(c, 5 + 4 * others);
}

void oci_cost_sum(struct oci_costing *c, size_t piece, uint32_t children)
{
	size_t n = c->shape->bytes, extent = piece < n ? piece : n;
	double pieces = oci_cost_pieces(n, piece), before = c->cost.bytes;

	oci_cost_flags(c, pieces * children);
	oci_cost_piecewise(c, pieces * children, extent, 1);
	/* Inner ranks do so at the same time, piece by piece. */
	all_bytes(c, before, c->shape->size - 1.0);
	oci_cost_reduce(c, OCI_TOUCH_OWN, pieces * children, extent);
	oci_cost_ops(c, 4 + pieces * (3.0 * children + 3));
}

void oci_cost_result(struct oci_costing *c, size_t piece, uint32_t children, uint32_t levels)
{
	size_t n = c->shape->bytes, extent = piece < n ? piece : n;
	double pieces = oci_cost_pieces(n, piece);

	oci_cost_flags(c, levels);
	oci_cost_piecewise(c, 1, extent, children);
	oci_cost_piecewise(c, levels - 1.0, extent, 1);
	/* Up and down at the same time, piece by piece. */
	all_bytes(c, 0, 2 * (c->shape->size - 1.0));
	oci_cost_flag_row(c, children);
	oci_cost_ops(c, 4 + pieces * (4 + (double)children));
}

uint32_t oci_cost_rounds(uint32_t p, uint32_t base)
{
	uint32_t rounds = 0;

	for (uint64_t reached = 1; reached < p; reached *= base)
		rounds++;
	return rounds;
}
