/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closed forms: what an algorithm costs by the model, term by term.
 *
 * An algorithm's `cost` adds up its critical path with the functions below, in the model's terms
 * (model/model.h), as its header comment has it. It is what selection goes by; the `model` executor
 * (lab/virtual/virtual.h) runs the plans themselves, and lab/virtual/predict_test.c holds the two
 * together. Times are seconds.
 */
#ifndef OC_COLL_COST_H
#define OC_COLL_COST_H

#include "coll/coll.h"
#include "model/model.h"

/* The sum in its parts. */
struct oci_cost {
	double start;	   /* calls, operations, and alpha of each copy */
	double bytes;	   /* single copies: what they move, with the memory domain shared */
	double lock;	   /* their page locks, alone */
	double contention; /* what company adds to these: l (gamma(c) - 1) a page */
	double memory;	   /* copies by the rank itself: in, out, and its own block */
	double reduce;
	double flags; /* awaited one after the other */
};

struct oci_costing {
	/* Given. */
	const struct oci_model *model;
	enum oci_model_mechanism mechanism; /* of single copies */
	const struct oci_shape *shape;
	uint32_t parameter;
	uint32_t piece; /* of the algorithm, as in struct oci_algorithm */
	/* By oci_cost_of(): shares of a rank's peers that sit in its package but not under its
	 * cache, and in other packages; memory domains in use. */
	double near, far;
	uint32_t domains;
	/* While pieces are copied one after the other: of how many bytes they are, which is what a
	 * cache holds or not. 0: a copy is a whole of its own. */
	size_t whole;
	/* By oci_cost_of(): what the ranks under one cache read and write in the call. */
	size_t working;
	/* Added up. */
	struct oci_cost cost;
};

static inline double oci_cost_total(const struct oci_cost *cost)
{
	return cost->start + cost->bytes + cost->lock + cost->contention + cost->memory +
	       cost->reduce + cost->flags;
}

/* By what the single copies of such a team are made: a mapping where all ranks have shared heaps
 * and the model knows what that costs. */
enum oci_model_mechanism oci_cost_mechanism(const struct oci_shape *shape,
					    const struct oci_model *model);
/* Bytes of all buffers of the call that belong to ranks under the root's cache; 0 of a v-variant,
 * whose sizes nobody knows. */
size_t oci_cost_working(const struct oci_shape *shape, const struct oci_model *model);
/* What a call costs with an algorithm that has a closed form, for ranks placed core by core; a call
 * costs `call` to begin with. */
struct oci_cost oci_cost_of(const struct oci_algorithm *algorithm, const struct oci_model *model,
			    const struct oci_shape *shape, uint32_t parameter);

/* `times` copies one after the other, reads or writes, each with `copiers` at a time on one
 * process.
 */
void oci_cost_copies(struct oci_costing *c, enum oci_model_direction direction, double times,
		     size_t bytes, double copiers);
/* The same of consecutive blocks of `bytes`: copiers far apart in it do not meet at a lock. */
void oci_cost_blocks(struct oci_costing *c, enum oci_model_direction direction, double times,
		     size_t bytes, double copiers);
/* The same where all ranks copy at once, each from or to another. */
void oci_cost_copies_all(struct oci_costing *c, enum oci_model_direction direction, double times,
			 size_t bytes);
/* `times` steps in which each rank reads `bytes` from the one before it in a ring, awaited: j ranks
 * away, or (0) the one before in the order of the hierarchy. The longest way sets the pace. */
void oci_cost_ring(struct oci_costing *c, double times, size_t bytes, uint32_t j);
/* `times` reads of pieces of a message: how long one takes depends on the whole. */
void oci_cost_piecewise(struct oci_costing *c, double times, size_t piece, double copiers);
/* What a core copies or adds: its own bytes; those that it puts into its own slot, where a peer has
 * read what was there before; those that a peer has just written, in his slot or payload. */
enum oci_touch { OCI_TOUCH_OWN, OCI_TOUCH_SLOT, OCI_TOUCH_PEERS };
/* By one rank; by all at once, who share their memory domains beyond the cache; by all others at
 * once, out of one slot. */
enum oci_touchers { OCI_BY_ONE, OCI_BY_ALL, OCI_BY_OTHERS };
/* `times` local copies of `bytes`, pieces of c->whole where that is more. */
void oci_cost_touch(struct oci_costing *c, enum oci_touch touch, enum oci_touchers by, double times,
		    size_t bytes);
/* `times` reductions of `bytes`, my own or a peer's, into mine. */
void oci_cost_reduce(struct oci_costing *c, enum oci_touch touch, double times, size_t bytes);
/* A slot is filled with `bytes` in pieces while its reader follows, whose part, added up since the
 * total was `before`, it adds to: the slower of the two sets the pace. */
void oci_cost_fill_ahead(struct oci_costing *c, size_t bytes, size_t piece, double before);
/* Into my stage (coll/build.h), a payload or slot; the same while its reader follows; in how many
 * pieces a message goes through. */
void oci_cost_stage(struct oci_costing *c, double times, size_t bytes);
void oci_cost_stage_ahead(struct oci_costing *c, double before);
double oci_cost_stage_pieces(const struct oci_costing *c);
/* Flags each of which is waited for; a row of which all but the first are up. */
void oci_cost_flags(struct oci_costing *c, double flags);
void oci_cost_flag_row(struct oci_costing *c, double flags);
void oci_cost_ops(struct oci_costing *c, double ops);

/* All of a Bcast to the ranks of a tree: in each round every rank that has it is read by k others,
 * so more and more copies at once share the memory domains. */
void oci_cost_copies_tree(struct oci_costing *c, uint32_t k);

/* Both ends of `shares` copies of one rank with that many others: all of them copy in this
 * direction, it in the other. */
void oci_cost_shared(struct oci_costing *c, enum oci_model_direction direction, uint32_t shares,
		     size_t bytes);

/* Part of a message in p parts, as plans cut it; and several parts of one in `of` parts. */
size_t oci_cost_part(const struct oci_shape *shape);
size_t oci_cost_parts(const struct oci_shape *shape, uint32_t of, uint32_t parts);
/* Of the tree by hierarchy (coll/tree.h): how deep it is below rank 0, and how many children that
 * one has. On a flat team all are its children. */
uint32_t oci_cost_tree(const struct oci_shape *shape, uint32_t *children);
/* Children of the root of a k-nomial tree, k being the parameter. */
uint32_t oci_cost_fanin(const struct oci_costing *c);
/* A rank's way to the end of its part of a sum: it pulls that of all others piece by piece, and
 * adds it. Returns the pieces. */
double oci_cost_slice(struct oci_costing *c, size_t part);
/* That of messages in slots by parts (coll/build.h), without the copy of one's own part. */
void oci_cost_slot_parts(struct oci_costing *c);
/* A root's part of a sum over a tree: it pulls each piece from so many children, and adds it. */
void oci_cost_sum(struct oci_costing *c, size_t piece, uint32_t children);
/* After that the result's last piece comes down so many levels; acknowledgements. */
void oci_cost_result(struct oci_costing *c, size_t piece, uint32_t children, uint32_t levels);
/* ceil(log(p) to this base). */
uint32_t oci_cost_rounds(uint32_t p, uint32_t base);
/* Pieces of a message. */
static inline double oci_cost_pieces(size_t bytes, size_t piece)
{
	return bytes > piece ? (double)((bytes + piece - 1) / piece) : 1;
}

#endif
