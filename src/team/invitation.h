/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invitations: what receivers of large messages leave in the sender's segment, so that it copies
 * its part, if it only waits (copy/invite.c).
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

struct oci_invitation {
	/* The receiver's: its number, and what tells it from a later process with that number. */
	uint64_t pid;
	uint64_t segment; /* address of its segment, which begins with the nonce, in it */
	uint64_t nonce[2];
	uint64_t to;   /* its buffer */
	uint64_t from; /* the sender's */
	uint64_t bytes;
	uint64_t pad0;
	uint64_t claim, helped; /* copy/chunks.h */
	uint64_t pad1[6];
} __attribute__((aligned(128)));

struct oci_invitations {
	uint64_t places; /* bit i: place i is taken; bit 32 + i: its invitation is open */
	uint64_t pad0[15];
	/* The owner's. */
	uint64_t turns;	  /* of its progress: while they go on it waits, or does little else */
	uint64_t away;	  /* 1: a thread of it reads, and does not wait; a hint */
	uint64_t helps;	  /* it looks at its places; written once */
	uint64_t reading; /* 1 + place; 0: none */
	uint64_t pad1[12];
	struct oci_invitation invitation[OCI_INVITATIONS];
} __attribute__((aligned(128)));

_Static_assert(sizeof(struct oci_invitation) == 128, "terms, and what both write");
_Static_assert(sizeof(struct oci_invitations) == 256 + OCI_INVITATIONS * 128, "as documented");

#endif
