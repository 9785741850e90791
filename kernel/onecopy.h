/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. What the files of the module share.
 *
 *   main.c    the device: calls, status words, counters
 *   region.c  regions: pages, cookies, who may use them, when they end
 *   copy.c    the copies: by the caller, by a thread, in order
 *   engine.c  the copies of DMA engines
 *   window.c  regions mapped by others
 *   graph.c   graphs, which communicate over sockets; graph_make.c: checked and made
 *   calc.c    what they compute
 */
#ifndef ONECOPY_KERNEL_H
#define ONECOPY_KERNEL_H

#include "uapi/linux/onecopy.h"
#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

struct eventfd_ctx;
struct onecopy_engine;
struct onecopy_graph;
struct onecopy_window;

/* What runs a file's copies by threads. */
struct onecopy_turn {
	struct work_struct work;
	struct onecopy_file *file;
};

/* An open file. */
struct onecopy_file {
	struct mutex lock;	/* of what follows, as far as it changes */
	u32 *status;		/* NULL: not mapped yet; the words stay as long as the file */
	unsigned long *pending; /* a bit for each word */
	unsigned int words;
	spinlock_t event_lock;
	struct eventfd_ctx *event; /* NULL: none; under event_lock */
	struct list_head regions;  /* under the lock of all regions, see region.c */
	spinlock_t jobs_lock;
	struct list_head jobs; /* in the order of their calls */
	bool running;	       /* a turn is queued, or takes one after the other */
	int node;	       /* for which one was queued last */
	/* Turn about: what is queued while it runs stays on its node. */
	struct onecopy_turn turn[2];
	unsigned int turns;
	struct onecopy_graph *graph; /* NULL: none yet; set once, with release */
};

struct onecopy_span {
	u64 addr, len;
	u64 at;		    /* of its first byte in the region */
	unsigned long page; /* of its first page in the region's */
};

struct onecopy_region {
	struct kref kref; /* its being there, each copy, and its end under way */
	u64 cookie;	  /* 0: nobody else has it */
	u32 flags;
	unsigned long state; /* STALE, ENDED, USED */
	/* How often pages were taken out of the process's tables, and the number at which they were
	 * last seen to be there again. */
	atomic_t doubts;
	int settled; /* atomic */
	kuid_t uid;
	kgid_t gid;
	struct onecopy_file *file; /* NULL: of one copy; not looked at once it has ENDED */
	struct list_head on_file;
	struct hlist_node on_hash;
	struct mm_struct *mm;
	struct mmu_interval_notifier notifier;
	bool notified;
	u32 word; /* 0: none */
	struct work_struct end;
	struct rcu_head rcu;
	u64 bytes;
	struct page **pages;
	unsigned long page_count, accounted;
	bool written;		       /* its pages may have changed */
	bool whole;		       /* its pieces are of whole pages: it may be mapped */
	struct onecopy_window *window; /* NULL: nobody mapped it; stays so once it has ENDED */
	unsigned int span_count;
	struct onecopy_span span[];
};

/* ---- region.c -------------------------------------------------------------------------------- */

/* Of the caller's memory. file NULL: for one copy, without a cookie. ERR_PTR(-errno). */
struct onecopy_region *onecopy_region_make(struct onecopy_file *file, u64 pieces, u32 count,
					   u32 flags, u32 word);
/* For the rights READ, WRITE; a reference. ERR_PTR(-errno). */
struct onecopy_region *onecopy_region_find(u64 cookie, u32 rights);
/* Before a copy, which goes on with the pages as they are then: -ESTALE: they are the process's no
 * more; -EINTR, -ENOMEM: nobody can say now. Waits for no file system and no other
 * process, but for locks, 20 ms at most for those of a file's pages. */
int onecopy_region_check(struct onecopy_region *region);
/* Before a copy, for the one of a region that is for one: -ENOENT: another has it. Or not, after
 * all. */
int onecopy_region_take(struct onecopy_region *region);
void onecopy_region_give_back(struct onecopy_region *region);
/* Behind a copy, in place of put: ends it where it was for one. */
void onecopy_region_used(struct onecopy_region *region);
void onecopy_region_put(struct onecopy_region *region);
/* Has its memory gone, as far as is known? */
bool onecopy_region_is_stale(const struct onecopy_region *region);
/* What it is mapped by; a reference. ERR_PTR(-errno). */
struct onecopy_window *onecopy_region_window(struct onecopy_region *region);
int onecopy_region_destroy(struct onecopy_file *file, u64 cookie);
/* All of a file that closes. */
void onecopy_regions_end(struct onecopy_file *file);

/* ---- copy.c ---------------------------------------------------------------------------------- */

/* 0 and copy->copied, or -errno. */
int onecopy_copy(struct onecopy_file *file, struct onecopy_copy *copy);
/* Of a file that closes: jobs that have not begun are forgotten, the one under way is awaited. */
void onecopy_jobs_end(struct onecopy_file *file);
void onecopy_jobs_begin(struct onecopy_file *file);

/* Of a copy between pages what lies in one page on both sides. */
struct onecopy_chunk {
	struct page *from, *to;
	size_t from_within, to_within, bytes;
};
/* By the CPU. */
void onecopy_chunk_copy(const struct onecopy_chunk *chunk);

/* ---- engine.c -------------------------------------------------------------------------------- */

/* A channel of a DMA engine, near the node if there is a choice, for one copy. NULL: none is free,
 * or none may be used. May sleep, as all of these. */
struct onecopy_engine *onecopy_engine_take(int node);
/* The next chunk of the copy: false if it failed, which finish() is to be told, as always. */
bool onecopy_engine_copy(struct onecopy_engine *engine, const struct onecopy_chunk *chunk);
/* Gives it back; so many bytes were copied from the beginning on. The engine writes none any more.
 */
u64 onecopy_engine_finish(struct onecopy_engine *engine);
/* As many channels may be used. */
unsigned int onecopy_engine_channels(void);
/* Nobody copies any more. */
void onecopy_engines_end(void);

/* ---- window.c -------------------------------------------------------------------------------- */

/* 0 and map->addr, or -errno. */
int onecopy_map(struct onecopy_map *map);
/* ERR_PTR(-errno). */
struct onecopy_window *onecopy_window_make(struct onecopy_region *region);
struct onecopy_window *onecopy_window_get(struct onecopy_window *window);
void onecopy_window_put(struct onecopy_window *window);
/* Of a region that ends: when it returns, nobody's memory shows its pages. May sleep. */
void onecopy_window_close(struct onecopy_window *window);

/* ---- graph.c --------------------------------------------------------------------------------- */

/* 0 or -errno. */
int onecopy_graph_make(struct onecopy_file *file, const struct onecopy_graph_create *call);
int onecopy_graph_run(struct onecopy_file *file, u32 what);
/* Memory of a region of the file's, which is there, may have gone. In any context. */
void onecopy_graph_look(struct onecopy_file *file);
/* Of a file that closes: no socket wakes it any more, no byte moves. Then, when its regions are
 * gone, too, it is freed. */
void onecopy_graph_stop(struct onecopy_file *file);
void onecopy_graph_free(struct onecopy_file *file);
int onecopy_graphs_begin(void);
void onecopy_graphs_end(void);

/* ---- calc.c ---------------------------------------------------------------------------------- */

/* 0: there is no such type. */
unsigned int onecopy_calc_bytes(unsigned int type);
/* 0; -EINVAL: there is no such operation; -EOPNOTSUPP: not in the kernel. */
int onecopy_calc_check(unsigned int op, unsigned int type);
/* So many elements, one after the other; both are aligned to them. */
void onecopy_calc(unsigned int op, unsigned int type, void *to, const void *from, size_t count);

/* ---- main.c ---------------------------------------------------------------------------------- */

extern struct workqueue_struct *onecopy_workers;
extern struct onecopy_totals {
	atomic64_t regions_created, regions_now, regions_gone, pages_pinned_now;
	atomic64_t copies, copies_by_thread, bytes, failures, maps, maps_now;
	atomic64_t copies_by_engine, bytes_by_engine, engines_busy, engine_failures;
} onecopy_totals;

/* Takes the word for a copy: -EINVAL, -EBUSY or 0. */
int onecopy_status_take(struct onecopy_file *file, u32 word);
void onecopy_status_give_back(struct onecopy_file *file, u32 word);
/* 0 or -errno, for whoever looks at the word, and the eventfd. */
void onecopy_status_tell(struct onecopy_file *file, u32 word, int result);
/* A region has ended with its memory, or may have: its own word, 0 if it has none. */
void onecopy_status_gone(struct onecopy_file *file, u32 word);
bool onecopy_status_has(struct onecopy_file *file, u32 word);
/* Words that the process writes, too: nothing is taken for granted of them. */
u32 onecopy_status_read(struct onecopy_file *file, u32 word);
void onecopy_status_write(struct onecopy_file *file, u32 word, u32 value);

/* For tests: is this call to be refused? */
bool onecopy_refuses(void);

#endif
