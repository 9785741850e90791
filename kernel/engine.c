// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Dual BSD/GPL. Copies by channels of DMA engines (dmaengine's DMA_MEMCPY). A channel is one copy's
 * alone while that goes on, so it can be stopped when it fails; as many as dma_channels says are
 * kept, as having one made ready takes long. A copy that finds none free, or whose engine fails, is
 * the CPU's, from where all was right.
 */
#include "compat/compat.h"
#include "onecopy.h"

#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/module.h>
#include <linux/slab.h>

/* Pieces that an engine has at once, 4 KiB each at most: as many as the smallest rings have. */
#define FLIGHTS 32
/* An engine that ends none of them for so long has failed. */
#define PATIENCE HZ

struct flight {
	struct onecopy_engine *engine;
	dma_addr_t from, to;
	size_t bytes;  /* of the engine's part; 0: all of it is the CPU's */
	size_t length; /* of all */
	bool wrong;    /* written before over is */
	bool over;     /* atomic */
};

struct onecopy_engine {
	struct list_head on; /* idle or broken; under the lock */
	struct dma_chan *channel;
	struct device *device;
	size_t granule; /* of places and lengths that are written */
	size_t aligned; /* of places that are read, too */
	wait_queue_head_t wait;
	/* Of the copy that has it. */
	struct flight flight[FLIGHTS];
	unsigned int first, next; /* counts; those between are under way */
	bool failed;
	u64 right, by_engine; /* bytes, from the beginning on */
};

static unsigned int dma_channels;
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(idle);
/* Held, so that nobody gets them. */
static LIST_HEAD(broken);
static unsigned int held;	  /* of both and in use; under the lock */
static unsigned int broken_count; /* likewise */

/* ---- channels -------------------------------------------------------------------------------- */

unsigned int onecopy_engine_channels(void)
{
	return READ_ONCE(dma_channels);
}

static void let_go(struct onecopy_engine *engine)
{
	/* It may be waking nobody up just now. */
	dmaengine_synchronize(engine->channel);
	dma_release_channel(engine->channel);
	kfree(engine);
}

/* Idle channels, if more than `most` that work are held. */
static void let_go_beyond(unsigned int most)
{
	struct onecopy_engine *engine;

	do {
		spin_lock(&lock);
		engine = held - broken_count > most ?
				 list_first_entry_or_null(&idle, struct onecopy_engine, on) :
				 NULL;
		if (engine) {
			list_del(&engine->on);
			held--;
		}
		spin_unlock(&lock);
		if (engine)
			let_go(engine);
	} while (engine);
}

static int set_channels(const char *text, const struct kernel_param *parameter)
{
	int error = param_set_uint(text, parameter);

	if (!error)
		let_go_beyond(READ_ONCE(dma_channels));
	return error;
}

static const struct kernel_param_ops channels_ops = { .set = set_channels, .get = param_get_uint };
module_param_cb(dma_channels, &channels_ops, &dma_channels, 0644);
__MODULE_PARM_TYPE(dma_channels, "uint");
MODULE_PARM_DESC(dma_channels, "So many channels of DMA engines are used at most, for copies with "
			       "ONECOPY_COPY_DMA (0: none, the CPU copies); of drivers that can "
			       "stop a channel (not ioatdma, idxd)");

/* NULL: there is no channel, or no memory. */
static struct onecopy_engine *make(void)
{
	struct onecopy_engine *engine = kzalloc(sizeof(*engine), GFP_KERNEL);
	struct dma_chan *channel;
	dma_cap_mask_t mask;

	if (!engine)
		return NULL;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	channel = dma_request_chan_by_mask(&mask);
	if (IS_ERR(channel)) {
		kfree(engine);
		return NULL;
	}
	engine->channel = channel;
	engine->device = dmaengine_get_dma_device(channel);
	engine->aligned = 1ul << channel->device->copy_align;
	/* Lines of a cache that the engine does not see must be all its own. */
	engine->granule = max_t(size_t, engine->aligned, dma_get_cache_alignment());
	init_waitqueue_head(&engine->wait);
	for (unsigned int i = 0; i < FLIGHTS; i++)
		engine->flight[i].engine = engine;
	/* One that cannot be stopped could write when its pages are others' again. */
	if (channel->device->device_terminate_all && engine->granule <= PAGE_SIZE)
		return engine;
	pr_notice_once("onecopy: %s is not used: its driver cannot stop it, or it writes more than "
		       "a page at once\n",
		       dma_chan_name(channel));
	let_go(engine);
	return NULL;
}

struct onecopy_engine *onecopy_engine_take(int node)
{
	struct onecopy_engine *engine, *found = NULL;
	bool another;

	if (!READ_ONCE(dma_channels))
		return NULL;
	spin_lock(&lock);
	list_for_each_entry(engine, &idle, on) {
		if (!found || dev_to_node(engine->device) == node)
			found = engine;
	}
	if (found)
		list_del(&found->on);
	another = !found && held < READ_ONCE(dma_channels);
	held += another;
	spin_unlock(&lock);
	if (another) {
		found = make();
		if (!found) {
			spin_lock(&lock);
			held--;
			spin_unlock(&lock);
		}
	}
	if (!found)
		atomic64_inc(&onecopy_totals.engines_busy);
	return found;
}

static void give_back(struct onecopy_engine *engine)
{
	engine->first = engine->next = 0;
	engine->right = engine->by_engine = 0;
	spin_lock(&lock);
	list_add(&engine->on, engine->failed ? &broken : &idle);
	broken_count += engine->failed;
	spin_unlock(&lock);
	let_go_beyond(READ_ONCE(dma_channels));
}

void onecopy_engines_end(void)
{
	/* The parameter can be set until the module is gone. */
	spin_lock(&lock);
	list_splice_init(&broken, &idle);
	broken_count = 0;
	spin_unlock(&lock);
	let_go_beyond(0);
}

/* ---- a copy ---------------------------------------------------------------------------------- */

/* Called by its driver, in a tasklet. */
static void end_flight(void *argument, const struct dmaengine_result *result)
{
	struct flight *flight = argument;

	flight->wrong = result && result->result != DMA_TRANS_NOERROR;
	/* Release: pairs with the acquire in is_over(); the wake-up has a barrier of its own. */
	smp_store_release(&flight->over, true);
	wake_up(&flight->engine->wait);
}

static bool is_over(const struct flight *flight)
{
	/* Acquire: pairs with the release in end_flight(): wrong, and the engine's bytes. */
	return smp_load_acquire(&flight->over);
}

static void unmap(const struct onecopy_engine *engine, const struct flight *flight)
{
	if (!flight->bytes)
		return;
	dma_unmap_page(engine->device, flight->to, flight->bytes, DMA_FROM_DEVICE);
	dma_unmap_page(engine->device, flight->from, flight->bytes, DMA_TO_DEVICE);
}

/* The first of those that are under way, so what is right has no holes. */
static bool await_first(struct onecopy_engine *engine)
{
	struct flight *flight = &engine->flight[engine->first % FLIGHTS];

	if (!is_over(flight)) {
		dma_async_issue_pending(engine->channel);
		engine->failed = !wait_event_timeout(engine->wait, is_over(flight), PATIENCE);
	}
	engine->failed |= flight->wrong;
	if (engine->failed)
		return false;
	unmap(engine, flight);
	engine->first++;
	engine->right += flight->length;
	engine->by_engine += flight->bytes;
	return true;
}

static bool map(const struct onecopy_engine *engine, struct flight *flight,
		const struct onecopy_chunk *chunk)
{
	struct device *device = engine->device;

	flight->from =
		dma_map_page(device, chunk->from, chunk->from_within, chunk->bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(device, flight->from))
		return false;
	flight->to =
		dma_map_page(device, chunk->to, chunk->to_within, chunk->bytes, DMA_FROM_DEVICE);
	if (!dma_mapping_error(device, flight->to))
		return true;
	dma_unmap_page(device, flight->from, chunk->bytes, DMA_TO_DEVICE);
	return false;
}

/* An engine that has no place for it now has one when it ends another. */
static struct dma_async_tx_descriptor *prepare(struct onecopy_engine *engine,
					       const struct flight *flight, size_t bytes)
{
	struct dma_async_tx_descriptor *descriptor;

	for (;;) {
		descriptor = dmaengine_prep_dma_memcpy(engine->channel, flight->to, flight->from,
						       bytes, DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
		if (descriptor || engine->first == engine->next || !await_first(engine))
			return descriptor;
	}
}

/* The part that the engine may write; no bytes if it may not. */
static struct onecopy_chunk part_of_engine(const struct onecopy_engine *engine,
					   const struct onecopy_chunk *chunk)
{
	size_t skipped = ALIGN(chunk->to_within, engine->granule) - chunk->to_within;
	struct onecopy_chunk part = *chunk;

	part.bytes = 0;
	/* The same page is read and written by the CPU, byte for byte. */
	if (skipped > chunk->bytes || chunk->from == chunk->to)
		return part;
	part.from_within += skipped;
	part.to_within += skipped;
	if (IS_ALIGNED(part.from_within, engine->aligned))
		part.bytes = round_down(chunk->bytes - skipped, engine->granule);
	return part;
}

static void copy_rest(const struct onecopy_chunk *chunk, const struct onecopy_chunk *part)
{
	struct onecopy_chunk before = *chunk, behind = *chunk;
	size_t skipped = part->bytes ? part->to_within - chunk->to_within : chunk->bytes;

	before.bytes = skipped;
	onecopy_chunk_copy(&before);
	behind.from_within += skipped + part->bytes;
	behind.to_within += skipped + part->bytes;
	behind.bytes -= skipped + part->bytes;
	onecopy_chunk_copy(&behind);
}

/* False: it has no place for it, though nothing is under way, or has failed. */
static bool submit(struct onecopy_engine *engine, struct flight *flight,
		   const struct onecopy_chunk *part)
{
	struct dma_async_tx_descriptor *descriptor;

	if (!map(engine, flight, part))
		return false;
	descriptor = prepare(engine, flight, part->bytes);
	if (descriptor) {
		descriptor->callback_result = end_flight;
		descriptor->callback_param = flight;
		flight->bytes = part->bytes;
		if (!dma_submit_error(dmaengine_submit(descriptor)))
			return true;
	}
	flight->bytes = part->bytes;
	unmap(engine, flight);
	return false;
}

bool onecopy_engine_copy(struct onecopy_engine *engine, const struct onecopy_chunk *chunk)
{
	struct onecopy_chunk part = part_of_engine(engine, chunk);
	struct flight *flight;

	if (engine->next - engine->first == FLIGHTS && !await_first(engine))
		return false;
	flight = &engine->flight[engine->next % FLIGHTS];
	flight->bytes = 0;
	flight->length = chunk->bytes;
	flight->wrong = false;
	/* Its engine does not have it yet. */
	WRITE_ONCE(flight->over, !part.bytes);
	if (part.bytes && !submit(engine, flight, &part)) {
		if (!engine->failed)
			atomic64_inc(&onecopy_totals.engines_busy);
		return false;
	}
	engine->next++;
	copy_rest(chunk, &part);
	/* So that it begins. */
	if (engine->next % (FLIGHTS / 2) == 1)
		dma_async_issue_pending(engine->channel);
	return true;
}

/* It writes nothing any more, and says nothing. */
static void stop(struct onecopy_engine *engine)
{
	atomic64_inc(&onecopy_totals.engine_failures);
	pr_warn_ratelimited("onecopy: a copy by %s failed; that channel is used no more\n",
			    dma_chan_name(engine->channel));
	while (dmaengine_terminate_sync(engine->channel))
		/* Until it can be stopped the pages stay as they are. */
		schedule_timeout_uninterruptible(PATIENCE);
	for (; engine->first != engine->next; engine->first++)
		unmap(engine, &engine->flight[engine->first % FLIGHTS]);
}

u64 onecopy_engine_finish(struct onecopy_engine *engine)
{
	u64 right;

	while (engine->first != engine->next && await_first(engine))
		;
	if (engine->failed)
		stop(engine);
	right = engine->right;
	if (engine->by_engine) {
		atomic64_inc(&onecopy_totals.copies_by_engine);
		atomic64_add(engine->by_engine, &onecopy_totals.bytes_by_engine);
	}
	give_back(engine);
	return right;
}
