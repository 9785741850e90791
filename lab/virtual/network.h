/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of an MPI between ranks of several nodes, in virtual time. The ranks of a node follow
 * each other.
 *
 *   between nodes  LogGP: o on either CPU, L on the way, and a node's card is busy for g or for G a
 *                  byte, whatever is longer, both with what it sends and with what it is sent. A
 *                  message above net.eager is asked for first: a question and an answer more, each
 *                  with its o and L
 *   on a node      a flag, and what is copied in and out; above 4 KiB the receiver reads by a
 * single copy and answers. Those who read from one rank at a time contend for its locks, and all
 * who copy on a node share its memory
 *
 * Ranks go from round to round as their messages let them. In a round a rank's messages are all
 * under way at once, and its CPU takes them in the order in which they were added.
 *
 * Left out: what a switch or several cards would change, CPUs that ranks share, the CPU's time for
 * bytes, what an MPI does for a local message besides the flag.
 *
 * Times are seconds, as doubles; sizes are bytes.
 */
#ifndef OC_VIRTUAL_NETWORK_H
#define OC_VIRTUAL_NETWORK_H

#include "model/model.h"

struct oci_network_message;

struct oci_network {
	const struct oci_model *model;
	uint32_t nodes, each;
	uint32_t ranks;
	/*
	 * All nodes do alike, so that one stands for them: `kept` is its ranks, and what they send
	 * to other nodes is what others send to them. Else `kept` is all ranks.
	 */
	bool alike;
	uint32_t kept;
	double *clock_s; /* [kept] */
	/* The rest is network.c's. */
	double *out_s, *in_s; /* [nodes kept]: when the card is free */
	double *done_s;	      /* [kept]: when what it has sent in this round is gone */
	uint32_t *readers;    /* [kept]: of its memory in this round */
	uint32_t *local;      /* [nodes kept]: copies in this round */
	struct oci_network_message *list;
	size_t count, room;
	bool asked;  /* one of them is asked for first */
	bool failed; /* out of memory */
};

/* Does the model know a network? */
bool oci_network_known(const struct oci_model *model);
/* -ENOMEM. To be closed in any case. */
int oci_network_open(struct oci_network *n, const struct oci_model *model, uint32_t nodes,
		     uint32_t each, bool alike);
void oci_network_close(struct oci_network *n);

/* Adds a message to the round. Of nodes that are alike: `to` is of the first one. `sums`: the
 * receiver adds it to its own bytes. */
void oci_network_add(struct oci_network *n, uint32_t from, uint32_t to, size_t bytes, bool sums);
void oci_network_round(struct oci_network *n);
/* Each rank's clock goes on by so much. */
void oci_network_pass(struct oci_network *n, double seconds);
/* Of the last rank. */
double oci_network_end(const struct oci_network *n);

#endif
