/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/thread_team.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/mock/mock.h"
#include "support/fork_team.h"

struct rank {
	pthread_t thread;
	int (*body)(struct oc_team *team);
	struct oc_team *team;
	int failed;
};

static void *run(void *arg)
{
	struct rank *r = arg;
	char name[16];

	snprintf(name, sizeof(name), "rank %u", oc_team_rank(r->team));
	pthread_setname_np(pthread_self(), name);
	r->failed = r->body(r->team);
	if (r->failed)
		fprintf(stderr, "rank %u: %s\n", oc_team_rank(r->team), oc_team_error(r->team));
	return NULL;
}

int oct_thread_team(uint32_t size, unsigned int fail_every, int (*body)(struct oc_team *team))
{
	struct oc_team **teams = calloc(size, sizeof(struct oc_team *));
	struct rank *ranks = calloc(size, sizeof(*ranks));
	int failed = 0;

	oci_mock = (struct oci_mock){ .enabled = true };
	if (oct_local_teams(size, teams)) {
		fprintf(stderr, "no team of %u ranks in one process\n", size);
		abort();
	}
	oci_mock.fail_every = fail_every;
	oci_mock.fail_with = EPERM;
	for (uint32_t r = 0; r < size; r++) {
		ranks[r] = (struct rank){ .body = body, .team = teams[r] };
		if (pthread_create(&ranks[r].thread, NULL, run, &ranks[r]))
			abort();
	}
	for (uint32_t r = 0; r < size; r++)
		pthread_join(ranks[r].thread, NULL);
	for (uint32_t r = 0; r < size; r++)
		failed += ranks[r].failed || oc_team_destroy(teams[r]);
	oci_mock = (struct oci_mock){ 0 };
	free(teams);
	free(ranks);
	return failed;
}
