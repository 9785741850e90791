/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two sides of an invitation, ADR 0025, and who can be invited have in common. */
#ifndef OC_COPY_INVITEE_H
#define OC_COPY_INVITEE_H

#include "copy/invite.h"
#include "team/learned.h"
#include "team/team.h"

/* Of a read whose sender reads itself: less gains nothing, or loses. */
#define OCI_INVITE_LARGE ((size_t)1 << 20)

/* A process that was read from; an entry with a peer stays as long as that lives. */
struct oci_invitee {
	struct oci_invitee *next;
	pid_t pid;
	struct oci_peer *peer; /* NULL: it cannot be invited */
	unsigned int users;    /* that read from it */
	bool gone;	       /* is to be NULL, when the last user has left */
	/* Atomic; the lock need not be held. The first four are hints, of which threads may lose
	 * some. */
	uint64_t turns;		  /* of the peer, as last read */
	uint64_t line_ns;	  /* mean time of a line that it has written; 0: not known */
	uint64_t looks;		  /* at its turns */
	uint64_t crossed;	  /* so many reads until it is forgotten that it reads, too */
	bool declined;		  /* it has declined */
	uint64_t due_ns, wait_ns; /* then: when to look again; it may not have begun yet */
	/* Of reads of each length, with the lock held: is it quicker where both ends copy? */
	struct oci_learned learned[OCI_LEARNED_LENGTHS];
	uint8_t word[OCI_LEARNED_LENGTHS];
	uint64_t reads[OCI_LEARNED_LENGTHS];
};

/* How a read is to go. */
struct oci_invitee_way {
	bool shared; /* by both ends */
	bool tries;  /* oci_invitee_tell() is to be told how long it took */
};

/* This process as a reader, once it has started, which it does when first asked and allowed. */
extern struct oci_segment_id oci_invite_self;
bool oci_invite_has_started(void);

/* That process, for a read of so many bytes, until it is put back; NULL: it cannot be invited. */
struct oci_invitee *oci_invitee_get(pid_t pid, size_t bytes, struct oci_invitee_way *way);
void oci_invitee_put(struct oci_invitee *near);
/* A whole read that went that way. */
void oci_invitee_tell(struct oci_invitee *near, size_t bytes, bool shared, uint64_t ns);
/* Does it read from here, too, these days, and is far, or are messages small? Both then do best by
 * themselves. */
bool oci_invitee_is_apart(const struct oci_invitee *near, size_t bytes);
/* Does it do nothing but wait, or looks at its places as if it did? */
bool oci_invitee_waits(struct oci_invitee *near, size_t bytes);

/* Of the sender: serves one chunk to whoever reads from here, beside a read. Was there one? */
bool oci_invite_help_beside(void);
void oci_invite_sender_fork_child(void);

#endif
