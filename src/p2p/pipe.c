/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous through a pipe (copy/vmsplice.h): the sender attaches its pages, or copies, and the
 * receiver reads. A pipe is a stream, so a receiver asks for one message of a sender at a time, and
 * the others wait. Between ranks that share no cache and may not copy from each other's memory the
 * receiver chooses it where it has measured it to be quicker than the ring. The buffer is the
 * sender's again when the receiver says "done".
 *
 * A pipe that cannot be had, at either end, is not an error: the chunks go through the ring. Nor is
 * one that is lost with a message in it, as the program closed what it did not open: the receiver
 * knows how far the message has come, and asks for the rest through the ring. What is left in a
 * lost pipe is nobody's, so it is not used again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "copy/layout.h"
#include "p2p/p2p.h"

/* The pieces of a message's buffer from m->at up to `end`, at most a turn's. */
static unsigned int cut(const struct oci_message *m, size_t end, struct iovec *pieces)
{
	size_t bytes = end - m->at;

	if (m->layout.pieces)
		return oci_layout_cut(&m->layout, m->at, bytes, pieces, OCI_SPLICE_PIECES);
	pieces[0] = (struct iovec){ (uint8_t *)m->buffer + m->at, bytes };
	return 1;
}

/* The ring would not do better: there this process would end. */
static void fail(struct oci_p2p *p2p, uint32_t peer, const char *end)
{
	oci_team_fail(p2p->team, -EFAULT, -1,
		      "a message %s rank %u stopped half way in a pipe (%s): was its buffer freed? "
		      "This team cannot be used any more",
		      end, oci_team_name(p2p->team, peer), strerror(EFAULT));
}

/* ---- the sender ------------------------------------------------------------------------------ */

uint64_t oci_pipe_offer(struct oci_outbound *out)
{
	uint64_t handle;

	if (out->pipe.write_fd >= 0 && !oci_splice_handle(&out->pipe, &handle))
		return handle;
	/* Not ours any more. A message announced by its old handle goes through the ring. */
	oci_splice_out_close(&out->pipe);
	if (!oci_splice_create(&out->pipe) && !oci_splice_handle(&out->pipe, &handle)) {
		if (!out->pipes || out->pipe.holds_turns)
			return handle;
		/* A call for each page or two gains nothing: who asked for a pipe gets that. */
		oci_splice_out_close(&out->pipe);
	}
	out->pipes = false;
	return 0;
}

/* Is the pipe that was announced, and that the receiver has opened, still ours? Asked again before
 * each turn: the program may close it and open a file of its own there, or a message behind this
 * one have made another. */
static bool is_still_there(const struct oci_outbound *out, const struct oci_message *m)
{
	uint64_t handle;

	return !oci_splice_handle(&out->pipe, &handle) && handle == m->sender.pipe;
}

void oci_pipe_lose(struct oci_outbound *out, const struct oci_message *m)
{
	uint64_t handle;

	/* Not one that a message behind this one has made. */
	if (oci_splice_handle(&out->pipe, &handle) || handle == m->sender.pipe)
		oci_splice_out_close(&out->pipe);
}

unsigned int oci_pipe_feed(struct oci_p2p *p2p, struct oci_outbound *out, struct oci_message *m)
{
	struct iovec pieces[OCI_SPLICE_PIECES];
	ssize_t bytes;

	if (m->at == m->sending || p2p->team->error)
		return 0; /* all in: its receiver reads */
	bytes = is_still_there(out, m) ?
			oci_splice_send(&out->pipe, pieces, cut(m, m->sending, pieces),
					m->method == OCI_P2P_VMSPLICE) :
			-EBADF;
	if (bytes > 0) {
		m->at += (size_t)bytes;
		return 1;
	}
	if (bytes == -EFAULT) {
		fail(p2p, out->peer, "to");
	} else if (bytes != -EAGAIN) {
		oci_pipe_lose(out, m);
		/* Relaxed: it says nothing of other memory. */
		oci_store_relaxed(&m->line->lost, 1);
	}
	return 0;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

/* Messages that follow one another without a gap are as many as this a turn. */
#define TURN_MESSAGES 16

static void begin_turn(struct oci_pipe_choice *c, const struct oci_message *m)
{
	unsigned int l = oci_learned_length(m->wanted);

	c->length = l;
	c->piped = oci_learned_way(&c->learned[l], &c->word[l], l, c->turns[l]++, false, &c->tries);
	c->piped &= !c->refused;
	c->tries &= !c->refused;
	c->open = true;
	c->bytes = c->under_way = 0;
	if (!++c->turn)
		c->turn++; /* 0 is no turn */
	c->begun_ns = c->tries ? oci_clock_ns() : 0;
}

bool oci_pipe_choose(struct oci_inbound *in, struct oci_message *m)
{
	if (!m->sender.pipe)
		return false;
	/* First messages go through the ring, as a pipe loses where the sender rewrites them. */
	if (!in->choice)
		in->choice = calloc(1, sizeof(*in->choice));
	if (!in->choice)
		return false;
	if (!in->choice->open)
		begin_turn(in->choice, m);
	in->choice->under_way++;
	m->turn = in->choice->turn;
	if (in->choice->piped)
		m->method = OCI_P2P_VMSPLICE;
	return in->choice->piped;
}

/* It goes through the ring, as its pipe cannot be opened: so do all after it. */
static void refuse(struct oci_inbound *in, const struct oci_message *m)
{
	if (!m->turn)
		return;
	in->choice->refused = true;
	in->choice->piped = in->choice->tries = false;
}

void oci_pipe_came(struct oci_inbound *in, const struct oci_message *m)
{
	struct oci_pipe_choice *c = in->choice;

	/* Of an earlier turn: it is in none any more. */
	if (!m->turn || !c->open || m->turn != c->turn)
		return;
	c->bytes += m->wanted;
	if (--c->under_way && c->bytes < TURN_MESSAGES * m->wanted)
		return;
	c->open = false;
	if (c->tries)
		oci_learned_tell(&c->learned[c->length], &c->word[c->length], c->length, c->piped,
				 c->bytes, oci_clock_ns() - c->begun_ns);
}

bool oci_pipe_begin(struct oci_p2p *p2p, struct oci_message *m)
{
	struct oci_inbound *in = &p2p->in[m->source];
	int error;

	if (!m->sender.pipe || m->sender.pipe == in->lost)
		return false;
	/* The end that is open stays while a message is in it. */
	if (TAILQ_FIRST(&in->pipes) && in->pipe.handle != m->sender.pipe)
		return false;
	error = oci_splice_open(&in->pipe, p2p->team->member[m->source].pid, m->sender.pipe);
	if (error) {
		oci_debug("the pipe of rank %u cannot be opened (%s): it sends in another way",
			  m->source, strerror(-error));
		refuse(in, m);
		return false;
	}
	TAILQ_INSERT_TAIL(&in->pipes, m, on);
	if (TAILQ_FIRST(&in->pipes) == m)
		oci_rendezvous_ask(p2p, m, m->method);
	return true;
}

/* What was to come through this sender's pipe comes through the ring: of the first message the
 * rest, of those that wait behind it all. */
static void lose(struct oci_p2p *p2p, struct oci_inbound *in, struct oci_message *m)
{
	oci_debug("the pipe of rank %u was lost with a message in it, as a descriptor was closed "
		  "that the program did not open: the rest comes through the ring",
		  m->source);
	in->lost = m->sender.pipe;
	oci_splice_in_close(&in->pipe);
	if (m->turn)
		in->choice->tries = false;
	TAILQ_REMOVE(&in->pipes, m, on);
	oci_rendezvous_ask_rest(p2p, m);
	while ((m = TAILQ_FIRST(&in->pipes))) {
		TAILQ_REMOVE(&in->pipes, m, on);
		oci_rendezvous_ask(p2p, m, OCI_P2P_STREAM);
	}
}

static unsigned int read_turn(struct oci_p2p *p2p, struct oci_inbound *in, struct oci_message *m)
{
	struct iovec pieces[OCI_SPLICE_PIECES];
	/* The program may have closed our end: then it is opened again, at the same byte. */
	ssize_t bytes =
		oci_splice_open(&in->pipe, p2p->team->member[m->source].pid, m->sender.pipe);

	if (!bytes)
		bytes = oci_splice_recv(&in->pipe, pieces, cut(m, m->wanted, pieces));
	/* Relaxed: whatever is left in the pipe then, we ask for what has not come. */
	if (bytes == -EAGAIN && !oci_load_relaxed(&m->line->lost))
		return 0;
	if (bytes == -EFAULT) {
		fail(p2p, m->source, "from");
		return 0;
	}
	/* Of a sender that has died, too: that is noticed as of any dead peer, and it is named
	 * then. */
	if (bytes <= 0) {
		lose(p2p, in, m);
		return 1;
	}
	m->at += (size_t)bytes;
	if (m->at < m->wanted)
		return 1;
	TAILQ_REMOVE(&in->pipes, m, on);
	if (TAILQ_FIRST(&in->pipes))
		oci_rendezvous_ask(p2p, TAILQ_FIRST(&in->pipes), TAILQ_FIRST(&in->pipes)->method);
	oci_pipe_came(in, m);
	oci_rendezvous_over(p2p, m);
	return 1;
}

unsigned int oci_pipe_progress(struct oci_p2p *p2p)
{
	unsigned int moved = 0;

	for (uint32_t i = 0; i < p2p->actives && !p2p->team->error; i++) {
		struct oci_inbound *in = &p2p->in[p2p->active[i]];

		if (TAILQ_FIRST(&in->pipes))
			moved += read_turn(p2p, in, TAILQ_FIRST(&in->pipes));
	}
	return moved;
}
