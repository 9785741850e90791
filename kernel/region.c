// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Dual BSD/GPL. Regions: their pages, their cookies, who may use them, when they end. More than 500
 * lines, as what makes, checks and ends a region shares its state, which nobody else changes.
 */
#include "compat/compat.h"
#include "onecopy.h"

#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/hashtable.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#ifndef CONFIG_MMU_NOTIFIER
#error "the kernel must be built with CONFIG_MMU_NOTIFIER, which KVM and others select"
#endif

enum { STALE, ENDED, USED };

/* Pages that are pinned by one call; between two of them signals are looked at. */
#define PIN_PAGES 512
/* That are looked up at once, to see whether they are still the same. */
#define CHECK_PAGES 32
/* So often it is looked whether a page that is locked is to be had, within some 20 ms. */
#define LOOKS 20
/* So often is a region made whose memory changes meanwhile, as when its pages are moved to be
 * pinned. */
#define ATTEMPTS 4

static DEFINE_HASHTABLE(cookies, 10); /* read under RCU */
static DEFINE_SPINLOCK(lock);	      /* of changes to the table, and of all files' lists */

/* ---- the end --------------------------------------------------------------------------------- */

static void unpin(struct onecopy_region *region)
{
	/* A page that was pinned to be written may have been. */
	unpin_user_pages_dirty_lock(region->pages, region->page_count, region->written);
	atomic64_sub(region->page_count, &onecopy_totals.pages_pinned_now);
	region->page_count = 0;
	atomic64_sub(region->accounted, &region->mm->pinned_vm);
	region->accounted = 0;
}

static void free_region(struct kref *kref)
{
	struct onecopy_region *region = container_of(kref, struct onecopy_region, kref);

	unpin(region);
	kvfree(region->pages);
	mmdrop(region->mm);
	if (region->cookie)
		atomic64_dec(&onecopy_totals.regions_now);
	kvfree_rcu(region, rcu);
}

void onecopy_region_put(struct onecopy_region *region)
{
	kref_put(&region->kref, free_region);
}

/* Nobody finds it any more, and it hears of its memory no more. It leaves its file last: a file is
 * there as long as it has regions. May sleep. False: it has been ended before. */
static bool end(struct onecopy_region *region)
{
	if (test_and_set_bit(ENDED, &region->state))
		return false;
	spin_lock(&lock);
	hash_del_rcu(&region->on_hash);
	spin_unlock(&lock);
	if (region->window)
		onecopy_window_close(region->window);
	mmu_interval_notifier_remove(&region->notifier);
	spin_lock(&lock);
	list_del(&region->on_file);
	spin_unlock(&lock);
	onecopy_region_put(region);
	return true;
}

static unsigned long pages_of(const struct onecopy_span *span)
{
	if (!span->len)
		return 0;
	return ((span->addr + span->len - 1) >> PAGE_SHIFT) - (span->addr >> PAGE_SHIFT) + 1;
}

static bool touches(const struct onecopy_region *region, unsigned long start, unsigned long stop)
{
	for (unsigned int i = 0; i < region->span_count; i++) {
		const struct onecopy_span *span = &region->span[i];

		if (span->len && span->addr < stop && span->addr + span->len > start)
			return true;
	}
	return false;
}

/* 0: the process still has these pages at these addresses; -ESTALE: others, or none; -errno: that
 * cannot be seen now, as a page is locked (EAGAIN), the caller is being killed or memory is short.
 */
static int are_there(struct onecopy_region *region, const struct onecopy_span *span)
{
	unsigned long addr = span->addr & PAGE_MASK, left = pages_of(span);
	struct page **mine = region->pages + span->page, *theirs[CHECK_PAGES];

	while (left) {
		long ask = min_t(unsigned long, left, CHECK_PAGES);
		long got = compat_get_pages(region->mm, addr, ask, theirs);
		bool same;

		if (!got)
			return -EAGAIN;
		if (got < 0)
			return got == -EINTR || got == -ENOMEM ? got : -ESTALE;
		same = !memcmp(mine, theirs, got * sizeof(*mine));
		for (long i = 0; i < got; i++)
			put_page(theirs[i]);
		if (!same)
			return -ESTALE;
		/* Of fewer than were asked for the next turn tells why. */
		mine += got;
		addr += (unsigned long)got << PAGE_SHIFT;
		left -= got;
	}
	return 0;
}

static int is_there(struct onecopy_region *region)
{
	int error = 0;

	if (!mmget_not_zero(region->mm))
		return -ESTALE;
	mmap_read_lock(region->mm);
	for (unsigned int i = 0; i < region->span_count && !error; i++)
		error = are_there(region, &region->span[i]);
	mmap_read_unlock(region->mm);
	mmput(region->mm);
	return error;
}

/*
 * Several may look at once: none waits for another, whom its memory may keep. Whoever tries to take
 * a page of a file away, or to move it, has it locked for a moment; one that is still not to be had
 * then is not ours.
 */
int onecopy_region_check(struct onecopy_region *region)
{
	unsigned int looks = 0;

	while (!test_bit(STALE, &region->state)) {
		/* Acquire: pairs with the release below, of whoever has looked. */
		int settled = smp_load_acquire(&region->settled);
		/* Acquire: pairs with the barrier in invalidate(): who knows the doubt finds the
		 * notifier's sequence changed. */
		int doubts = atomic_read_acquire(&region->doubts), error;
		unsigned long sequence;

		if (settled == doubts)
			return 0;
		/* Without its notifier nobody would tell of the next change. */
		if (test_bit(ENDED, &region->state)) {
			set_bit(STALE, &region->state);
			break;
		}
		sequence = mmu_interval_read_begin(&region->notifier);
		error = is_there(region);
		if (error == -EAGAIN && ++looks < LOOKS)
			usleep_range(500, 1000);
		else if (error == -EAGAIN || error == -ESTALE)
			set_bit(STALE, &region->state);
		else if (error)
			return error;
		else if (!mmu_interval_read_retry(&region->notifier, sequence))
			/* Release: pairs with the acquire above. */
			smp_store_release(&region->settled, doubts);
	}
	return -ESTALE;
}

/* Memory that is gone, or of which that cannot be seen, is not kept by us. It may be queued again
 * while it runs, as mremap() changes memory at both places. Counted before its pages are let go, by
 * the last reference. */
static void end_work(struct work_struct *work)
{
	struct onecopy_region *region = container_of(work, struct onecopy_region, end);

	if (onecopy_region_check(region) && end(region))
		atomic64_inc(&onecopy_totals.regions_gone);
	onecopy_region_put(region);
}

/*
 * In the process that changes the memory, before that call returns: whoever asks afterwards finds
 * the region stale, or looks whether it is. What only protects pages, or ages them, takes none
 * away; what clears their entries may (MADV_DONTNEED), or put them back (a large page that is
 * split, as by fork; a try to move one that is pinned).
 */
static bool invalidate(struct mmu_interval_notifier *notifier,
		       const struct mmu_notifier_range *range, unsigned long sequence)
{
	struct onecopy_region *region = container_of(notifier, struct onecopy_region, notifier);

	mmu_interval_set_seq(notifier, sequence);
	if (range->event != MMU_NOTIFY_UNMAP && range->event != MMU_NOTIFY_CLEAR &&
	    range->event != MMU_NOTIFY_RELEASE)
		return true;
	if (!touches(region, range->start, range->end))
		return true;
	/* Pairs with the acquire in onecopy_region_check(). */
	smp_mb__before_atomic();
	atomic_inc(&region->doubts);
	if (range->event != MMU_NOTIFY_CLEAR)
		set_bit(STALE, &region->state);
	if (!region->cookie)
		return true;
	/* The file is there: it closes only when its regions have been removed from here. */
	onecopy_status_gone(region->file, region->word);
	onecopy_graph_look(region->file);
	kref_get(&region->kref);
	if (!queue_work(onecopy_workers, &region->end))
		onecopy_region_put(region);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = { .invalidate = invalidate };

/* ---- making ---------------------------------------------------------------------------------- */

/* 0 or -errno; the spans are in place. */
static int read_pieces(struct onecopy_region *region, u64 pieces, u32 count)
{
	const struct onecopy_piece __user *from = u64_to_user_ptr(pieces);
	unsigned long pages = 0;
	u64 bytes = 0;

	region->whole = true;
	for (u32 i = 0; i < count; i++) {
		struct onecopy_span *span = &region->span[i];
		struct onecopy_piece piece;

		if (copy_from_user(&piece, &from[i], sizeof(piece)))
			return -EFAULT;
		if (piece.len > LLONG_MAX - bytes)
			return -EINVAL;
		if (!access_ok(u64_to_user_ptr(piece.addr), piece.len))
			return -EFAULT;
		/* As notifiers have it. */
		piece.addr = untagged_addr(piece.addr);
		*span = (struct onecopy_span){ piece.addr, piece.len, bytes, pages };
		bytes += piece.len;
		pages += pages_of(span);
		region->whole &= !piece.len || PAGE_ALIGNED(piece.addr | piece.len);
	}
	if (!bytes)
		return -EINVAL;
	region->span_count = count;
	region->bytes = bytes;
	region->accounted = pages;
	return 0;
}

/* As others that pin: pages of the process, against its limit. */
static int account(struct onecopy_region *region)
{
	unsigned long most = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	s64 sum = atomic64_add_return(region->accounted, &region->mm->pinned_vm);

	if (sum <= most || capable(CAP_IPC_LOCK))
		return 0;
	atomic64_sub(region->accounted, &region->mm->pinned_vm);
	region->accounted = 0;
	return -ENOMEM;
}

/* Before a page of it is touched. What is mapped instead after this is heard of. Pages of one copy
 * are told to have been written right behind it. */
static int check_files(const struct onecopy_region *region, const struct onecopy_span *span)
{
	bool has;

	if (!region->file || !(region->flags & ONECOPY_REGION_WRITE))
		return 0;
	mmap_read_lock(region->mm);
	has = compat_has_files(region->mm, span->addr, span->addr + span->len);
	mmap_read_unlock(region->mm);
	return has ? -EFAULT : 0;
}

static int pin_span(struct onecopy_region *region, const struct onecopy_span *span)
{
	unsigned int flags = FOLL_LONGTERM |
			     (region->flags & ONECOPY_REGION_WRITE ? FOLL_WRITE : 0);
	unsigned long addr = span->addr & PAGE_MASK, left = pages_of(span);
	int error = check_files(region, span);

	if (error)
		return error;
	while (left) {
		int ask = min_t(unsigned long, left, PIN_PAGES);
		int got = pin_user_pages_fast(addr, ask, flags, region->pages + region->page_count);

		if (got <= 0)
			return got ? got : -EFAULT;
		region->page_count += got;
		atomic64_add(got, &onecopy_totals.pages_pinned_now);
		addr += (unsigned long)got << PAGE_SHIFT;
		left -= got;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* It hears of all that lies between its pieces, too. */
static int notify(struct onecopy_region *region)
{
	unsigned long first = ULONG_MAX, last = 0;
	int error;

	for (unsigned int i = 0; i < region->span_count; i++) {
		const struct onecopy_span *span = &region->span[i];

		if (!span->len)
			continue;
		first = min_t(unsigned long, first, span->addr);
		last = max_t(unsigned long, last, span->addr + span->len);
	}
	error = mmu_interval_notifier_insert(&region->notifier, region->mm, first, last - first,
					     &notifier_ops);
	region->notified = !error;
	return error;
}

static void publish(struct onecopy_region *region)
{
	struct onecopy_region *other;
	bool taken;

	kref_get(&region->kref); /* its being there */
	spin_lock(&lock);
	do {
		region->cookie = get_random_u64();
		taken = !region->cookie;
		hash_for_each_possible(cookies, other, on_hash, region->cookie)
			taken |= other->cookie == region->cookie;
	} while (taken);
	hash_add_rcu(cookies, &region->on_hash, region->cookie);
	list_add(&region->on_file, &region->file->regions);
	spin_unlock(&lock);
}

static struct onecopy_region *make(struct onecopy_file *file, u64 pieces, u32 count, u32 flags,
				   u32 word)
{
	struct onecopy_region *region;
	unsigned long sequence = 0;
	int error;

	region = kvzalloc(struct_size(region, span, count), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	kref_init(&region->kref);
	INIT_LIST_HEAD(&region->on_file);
	INIT_HLIST_NODE(&region->on_hash);
	INIT_WORK(&region->end, end_work);
	region->file = file;
	region->flags = flags;
	region->word = word;
	region->uid = current_euid();
	region->gid = current_egid();
	region->written = flags & ONECOPY_REGION_WRITE;
	region->mm = current->mm;
	mmgrab(region->mm);
	error = read_pieces(region, pieces, count);
	if (!error)
		error = account(region);
	if (!error) {
		region->pages = kvmalloc_array(region->accounted, sizeof(*region->pages),
					       GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		error = region->pages ? 0 : -ENOMEM;
	}
	/* What is unmapped after this is heard of, and what was being unmapped is over. Of one copy
	 * nothing is kept that could be stale. */
	if (!error && file) {
		error = notify(region);
		if (!error)
			sequence = mmu_interval_read_begin(&region->notifier);
	}
	for (unsigned int i = 0; i < count && !error; i++)
		error = pin_span(region, &region->span[i]);
	if (!error && file && mmu_interval_read_retry(&region->notifier, sequence))
		error = -ESTALE;
	if (!error)
		return region;
	if (region->notified)
		mmu_interval_notifier_remove(&region->notifier);
	onecopy_region_put(region);
	return ERR_PTR(error);
}

struct onecopy_region *onecopy_region_make(struct onecopy_file *file, u64 pieces, u32 count,
					   u32 flags, u32 word)
{
	struct onecopy_region *region;

	if (!count || count > ONECOPY_PIECES_MOST)
		return ERR_PTR(-EINVAL);
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		region = make(file, pieces, count, flags, word);
		if (!IS_ERR(region) || PTR_ERR(region) != -ESTALE)
			break;
	}
	if (IS_ERR(region) || !file)
		return region;
	atomic64_inc(&onecopy_totals.regions_created);
	atomic64_inc(&onecopy_totals.regions_now);
	publish(region);
	/* Its memory may have gone before it had a cookie, when nobody told of it and ended it. */
	if (onecopy_region_check(region)) {
		onecopy_status_gone(file, word);
		if (end(region))
			atomic64_inc(&onecopy_totals.regions_gone);
	}
	return region;
}

/* ---- use ------------------------------------------------------------------------------------- */

static bool may_use(const struct onecopy_region *region)
{
	return uid_eq(region->uid, current_euid()) ||
	       (region->flags & ONECOPY_REGION_GROUP && in_egroup_p(region->gid));
}

static struct onecopy_region *look_up(u64 cookie)
{
	struct onecopy_region *region, *found = NULL;

	rcu_read_lock();
	hash_for_each_possible_rcu(cookies, region, on_hash, cookie) {
		if (region->cookie != cookie || !kref_get_unless_zero(&region->kref))
			continue;
		found = region;
		break;
	}
	rcu_read_unlock();
	return found;
}

struct onecopy_region *onecopy_region_find(u64 cookie, u32 rights)
{
	struct onecopy_region *region = look_up(cookie);
	int error = 0;

	if (!region)
		return ERR_PTR(-ENOENT);
	if (!may_use(region) || rights & ~region->flags)
		error = -EACCES;
	if (!error)
		return region;
	onecopy_region_put(region);
	return ERR_PTR(error);
}

bool onecopy_region_is_stale(const struct onecopy_region *region)
{
	return test_bit(STALE, &region->state);
}

struct onecopy_window *onecopy_region_window(struct onecopy_region *region)
{
	struct onecopy_window *window = NULL, *made = onecopy_window_make(region);

	if (IS_ERR(made))
		return made;
	spin_lock(&lock);
	/* The end takes the lock after it has said so, and looks for a window then. */
	if (!test_bit(ENDED, &region->state)) {
		if (!region->window)
			region->window = onecopy_window_get(made);
		window = onecopy_window_get(region->window);
	}
	spin_unlock(&lock);
	onecopy_window_put(made);
	return window ? window : ERR_PTR(-ENOENT);
}

int onecopy_region_take(struct onecopy_region *region)
{
	if (!(region->flags & ONECOPY_REGION_SINGLE_USE))
		return 0;
	return test_and_set_bit(USED, &region->state) ? -ENOENT : 0;
}

void onecopy_region_give_back(struct onecopy_region *region)
{
	clear_bit(USED, &region->state);
}

void onecopy_region_used(struct onecopy_region *region)
{
	if (region->flags & ONECOPY_REGION_SINGLE_USE)
		end(region);
	onecopy_region_put(region);
}

int onecopy_region_destroy(struct onecopy_file *file, u64 cookie)
{
	struct onecopy_region *region = look_up(cookie);
	int error = 0;

	if (!region)
		return -ENOENT;
	/* Whoever has the cookie of another file's region may use it, not end it. */
	if (region->file == file)
		end(region);
	else
		error = -EACCES;
	onecopy_region_put(region);
	return error;
}

void onecopy_regions_end(struct onecopy_file *file)
{
	for (;;) {
		struct onecopy_region *region;

		spin_lock(&lock);
		region = list_first_entry_or_null(&file->regions, struct onecopy_region, on_file);
		if (region)
			kref_get(&region->kref);
		spin_unlock(&lock);
		if (!region)
			return;
		/* Another may be ending it just now, who needs a CPU. */
		if (!end(region))
			usleep_range(50, 100);
		onecopy_region_put(region);
	}
}
