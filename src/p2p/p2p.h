/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Point-to-point messages between the ranks of a team.
 *
 * Matching is by source and tag, in the order of the sends of a pair and of the receives. How the
 * bytes move (channel.h has the memory):
 *
 *   eager       in a cell, or in chunks through the ring; the send is over when they are there
 *   rendezvous  a cell announces the message; the receiver fetches it by the pair's single copy, in
 *               pieces, and writes "done" into the sender's line; or it asks there to be sent it,
 *               and the chunks go through the ring, copied in while others are copied out
 *
 * One struct oci_p2p a team, made by the first message. Used by one thread at a time, as the team.
 * Nothing here blocks: the caller repeats oci_p2p_progress().
 */
#ifndef OC_P2P_P2P_H
#define OC_P2P_P2P_H

#include <onecopy/onecopy.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "copy/copy.h"
#include "copy/vmsplice.h"
#include "model/model.h"
#include "p2p/channel.h"
#include "team/learned.h"
#include "team/team.h"

/* How a rendezvous moves its bytes. */
enum oci_p2p_method {
	OCI_P2P_COPY,	  /* the receiver pulls: out of a mapped heap, or as the pair agreed */
	OCI_P2P_STREAM,	  /* the sender sends chunks through its ring */
	OCI_P2P_VMSPLICE, /* the sender attaches its pages to a pipe */
	OCI_P2P_WRITEV,	  /* or copies into it */
	OCI_P2P_METHODS
};

/* Of an eager message: 6 to 16 KiB took 1.05 times as long in chunks of 4 KiB, 12 KiB 1.1 in one of
 * 16 (the machine of limits.c). */
#define OCI_P2P_EAGER_CHUNK_BYTES ((size_t)8 << 10)
/* From here on both ends may copy. */
#define OCI_P2P_SHARE_BYTES ((size_t)32 << 10)

/* Where the messages of a team change their way: limits.c. */
struct oci_p2p_limits {
	size_t eager_bytes;	    /* up to here one is eager, as far as credit goes */
	size_t near_eager_bytes;    /* the same of ranks that share a cache */
	size_t mapped_eager_bytes;  /* of a buffer that the receiver can map; SIZE_MAX: as others */
	size_t stream_eager_bytes;  /* the same to a rank that cannot single-copy */
	enum oci_p2p_method method; /* of a rendezvous */
	/* From here on one may go through a pipe between ranks that share no cache and have no
	 * single copies; SIZE_MAX: none does. */
	size_t pipe_bytes;
	/* What OCI_P2P_COPY does not do, though the pair could: this rank's own business. */
	bool never_mapped, never_by_pair;
};

/*
 * A send or a receive that is under way: its owner's memory, untouched by us once `result` is set,
 * or the team has failed. The fields above the line are the caller's to set.
 */
struct oci_message {
	uint32_t peer; /* OC_ANY_SOURCE: a receive's */
	int32_t tag;   /* OC_ANY_TAG */
	void *buffer;
	size_t bytes;		  /* of a receive: room */
	struct oc_layout layout;  /* pieces NULL: the buffer is dense */
	struct oc_status *status; /* of a receive; may be NULL */
	/* Called when it is over, as the last thing that is done with it; NULL: nobody. */
	void (*over)(struct oci_message *message);
	/* ---- */
	int result;		     /* 0 under way, 1 done, -errno */
	TAILQ_ENTRY(oci_message) on; /* the one list that it is on */
	size_t at;		     /* bytes moved */
	uint64_t order;		     /* of a receive, among the posted ones */
	/* Of a rendezvous. */
	struct oci_rendezvous *line; /* the sender's */
	enum oci_p2p_method method;
	bool shared;			/* both ends copy */
	bool stuck;			/* and the receiver's cannot */
	size_t sending;			/* the sender's: up to where to send; 0: not asked to */
	uint64_t cookie;		/* of chunks that are asked for */
	struct oci_announcement sender; /* both have the pipe; the receiver all of it */
	/* The receiver has: */
	uint32_t source;
	size_t whole;		  /* bytes of the message */
	size_t wanted;		  /* of those, as many as there is room for */
	size_t counted;		  /* of those, what p2p->pulled has */
	uint32_t turn;		  /* of its struct oci_pipe_choice that it belongs to; 0: none */
	struct oc_layout foreign; /* the list of the sender's pieces, fetched */
};

/* A message that came before its receive. */
struct oci_unexpected {
	TAILQ_ENTRY(oci_unexpected) of_source, of_any; /* as they came */
	uint32_t source;
	int32_t tag;
	size_t bytes, at; /* of an eager message: at < bytes while chunks are missing */
	size_t room;	  /* bytes behind */
	bool is_rendezvous;
	struct oci_message *claimed;	/* the receive that waits for the missing chunks */
	struct oci_message *self;	/* a send to ourselves that waits for its receive */
	struct oci_announcement sender; /* of a rendezvous */
	uint8_t payload[];
};

TAILQ_HEAD(oci_messages, oci_message);
TAILQ_HEAD(oci_unexpecteds, oci_unexpected);

/* What this rank keeps for a rank that it sends to. */
struct oci_outbound {
	struct oci_channel *channel;
	uint64_t written;		   /* cells */
	uint64_t taken;			   /* as last read */
	uint64_t position, freed;	   /* bytes ever put into the ring, and of those reusable */
	uint64_t cost, matched;		   /* of eager messages, and as last read */
	const struct oci_inbound *reverse; /* what comes from that rank */
	size_t eager_bytes;		   /* up to which a message to it is eager */
	uint64_t ends[OCI_P2P_CELLS];	   /* position behind the payload of each cell */
	struct oci_messages queue;	   /* sends that wait for room, in order */
	struct oci_messages announced;	   /* rendezvous under way */
	struct oci_splice_out pipe;
	uint32_t peer;
	struct oci_outbound *busy_next; /* both lists empty: not on the list of busy ones */
	bool busy, streams_first;
	bool pipes; /* its receiver may choose one for large messages, as long as it can be had */
};

/* And for one that it hears from. */
struct oci_inbound {
	struct oci_channel *channel;  /* NULL: it has not sent yet */
	struct oci_outbound *reverse; /* what we send to that rank; NULL: nothing yet */
	uint64_t next;		      /* number of the cell that comes next */
	uint64_t told;		      /* cells taken, as published */
	uint64_t untold_bytes;	      /* payload taken since */
	uint64_t matched, matched_told;
	struct oci_message *filling; /* an eager message whose chunks are missing: its receive */
	struct oci_unexpected *unfinished; /* or where it is kept */
	struct oci_unexpecteds unexpected;
	struct oci_messages posted;
	struct oci_messages streams; /* receives that are sent to */
	struct oci_messages pipes;   /* and through its pipe: the first is, others wait */
	struct oci_splice_in pipe;
	uint64_t lost; /* handle of one that lost its place: bytes of another message are in it */
	struct oci_pipe_choice *choice; /* NULL: its sender has not left us any yet */
	int32_t filling_tag;
};

/*
 * Which is quicker, a sender's ring or its pipe? That is a matter of the program, too: what lies in
 * nobody's cache is read by one copy in less time, what the sender has just written by two
 * (docs/results/experiments.md). So both are tried. Messages that are under way at once are a turn:
 * they go the same way, and are measured together.
 */
struct oci_pipe_choice {
	struct oci_learned learned[OCI_LEARNED_LENGTHS];
	uint8_t word[OCI_LEARNED_LENGTHS]; /* this rank's alone */
	uint32_t turns[OCI_LEARNED_LENGTHS];
	bool refused; /* its pipe could not be opened */
	/* The turn: its number, what is under way of it, and what has come. */
	bool open, piped, tries;
	unsigned int length;
	uint32_t turn, under_way;
	size_t bytes;
	uint64_t begun_ns;
};

/* Bytes of receives that copy, and the most since there was none. */
struct oci_pulled {
	size_t now, most;
};

struct oci_p2p {
	struct oci_team *team;
	struct oci_p2p_limits limits;
	uint64_t *directory; /* in our segment: offset of our channel to each rank, 0 none */
	int64_t directory_offset;
	uint64_t opened;	   /* channels to us that we have looked for */
	struct oci_outbound **out; /* by rank; NULL: nothing sent yet */
	struct oci_inbound *in;	   /* by rank */
	uint32_t *active, actives; /* ranks with a channel to us */
	struct oci_outbound *busy;
	struct oci_messages posted_any;
	struct oci_messages pulling;   /* receives that copy */
	struct oci_pulled pulled;      /* by those, ... */
	struct oci_pulled pulled_near; /* ... and by those from ranks that share a cache */
	struct oci_unexpecteds unexpected;
	struct oci_unexpecteds spare; /* small ones that are not in use */
	uint64_t posts;		      /* receives posted so far */
	uint64_t self_cost;	      /* of unexpected eager messages to ourselves */
	uint64_t line, block; /* offsets of a free line, and of the newest block of them; 0: none */
	struct oci_wait wait;
	uint32_t turns;
	bool probing; /* a message of `probed` is looked for, without a receive */
	uint32_t probed;
	int32_t probed_tag;
};

/* ---- what others use ------------------------------------------------------------------------- */

/* For a team that is ready; the model is kept. 0, -ENOMEM or -ENOSPC. */
int oci_p2p_create(struct oci_p2p **p2p, struct oci_team *team, const struct oci_model *model);
/* Only when all members have left the team, or nothing was ever sent. */
void oci_p2p_destroy(struct oci_p2p *p2p);

/*
 * Starts a send or receive. 0, and message->result may be set already (then message->over was not
 * called); or -errno, and the message was not taken.
 */
int oci_p2p_send(struct oci_p2p *p2p, struct oci_message *message);
int oci_p2p_receive(struct oci_p2p *p2p, struct oci_message *message);
/*
 * One turn for everything that is under way. How much moved. Where a peer is found dead, or its
 * team failed, ours has failed: team->error.
 */
unsigned int oci_p2p_progress(struct oci_p2p *p2p);
/* One such turn, then the first message that matches and has not been received: true, and *status,
 * which may be NULL. A peer that is probed and dead is found as one that is received from. */
bool oci_p2p_probe(struct oci_p2p *p2p, uint32_t source, int32_t tag, struct oc_status *status);
/*
 * The team has failed: before buffers are their owners' again. No peer writes to a receive's any
 * more, and p2p forgets the receives that copy.
 */
void oci_p2p_abandon(struct oci_p2p *p2p);
/* Take back a send to ourselves, or a receive, that nothing has matched. */
void oci_p2p_withdraw_send(struct oci_p2p *p2p, const struct oci_message *message);
void oci_p2p_withdraw_receive(struct oci_p2p *p2p, struct oci_message *message);

/*
 * The short ways of blocking calls, for contiguous bytes when nothing else of this team is under
 * way: 1 done; 0 nothing was done. Of the receive: 0 there is no message yet, -1 not that simple.
 */
int oci_p2p_send_now(struct oci_p2p *p2p, uint32_t peer, int32_t tag, const void *buffer,
		     size_t bytes);
int oci_p2p_receive_now(struct oci_p2p *p2p, uint32_t peer, int32_t tag, void *buffer, size_t room,
			struct oc_status *status, int *result);

/* ---- among the files here -------------------------------------------------------------------- */

/* The message is over. */
void oci_message_finish(struct oci_message *message, int result);
/* Copies between the bytes [at, at + bytes) of a message's buffer and dense ones. */
void oci_message_gather(void *to, const struct oci_message *message, size_t at, size_t bytes);
/* ... of which only those that there is room for. */
void oci_message_scatter(const struct oci_message *message, size_t at, const void *from,
			 size_t bytes);
/* From a send of ours into a receive of ours. */
void oci_message_move(const struct oci_message *to, const struct oci_message *from);

/* limits.c: by the options, the model and the caches. */
void oci_p2p_limits(const struct oci_model *model, struct oci_p2p_limits *limits);

/* channel.c: the sender's side. NULL and *error: no memory for the channel. */
struct oci_outbound *oci_outbound_get(struct oci_p2p *p2p, uint32_t peer, int *error);
/* The next cell, to be filled in and published; NULL: the ring is full. */
struct oci_cell *oci_cell_next(struct oci_outbound *out);
/* The same with room for `bytes` of payload, whose place is set in cell->chunk. */
struct oci_cell *oci_cell_chunk(struct oci_outbound *out, size_t bytes);
void oci_cell_publish(struct oci_outbound *out, struct oci_cell *cell);
/* Is there credit for an eager message? Takes it. */
bool oci_outbound_credit(struct oci_outbound *out, size_t bytes);
/* Gives it back: the message was not sent. */
static inline void oci_outbound_no_credit(struct oci_outbound *out, size_t bytes)
{
	out->cost -= oci_p2p_cost(bytes);
}

/* channel.c: the receiver's side. */
void oci_inbound_attach(struct oci_p2p *p2p);
/* The cell that comes next, if it is there. */
static inline struct oci_cell *oci_inbound_cell(const struct oci_inbound *in)
{
	struct oci_cell *cell = &in->channel->cell[in->next % OCI_P2P_CELLS];

	/* Acquire: what it carries was written before. Pairs with oci_cell_publish(). */
	return oci_load_acquire(&cell->flag) == in->next ? cell : NULL;
}
/* So many of our cells have been taken. */
void oci_outbound_taken(struct oci_outbound *out, uint64_t taken);
/* The same, as a cell says that has come. That its sender had read ours before is by the acquire
 * above. */
static inline void oci_inbound_tells(const struct oci_inbound *in, const struct oci_cell *cell)
{
	if (in->reverse && cell->taken > in->reverse->taken)
		oci_outbound_taken(in->reverse, cell->taken);
}
/* The cell and `bytes` of payload have been read. */
void oci_inbound_taken(struct oci_inbound *in, size_t bytes);
/* An eager message has found its receive. */
void oci_inbound_matched(struct oci_inbound *in, size_t bytes);

/* channel.c: lines. NULL: no room in the segment. */
struct oci_rendezvous *oci_line_get(struct oci_p2p *p2p);
uint64_t oci_line_offset(const struct oci_rendezvous *line);
void oci_line_put(struct oci_p2p *p2p, struct oci_rendezvous *line);

/* send.c, receive.c: one turn. */
unsigned int oci_send_progress(struct oci_p2p *p2p);
unsigned int oci_receive_progress(struct oci_p2p *p2p);
/* All that a rank that sends no more has sent. */
void oci_receive_drain(struct oci_p2p *p2p, uint32_t source);

/* match.c */
/* The posted receive that a message from `source` belongs to, taken off its list; or NULL. */
struct oci_message *oci_match_posted(struct oci_p2p *p2p, uint32_t source, int32_t tag);
struct oci_unexpected *oci_match_unexpected(struct oci_p2p *p2p, uint32_t source, int32_t tag);
void oci_post(struct oci_p2p *p2p, struct oci_message *message);
/* Keeps a message that nobody waits for, with room for `bytes`; NULL: no memory. */
struct oci_unexpected *oci_unexpected_add(struct oci_p2p *p2p, uint32_t source, int32_t tag,
					  size_t bytes);
void oci_unexpected_unlink(struct oci_p2p *p2p, struct oci_unexpected *entry);
void oci_unexpected_free(struct oci_p2p *p2p, struct oci_unexpected *entry);

/* rendezvous.c: the receiver's side. The receive has its source, whole, sender, line and method. */
void oci_rendezvous_begin(struct oci_p2p *p2p, struct oci_message *message);
/* One piece for each receive that copies. */
unsigned int oci_rendezvous_progress(struct oci_p2p *p2p);
/* Asks the sender to send from m->at on. */
void oci_rendezvous_ask(struct oci_p2p *p2p, struct oci_message *message,
			enum oci_p2p_method method);
/* Asks for what is missing of one that was asked for through a pipe, through the ring. */
void oci_rendezvous_ask_rest(struct oci_p2p *p2p, struct oci_message *message);
/* All is here: the buffer is the sender's again, the receive is over. */
void oci_rendezvous_over(struct oci_p2p *p2p, struct oci_message *message);
/* The sender's, when it is asked for help: false, there is nothing to do. */
bool oci_rendezvous_help(struct oci_p2p *p2p, struct oci_message *message);
/* progress.c: that rank's team has failed, it died, or it has left, so ours fails. */
void oci_p2p_gave_up(struct oci_team *team, uint32_t rank, uint64_t poison, bool left);

/* pipe.c. The sender's: what a receiver opens its pipe by, 0: there is none to be had; one turn of
 * a message that is asked for. */
uint64_t oci_pipe_offer(struct oci_outbound *out);
unsigned int oci_pipe_feed(struct oci_p2p *p2p, struct oci_outbound *out,
			   struct oci_message *message);
/* The pipe that this message was to go through is not used any more. */
void oci_pipe_lose(struct oci_outbound *out, const struct oci_message *message);
/* The receiver's: false: it cannot be read. One turn for each sender. */
bool oci_pipe_begin(struct oci_p2p *p2p, struct oci_message *message);
/* Of one whose sender leaves it the choice: is it to go through the pipe? And it has come. */
bool oci_pipe_choose(struct oci_inbound *in, struct oci_message *message);
void oci_pipe_came(struct oci_inbound *in, const struct oci_message *message);
unsigned int oci_pipe_progress(struct oci_p2p *p2p);

static inline bool oci_p2p_is_piped(enum oci_p2p_method method)
{
	return method == OCI_P2P_VMSPLICE || method == OCI_P2P_WRITEV;
}
/* The receive has all its bytes, but for telling. */
void oci_receive_finish(struct oci_message *message, uint32_t source, int32_t tag, size_t whole);

#endif
