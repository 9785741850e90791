// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Dual BSD/GPL. The device /dev/onecopy: its calls, its status words, its counters. */
#include "compat/compat.h"
#include "onecopy.h"

#include <linux/bitmap.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

struct workqueue_struct *onecopy_workers;
struct onecopy_totals onecopy_totals;

/* What a user tries first, to see whether it works at all, does. */
#define REFUSED_FROM 64
static unsigned int refuse;
module_param(refuse, uint, 0644);
MODULE_PARM_DESC(refuse,
		 "For tests: so many of 100 regions, but for the first of each file, are refused "
		 "(ENOMEM), and so many of 100 copies of more than 64 bytes (ENOENT), at random");

bool onecopy_refuses(void)
{
	unsigned int most = READ_ONCE(refuse);

	return unlikely(most) && get_random_u32() % 100 < most;
}

/* ---- status words ---------------------------------------------------------------------------- */

/* With its lock. */
static void signal_locked(struct onecopy_file *file)
{
	if (file->event)
		compat_eventfd_signal(file->event);
}

static void signal_event(struct onecopy_file *file)
{
	unsigned long flags;

	spin_lock_irqsave(&file->event_lock, flags);
	signal_locked(file);
	spin_unlock_irqrestore(&file->event_lock, flags);
}

bool onecopy_status_has(struct onecopy_file *file, u32 word)
{
	/* Acquire: pairs with the release in mmap_status(). */
	return word && word < smp_load_acquire(&file->words);
}

/* Of a copy's word its bit and its state change together, under the lock: it is not taken again
 * between the two. */
int onecopy_status_take(struct onecopy_file *file, u32 word)
{
	unsigned long flags;
	bool taken;

	if (!onecopy_status_has(file, word))
		return -EINVAL;
	spin_lock_irqsave(&file->event_lock, flags);
	taken = __test_and_set_bit(word, file->pending);
	if (!taken)
		WRITE_ONCE(file->status[word], ONECOPY_STATUS_PENDING);
	spin_unlock_irqrestore(&file->event_lock, flags);
	return taken ? -EBUSY : 0;
}

void onecopy_status_give_back(struct onecopy_file *file, u32 word)
{
	unsigned long flags;

	spin_lock_irqsave(&file->event_lock, flags);
	WRITE_ONCE(file->status[word], 0);
	__clear_bit(word, file->pending);
	spin_unlock_irqrestore(&file->event_lock, flags);
}

void onecopy_status_tell(struct onecopy_file *file, u32 word, int result)
{
	unsigned long flags;

	spin_lock_irqsave(&file->event_lock, flags);
	/* Release: the bytes come first. Pairs with the process's acquire. */
	smp_store_release(&file->status[word],
			  result ? ONECOPY_STATUS_FAILED | (u32)-result : ONECOPY_STATUS_DONE);
	__clear_bit(word, file->pending);
	signal_locked(file);
	spin_unlock_irqrestore(&file->event_lock, flags);
}

u32 onecopy_status_read(struct onecopy_file *file, u32 word)
{
	/* Acquire: what the process did before it wrote. */
	return smp_load_acquire(&file->status[word]);
}

void onecopy_status_write(struct onecopy_file *file, u32 word, u32 value)
{
	/* Release: the bytes come first. Pairs with the process's acquire. */
	smp_store_release(&file->status[word], value);
	signal_event(file);
}

void onecopy_status_gone(struct onecopy_file *file, u32 word)
{
	/* Acquire: pairs with the release in mmap_status(). */
	if (smp_load_acquire(&file->words))
		atomic_inc((atomic_t *)&file->status[0]);
	if (word)
		atomic_inc((atomic_t *)&file->status[word]);
	signal_event(file);
}

/* 0 or -errno; with the file's lock held. */
static int make_status(struct onecopy_file *file, unsigned long bytes)
{
	unsigned int words = bytes / sizeof(u32);

	file->pending = bitmap_zalloc(words, GFP_KERNEL_ACCOUNT);
	file->status = file->pending ?
			       __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN) :
			       NULL;
	if (file->status) {
		/* Release: pairs with the acquires above. */
		smp_store_release(&file->words, words);
		return 0;
	}
	bitmap_free(file->pending);
	file->pending = NULL;
	return -ENOMEM;
}

static int mmap_status(struct file *opened, struct vm_area_struct *area)
{
	struct onecopy_file *file = opened->private_data;
	unsigned long bytes = area->vm_end - area->vm_start;
	int error = 0;

	if (area->vm_pgoff || bytes > ONECOPY_STATUS_BYTES_MOST || !(area->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&file->lock);
	if (!file->words)
		error = make_status(file, bytes);
	else if (bytes > file->words * sizeof(u32))
		error = -EINVAL;
	mutex_unlock(&file->lock);
	if (error)
		return error;
	/* Not remap_vmalloc_range(): what it takes is charged to no memory cgroup. */
	compat_flags_change(area, VM_DONTEXPAND | VM_DONTDUMP, 0);
	for (unsigned long at = 0; at < bytes && !error; at += PAGE_SIZE)
		error = vm_insert_page(area, area->vm_start + at,
				       vmalloc_to_page((void *)file->status + at));
	return error;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The structure as the caller knows it, by its first word. */
static long take(void *to, size_t bytes, void __user *from, u32 *size)
{
	if (get_user(*size, (u32 __user *)from))
		return -EFAULT;
	if (*size < sizeof(u32) || *size > PAGE_SIZE)
		return -EINVAL;
	return copy_struct_from_user(to, bytes, from, *size);
}

static long give(void __user *to, const void *from, size_t bytes, u32 size)
{
	return copy_to_user(to, from, min_t(size_t, bytes, size)) ? -EFAULT : 0;
}

static long create(struct onecopy_file *file, void __user *argument)
{
	const u32 flags = ONECOPY_REGION_READ | ONECOPY_REGION_WRITE | ONECOPY_REGION_SINGLE_USE |
			  ONECOPY_REGION_GROUP;
	struct onecopy_region_create call;
	struct onecopy_region *region;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (call.flags & ~flags || !(call.flags & (ONECOPY_REGION_READ | ONECOPY_REGION_WRITE)) ||
	    call.cookie || size < sizeof(call) ||
	    (call.word && !onecopy_status_has(file, call.word)))
		return -EINVAL;
	if (!list_empty_careful(&file->regions) && onecopy_refuses())
		return -ENOMEM;
	region = onecopy_region_make(file, call.pieces, call.piece_count, call.flags, call.word);
	if (IS_ERR(region))
		return PTR_ERR(region);
	call.cookie = region->cookie;
	onecopy_region_put(region);
	error = give(argument, &call, sizeof(call), size);
	if (error)
		onecopy_region_destroy(file, call.cookie);
	return error;
}

static long destroy(struct onecopy_file *file, void __user *argument)
{
	struct onecopy_region_destroy call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (size < sizeof(call) || call.reserved)
		return -EINVAL;
	return onecopy_region_destroy(file, call.cookie);
}

static long copy(struct onecopy_file *file, void __user *argument)
{
	struct onecopy_copy call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (size < sizeof(call))
		return -EINVAL;
	if (call.length > REFUSED_FROM && onecopy_refuses())
		return -ENOENT;
	error = onecopy_copy(file, &call);
	return error ? error : give(argument, &call, sizeof(call), size);
}

static long map(void __user *argument)
{
	struct onecopy_map call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (size < sizeof(call))
		return -EINVAL;
	error = onecopy_map(&call);
	if (error)
		return error;
	error = give(argument, &call, sizeof(call), size);
	if (error)
		vm_munmap(call.addr, call.length);
	return error;
}

static long graph_create(struct onecopy_file *file, void __user *argument)
{
	struct onecopy_graph_create call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	return size < sizeof(call) ? -EINVAL : onecopy_graph_make(file, &call);
}

static long graph_run(struct onecopy_file *file, void __user *argument)
{
	struct onecopy_graph_run call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	return size < sizeof(call) ? -EINVAL : onecopy_graph_run(file, call.what);
}

static long notify(struct onecopy_file *file, void __user *argument)
{
	struct eventfd_ctx *event = NULL;
	struct onecopy_notify call;
	unsigned long flags;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (size < sizeof(call) || call.fd < -1)
		return -EINVAL;
	if (call.fd >= 0) {
		event = eventfd_ctx_fdget(call.fd);
		if (IS_ERR(event))
			return PTR_ERR(event);
	}
	spin_lock_irqsave(&file->event_lock, flags);
	swap(event, file->event);
	spin_unlock_irqrestore(&file->event_lock, flags);
	if (event)
		eventfd_ctx_put(event);
	return 0;
}

static long counters(void __user *argument)
{
	struct onecopy_totals *totals = &onecopy_totals;
	struct onecopy_counters call;
	u32 size;
	long error = take(&call, sizeof(call), argument, &size);

	if (error)
		return error;
	if (memchr_inv(&call.version, 0, sizeof(call) - offsetof(struct onecopy_counters, version)))
		return -EINVAL;
	call.version = ONECOPY_VERSION;
	call.regions_created = atomic64_read(&totals->regions_created);
	call.regions_now = atomic64_read(&totals->regions_now);
	call.regions_gone = atomic64_read(&totals->regions_gone);
	call.pages_pinned_now = atomic64_read(&totals->pages_pinned_now);
	call.copies = atomic64_read(&totals->copies);
	call.copies_by_thread = atomic64_read(&totals->copies_by_thread);
	call.bytes = atomic64_read(&totals->bytes);
	call.failures = atomic64_read(&totals->failures);
	call.maps = atomic64_read(&totals->maps);
	call.maps_now = atomic64_read(&totals->maps_now);
	call.copies_by_engine = atomic64_read(&totals->copies_by_engine);
	call.bytes_by_engine = atomic64_read(&totals->bytes_by_engine);
	call.engines_busy = atomic64_read(&totals->engines_busy);
	call.engine_failures = atomic64_read(&totals->engine_failures);
	call.channels = onecopy_engine_channels();
	return give(argument, &call, sizeof(call), size);
}

static long on_ioctl(struct file *opened, unsigned int command, unsigned long argument)
{
	struct onecopy_file *file = opened->private_data;
	void __user *place = (void __user *)argument;

	switch (command) {
	case ONECOPY_REGION_CREATE:
		return create(file, place);
	case ONECOPY_REGION_DESTROY:
		return destroy(file, place);
	case ONECOPY_COPY:
		return copy(file, place);
	case ONECOPY_MAP:
		return map(place);
	case ONECOPY_GRAPH_CREATE:
		return graph_create(file, place);
	case ONECOPY_GRAPH_RUN:
		return graph_run(file, place);
	case ONECOPY_NOTIFY:
		return notify(file, place);
	case ONECOPY_COUNTERS:
		return counters(place);
	default:
		return -ENOTTY;
	}
}

/* ---- the device ------------------------------------------------------------------------------ */

static int on_open(struct inode *inode, struct file *opened)
{
	struct onecopy_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	spin_lock_init(&file->event_lock);
	INIT_LIST_HEAD(&file->regions);
	onecopy_jobs_begin(file);
	opened->private_data = file;
	return nonseekable_open(inode, opened);
}

static int on_release(struct inode *inode, struct file *opened)
{
	struct onecopy_file *file = opened->private_data;

	/* Each of them may still tell of its end; regions that end tell the graph. */
	onecopy_graph_stop(file);
	onecopy_regions_end(file);
	onecopy_jobs_end(file);
	onecopy_graph_free(file);
	if (file->event)
		eventfd_ctx_put(file->event);
	vfree(file->status);
	bitmap_free(file->pending);
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = on_open,
	.release = on_release,
	.unlocked_ioctl = on_ioctl,
	.mmap = mmap_status,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "onecopy",
	.fops = &operations,
	.mode = 0666,
};

static int __init begin(void)
{
	int error;

	onecopy_workers = alloc_workqueue("onecopy", WQ_UNBOUND, 0);
	if (!onecopy_workers)
		return -ENOMEM;
	error = onecopy_graphs_begin();
	if (error)
		goto no_graphs;
	error = misc_register(&device);
	if (!error)
		return 0;
	onecopy_graphs_end();
no_graphs:
	destroy_workqueue(onecopy_workers);
	return error;
}

static void __exit finish(void)
{
	misc_deregister(&device);
	onecopy_graphs_end();
	/* Regions that are ending. */
	destroy_workqueue(onecopy_workers);
	onecopy_engines_end();
	rcu_barrier();
}

module_init(begin);
module_exit(finish);
MODULE_DESCRIPTION("Memory of one process copied by others, once; graphs of messages");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.3.0");
