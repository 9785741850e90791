/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Dual BSD/GPL. What differs between the kernels that the module is built for: 6.1 and later. */
#ifndef ONECOPY_COMPAT_H
#define ONECOPY_COMPAT_H

#include <linux/backing-dev.h>
#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/uio.h>
#include <linux/version.h>

#ifndef ITER_SOURCE /* 6.2 */
#define ITER_SOURCE WRITE
#define ITER_DEST READ
#endif

/* As get_user_pages_remote(), to read, with the lock held; 0: of pages
 * that are locked, or that a disk or another process would have to give. */
static inline long compat_get_pages(struct mm_struct *mm, unsigned long start, unsigned long count,
				    struct page **pages)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return get_user_pages_remote(mm, start, count, FOLL_NOWAIT, pages, NULL, NULL);
#else
	return get_user_pages_remote(mm, start, count, FOLL_NOWAIT, pages, NULL);
#endif
}

/* With the lock held: are there shared mappings of files that are written back to a disk? After
 * that their pages count as clean, and what is written to them by us would not be noticed. From 6.5
 * on the kernel pins none of them to be written for long. */
static inline bool compat_has_files(struct mm_struct *mm, unsigned long start, unsigned long end)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	struct vm_area_struct *area;

	for (area = find_vma(mm, start); area && area->vm_start < end;
	     area = find_vma(mm, area->vm_end))
		if (area->vm_flags & VM_SHARED && area->vm_file &&
		    mapping_can_writeback(area->vm_file->f_mapping))
			return true;
#endif
	return false;
}

static inline void compat_eventfd_signal(struct eventfd_ctx *context)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	eventfd_signal(context, 1);
#else
	eventfd_signal(context);
#endif
}

/* Of one that is not mapped yet. */
static inline void compat_flags_change(struct vm_area_struct *area, unsigned long set,
				       unsigned long clear)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	area->vm_flags = (area->vm_flags | set) & ~clear;
#else
	vm_flags_mod(area, set, clear);
#endif
}

#endif
