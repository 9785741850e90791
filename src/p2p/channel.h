/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel: what one rank sends to one other, as it lies in the sender's segment.
 *
 * Cells are a ring of fixed slots, one for each message or chunk of one; a cell's flag is its
 * number, counted from 1 for ever, so nothing is reset and a reader of an old lap waits on. Payload
 * that does not fit a cell lies in a ring of bytes behind them; a cell says where. Chunks do not
 * wrap: what is left at the end of the ring is skipped.
 *
 * Memory: a channel is made when its sender first sends to that rank, out of the sender's segment:
 *
 *   sizeof(struct oci_channel) = 256 + 64 * 128 + 65536 = 73984 bytes
 *   a rank of a team of p, at most: 8 p + (p - 1) * 73984, and 128 for each rendezvous under way
 *
 * Flow control is by two words of the receiver. `taken`: cells whose slot and payload may be
 * written anew; the cells that it sends itself say so, too, and cost nothing. A sender that finds
 * all taken begins at the ring's start again, whose lines are in the caches. `matched`: what eager
 * messages that have found their receive have cost. A sender whose eager messages cost more than
 * OCI_P2P_CREDIT_BYTES beyond that announces further ones only, so a receiver keeps at most that
 * much per sender of what nobody has asked for, and may always empty the ring: no message waits
 * behind another in it for long.
 */
#ifndef OC_P2P_CHANNEL_H
#define OC_P2P_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "team/lane.h"

#define OCI_P2P_CELLS 64u
#define OCI_P2P_RING_BYTES 65536u
/* Four to a ring, so that a chunk can be written while others are read. */
#define OCI_P2P_CHUNK_BYTES (OCI_P2P_RING_BYTES / 4)
#define OCI_P2P_INLINE_BYTES 96
#define OCI_P2P_CREDIT_BYTES ((uint64_t)4 * OCI_P2P_RING_BYTES)

enum oci_cell_kind {
	OCI_CELL_EAGER = 1,  /* a message, or its first chunk; inline up to OCI_P2P_INLINE_BYTES */
	OCI_CELL_MORE,	     /* the next chunk of the eager message before it */
	OCI_CELL_RENDEZVOUS, /* a message is there to be fetched */
	OCI_CELL_STREAM,     /* a chunk of one that the receiver asked to be sent */
};

/* What a RENDEZVOUS says of its message. */
struct oci_announcement {
	uint64_t place;	 /* of the buffer; with pieces: of their list */
	uint64_t pieces; /* count; 0: a dense buffer */
	uint64_t line;	 /* offset of its struct oci_rendezvous in the sender's segment */
	uint64_t method; /* enum oci_p2p_method that the sender wishes */
	uint64_t pipe;	 /* handle of its pipe; 0: none */
};

struct oci_cell {
	uint64_t flag;
	uint64_t bytes; /* EAGER, RENDEZVOUS: of the message; else of the chunk */
	int32_t tag;
	uint32_t kind;
	uint64_t taken; /* cells of the other direction, by the sender of this one */
	union {
		uint8_t inline_bytes[OCI_P2P_INLINE_BYTES];
		struct {
			uint64_t
				position; /* of the chunk, in the bytes that ever passed the ring */
			uint64_t bytes;
			uint64_t cookie; /* STREAM: of the receive */
		} chunk;
		struct oci_announcement rendezvous;
	};
} __attribute__((aligned(128)));

struct oci_channel {
	uint64_t taken;	  /* cells; the receiver writes it */
	uint64_t matched; /* cost; the receiver writes it */
	uint8_t pad[240];
	struct oci_cell cell[OCI_P2P_CELLS];
	uint8_t ring[OCI_P2P_RING_BYTES];
};

/* The receiver's answer to a RENDEZVOUS, in a line of the sender. Zero when announced. */
enum oci_rendezvous_state {
	OCI_RENDEZVOUS_OPEN,
	OCI_RENDEZVOUS_HELP, /* "I copy; help, if you only wait": DONE or SEND follows */
	OCI_RENDEZVOUS_DONE, /* the buffer is the sender's again */
	OCI_RENDEZVOUS_SEND, /* "please send": as below; through a pipe DONE or REST follows */
	OCI_RENDEZVOUS_REST, /* "what is missing through the ring: your pipe is lost" */
};

struct oci_rendezvous {
	uint64_t state;	      /* the receiver writes it, last; the sender polls it */
	uint64_t method;      /* SEND: enum oci_p2p_method by which to send */
	uint64_t at;	      /* SEND: from this byte on */
	uint64_t bytes;	      /* SEND: so many */
	uint64_t cookie;      /* SEND: to be sent along */
	uint64_t place;	      /* HELP: of the receiver's buffer */
	uint64_t wanted;      /* HELP: its bytes */
	uint64_t lost;	      /* SEND: the pipe is, at the sender; it writes this */
	uint64_t claim;	      /* HELP: chunks taken from the front and the back; both write it */
	uint64_t helped;      /* HELP: chunks that the sender has copied; copy/chunks.h has both */
	uint64_t next;	      /* the owner's: of its free lines, and of their blocks */
	uint64_t rest_at;     /* REST: from this byte on; words of their own, as the sender may */
	uint64_t rest_cookie; /* be reading those of SEND; and to be sent along */
	uint64_t unused[3];
};

_Static_assert(sizeof(struct oci_cell) == 128, "two lines, as documented");
_Static_assert(sizeof(struct oci_channel) == 256 + 64 * 128 + 65536, "as documented");
_Static_assert(sizeof(struct oci_rendezvous) == 2 * OCI_LINE, "polled, and claimed");

/* Its payload lies in it. */
static inline bool oci_cell_is_inline(uint64_t kind, size_t bytes)
{
	return kind == OCI_CELL_EAGER && bytes <= OCI_P2P_INLINE_BYTES;
}

/* What an eager message counts for against the credit: what its receiver needs to keep it. */
static inline uint64_t oci_p2p_cost(size_t bytes)
{
	return bytes + 128;
}

#endif
