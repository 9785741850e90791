// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Dual BSD/GPL. Copies: by the caller to and from its own memory; between pages, by a thread or
 * an engine, too. */
#include "compat/compat.h"
#include "onecopy.h"

#include <linux/completion.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

/* That a thread takes one after the other. */
#define JOBS_AT_ONCE 16

/* A place in a region. */
struct cursor {
	const struct onecopy_region *region;
	unsigned int span;
	u64 within; /* of the span */
};

/* Either end of a copy between pages. */
struct side {
	struct onecopy_region *region;
	u64 offset;
	bool named; /* by its cookie; else made for this copy */
};

struct job {
	struct list_head on;
	struct side from, to;
	u64 length;
	int node;    /* of what is written first */
	bool engine; /* if there is one */
	u32 status;  /* 0: the caller waits */
	/* Then: both are on its stack, and it frees the job. */
	struct completion *completed;
	s64 *result;
};

/* The offset is within the region. */
static struct cursor cursor_at(const struct onecopy_region *region, u64 offset)
{
	unsigned int low = 0, high = region->span_count;

	/* The last span that begins there or before, and is not empty. */
	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (region->span[middle].at <= offset)
			low = middle;
		else
			high = middle;
	}
	return (struct cursor){ region, low, offset - region->span[low].at };
}

/* What lies there in one page; the next one is looked for behind an empty rest. */
static struct page *page_of(struct cursor *cursor, size_t *within, size_t *bytes)
{
	const struct onecopy_region *region = cursor->region;
	const struct onecopy_span *span = &region->span[cursor->span];
	u64 at;

	while (cursor->within == span->len) {
		span = &region->span[++cursor->span];
		cursor->within = 0;
	}
	at = offset_in_page(span->addr) + cursor->within;
	*within = offset_in_page(at);
	*bytes = min_t(u64, PAGE_SIZE - *within, span->len - cursor->within);
	return region->pages[span->page + (at >> PAGE_SHIFT)];
}

/* ---- by the caller --------------------------------------------------------------------------- */

/* How many bytes, or -errno. */
static s64 copy_here(const struct onecopy_region *region, u64 offset, struct iov_iter *iter,
		     bool write)
{
	struct cursor cursor = cursor_at(region, offset);
	s64 copied = 0;

	while (iov_iter_count(iter)) {
		size_t within, bytes, moved;
		struct page *page = page_of(&cursor, &within, &bytes);

		bytes = min(bytes, iov_iter_count(iter));
		moved = write ? copy_page_from_iter(page, within, bytes, iter) :
				copy_page_to_iter(page, within, bytes, iter);
		cursor.within += moved;
		copied += moved;
		if (moved < bytes)
			return copied ? copied : -EFAULT;
		if (fatal_signal_pending(current))
			return copied ? copied : -EINTR;
		cond_resched();
	}
	return copied;
}

/* How many bytes, or -errno. */
static s64 run_here(const struct onecopy_copy *copy, const struct onecopy_region *region)
{
	bool write = copy->flags & ONECOPY_COPY_WRITE;
	struct iovec fast[UIO_FASTIOV], *vector = fast;
	struct iov_iter iter;
	s64 copied = import_iovec(write ? ITER_SOURCE : ITER_DEST, u64_to_user_ptr(copy->pieces),
				  copy->piece_count, UIO_FASTIOV, &vector, &iter);

	if (copied < 0)
		return copied;
	if (copied == copy->length)
		copied = copy_here(region, copy->offset, &iter, write);
	else
		copied = -EINVAL;
	kfree(vector);
	return copied;
}

/* ---- between pages --------------------------------------------------------------------------- */

/* Of one the next part that lies in one page on both sides. */
static struct onecopy_chunk next_chunk(struct cursor *from, struct cursor *to, u64 left)
{
	struct onecopy_chunk chunk;
	size_t bytes;

	chunk.from = page_of(from, &chunk.from_within, &chunk.bytes);
	chunk.to = page_of(to, &chunk.to_within, &bytes);
	chunk.bytes = min_t(u64, min(bytes, chunk.bytes), left);
	from->within += chunk.bytes;
	to->within += chunk.bytes;
	return chunk;
}

void onecopy_chunk_copy(const struct onecopy_chunk *chunk)
{
	void *read, *written;

	if (!chunk->bytes)
		return;
	read = kmap_local_page(chunk->from);
	written = kmap_local_page(chunk->to);
	/* The same page may be both. */
	memmove(written + chunk->to_within, read + chunk->from_within, chunk->bytes);
	flush_dcache_page(chunk->to);
	kunmap_local(written);
	kunmap_local(read);
}

/* What is left behind the first bytes, by the CPU, or an engine. How many bytes: all, but for a
 * caller that is being killed, and an engine that fails. */
static u64 copy_behind(const struct job *job, u64 done, struct onecopy_engine *engine)
{
	struct cursor from = cursor_at(job->from.region, job->from.offset + done);
	struct cursor to = cursor_at(job->to.region, job->to.offset + done);
	u64 left = job->length - done;

	while (left && !fatal_signal_pending(current)) {
		struct onecopy_chunk chunk = next_chunk(&from, &to, left);

		if (!engine)
			onecopy_chunk_copy(&chunk);
		else if (!onecopy_engine_copy(engine, &chunk))
			break;
		left -= chunk.bytes;
		cond_resched();
	}
	return engine ? onecopy_engine_finish(engine) : job->length - done - left;
}

static int node_of(const struct side *side)
{
	struct cursor cursor = cursor_at(side->region, side->offset);
	size_t within, bytes;

	return page_to_nid(page_of(&cursor, &within, &bytes));
}

static u64 copy_between(const struct job *job)
{
	struct onecopy_engine *engine = job->engine ? onecopy_engine_take(node_of(&job->to)) : NULL;
	u64 copied = engine ? copy_behind(job, 0, engine) : 0;

	return copied + (copied < job->length ? copy_behind(job, copied, NULL) : 0);
}

/* How many bytes, or -errno. */
static s64 run_between(const struct job *job)
{
	s64 copied = onecopy_region_check(job->from.region);

	if (!copied)
		copied = onecopy_region_check(job->to.region);
	if (copied)
		return copied;
	copied = copy_between(job);
	return copied ? copied : -EINTR;
}

/* Of a copy of so many bytes, or -errno: what copies nothing uses up no region. */
static void leave(const struct side *side, s64 copied)
{
	if (side->named && copied >= 0) {
		onecopy_region_used(side->region);
		return;
	}
	if (side->named)
		onecopy_region_give_back(side->region);
	onecopy_region_put(side->region);
}

/* ---- by a thread ----------------------------------------------------------------------------- */

static void count(s64 copied)
{
	if (copied < 0) {
		atomic64_inc(&onecopy_totals.failures);
		return;
	}
	atomic64_inc(&onecopy_totals.copies);
	atomic64_add(copied, &onecopy_totals.bytes);
}

static void run_job(struct onecopy_file *file, struct job *job)
{
	s64 copied = run_between(job);

	leave(&job->from, copied);
	leave(&job->to, copied);
	if (job->completed) {
		*job->result = copied;
		complete(job->completed);
		return;
	}
	count(copied);
	onecopy_status_tell(file, job->status, min_t(s64, copied, 0));
	kfree(job);
}

/* The next one, if it is for that node. NULL: *node is that of the next one, NUMA_NO_NODE: there is
 * none. */
static struct job *next_job(struct onecopy_file *file, int *node)
{
	struct job *job;

	spin_lock(&file->jobs_lock);
	job = list_first_entry_or_null(&file->jobs, struct job, on);
	if (job && job->node == *node) {
		list_del_init(&job->on);
	} else {
		*node = job ? job->node : NUMA_NO_NODE;
		file->running = job != NULL;
		file->node = *node;
		job = NULL;
	}
	spin_unlock(&file->jobs_lock);
	return job;
}

/* By whoever has set `running`, or runs the last turn. */
static void queue_turn(struct onecopy_file *file, int node)
{
	queue_work_node(node, onecopy_workers, &file->turn[file->turns++ % 2].work);
}

/* Not all of them at once: threads are few, and other files' jobs wait. One for another node is for
 * a thread there. */
static void run_jobs(struct work_struct *work)
{
	struct onecopy_file *file = container_of(work, struct onecopy_turn, work)->file;
	int node = file->node;

	for (unsigned int done = 0; done < JOBS_AT_ONCE; done++) {
		struct job *job = next_job(file, &node);

		if (!job)
			break;
		run_job(file, job);
	}
	if (node != NUMA_NO_NODE)
		queue_turn(file, node);
}

static void queue_job(struct onecopy_file *file, struct job *job)
{
	bool idle;

	job->node = node_of(&job->to);
	atomic64_inc(&onecopy_totals.copies_by_thread);
	spin_lock(&file->jobs_lock);
	list_add_tail(&job->on, &file->jobs);
	idle = !file->running;
	file->running = true;
	if (idle)
		file->node = job->node;
	spin_unlock(&file->jobs_lock);
	if (idle)
		queue_turn(file, file->node);
}

/* Takes the job back, if no thread has it yet. */
static bool take_back(struct onecopy_file *file, struct job *job)
{
	bool taken;

	spin_lock(&file->jobs_lock);
	taken = !list_empty(&job->on);
	if (taken)
		list_del_init(&job->on);
	spin_unlock(&file->jobs_lock);
	return taken;
}

/* The caller waits. Who is being killed does not wait for those before, but for one that has begun:
 * it is told of on this stack. */
static s64 run_by_thread(struct onecopy_file *file, struct job *job)
{
	DECLARE_COMPLETION_ONSTACK(completed);
	s64 copied;

	job->completed = &completed;
	job->result = &copied;
	queue_job(file, job);
	if (!wait_for_completion_killable(&completed)) {
		kfree(job);
		return copied;
	}
	if (take_back(file, job)) {
		copied = -EINTR;
		leave(&job->from, copied);
		leave(&job->to, copied);
	} else {
		wait_for_completion(&completed);
	}
	kfree(job);
	return copied;
}

void onecopy_jobs_begin(struct onecopy_file *file)
{
	spin_lock_init(&file->jobs_lock);
	INIT_LIST_HEAD(&file->jobs);
	for (unsigned int i = 0; i < 2; i++) {
		INIT_WORK(&file->turn[i].work, run_jobs);
		file->turn[i].file = file;
	}
}

void onecopy_jobs_end(struct onecopy_file *file)
{
	LIST_HEAD(forgotten);
	struct job *job, *next;

	/* Nobody waits for one of them: a caller that does holds the file. */
	spin_lock(&file->jobs_lock);
	list_splice_init(&file->jobs, &forgotten);
	spin_unlock(&file->jobs_lock);
	list_for_each_entry_safe(job, next, &forgotten, on) {
		leave(&job->from, -ECANCELED);
		leave(&job->to, -ECANCELED);
		kfree(job);
	}
	/* One may have queued the other, with nothing left to do. */
	for (unsigned int i = 0; i < 3; i++)
		cancel_work_sync(&file->turn[i % 2].work);
}

/* ---- a call ---------------------------------------------------------------------------------- */

#define BETWEEN_PAGES \
	(ONECOPY_COPY_REGION | ONECOPY_COPY_KTHREAD | ONECOPY_COPY_ASYNC | ONECOPY_COPY_DMA)
#define FLAGS (ONECOPY_COPY_WRITE | BETWEEN_PAGES)

static bool is_valid(const struct onecopy_copy *copy)
{
	bool region = copy->flags & ONECOPY_COPY_REGION, async = copy->flags & ONECOPY_COPY_ASYNC;

	if (copy->flags & ~FLAGS || !copy->length || copy->length > LLONG_MAX || copy->copied)
		return false;
	if (region ? copy->pieces || copy->piece_count : copy->local_cookie || copy->local_offset)
		return false;
	return async ? copy->status : !copy->status;
}

static int find_side(struct side *side, u64 cookie, u64 offset, u64 length, u32 right)
{
	struct onecopy_region *region = onecopy_region_find(cookie, right);

	if (IS_ERR(region))
		return PTR_ERR(region);
	if (offset > region->bytes || length > region->bytes - offset) {
		onecopy_region_put(region);
		return -ERANGE;
	}
	*side = (struct side){ region, offset, true };
	return 0;
}

/* The caller's pieces, pinned. */
static int make_side(struct side *side, const struct onecopy_copy *copy, u32 right)
{
	struct onecopy_region *region =
		onecopy_region_make(NULL, copy->pieces, copy->piece_count, right, 0);

	if (IS_ERR(region))
		return PTR_ERR(region);
	if (region->bytes != copy->length) {
		onecopy_region_put(region);
		return -EINVAL;
	}
	*side = (struct side){ region, 0, false };
	return 0;
}

/* Both may be used up by it, or neither. */
static int take(const struct side *named, const struct side *other)
{
	int error = onecopy_region_take(named->region);

	if (error || !other->named || other->region == named->region)
		return error;
	error = onecopy_region_take(other->region);
	if (error)
		onecopy_region_give_back(named->region);
	return error;
}

/* How many bytes, or -errno; the job is the callee's. */
static s64 run(struct onecopy_file *file, const struct onecopy_copy *copy, struct job *job)
{
	s64 copied;

	if (copy->flags & ONECOPY_COPY_ASYNC) {
		job->status = copy->status;
		queue_job(file, job);
		return copy->length;
	}
	if (copy->flags & ONECOPY_COPY_KTHREAD)
		return run_by_thread(file, job);
	copied = run_between(job);
	leave(&job->from, copied);
	leave(&job->to, copied);
	kfree(job);
	return copied;
}

/* The side is the callee's. */
static s64 run_pages(struct onecopy_file *file, const struct onecopy_copy *copy,
		     const struct side *named)
{
	bool write = copy->flags & ONECOPY_COPY_WRITE;
	u32 right = write ? ONECOPY_REGION_READ : ONECOPY_REGION_WRITE;
	struct job *job = kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	struct side other = { .region = NULL };
	int error;

	if (!job)
		error = -ENOMEM;
	else if (copy->flags & ONECOPY_COPY_REGION)
		error = find_side(&other, copy->local_cookie, copy->local_offset, copy->length,
				  right);
	else
		error = make_side(&other, copy, right);
	if (!error)
		error = take(named, &other);
	if (error) {
		if (other.region)
			onecopy_region_put(other.region);
		onecopy_region_put(named->region);
		kfree(job);
		return error;
	}
	job->from = write ? other : *named;
	job->to = write ? *named : other;
	job->length = copy->length;
	job->engine = copy->flags & ONECOPY_COPY_DMA;
	return run(file, copy, job);
}

static s64 run_pieces(const struct onecopy_copy *copy, const struct side *named)
{
	s64 copied = onecopy_region_check(named->region);

	if (!copied)
		copied = onecopy_region_take(named->region);
	if (copied) {
		onecopy_region_put(named->region);
		return copied;
	}
	copied = run_here(copy, named->region);
	leave(named, copied);
	return copied;
}

static s64 run_checked(struct onecopy_file *file, const struct onecopy_copy *copy)
{
	u32 right = copy->flags & ONECOPY_COPY_WRITE ? ONECOPY_REGION_WRITE : ONECOPY_REGION_READ;
	struct side named;
	int error = find_side(&named, copy->cookie, copy->offset, copy->length, right);

	if (error)
		return error;
	return copy->flags & BETWEEN_PAGES ? run_pages(file, copy, &named) :
					     run_pieces(copy, &named);
}

int onecopy_copy(struct onecopy_file *file, struct onecopy_copy *copy)
{
	bool async = copy->flags & ONECOPY_COPY_ASYNC;
	s64 copied = is_valid(copy) ? 0 : -EINVAL;

	if (!copied && async)
		copied = onecopy_status_take(file, copy->status);
	if (!copied) {
		copied = run_checked(file, copy);
		if (copied < 0 && async)
			onecopy_status_give_back(file, copy->status);
	}
	/* Of one under way its end is counted. */
	if (copied < 0 || !async)
		count(copied);
	if (copied < 0)
		return copied;
	copy->copied = copied;
	return 0;
}
