/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/learned.h"
#include "base/atomic.h"

/* A team's byte: how often it was looked at, above whether that is decided, and for which way. */
#define SLOT 1u
#define DECIDED ((unsigned int)OCI_LEARNED_AT_ONCE)
#define LOOKED 4u
_Static_assert(OCI_LEARNED_SLOTS == (DECIDED | SLOT), "what the header names is what is decided");
#define AGAIN_MOST 4096u

static const struct pace {
	/*
	 * Copies before the first look, which go as the byte was set, and eight times as many each
	 * time from one look to the next: earlier, caches, page tables and slots are met that
	 * nobody has used before, and the look would err. After 63 looks their count begins anew.
	 */
	unsigned int first_after;
	/* Operations in a row that go one way while both are tried: only after a few copies lie the
	 * bytes in the caches where this way leaves them. */
	unsigned int stretch;
	/* Operations of each way: the first ones meet new slots, and some are disturbed. */
	unsigned int tries;
	/* So few will do where slots are clearly the quicker, by two fifths. */
	unsigned int few_tries;
} paces[] = {
	{ .first_after = 32, .stretch = 16, .tries = 12, .few_tries = 5 },
	/* One copy empties the caches, and uses a slot many times. */
	{ .first_after = 16, .stretch = 4, .tries = 3, .few_tries = 2 },
};

static const struct pace *pace_of(unsigned int length)
{
	return &paces[length >= OCI_LEARNED_EMPTIES];
}

/* A bit of each operation that is alike on all ranks, whatever the rhythm of the program. */
static bool coin(uint64_t seq, const struct pace *pace)
{
	return seq / pace->stretch * 0x9e3779b97f4a7c15ULL >> 63;
}

static uint8_t load(const uint8_t *word)
{
	oci_stall();
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static bool exchange(uint8_t *word, uint8_t expected, uint8_t desired)
{
	oci_stall();
	return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static void begin(struct oci_learned *learned, uint8_t word)
{
	*learned = (struct oci_learned){ .begun = true,
					 .word = word,
					 .best = { UINT32_MAX, UINT32_MAX } };
}

static bool is_looked_at(uint8_t word)
{
	return word >= LOOKED && !(word & DECIDED);
}

static bool way_by(uint8_t word, unsigned int length, uint64_t seq, bool gaps)
{
	if (is_looked_at(word))
		return coin(seq, pace_of(length));
	return word ? word & SLOT : gaps;
}

/* So many copies after a decision, or from the start. */
static uint32_t next_look_after(uint8_t word, const struct pace *pace)
{
	unsigned int looks = word / LOOKED;

	return looks < 3 ? pace->first_after << 3 * looks : AGAIN_MOST;
}

static uint8_t next_look(uint8_t word)
{
	unsigned int looks = (word / LOOKED + 1) % (256 / LOOKED);

	return (uint8_t)((looks ? looks : 1) * LOOKED);
}

/* Relaxed throughout: the byte is a hint, and all else is this rank's. */
bool oci_learned_look(const uint8_t *word, unsigned int length, uint64_t seq, bool gaps)
{
	return way_by(load(word), length, seq, gaps);
}

bool oci_learned_way(struct oci_learned *learned, uint8_t *word, unsigned int length, uint64_t seq,
		     bool gaps, bool *tries)
{
	uint8_t now = load(word);

	*tries = is_looked_at(now);
	if (!*tries && (now < LOOKED || (learned->decided && learned->word == now)) &&
	    ++learned->copies == next_look_after(now, pace_of(length)))
		exchange(word, now, next_look(now));
	return way_by(now, length, seq, gaps);
}

/* Two copies take more of the memory than one, so they are to be quicker by a fifth. */
static bool slots_win(const struct oci_learned *learned)
{
	return (uint64_t)learned->best[true] * 5 < (uint64_t)learned->best[false] * 4;
}

uint8_t oci_learned_advice(const struct oci_learned *learned)
{
	return !learned->decided ? 0 : slots_win(learned) ? OCI_LEARNED_SLOTS : OCI_LEARNED_AT_ONCE;
}

/* New slots look slower than they are: only after all tries are they known to lose. */
static bool is_known(const struct oci_learned *learned, const struct pace *pace)
{
	const uint8_t *of = learned->operations;
	unsigned int fewest = of[of[true] < of[false]];

	return fewest >= pace->tries ||
	       (fewest >= pace->few_tries &&
		(uint64_t)learned->best[true] * 7 <= (uint64_t)learned->best[false] * 5);
}

void oci_learned_tell(struct oci_learned *learned, uint8_t *word, unsigned int length, bool slot,
		      size_t bytes, uint64_t ns)
{
	const struct pace *pace = pace_of(length);
	uint8_t now = load(word), decision;
	uint64_t ps = ns * 1000 / bytes;

	if (!is_looked_at(now))
		return;
	if (!learned->begun || learned->word != now || learned->decided)
		begin(learned, now);
	if (ps < learned->best[slot])
		learned->best[slot] = (uint32_t)ps;
	if (learned->operations[slot] < pace->tries)
		learned->operations[slot]++;
	if (!is_known(learned, pace))
		return;
	decision = (uint8_t)(now | DECIDED | (slots_win(learned) ? SLOT : 0));
	/* Who comes second has measured as much, and goes with the first. */
	if (exchange(word, now, decision)) {
		learned->decided = true;
		learned->word = decision;
	}
}
