/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the creation of a team shares among its files: create.c goes from step to step, hello.c says
 * who a rank is and judges who the others are.
 */
#ifndef OC_TEAM_CREATION_H
#define OC_TEAM_CREATION_H

#include "team/team.h"

/* What a rank must know of another one to map its segment; the rest is on that one's card. */
struct oci_hello {
	uint32_t abi;
	int32_t error; /* this rank cannot take part: -errno */
	uint8_t boot_id[16];
	uint64_t pid_namespace;
	struct oci_segment_id segment;
	int64_t region_offset;
	uint64_t tag;
};

_Static_assert(sizeof(struct oci_hello) == 88, "as ADR 0021 counts it");

struct oci_creation {
	struct oci_hello hello;
	struct oci_hello *hellos;
	struct oci_wait wait;
	uint32_t heard; /* ranks below have said what the present state waits for */
};

/* Gives back what creation had: it is over, or never began. */
void oci_creation_free(struct oci_team *team);

static inline struct oci_card *oci_card_of(const struct oci_team *team, uint32_t rank)
{
	return &team->member[rank].region->card;
}

/* In a child of fork(): what was known of this process's place is not known, nor locked. */
void oci_hello_fork_child(void);
/* Everything that this rank brings; an error is told to the others, not returned. */
int oci_hello_fill(struct oci_team *team, struct oci_hello *hello);
/* 0 when the ranks can reach each other's segments; otherwise a sentence, the same on all ranks. */
int oci_hellos_judge(const struct oci_team *team, char *why, size_t n);
/* Must this process declare who may read its memory? */
bool oci_hello_declares(void);
/* All cards are there: do the ranks want more CPUs than they may use together (oversubscribed), or
 * may they go from one to another (may_part)? */
void oci_cards_count_cpus(struct oci_team *team);

#endif
