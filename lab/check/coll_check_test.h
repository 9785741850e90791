/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What coll_check_test.c and coll_grid_test.c are made of: algorithms as subjects, and sequences of
 * calls of them.
 */
#ifndef OC_COLL_CHECK_TEST_H
#define OC_COLL_CHECK_TEST_H

#include <stdlib.h>

#include "coll/coll.h"
#include "lab/check/check.h"
#include "support/test.h"

#define MOST_RANKS 33
#define MOST_PLANS 128 /* ranks, in tests of a few algorithms */
#define MOST_CALLS 64

/* The largest tiny and small blocks of offers, unless a test says otherwise. */
#define TINY_BYTES 16
#define SMALL_BYTES 40

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes of a block, and of an element. */
static const size_t grid_sizes[]
	__attribute__((unused)) = { 48, 0, 1, 3, 64, 4, 5, 497, 47, 100, 496, 256, 1000 };
static const size_t grid_units[] __attribute__((unused)) = { 4, 1, 8, 16, 1, 12 };

/* An algorithm with all that its plans depend on, but for the root. */
struct subject {
	enum oc_collective collective;
	unsigned int algorithm;
	uint32_t parameter;
	uint32_t size;
	bool commutative;
	bool near;	    /* the ranks share a cache */
	uint32_t hierarchy; /* of the key */
};

struct plan_set {
	struct subject subject;
	uint32_t root; /* of the key */
	bool in_place; /* of the key */
	struct oci_plan *plan[MOST_PLANS];
};

struct sequence {
	struct oci_check check;
	struct oci_check_call calls[MOST_CALLS];
	struct oc_block blocks[MOST_CALLS][MOST_PLANS];
	struct plan_set *used[MOST_CALLS]; /* by call */
	struct plan_set *sets[MOST_CALLS];
	uint32_t set_count;
	size_t *from_to[MOST_CALLS]; /* of v-variants */
};

static struct {
	unsigned long long plans, sequences, calls, steps, states, mutants;
} total;

static struct oci_world *kept_world;

static int print_totals(void **state)
{
	(void)state;
	oci_check_forget(kept_world);
	print_message("checked: %llu plans, %llu sequences of %llu collectives, %llu operations, "
		      "%llu states, %llu mutants\n",
		      total.plans, total.sequences, total.calls, total.steps, total.states,
		      total.mutants);
	return 0;
}

static bool full(void)
{
	const char *value = getenv("ONECOPY_CHECK_FULL");

	return value && *value == '1';
}

static const struct oci_plan *plan_of(void *context, uint32_t call, uint32_t v)
{
	const struct sequence *s = context;

	return s->used[call]->plan[v];
}

static struct plan_set *build_set(const struct subject *subject, uint32_t root, bool in_place)
{
	struct plan_set *set = calloc(1, sizeof(*set));

	assert_non_null(set);
	set->subject = *subject;
	set->root = root;
	set->in_place = in_place;
	for (uint32_t v = 0; v < subject->size; v++) {
		struct oci_plan_key key = {
			.collective = (uint8_t)subject->collective,
			.algorithm = (uint8_t)subject->algorithm,
			.commutative = subject->commutative,
			.parameter = subject->parameter,
			.v = v,
			.size = subject->size,
			.root = root,
			.hierarchy = subject->hierarchy,
			.in_place = in_place,
		};
		int error = 0;

		set->plan[v] = oci_plan_build(&key, &error);
		if (!set->plan[v])
			fail_msg("%s %s:%u, v%u of %u: no plan: %d",
				 oci_collective_name(subject->collective),
				 oci_algorithm(subject->collective, subject->algorithm)->name,
				 subject->parameter, v, subject->size, error);
		total.plans++;
	}
	return set;
}

static bool same_subject(const struct subject *a, const struct subject *b)
{
	return a->collective == b->collective && a->algorithm == b->algorithm &&
	       a->parameter == b->parameter && a->size == b->size &&
	       a->commutative == b->commutative && a->hierarchy == b->hierarchy;
}

static bool has_in_place(enum oc_collective collective)
{
	return oci_has_in_place(collective) && !oci_is_apart(collective);
}

static bool fits(const struct subject *subject, size_t bytes, size_t unit)
{
	const struct oci_algorithm *a = oci_algorithm(subject->collective, subject->algorithm);
	struct oci_shape shape = {
		.collective = subject->collective,
		.bytes = bytes,
		.unit = unit,
		.size = subject->size,
		.single_copy = true,
		.common = subject->near ? OCI_TOPO_L3 : OCI_TOPO_MACHINE,
		.large_slots = subject->near && subject->size == 2,
	};

	return !a->fits || a->fits(&shape, subject->parameter);
}

/* Cuts the input of a Reduce_scatter into blocks: some empty, some large, the last has the rest. */
static void cut_blocks(struct oc_block *blocks, uint32_t size, size_t bytes, size_t unit,
		       uint32_t turn)
{
	size_t at = 0;

	for (uint32_t r = 0; r < size; r++) {
		size_t left = (bytes - at) / unit, some = left / (size - r);

		if ((r + turn) % 3 == 1)
			some = 0;
		else if ((r + turn) % 5 == 2)
			some = left / 2;
		if (r == size - 1)
			some = left;
		blocks[r] = (struct oc_block){ at, some * unit };
		at += some * unit;
	}
}

/* Sizes for each pair of ranks: all in one way of an offer, or each in any; with gaps or not. */
enum pattern { MIXED, ALL_TINY, ALL_LARGE, ALL_SMALL, EMPTY, ONE_LARGE, GAPS, PATTERNS };

static size_t block_bytes(enum pattern pattern, size_t tiny, size_t small, uint64_t random)
{
	const size_t mixed[] = { 0, 1, tiny - 1, tiny, tiny + 1, small, small + 1, small * 3, 0 };

	switch (pattern) {
	case ALL_TINY:
		return 1 + random % tiny;
	case ALL_LARGE:
		return small + 1 + random % tiny;
	case ALL_SMALL:
		return tiny + 1 + random % (small - tiny);
	case EMPTY:
	case ONE_LARGE:
		return 0;
	default:
		return mixed[random % COUNT(mixed)];
	}
}

/* Of a random graph, in which a rank has some three neighbors on either side. Few ranks are all
 * neighbors: of those no copy can be left out. */
static bool is_edge(uint32_t size, uint64_t random)
{
	return size <= 8 || random % size < 3;
}

static void add_blocks(struct sequence *s, uint32_t size, uint32_t pattern)
{
	static uint64_t random = 1;
	struct oci_check_call *call = &s->calls[s->check.count - 1];
	size_t tiny = s->check.tiny_bytes ? s->check.tiny_bytes : TINY_BYTES;
	size_t small = s->check.small_bytes ? s->check.small_bytes : SMALL_BYTES;
	size_t *from_to = calloc((size_t)size * size, sizeof(*from_to));

	assert_non_null(from_to);
	pattern %= PATTERNS;
	for (uint32_t i = 0; i < size * size; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		from_to[i] = block_bytes(pattern, tiny, small, random >> 33);
		if (oci_is_neighbor(call->collective) && !is_edge(size, random >> 40))
			from_to[i] = 0;
	}
	if (pattern == ONE_LARGE)
		from_to[(random >> 33) % (size * size)] = small + 1;
	s->from_to[s->check.count - 1] = from_to;
	call->from_to = from_to;
	call->gap = pattern >= ONE_LARGE ? 5 : 0;
	call->bytes = 0;
}

/* Adds a call, if the algorithm can run it. Of a v-variant `bytes` stands for a pattern. */
static bool add_call(struct sequence *s, const struct subject *subject, uint32_t root, size_t bytes,
		     size_t unit, bool in_place)
{
	bool ranks_matter = oci_is_rooted(subject->collective) &&
			    ((oci_is_reduction(subject->collective) && !subject->commutative) ||
			     subject->hierarchy);
	uint32_t key_root = ranks_matter ? root : 0;
	bool trades = in_place && oci_trades(subject->collective);
	struct plan_set *set = NULL;

	if (s->check.count == MOST_CALLS || !fits(subject, bytes, unit))
		return false;
	for (uint32_t i = 0; i < s->set_count && !set; i++)
		if (same_subject(&s->sets[i]->subject, subject) && s->sets[i]->root == key_root &&
		    s->sets[i]->in_place == trades)
			set = s->sets[i];
	if (!set) {
		set = build_set(subject, key_root, trades);
		s->sets[s->set_count++] = set;
	}
	cut_blocks(s->blocks[s->check.count], subject->size, bytes, unit, s->check.count + root);
	s->used[s->check.count] = set;
	s->calls[s->check.count] = (struct oci_check_call){
		.collective = subject->collective,
		.commutative = subject->commutative,
		.in_place = in_place && has_in_place(subject->collective),
		.root = oci_is_rooted(subject->collective) ? root : 0,
		.bytes = bytes,
		.unit = unit,
	};
	if (subject->collective == OC_REDUCE_SCATTER)
		s->calls[s->check.count].blocks = s->blocks[s->check.count];
	s->check.count++;
	if (oci_is_v(subject->collective))
		add_blocks(s, subject->size, (uint32_t)bytes);
	return true;
}

/* With sanitizers not all of what is built is run, too. */
static bool is_run(void)
{
	static uint64_t turn;

	return full() || turn++ % OCT_ONE_IN == 0;
}

static void run(struct sequence *s, uint32_t size, enum oci_check_schedule schedule, uint64_t seed)
{
	struct oci_check_result result;
	char why[2048] = "";
	int rc;

	/* None fits: a ring by steps of 2 on 4 ranks. */
	if (!s->check.count || !is_run())
		return;
	s->check.size = size;
	s->check.calls = s->calls;
	s->check.plan = plan_of;
	s->check.context = s;
	s->check.kept = &kept_world;
	if (!s->check.tiny_bytes) {
		s->check.tiny_bytes = TINY_BYTES;
		s->check.small_bytes = SMALL_BYTES;
	}
	s->check.schedule = schedule;
	s->check.seed = seed;
	s->check.favoured = (uint32_t)(seed % size);
	rc = oci_check_sequence(&s->check, &result, why, sizeof(why));
	if (rc) {
		for (uint32_t i = 0; i < s->check.count; i++) {
			const struct subject *subject = &s->used[i]->subject;

			print_error("call %u: %s %s:%u%s of %u\n", i,
				    oci_collective_name(subject->collective),
				    oci_algorithm(subject->collective, subject->algorithm)->name,
				    subject->parameter, subject->commutative ? " commutative" : "",
				    subject->size);
		}
		fail_msg("schedule %d seed %llu lanes %u segment %u: %d: %s", schedule,
			 (unsigned long long)seed, s->check.lanes, s->check.segment_bytes, rc, why);
	}
	total.sequences++;
	total.calls += s->check.count;
	total.steps += result.steps;
	total.states += result.states;
}

static void clear(struct sequence *s)
{
	for (uint32_t i = 0; i < s->set_count; i++) {
		for (uint32_t v = 0; v < MOST_PLANS; v++)
			free(s->sets[i]->plan[v]);
		free(s->sets[i]);
	}
	s->set_count = 0;
	for (uint32_t i = 0; i < MOST_CALLS; i++) {
		free(s->from_to[i]);
		s->from_to[i] = NULL;
	}
	s->check = (struct oci_check){ 0 };
}

/* Calls `visit` with every algorithm, with its parameters that mean something for `size` ranks. */
static void for_each_subject(uint32_t size, void (*visit)(const struct subject *subject))
{
	const uint32_t parameters[] = { 1, 2, 3, 4, 7, size - 1, size, size + 3 };
	const struct oci_algorithm *a;

	for (unsigned int c = 0; c < OC_COLLECTIVES; c++) {
		struct subject subject = { .collective = c, .size = size };

		for (unsigned int i = 0; (a = oci_algorithm(c, i)) != NULL; i++) {
			subject.algorithm = i;
			subject.parameter = a->parameter_default;
			visit(&subject);
			for (size_t j = 0; j < COUNT(parameters) && a->parameter_min; j++) {
				bool seen = parameters[j] == a->parameter_default;

				for (size_t k = 0; k < j; k++)
					seen |= parameters[k] == parameters[j];
				if (seen || parameters[j] < a->parameter_min ||
				    (a->parameter_max && parameters[j] > a->parameter_max))
					continue;
				subject.parameter = parameters[j];
				visit(&subject);
			}
		}
	}
}

/* Of a reduction, the plans for both kinds of operation. */
static void both_orders(const struct subject *subject, void (*visit)(const struct subject *subject))
{
	struct subject copy = *subject;

	copy.commutative = true;
	visit(&copy);
	copy.commutative = false;
	if (oci_is_reduction(subject->collective))
		visit(&copy);
}

#endif
