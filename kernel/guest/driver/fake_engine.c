// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Dual BSD/GPL. A DMA engine for the guest's tests: a thread of the kernel that copies, in order,
 * with real channels, descriptors and callbacks; and that fails in each way in which one can. The
 * parameters may be changed while it is loaded.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/io.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

enum fault { NONE, NO_DESCRIPTOR, NOT_SUBMITTED, SAYS_WRONG, NEVER_ENDS, FAULTS };

static unsigned int channels = 2;
module_param(channels, uint, 0444);
static unsigned int places = 32;
module_param(places, uint, 0644);
MODULE_PARM_DESC(places, "How many descriptors a channel has at once");
static unsigned int align;
module_param(align, uint, 0444);
MODULE_PARM_DESC(align, "It copies from and to multiples of this power of two alone");
static bool stops = true;
module_param(stops, bool, 0444);
MODULE_PARM_DESC(stops, "Its channels can be stopped");
static unsigned int delay_us;
module_param(delay_us, uint, 0644);
static unsigned int fault;
module_param(fault, uint, 0644);
static unsigned int fault_after;
module_param(fault_after, uint, 0644);
MODULE_PARM_DESC(fault_after, "So many descriptors are good before it comes");

struct engine_channel {
	struct dma_chan common;
	spinlock_t lock;
	struct list_head submitted, issued;
	unsigned int taken, seen;
	struct work_struct work;
};

struct descriptor {
	struct dma_async_tx_descriptor common;
	struct list_head on;
	dma_addr_t to, from;
	size_t bytes;
};

static struct dma_device engine;
static struct platform_device *platform;
static struct workqueue_struct *workers;

static struct engine_channel *channel_of(struct dma_chan *common)
{
	return container_of(common, struct engine_channel, common);
}

static bool fails(const struct engine_channel *channel, enum fault how)
{
	return READ_ONCE(fault) == how && channel->seen > READ_ONCE(fault_after);
}

static dma_cookie_t submit(struct dma_async_tx_descriptor *common)
{
	struct descriptor *descriptor = container_of(common, struct descriptor, common);
	struct engine_channel *channel = channel_of(common->chan);
	dma_cookie_t cookie;
	unsigned long flags;

	if (fails(channel, NOT_SUBMITTED)) {
		spin_lock_irqsave(&channel->lock, flags);
		channel->taken--;
		spin_unlock_irqrestore(&channel->lock, flags);
		kfree(descriptor);
		return -ENOSPC;
	}
	spin_lock_irqsave(&channel->lock, flags);
	cookie = channel->common.cookie + 1;
	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	common->cookie = channel->common.cookie = cookie;
	list_add_tail(&descriptor->on, &channel->submitted);
	spin_unlock_irqrestore(&channel->lock, flags);
	return cookie;
}

static struct dma_async_tx_descriptor *prepare(struct dma_chan *common, dma_addr_t to,
					       dma_addr_t from, size_t bytes, unsigned long flags)
{
	struct engine_channel *channel = channel_of(common);
	struct descriptor *descriptor = NULL;
	unsigned long state;
	bool free;

	WARN_ON((to | from | bytes) & ((1u << align) - 1));
	spin_lock_irqsave(&channel->lock, state);
	channel->seen++;
	free = channel->taken < READ_ONCE(places) && !fails(channel, NO_DESCRIPTOR);
	channel->taken += free;
	spin_unlock_irqrestore(&channel->lock, state);
	if (free)
		descriptor = kzalloc(sizeof(*descriptor), GFP_NOWAIT);
	if (!descriptor)
		return NULL;
	dma_async_tx_descriptor_init(&descriptor->common, common);
	descriptor->common.tx_submit = submit;
	descriptor->common.flags = flags;
	descriptor->to = to;
	descriptor->from = from;
	descriptor->bytes = bytes;
	return &descriptor->common;
}

static void issue(struct dma_chan *common)
{
	struct engine_channel *channel = channel_of(common);
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	list_splice_tail_init(&channel->submitted, &channel->issued);
	spin_unlock_irqrestore(&channel->lock, flags);
	queue_work(workers, &channel->work);
}

static void run_one(struct engine_channel *channel, struct descriptor *descriptor)
{
	struct dmaengine_result result = { .result = DMA_TRANS_NOERROR };
	dma_async_tx_callback_result callback = descriptor->common.callback_result;

	if (fails(channel, SAYS_WRONG)) {
		/* Nobody may believe what is there now. */
		memset(phys_to_virt(descriptor->to), 0xbd, descriptor->bytes);
		result.result = DMA_TRANS_WRITE_FAILED;
	} else {
		memcpy(phys_to_virt(descriptor->to), phys_to_virt(descriptor->from),
		       descriptor->bytes);
	}
	channel->common.completed_cookie = descriptor->common.cookie;
	/* As drivers do: in a tasklet or an interrupt. */
	local_bh_disable();
	if (callback)
		callback(descriptor->common.callback_param, &result);
	local_bh_enable();
}

static void run(struct work_struct *work)
{
	struct engine_channel *channel = container_of(work, struct engine_channel, work);
	struct descriptor *descriptor;

	for (;;) {
		spin_lock_irq(&channel->lock);
		descriptor = list_first_entry_or_null(&channel->issued, struct descriptor, on);
		if (descriptor && !fails(channel, NEVER_ENDS)) {
			list_del(&descriptor->on);
			channel->taken--;
		} else {
			descriptor = NULL;
		}
		spin_unlock_irq(&channel->lock);
		if (!descriptor)
			return;
		if (delay_us)
			usleep_range(delay_us, delay_us + 10);
		run_one(channel, descriptor);
		kfree(descriptor);
	}
}

static int terminate(struct dma_chan *common)
{
	struct engine_channel *channel = channel_of(common);
	struct descriptor *descriptor, *next;
	LIST_HEAD(all);

	spin_lock_irq(&channel->lock);
	list_splice_init(&channel->submitted, &all);
	list_splice_init(&channel->issued, &all);
	list_for_each_entry(descriptor, &all, on)
		channel->taken--;
	spin_unlock_irq(&channel->lock);
	list_for_each_entry_safe(descriptor, next, &all, on)
		kfree(descriptor);
	return 0;
}

static void synchronize(struct dma_chan *common)
{
	flush_work(&channel_of(common)->work);
}

static enum dma_status status(struct dma_chan *common, dma_cookie_t cookie,
			      struct dma_tx_state *state)
{
	return dma_async_is_complete(cookie, common->completed_cookie, common->cookie);
}

static int begin_channel(struct dma_chan *common)
{
	channel_of(common)->seen = 0;
	return 1;
}

static void end_channel(struct dma_chan *common)
{
	terminate(common);
	synchronize(common);
}

static void free_channels(void)
{
	struct engine_channel *channel, *next;

	list_for_each_entry_safe(channel, next, &engine.channels, common.device_node)
		kfree(channel);
}

static int make_channels(void)
{
	for (unsigned int i = 0; i < channels; i++) {
		struct engine_channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL);

		if (!channel)
			return -ENOMEM;
		spin_lock_init(&channel->lock);
		INIT_LIST_HEAD(&channel->submitted);
		INIT_LIST_HEAD(&channel->issued);
		INIT_WORK(&channel->work, run);
		channel->common.device = &engine;
		list_add_tail(&channel->common.device_node, &engine.channels);
	}
	return 0;
}

static int __init probe(struct platform_device *device)
{
	int error = dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));

	INIT_LIST_HEAD(&engine.channels);
	if (!error)
		error = make_channels();
	dma_cap_set(DMA_MEMCPY, engine.cap_mask);
	dma_cap_set(DMA_PRIVATE, engine.cap_mask);
	engine.dev = &device->dev;
	engine.copy_align = align;
	engine.device_prep_dma_memcpy = prepare;
	engine.device_issue_pending = issue;
	if (stops)
		engine.device_terminate_all = terminate;
	engine.device_synchronize = synchronize;
	engine.device_tx_status = status;
	engine.device_alloc_chan_resources = begin_channel;
	engine.device_free_chan_resources = end_channel;
	if (!error)
		error = dma_async_device_register(&engine);
	if (error)
		free_channels();
	return error;
}

static struct platform_driver driver = { .driver.name = "fake_engine" };

static int __init begin(void)
{
	workers = alloc_workqueue("fake_engine", WQ_UNBOUND, 0);
	if (!workers)
		return -ENOMEM;
	platform = platform_create_bundle(&driver, probe, NULL, 0, NULL, 0);
	if (!IS_ERR(platform))
		return 0;
	destroy_workqueue(workers);
	return PTR_ERR(platform);
}

static void __exit finish(void)
{
	dma_async_device_unregister(&engine);
	free_channels();
	platform_device_unregister(platform);
	platform_driver_unregister(&driver);
	destroy_workqueue(workers);
}

module_init(begin);
module_exit(finish);
MODULE_DESCRIPTION("A DMA engine for tests of onecopy");
MODULE_LICENSE("Dual BSD/GPL");
