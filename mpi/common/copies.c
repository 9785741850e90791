/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/copies.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Two for each of a few calls under way; beyond them, and of more bytes, malloc has it back. */
#define KEPT 8
#define KEPT_BYTES ((size_t)4 << 20)
/* malloc keeps smaller blocks itself (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD are 128 KiB). */
#define KEPT_LEAST ((size_t)32 << 10)

/* Ahead of the copy's bytes: as long as malloc's alignment. */
struct head {
	_Alignas(max_align_t) size_t bytes;
};

static struct {
	pthread_mutex_t lock;
	struct head *copy[KEPT];
	unsigned int count;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The one that was used last, as its bytes are in the cache still. */
static struct head *take(size_t bytes)
{
	struct head *found = NULL;

	pthread_mutex_lock(&kept.lock);
	for (unsigned int i = kept.count; i-- && !found;) {
		if (kept.copy[i]->bytes < bytes)
			continue;
		found = kept.copy[i];
		for (kept.count--; i < kept.count; i++)
			kept.copy[i] = kept.copy[i + 1];
	}
	pthread_mutex_unlock(&kept.lock);
	return found;
}

void *oci_mpi_copy_get(size_t bytes)
{
	struct head *head = bytes >= KEPT_LEAST ? take(bytes) : NULL;

	if (!head) {
		head = bytes <= SIZE_MAX - sizeof(*head) ? malloc(sizeof(*head) + bytes) : NULL;
		if (!head)
			return NULL;
		head->bytes = bytes;
	}
	return head + 1;
}

/* A full shelf drops the one that was used longest ago, so that it follows what is asked for. */
static struct head *keep(struct head *head)
{
	struct head *dropped = NULL;

	pthread_mutex_lock(&kept.lock);
	if (kept.count == KEPT) {
		dropped = kept.copy[0];
		for (unsigned int i = 1; i < KEPT; i++)
			kept.copy[i - 1] = kept.copy[i];
		kept.count--;
	}
	kept.copy[kept.count++] = head;
	pthread_mutex_unlock(&kept.lock);
	return dropped;
}

void oci_mpi_copy_put(void *copy)
{
	struct head *head = copy ? (struct head *)copy - 1 : NULL;

	if (head && head->bytes >= KEPT_LEAST && head->bytes <= KEPT_BYTES)
		head = keep(head);
	free(head);
}
