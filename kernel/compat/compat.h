/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* Dual BSD/GPL. What differs between the kernels that the module is built for: 6.1 and later. */
#ifndef ONECOPY_COMPAT_H
#define ONECOPY_COMPAT_H

#include <linux/eventfd.h>
#include <linux/mm.h>
#include <linux/uio.h>
#include <linux/version.h>

#ifndef ITER_SOURCE /* 6.2 */
#define ITER_SOURCE WRITE
#define ITER_DEST READ
#endif

/* As get_user_pages_remote(), to read, with the lock held. */
static inline long compat_get_pages(struct mm_struct *mm, unsigned long start, unsigned long count,
				    struct page **pages)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return get_user_pages_remote(mm, start, count, 0, pages, NULL, NULL);
#else
	return get_user_pages_remote(mm, start, count, 0, pages, NULL);
#endif
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
