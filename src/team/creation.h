/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the creation of a team shares among its files: create.c goes from step to step, hello.c says
 * who a rank is and judges who the others are, withdraw.c leaves in the middle.
 */
#ifndef OC_TEAM_CREATION_H
#define OC_TEAM_CREATION_H

#include "team/team.h"

#define OCI_CPU_WORDS 128 /* 8192 CPUs, the largest that Linux can be built for (x86, arm64) */

struct oci_hello {
	uint32_t abi;
	int32_t error; /* this rank cannot take part: -errno */
	uint64_t options, model;
	uint8_t boot_id[16];
	uint64_t pid_namespace;
	struct oci_segment_id segment;
	int64_t region_offset;
	uint64_t tag;
	uint8_t nonce[16]; /* what a probe must read at nonce_address */
	uint64_t nonce_address;
	uint64_t cells_address; /* 16 bytes a rank, for the probes' writes */
	struct oci_topo_place place;
	uint32_t yama_scope; /* 0 also when there is no Yama */
	double cgroup_cpus;
	uint32_t node_ranks; /* as the front end of this rank counts them */
	uint32_t cpus_online;
	uint32_t has_arena; /* peers may map the shared heap of this rank */
	uint64_t cpus[OCI_CPU_WORDS];
};

struct oci_verdict {
	int32_t error;
	uint32_t reserved;
	/* bits for each rank follow: create.c */
};

struct oci_creation {
	uint8_t nonce[16];
	uint8_t (*cells)[16];
	struct oci_hello hello;
	struct oci_hello *hellos;
	struct oci_verdict *verdict;
	uint8_t *verdicts;
	size_t verdict_bytes;
	struct oci_wait wait;
	int32_t declared, *all_declared;
	uint64_t *cpu_union;
	enum oci_team_state left; /* where this rank withdrew */
};

/* Everything that this rank brings; an error is told to the others, not returned. */
int oci_hello_fill(struct oci_team *team, struct oci_hello *hello);
/* 0 when the ranks can be a team; otherwise a sentence, the same on all ranks. */
int oci_hellos_judge(const struct oci_team *team, char *why, size_t n);
/* Does DECLARE come before VERDICT? */
bool oci_hellos_declare(const struct oci_team *team);
/* CPUs that the ranks may use together, and the ranks that want them. */
void oci_hellos_oversubscription(struct oci_team *team);

/* Starts an allgather; its end is awaited in state `next`. 0 or -errno. */
int oci_creation_gather(struct oci_team *team, enum oci_team_state next, const void *mine,
			size_t bytes, void *all);
/* Refuses the team here, as its other members do. `error`. */
int oci_creation_refuse(struct oci_team *team, int error);
/* Gives back buffers and bootstrap, which nobody needs any more. */
void oci_creation_free(struct oci_team *team);

/* ---- the last word (commit.c) -----------------------------------------------------------------
 *
 * 1: all members are in. -ECANCELED: somebody said no. 0: neither yet. The members' regions are
 * known. Other functions return the outcome behind what they do; after oci_commit_no() it is not 0.
 */
void oci_commit_open(struct oci_region *own, uint64_t tag);
int oci_commit_yes(struct oci_team *team);
int oci_commit_no(struct oci_team *team);
int oci_commit_outcome(const struct oci_team *team);

#endif
