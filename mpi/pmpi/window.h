/* SPDX-License-Identifier: BSD-3-Clause */
/* What window.c and lock.c know of a window of ours: its attribute. */
#ifndef OC_PMPI_WINDOW_H
#define OC_PMPI_WINDOW_H

#include "pmpi.h"

struct oci_pmpi_window {
	int tag; /* of its barriers; that of tokens is the next */
	int size, me;
	int *ranks; /* of its members, in MPI_COMM_WORLD */
	/* lock.c: shared by the members; NULL: its locks are the MPI's alone. */
	uint8_t *locks;
	size_t locks_bytes;
	uint8_t *held; /* size: which of them this process has */
};

/* NULL: not ours. */
struct oci_pmpi_window *oci_pmpi_window_of(MPI_Win win);
/* Around a call on it that may wait: has a helper where it is not ours, for oci_pmpi_helped(). */
bool oci_pmpi_help_at(MPI_Win win);

/* How members find the locks' memory; sent as integers. */
struct oci_pmpi_locks_id {
	int pid, fd;
	uint8_t nonce[16];
};
/* In the first member: makes them; id->fd < 0: it could not. */
void oci_pmpi_locks_make(struct oci_pmpi_window *window, struct oci_pmpi_locks_id *id);
/* In the others; false: it could not. */
bool oci_pmpi_locks_find(struct oci_pmpi_window *window, const struct oci_pmpi_locks_id *id);
void oci_pmpi_locks_drop(struct oci_pmpi_window *window);

#endif
