/* SPDX-License-Identifier: BSD-3-Clause */
/* The layout of offers: a function of the number of their cells alone, so that both ends know it.
 */
#include "plan/plan.h"

/*
 * Above it a block is LARGE though it would fit: where a single copy takes over from copying in and
 * out, as the selector has it for Alltoall among more ranks than CPUs (coll/rows.c). Between two
 * ranks, in a loop of the same buffers, 16 KiB through a slot took up to 1.5 times as long as in
 * stock Open MPI (docs/results/v-pair-2.csv). Two that share a cache would gain by slots for
 * longer, as in coll/rows.c, but the number of cells does not tell.
 */
#define SMALL_MOST 16384
#define SMALL_MOST_OF_PAIR 8192
/* Cells of the payload are told LARGE by the bits of one word, and hold an address at least. */
#define PAYLOAD_CELLS \
	((OCI_INLINE_BYTES - sizeof(struct oci_offer_head)) / sizeof(struct oci_offered))
#define LINE_BYTES 64

static uint32_t round_down(uint32_t value, uint32_t multiple)
{
	return value - value % multiple;
}

/* Bytes of the bits that begin a slot with so many cells: whole lines. */
static uint32_t bits_bytes(uint32_t cells)
{
	return (cells / 8 + LINE_BYTES) / LINE_BYTES * LINE_BYTES;
}

static uint32_t slot_cell_bytes(uint32_t cells)
{
	uint32_t bits = bits_bytes(cells);

	return bits < OCI_SLOT_BYTES ? round_down((OCI_SLOT_BYTES - bits) / cells, 8) : 0;
}

bool oci_offer_fits(uint32_t cells)
{
	return cells && slot_cell_bytes(cells) >= sizeof(struct oci_offered);
}

struct oci_offer oci_offer_layout(uint32_t cells, uint32_t cell)
{
	struct oci_offer offer = { .cell = cell };
	uint32_t head = sizeof(struct oci_offer_head);
	uint32_t most = cells == 1 ? SMALL_MOST_OF_PAIR : SMALL_MOST;

	if (!cells || !oci_offer_fits(cells))
		return offer;
	if (cells > PAYLOAD_CELLS) {
		offer.in_slot = 1;
		offer.first = (uint16_t)bits_bytes(cells);
		offer.cell_bytes = slot_cell_bytes(cells);
		return offer;
	}
	offer.first = (uint16_t)head;
	offer.cell_bytes = round_down((OCI_INLINE_BYTES - head) / cells, 8);
	offer.small_bytes = round_down(OCI_SLOT_BYTES / cells, LINE_BYTES);
	if (offer.small_bytes > most)
		offer.small_bytes = most;
	return offer;
}
