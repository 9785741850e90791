/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: opened, found, filled and emptied; the lines of rendezvous; a team's state. */
#include "p2p/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "p2p/p2p.h"

/* Lines lie in blocks in our segment, made as they are needed; the first of a block is its link to
 * the one before it. */
#define BLOCK_BYTES (64 * sizeof(struct oci_rendezvous))
/* Cells taken before their sender is told: each time costs both a transfer of the line. */
#define CELLS_UNTOLD (OCI_P2P_CELLS / 4)
#define BYTES_UNTOLD (OCI_P2P_RING_BYTES / 4)
#define CREDIT_UNTOLD (OCI_P2P_CREDIT_BYTES / 4)

static void *own(int64_t offset)
{
	return (uint8_t *)oci_segment_base() + offset;
}

static struct oci_rendezvous *line_at(uint64_t offset)
{
	return own((int64_t)offset);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool state_alloc(struct oci_p2p *p2p)
{
	uint32_t size = p2p->team->size;

	p2p->directory_offset = -1;
	p2p->out = calloc(size, sizeof(*p2p->out));
	p2p->in = calloc(size, sizeof(*p2p->in));
	p2p->active = calloc(size, sizeof(*p2p->active));
	return p2p->out && p2p->in && p2p->active;
}

int oci_p2p_create(struct oci_p2p **created, struct oci_team *team, const struct oci_model *model)
{
	struct oci_p2p *p2p = calloc(1, sizeof(*p2p));

	if (!p2p)
		return -ENOMEM;
	p2p->team = team;
	oci_p2p_limits(model, &p2p->limits);
	TAILQ_INIT(&p2p->posted_any);
	TAILQ_INIT(&p2p->pulling);
	TAILQ_INIT(&p2p->unexpected);
	TAILQ_INIT(&p2p->spare);
	if (!state_alloc(p2p)) {
		oci_p2p_destroy(p2p);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < team->size; r++) {
		struct oci_inbound *in = &p2p->in[r];

		in->next = 1;
		TAILQ_INIT(&in->unexpected);
		TAILQ_INIT(&in->posted);
		TAILQ_INIT(&in->streams);
		TAILQ_INIT(&in->pipes);
		in->pipe = OCI_SPLICE_IN_CLOSED;
	}
	*created = p2p;
	return 0;
}

void oci_p2p_destroy(struct oci_p2p *p2p)
{
	struct oci_unexpected *entry;

	for (uint32_t r = 0; p2p->out && r < p2p->team->size; r++) {
		if (!p2p->out[r])
			continue;
		oci_segment_free((int64_t)p2p->directory[r], sizeof(struct oci_channel));
		oci_splice_out_close(&p2p->out[r]->pipe);
		free(p2p->out[r]);
	}
	if (p2p->directory)
		oci_segment_free(p2p->directory_offset, p2p->team->size * sizeof(uint64_t));
	/* A message whose chunks are missing may be claimed, and then is on no list. */
	for (uint32_t r = 0; p2p->in && r < p2p->team->size; r++) {
		if (p2p->in[r].unfinished && p2p->in[r].unfinished->claimed)
			free(p2p->in[r].unfinished);
		oci_splice_in_close(&p2p->in[r].pipe);
		free(p2p->in[r].choice);
	}
	while ((entry = TAILQ_FIRST(&p2p->unexpected))) {
		TAILQ_REMOVE(&p2p->unexpected, entry, of_any);
		free(entry);
	}
	while ((entry = TAILQ_FIRST(&p2p->spare))) {
		TAILQ_REMOVE(&p2p->spare, entry, of_source);
		free(entry);
	}
	for (uint64_t block = p2p->block, next; block; block = next) {
		next = line_at(block)->next;
		oci_segment_free((int64_t)block, BLOCK_BYTES);
	}
	free(p2p->out);
	free(p2p->in);
	free(p2p->active);
	free(p2p);
}

/* ---- the sender's side ----------------------------------------------------------------------- */

static int directory_make(struct oci_p2p *p2p)
{
	struct oci_team *team = p2p->team;
	int64_t offset;

	if (p2p->directory)
		return 0;
	offset = oci_segment_alloc(team->size * sizeof(uint64_t));
	if (offset < 0)
		return (int)offset;
	p2p->directory_offset = offset;
	p2p->directory = own(offset);
	/* Release: the table is zeroed. Pairs with the acquire in oci_inbound_attach(). */
	oci_store_release(&team->own->progress.p2p_directory, (uint64_t)offset);
	return 0;
}

struct oci_outbound *oci_outbound_get(struct oci_p2p *p2p, uint32_t peer, int *error)
{
	struct oci_outbound *out = p2p->out[peer];
	int64_t offset;

	if (__builtin_expect(out != NULL, 1))
		return out;
	*error = directory_make(p2p);
	if (*error)
		return NULL;
	out = calloc(1, sizeof(*out));
	offset = out ? oci_segment_alloc(sizeof(struct oci_channel)) : -ENOMEM;
	if (offset < 0) {
		free(out);
		*error = (int)offset;
		return NULL;
	}
	out->channel = own(offset);
	out->peer = peer;
	out->eager_bytes = p2p->limits.eager_bytes;
	if (p2p->team->member[peer].mechanism == OCI_MECH_SHM)
		out->eager_bytes = p2p->limits.stream_eager_bytes;
	else if (oci_near_peer(p2p->team, peer))
		out->eager_bytes = p2p->limits.near_eager_bytes;
	out->pipes = p2p->team->member[peer].mechanism == OCI_MECH_SHM &&
		     p2p->limits.pipe_bytes != SIZE_MAX && oci_apart_peer(p2p->team, peer);
	out->reverse = &p2p->in[peer];
	p2p->in[peer].reverse = out;
	out->pipe = OCI_SPLICE_OUT_CLOSED;
	TAILQ_INIT(&out->queue);
	TAILQ_INIT(&out->announced);
	p2p->out[peer] = out;
	/* Release: the channel is zeroed. Pairs with the acquire in oci_inbound_attach(). */
	oci_store_release(&p2p->directory[peer], (uint64_t)offset);
	/* Release: the table's entry comes first. Pairs with the acquire in oci_inbound_attach(),
	 * which looks at tables only when this has changed. */
	__atomic_fetch_add(&p2p->team->member[peer].region->progress.p2p_opened, 1,
			   __ATOMIC_RELEASE);
	return out;
}

void oci_outbound_taken(struct oci_outbound *out, uint64_t taken)
{
	if (taken <= out->taken)
		return;
	out->taken = taken;
	out->freed = out->ends[taken % OCI_P2P_CELLS];
}

static void refresh(struct oci_outbound *out)
{
	/* Acquire: the receiver has read those cells and their payload before we write them anew.
	 * Pairs with the release in oci_inbound_taken(). */
	oci_outbound_taken(out, oci_load_acquire(&out->channel->taken));
}

struct oci_cell *oci_cell_next(struct oci_outbound *out)
{
	if (out->written - out->taken == OCI_P2P_CELLS) {
		refresh(out);
		if (out->written - out->taken == OCI_P2P_CELLS)
			return NULL;
	}
	return &out->channel->cell[(out->written + 1) % OCI_P2P_CELLS];
}

struct oci_cell *oci_cell_chunk(struct oci_outbound *out, size_t bytes)
{
	struct oci_cell *cell = oci_cell_next(out);
	uint64_t at = out->position % OCI_P2P_RING_BYTES, skipped = 0, end;

	if (!cell)
		return NULL;
	if (at && out->taken == out->written) {
		out->position += OCI_P2P_RING_BYTES - at;
		out->freed = out->position;
		at = 0;
	}
	if (at + bytes > OCI_P2P_RING_BYTES)
		skipped = OCI_P2P_RING_BYTES - at;
	end = out->position + skipped + ((bytes + OCI_LINE - 1) & ~(uint64_t)(OCI_LINE - 1));
	if (end - out->freed > OCI_P2P_RING_BYTES) {
		refresh(out);
		if (end - out->freed > OCI_P2P_RING_BYTES)
			return NULL;
	}
	cell->chunk.position = out->position + skipped;
	cell->chunk.bytes = bytes;
	out->position = end;
	return cell;
}

void oci_cell_publish(struct oci_outbound *out, struct oci_cell *cell)
{
	cell->taken = out->reverse->next - 1;
	out->written++;
	out->ends[out->written % OCI_P2P_CELLS] = out->position;
	/* Release: the cell and its payload come first, and so does our reading of the cells that
	 * it says we have taken. Pairs with the acquire in oci_inbound_cell(). */
	oci_store_release(&cell->flag, out->written);
}

bool oci_outbound_credit(struct oci_outbound *out, size_t bytes)
{
	uint64_t cost = out->cost + oci_p2p_cost(bytes);

	if (cost - out->matched > OCI_P2P_CREDIT_BYTES) {
		/* Relaxed: a count, which no memory hangs on. */
		out->matched = oci_load_relaxed(&out->channel->matched);
		if (cost - out->matched > OCI_P2P_CREDIT_BYTES)
			return false;
	}
	out->cost = cost;
	return true;
}

/* ---- the receiver's side --------------------------------------------------------------------- */

static void attach(struct oci_p2p *p2p, uint32_t rank)
{
	const struct oci_member *member = &p2p->team->member[rank];
	/* Acquire: pairs with the release in directory_make(). */
	uint64_t table = oci_load_acquire(&member->region->progress.p2p_directory), offset;

	if (!table)
		return;
	/* Acquire: pairs with the release in oci_outbound_get(). */
	offset = oci_load_acquire((uint64_t *)(member->peer->base + table) + p2p->team->rank);
	if (!offset)
		return;
	p2p->in[rank].channel = (struct oci_channel *)(member->peer->base + offset);
	p2p->active[p2p->actives++] = rank;
}

void oci_inbound_attach(struct oci_p2p *p2p)
{
	/* Acquire: pairs with the release in oci_outbound_get(), of any peer. */
	uint64_t opened = oci_load_acquire(&p2p->team->own->progress.p2p_opened);

	if (__builtin_expect(opened == p2p->opened, 1))
		return;
	for (uint32_t r = 0; r < p2p->team->size; r++) {
		if (r != p2p->team->rank && !p2p->in[r].channel)
			attach(p2p, r);
	}
	p2p->opened = opened;
}

void oci_inbound_taken(struct oci_inbound *in, size_t bytes)
{
	in->untold_bytes += bytes;
	if (in->next - in->told < CELLS_UNTOLD && in->untold_bytes < BYTES_UNTOLD) {
		in->next++;
		return;
	}
	in->told = in->next++;
	in->untold_bytes = 0;
	/* Release: what we read of those cells was read before. Pairs with refresh(). */
	oci_store_release(&in->channel->taken, in->told);
}

void oci_inbound_matched(struct oci_inbound *in, size_t bytes)
{
	in->matched += oci_p2p_cost(bytes);
	if (in->matched - in->matched_told < CREDIT_UNTOLD)
		return;
	in->matched_told = in->matched;
	/* Relaxed: see oci_outbound_credit(). */
	oci_store_relaxed(&in->channel->matched, in->matched);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool more_lines(struct oci_p2p *p2p)
{
	int64_t block = oci_segment_alloc(BLOCK_BYTES);

	if (block < 0)
		return false;
	line_at((uint64_t)block)->next = p2p->block;
	p2p->block = (uint64_t)block;
	for (size_t at = sizeof(struct oci_rendezvous); at < BLOCK_BYTES;
	     at += sizeof(struct oci_rendezvous))
		oci_line_put(p2p, own(block + (int64_t)at));
	return true;
}

struct oci_rendezvous *oci_line_get(struct oci_p2p *p2p)
{
	struct oci_rendezvous *line;

	if (!p2p->line && !more_lines(p2p))
		return NULL;
	line = line_at(p2p->line);
	p2p->line = line->next;
	/* Relaxed: whoever used it before has written it for the last time; who will use it next
	 * learns of it by a cell. */
	oci_store_relaxed(&line->state, OCI_RENDEZVOUS_OPEN);
	oci_store_relaxed(&line->lost, 0);
	return line;
}

uint64_t oci_line_offset(const struct oci_rendezvous *line)
{
	return (uint64_t)((const uint8_t *)line - (const uint8_t *)oci_segment_base());
}

void oci_line_put(struct oci_p2p *p2p, struct oci_rendezvous *line)
{
	line->next = p2p->line;
	p2p->line = oci_line_offset(line);
}
