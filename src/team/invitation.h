/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invitations: what receivers of large messages leave in the sender's segment, so that it copies
 * its part into shared memory, if it only waits (copy/invite.h).
 *
 * A place is taken by one bit of `places`, and its invitation is open by another one, which is set
 * when all is written, and cleared before the place is given back. The sender, one thread of it at
 * a time, writes to `reading` which place it is about to look at, and only then looks whether the
 * invitation is open; who takes a place looks at `reading` before it writes there. So what the
 * sender has found open stays as it is until it looks away.
 */
#ifndef OC_TEAM_INVITATION_H
#define OC_TEAM_INVITATION_H

#include <stdint.h>

#define OCI_INVITATIONS 8u
#define OCI_TAKEN(i) (1ull << (i))
#define OCI_OPEN(i) (1ull << (32 + (i)))

/* What the sender answers with, instead of where its slots are: the receiver is to read alone. */
#define OCI_INVITATION_DECLINED UINT64_MAX
/* Where the sender puts chunks for the receiver: turn i in slot i % OCI_INVITATION_SLOTS. */
#define OCI_INVITATION_SLOTS 4u
#define OCI_INVITATION_SLOT_BYTES ((size_t)64 << 10)

struct oci_invitation {
	/* The receiver's: its number, and what tells it from a later process with that number. */
	uint64_t pid;
	uint64_t segment; /* address of its segment, which begins with the nonce, in it */
	uint64_t nonce[2];
	uint64_t from; /* the sender's buffer */
	uint64_t bytes;
	uint64_t emptied; /* how many chunks it has taken out of the slots */
	uint64_t pad0;
	/* Both write the first, the sender the others. */
	uint64_t claim, helped; /* copy/chunks.h: helped: how many were put into the slots */
	uint64_t slots;		/* 0: no answer yet; their place in the sender's segment */
	uint64_t pad1[5];
} __attribute__((aligned(128)));

enum oci_away {
	OCI_AWAY_NOT,
	OCI_AWAY_IN_KERNEL, /* and does not wait */
	OCI_AWAY_SHARING,   /* and looks at its places meanwhile */
};

struct oci_invitations {
	uint64_t places; /* of all: OCI_TAKEN(i), OCI_OPEN(i) */
	uint64_t pad0[15];
	/* The owner's. */
	uint64_t turns;	  /* of its progress: while they go on it waits, or does little else */
	uint64_t away;	  /* a thread of it reads: enum oci_away; a hint */
	uint64_t helps;	  /* it looks at its places; written once */
	uint64_t reading; /* 1 + place; 0: none */
	uint64_t pad1[12];
	struct oci_invitation invitation[OCI_INVITATIONS];
} __attribute__((aligned(128)));

_Static_assert(sizeof(struct oci_invitation) == 128, "terms, and what both write");
_Static_assert(sizeof(struct oci_invitations) == 256 + OCI_INVITATIONS * 128, "as documented");

#endif
