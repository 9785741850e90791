/* SPDX-License-Identifier: BSD-3-Clause */
/* A few buffers of our own, kept warm: a reduction's bounce memory must not be faulted in anew. */
#include <pthread.h>
#include <stdlib.h>

#include "plan/exec.h"

#define KEPT 8
#define KEPT_BYTES ((size_t)4 << 20) /* of one of them, at most */

struct scratch {
	struct scratch *next;
	size_t bytes;
	uint8_t data[] __attribute__((aligned(128)));
};

static struct {
	pthread_mutex_t lock;
	struct scratch *first;
	unsigned int count;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What another thread of the parent's was about to keep is left to itself. */
void oci_scratch_fork_child(void)
{
	pthread_mutex_init(&kept.lock, NULL);
	kept.first = NULL;
	kept.count = 0;
}

uint8_t *oci_scratch_get(size_t bytes)
{
	struct scratch *scratch = NULL;

	pthread_mutex_lock(&kept.lock);
	for (struct scratch **at = &kept.first; *at; at = &(*at)->next) {
		if ((*at)->bytes < bytes)
			continue;
		scratch = *at;
		*at = scratch->next;
		kept.count--;
		break;
	}
	pthread_mutex_unlock(&kept.lock);
	if (!scratch) {
		size_t room = (sizeof(*scratch) + bytes + 127) / 128 * 128;

		scratch = aligned_alloc(128, room);
		if (!scratch)
			return NULL;
		scratch->bytes = bytes;
	}
	return scratch->data;
}

void oci_scratch_put(uint8_t *data)
{
	struct scratch *scratch;

	if (!data)
		return;
	scratch = (struct scratch *)(data - offsetof(struct scratch, data));
	pthread_mutex_lock(&kept.lock);
	if (kept.count < KEPT && scratch->bytes <= KEPT_BYTES) {
		scratch->next = kept.first;
		kept.first = scratch;
		kept.count++;
		scratch = NULL;
	}
	pthread_mutex_unlock(&kept.lock);
	free(scratch);
}
