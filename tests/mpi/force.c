/* SPDX-License-Identifier: BSD-3-Clause */
/* Algorithms forced on one communicator, one after the other. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To make one for each algorithm would be the longest part of a test of many ranks under MPICH. */
static MPI_Comm comm = MPI_COMM_NULL;

static void set_algorithm(enum case_collective collective, const char *algorithm)
{
	char key[64];
	MPI_Info info;

	case_info_key(key, sizeof(key), collective);
	MPI_Info_create(&info);
	MPI_Info_set(info, key, algorithm);
	MPI_Comm_set_info(comm, info);
	MPI_Info_free(&info);
}

void case_force(const char *word, struct case_forced *forced)
{
	size_t name = strcspn(word, "=");
	const char *algorithm = word + name + (word[name] == '=');
	const char *at = strchr(algorithm, '@');

	forced->collective = case_parse(word, name);
	forced->most = at ? strtoul(at + 1, NULL, 10) : ~0ul;
	snprintf(forced->algorithm, sizeof(forced->algorithm), "%.*s", (int)strcspn(algorithm, "@"),
		 algorithm);
	if (comm == MPI_COMM_NULL) {
		/* Whatever is forced, neighborhood collectives too. */
		case_all_neighbors(MPI_COMM_WORLD, MPI_INFO_NULL, &comm);
		/* A nonblocking call would be the MPI's until the communicator is known. */
		MPI_Barrier(comm);
	}
	set_algorithm(forced->collective, forced->algorithm);
	forced->comm = comm;
	case_start_counting();
}

void case_forced_end(struct case_forced *forced)
{
	int rank, ranks;

	case_stop_counting();
	set_algorithm(forced->collective, "auto");
	MPI_Comm_rank(forced->comm, &rank);
	MPI_Comm_size(forced->comm, &ranks);
	if (rank)
		return;
	printf("forced %s=%s %lu %lu\n", case_names[forced->collective], forced->algorithm,
	       case_counted(forced->collective, 1) * (unsigned long)ranks,
	       case_counted(forced->collective, 0) * (unsigned long)ranks);
}

void case_all_neighbors(MPI_Comm comm, MPI_Info info, MPI_Comm *graph)
{
	MPI_Comm made;
	int size, *all, *weights;

	MPI_Comm_size(comm, &size);
	all = malloc((size_t)size * sizeof(*all));
	weights = malloc((size_t)size * sizeof(*weights));
	if (!all || !weights)
		case_fail("no memory for a graph");
	for (int r = 0; r < size; r++) {
		all[r] = r;
		weights[r] = 1;
	}
	MPI_Dist_graph_create_adjacent(comm, size, all, weights, size, all, weights, MPI_INFO_NULL,
				       0, &made);
	MPI_Comm_dup_with_info(made, info, graph);
	MPI_Comm_free(&made);
	free(all);
	free(weights);
}
