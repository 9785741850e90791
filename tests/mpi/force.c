/* SPDX-License-Identifier: BSD-3-Clause */
/* An algorithm forced on a communicator of its own. */
#include "case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void case_force(const char *word, struct case_forced *forced)
{
	size_t name = strcspn(word, "=");
	const char *algorithm = word + name + (word[name] == '=');
	const char *at = strchr(algorithm, '@');
	char key[64];
	MPI_Info info;

	forced->collective = case_parse(word, name);
	forced->most = at ? strtoul(at + 1, NULL, 10) : ~0ul;
	snprintf(forced->algorithm, sizeof(forced->algorithm), "%.*s", (int)strcspn(algorithm, "@"),
		 algorithm);
	case_info_key(key, sizeof(key), forced->collective);
	MPI_Info_create(&info);
	MPI_Info_set(info, key, forced->algorithm);
	MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &forced->comm);
	MPI_Info_free(&info);
	/* A nonblocking call would be the MPI's until the communicator is known. */
	MPI_Barrier(forced->comm);
	case_start_counting();
}

void case_forced_end(struct case_forced *forced)
{
	int rank, ranks;

	case_stop_counting();
	MPI_Comm_rank(forced->comm, &rank);
	MPI_Comm_size(forced->comm, &ranks);
	MPI_Comm_free(&forced->comm);
	if (rank)
		return;
	printf("forced %s=%s %lu %lu\n", case_names[forced->collective], forced->algorithm,
	       case_counted(forced->collective, 1) * (unsigned long)ranks,
	       case_counted(forced->collective, 0) * (unsigned long)ranks);
}
