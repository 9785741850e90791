// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Dual BSD/GPL. Windows: a region's pages in the memory of others. A region has one, once it was
 * mapped, and each mapping a file of its own over it, whose mode says whether it may be written.
 * Entries are made when they are missed and taken away when the region ends. They hold no page: the
 * region does, until its end has taken the last one away.
 */
#include "compat/compat.h"
#include "onecopy.h"

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/rwsem.h>
#include <linux/slab.h>

/* Where one page is missed its neighbours are shown, too: 64 KiB, as the kernel's fault_around. */
#define AROUND 16

struct onecopy_window {
	struct kref kref;	       /* its region's, and of each file */
	struct address_space mapping;  /* in the region's pages, for all files */
	struct rw_semaphore lock;      /* taken in a fault, with the mapper's mmap_lock held */
	struct onecopy_region *region; /* NULL: it has ended; under the lock */
};

struct onecopy_window *onecopy_window_make(struct onecopy_region *region)
{
	struct onecopy_window *window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);

	if (!window)
		return ERR_PTR(-ENOMEM);
	kref_init(&window->kref);
	address_space_init_once(&window->mapping);
	init_rwsem(&window->lock);
	window->region = region;
	return window;
}

struct onecopy_window *onecopy_window_get(struct onecopy_window *window)
{
	kref_get(&window->kref);
	return window;
}

static void free_window(struct kref *kref)
{
	kfree(container_of(kref, struct onecopy_window, kref));
}

void onecopy_window_put(struct onecopy_window *window)
{
	kref_put(&window->kref, free_window);
}

void onecopy_window_close(struct onecopy_window *window)
{
	down_write(&window->lock);
	window->region = NULL;
	up_write(&window->lock);
	/* Nobody makes entries any more. */
	unmap_mapping_range(&window->mapping, 0, 0, 1);
	onecopy_window_put(window);
}

/* ---- a mapping ------------------------------------------------------------------------------- */

static vm_fault_t show(struct vm_area_struct *area, const struct onecopy_region *region,
		       unsigned long page)
{
	return vmf_insert_pfn(area, area->vm_start + ((page - area->vm_pgoff) << PAGE_SHIFT),
			      page_to_pfn(region->pages[page]));
}

static vm_fault_t show_around(struct vm_area_struct *area, const struct onecopy_region *region,
			      unsigned long missed)
{
	unsigned long page = max(round_down(missed, AROUND), area->vm_pgoff);
	unsigned long stop = min3(round_down(missed, AROUND) + AROUND, region->page_count,
				  area->vm_pgoff + vma_pages(area));
	vm_fault_t result;

	/* remap_file_pages() may have led anywhere. */
	if (missed >= region->page_count)
		return VM_FAULT_SIGBUS;
	result = show(area, region, missed);
	for (; page < stop && result == VM_FAULT_NOPAGE; page++)
		/* What it is not shown now is missed later. */
		if (page != missed && show(area, region, page) != VM_FAULT_NOPAGE)
			break;
	return result;
}

/* Whether a page that may have been taken away is the process's still nobody can look up here, with
 * a mmap_lock held; if it is not, the region ends, and takes away what was shown meanwhile. */
static vm_fault_t on_fault(struct vm_fault *fault)
{
	struct onecopy_window *window = fault->vma->vm_file->private_data;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&window->lock);
	if (window->region && !onecopy_region_is_stale(window->region))
		result = show_around(fault->vma, window->region, fault->pgoff);
	up_read(&window->lock);
	return result;
}

static const struct vm_operations_struct area_operations = { .fault = on_fault };

static int on_mmap(struct file *opened, struct vm_area_struct *area)
{
	/* Pages that are another's and not counted by their entries. A child would not know of
	 * them; VM_IO keeps MADV_DOFORK away. */
	compat_flags_change(area, VM_PFNMAP | VM_IO | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
			    VM_EXEC | VM_MAYEXEC);
	area->vm_ops = &area_operations;
	return 0;
}

static int on_release(struct inode *inode, struct file *opened)
{
	atomic64_dec(&onecopy_totals.maps_now);
	onecopy_window_put(opened->private_data);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.mmap = on_mmap,
	.release = on_release,
	.llseek = noop_llseek,
};

/* ---- the call -------------------------------------------------------------------------------- */

/* May it be mapped, these bytes, now? */
static int allows(struct onecopy_region *region, const struct onecopy_map *map)
{
	if (region->flags & ONECOPY_REGION_SINGLE_USE)
		return -EACCES;
	/* Else it would show what lies beside the region in its first and last page. */
	if (!region->whole)
		return -EINVAL;
	if (map->offset > region->bytes || map->length > region->bytes - map->offset)
		return -ERANGE;
	return onecopy_region_check(region);
}

static struct onecopy_window *find_window(const struct onecopy_map *map)
{
	u32 write = map->flags & ONECOPY_MAP_WRITE ? ONECOPY_REGION_WRITE : 0;
	struct onecopy_region *region =
		onecopy_region_find(map->cookie, ONECOPY_REGION_READ | write);
	struct onecopy_window *window;
	int error;

	if (IS_ERR(region))
		return ERR_CAST(region);
	error = allows(region, map);
	window = error ? ERR_PTR(error) : onecopy_region_window(region);
	onecopy_region_put(region);
	return window;
}

/* The window's reference goes to it. ERR_PTR(-errno). */
static struct file *open_window(struct onecopy_window *window, bool write)
{
	struct file *opened =
		anon_inode_getfile("[onecopy]", &operations, window, write ? O_RDWR : O_RDONLY);

	if (IS_ERR(opened)) {
		onecopy_window_put(window);
		return opened;
	}
	atomic64_inc(&onecopy_totals.maps_now);
	/* Not that of all such files: what is to be taken away is looked up there. */
	window->mapping.host = file_inode(opened);
	opened->f_mapping = &window->mapping;
	return opened;
}

int onecopy_map(struct onecopy_map *map)
{
	bool write = map->flags & ONECOPY_MAP_WRITE;
	struct onecopy_window *window;
	struct file *opened;
	unsigned long addr;

	if (map->flags & ~ONECOPY_MAP_WRITE || !map->length ||
	    !PAGE_ALIGNED(map->offset | map->length | map->addr))
		return -EINVAL;
	window = find_window(map);
	if (IS_ERR(window))
		return PTR_ERR(window);
	opened = open_window(window, write);
	if (IS_ERR(opened))
		return PTR_ERR(opened);
	addr = vm_mmap(opened, map->addr, map->length, PROT_READ | (write ? PROT_WRITE : 0),
		       MAP_SHARED | (map->addr ? MAP_FIXED_NOREPLACE : 0), map->offset);
	/* Mapped it is kept until munmap(). */
	fput(opened);
	if (IS_ERR_VALUE(addr))
		return addr;
	atomic64_inc(&onecopy_totals.maps);
	map->addr = addr;
	return 0;
}
