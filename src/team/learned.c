/* SPDX-License-Identifier: BSD-3-Clause */
#include "team/learned.h"
#include "base/atomic.h"

/* A team's byte: how often it was begun anew, above whether it is decided, and for which way. */
#define SLOT 1u
#define DECIDED 2u
#define BEGUN_ANEW 4u
_Static_assert(OCI_LEARNED_SLOTS == (DECIDED | SLOT), "what a test sets is what a team learns");

/* Operations of each way: the first ones meet cold caches and new pages, and some are disturbed. */
#define TRIES 12u
/* So few will do where one way is clearly the quicker, by two fifths. */
#define FEW_TRIES 5u
/*
 * Copies from one look to the next, four times as many each time: the first one meets caches, page
 * tables and slots that nobody has used before, and errs. Of 16 copies each time that go the slower
 * way, four times in the first 4096, then once. After 64 looks their count begins anew.
 */
#define AGAIN_FIRST 64u
#define AGAIN_MOST 4096u

/*
 * A bit of each operation that is alike on all ranks, whatever the rhythm of the program. It stays
 * for some: only after a few copies lie the bytes in the caches where this way leaves them.
 */
static bool coin(uint64_t seq)
{
	return seq / OCI_LEARNED_STRETCH * 0x9e3779b97f4a7c15ULL >> 63;
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

static bool way_by(uint8_t word, uint64_t seq)
{
	return word & DECIDED ? word & SLOT : coin(seq);
}

static uint32_t again(uint8_t word)
{
	unsigned int looks = word / BEGUN_ANEW;

	return looks < 3 ? AGAIN_FIRST << 2 * looks : AGAIN_MOST;
}

/* Relaxed throughout: the byte is a hint, and all else is this rank's. */
bool oci_learned_look(const uint8_t *word, uint64_t seq)
{
	return way_by(load(word), seq);
}

bool oci_learned_way(struct oci_learned *learned, uint8_t *word, uint64_t seq, bool *tries)
{
	uint8_t now = load(word);

	*tries = !(now & DECIDED);
	if (!*tries && learned->decided && learned->word == now && ++learned->copies == again(now))
		exchange(word, now, (uint8_t)((now / BEGUN_ANEW + 1) * BEGUN_ANEW));
	return way_by(now, seq);
}

/* Two copies take more of the memory than one, so they are to be quicker by a fifth. */
static bool slots_win(const struct oci_learned *learned)
{
	return (uint64_t)learned->best[true] * 5 < (uint64_t)learned->best[false] * 4;
}

static bool is_known(const struct oci_learned *learned)
{
	uint64_t at_once = learned->best[false], slots = learned->best[true];
	const uint8_t *of = learned->operations;
	unsigned int fewest = of[of[true] < of[false]];

	return fewest >= TRIES ||
	       (fewest >= FEW_TRIES && (at_once * 5 >= slots * 7 || slots * 5 >= at_once * 7));
}

void oci_learned_tell(struct oci_learned *learned, uint8_t *word, bool slot, size_t bytes,
		      uint64_t ns)
{
	uint8_t now = load(word), decision;
	uint64_t ps = ns * 1000 / bytes;

	if (now & DECIDED)
		return;
	if (!learned->begun || learned->word != now || learned->decided)
		begin(learned, now);
	if (ps < learned->best[slot])
		learned->best[slot] = (uint32_t)ps;
	if (learned->operations[slot] < TRIES)
		learned->operations[slot]++;
	if (!is_known(learned))
		return;
	decision = (uint8_t)(now | DECIDED | (slots_win(learned) ? SLOT : 0));
	/* Who comes second has measured as much, and goes with the first. */
	if (exchange(word, now, decision)) {
		learned->decided = true;
		learned->word = decision;
	}
}
