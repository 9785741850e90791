/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/shelf.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

/* Some for each of a few calls under way; beyond them, and of more bytes, malloc has it back. */
#define KEPT 16
#define KEPT_BYTES ((size_t)4 << 20)
/* Small ones have as much, and none takes a block of many times its length from a larger one. */
#define LEAST_BYTES ((size_t)4 << 10)
#define TIMES 16

struct block {
	TAILQ_ENTRY(block) on;
	size_t bytes;
	uint8_t data[] __attribute__((aligned(128)));
};

static struct {
	pthread_mutex_t lock;
	TAILQ_HEAD(blocks, block) blocks; /* as they were used last */
	unsigned int count;
} shelf = { PTHREAD_MUTEX_INITIALIZER, TAILQ_HEAD_INITIALIZER(shelf.blocks), 0 };

void oci_shelf_fork_child(void)
{
	pthread_mutex_init(&shelf.lock, NULL);
	TAILQ_INIT(&shelf.blocks);
	shelf.count = 0;
}

/* With the lock held. */
static void take_off(struct block *block)
{
	TAILQ_REMOVE(&shelf.blocks, block, on);
	shelf.count--;
}

void *oci_shelf_get(size_t bytes)
{
	struct block *block;

	bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
	pthread_mutex_lock(&shelf.lock);
	/* The one that was used last, as its bytes are in the cache still. */
	TAILQ_FOREACH(block, &shelf.blocks, on)
	{
		if (block->bytes >= bytes && block->bytes / TIMES <= bytes)
			break;
	}
	if (block)
		take_off(block);
	pthread_mutex_unlock(&shelf.lock);
	if (!block && bytes <= PTRDIFF_MAX) {
		block = aligned_alloc(128, (sizeof(*block) + bytes + 127) / 128 * 128);
		if (block)
			block->bytes = bytes;
	}
	return block ? block->data : NULL;
}

void oci_shelf_put(void *memory)
{
	struct block *block, *dropped;

	if (!memory)
		return;
	block = dropped = (struct block *)((uint8_t *)memory - offsetof(struct block, data));
	pthread_mutex_lock(&shelf.lock);
	if (block->bytes <= KEPT_BYTES) {
		TAILQ_INSERT_HEAD(&shelf.blocks, block, on);
		/* A full shelf drops what was used longest ago, so that it follows what is asked
		 * for. */
		dropped = ++shelf.count > KEPT ? TAILQ_LAST(&shelf.blocks, blocks) : NULL;
		if (dropped)
			take_off(dropped);
	}
	pthread_mutex_unlock(&shelf.lock);
	free(dropped);
}
