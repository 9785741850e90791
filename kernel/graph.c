// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Dual BSD/GPL. Graphs: nodes that send, receive and compute, run in threads of the kernel's as
 * KACC (paper 003) ran them in its tasklet (docs/adr/0035 says why not there). Whoever wakes those
 * who sleep on a socket wakes its graph, too: the socket's own callbacks stay as they are.
 *
 * A graph is run by one work item, so by one thread at a time, on a CPU of the scheduler's choice.
 * `lock` guards all that changes, and is held for MOVES pieces at a time.
 */
#include "graph.h"
#include "compat/compat.h"

#include <linux/bvec.h>
#include <linux/cred.h>
#include <linux/highmem.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uio.h>
#include <net/sock.h>

/* Of one call of a socket's. */
#define PIECE_PAGES 16
/* Pieces, or CALCs, that are moved before others may have the lock. */
#define MOVES 64

static struct workqueue_struct *movers;

/* ---- moved ----------------------------------------------------------------------------------- */

static void forget_wants(struct onecopy_graph *graph)
{
	for (u32 i = 0; i < graph->link_count; i++)
		WRITE_ONCE(graph->link[i].wants, 0);
}

static void end(struct onecopy_graph *graph, int error)
{
	/* Who sees the word may issue it again, as soon as the lock is free. */
	graph->active = false;
	forget_wants(graph);
	if (error)
		for (u32 i = 0; i < graph->link_count; i++)
			if (graph->link[i].socket)
				kernel_sock_shutdown(graph->link[i].socket, SHUT_RDWR);
	onecopy_status_tell(graph->file, graph->word, error);
}

static u32 word_of(const struct onecopy_graph *graph, const struct onecopy_lane *lane)
{
	return graph->lane_word + (lane - graph->lane);
}

static void fail(struct onecopy_graph *graph, const struct onecopy_lane *lane, int error)
{
	onecopy_status_write(graph->file, word_of(graph, lane), ONECOPY_STATUS_FAILED | -error);
	end(graph, error);
}

static void node_over(struct onecopy_graph *graph, u32 node)
{
	graph->left--;
	for (u32 i = graph->next_begin[node]; i < graph->next_begin[node + 1]; i++) {
		u32 behind = graph->next[i];

		if (!--graph->waits[behind] && graph->node[behind].kind == ONECOPY_GRAPH_CALC)
			graph->ready[graph->ready_count++] = behind;
	}
}

/* The page that the offset lies in; how many bytes from there on are in it. */
static struct page *page_at(const struct onecopy_region *region, u64 offset, size_t *within,
			    size_t *bytes)
{
	u64 at = offset_in_page(region->span[0].addr) + offset;

	*within = offset_in_page(at);
	*bytes = PAGE_SIZE - *within;
	return region->pages[at >> PAGE_SHIFT];
}

/* As much of it as one call takes; `pieces` must live as long as `iter`. */
static void begin_piece(const struct onecopy_graph *graph, const struct onecopy_lane *lane,
			struct bio_vec *pieces, struct iov_iter *iter)
{
	const struct onecopy_graph_node *node = &graph->node[lane->at];
	const struct onecopy_region *region = graph->region[node->buffer];
	u64 left = node->count - lane->moved;
	unsigned int count = 0;
	size_t all = 0;

	while (count < PIECE_PAGES && left > all) {
		size_t within, bytes;
		struct page *page =
			page_at(region, node->offset + lane->moved + all, &within, &bytes);

		bytes = min_t(u64, bytes, left - all);
		pieces[count++] = (struct bio_vec){ page, bytes, within };
		all += bytes;
	}
	iov_iter_bvec(iter, node->kind == ONECOPY_GRAPH_SEND ? ITER_SOURCE : ITER_DEST, pieces,
		      count, all);
}

/* 1: bytes moved; 0: none can; -errno. */
static int move_piece(struct onecopy_graph *graph, struct onecopy_lane *lane)
{
	struct msghdr message = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct onecopy_link *link = &graph->link[lane->number / 2];
	unsigned int direction = lane->number % 2;
	struct bio_vec pieces[PIECE_PAGES];
	int moved;

	begin_piece(graph, lane, pieces, &message.msg_iter);
	set_bit(direction, &link->wants);
	/* It says what it waits for before it looks. Pairs with the barrier of skwq_has_sleeper()
	 * and the queue's lock: who brings bytes, or room, looks behind that. */
	smp_mb__after_atomic();
	if (direction == ONECOPY_SEND)
		moved = sock_sendmsg(link->socket, &message);
	else
		moved = sock_recvmsg(link->socket, &message, MSG_DONTWAIT);
	if (moved == -EAGAIN)
		return 0;
	clear_bit(direction, &link->wants);
	if (moved <= 0)
		return !moved || moved == -EPIPE ? -ECONNRESET : moved;
	lane->moved += moved;
	if (lane->moved < graph->node[lane->at].count)
		return 1;
	node_over(graph, lane->at);
	lane->moved = 0;
	lane->at = graph->lane_next[lane->at];
	if (lane->at == ONECOPY_NONE)
		onecopy_status_write(graph->file, word_of(graph, lane), ONECOPY_LANE_OVER);
	return 1;
}

static bool can_move(const struct onecopy_graph *graph, const struct onecopy_lane *lane)
{
	return lane->at != ONECOPY_NONE && !graph->waits[lane->at] &&
	       onecopy_status_read(graph->file, word_of(graph, lane)) == ONECOPY_LANE_GRANTED;
}

/* An element lies in one page on both sides, as it is aligned. */
static void compute(struct onecopy_graph *graph, const struct onecopy_graph_node *node)
{
	u32 element = onecopy_calc_bytes(node->type);
	u64 all = node->count * element;

	for (u64 done = 0; done < all && !READ_ONCE(graph->stopping);) {
		size_t to_within, from_within, bytes, to_bytes;
		struct page *to = page_at(graph->region[node->buffer], node->offset + done,
					  &to_within, &to_bytes);
		struct page *from = page_at(graph->region[node->from], node->from_offset + done,
					    &from_within, &bytes);
		void *read = kmap_local_page(from), *written = kmap_local_page(to);

		bytes = min_t(u64, min(bytes, to_bytes), all - done);
		onecopy_calc(node->op, node->type, written + to_within, read + from_within,
			     bytes / element);
		flush_dcache_page(to);
		kunmap_local(written);
		kunmap_local(read);
		done += bytes;
		cond_resched();
	}
}

static bool compute_one(struct onecopy_graph *graph)
{
	u32 node;

	if (!graph->ready_count)
		return false;
	node = graph->ready[--graph->ready_count];
	compute(graph, &graph->node[node]);
	node_over(graph, node);
	return true;
}

/* A piece of each lane in turn: while one is sent, another comes. Is there more to be done now? */
static bool advance(struct onecopy_graph *graph)
{
	unsigned int moves = 0, before;

	do {
		before = moves;
		moves += compute_one(graph);
		/* It may have been cut short: who has said so waits to end the graph. */
		if (READ_ONCE(graph->stopping))
			return false;
		for (u32 i = 0; i < graph->lane_count; i++) {
			struct onecopy_lane *lane = &graph->lane[i];
			int moved = can_move(graph, lane) ? move_piece(graph, lane) : 0;

			if (moved < 0) {
				fail(graph, lane, moved);
				return false;
			}
			moves += moved;
		}
		cond_resched();
	} while (moves > before && moves < MOVES);
	if (!graph->left)
		end(graph, 0);
	return graph->active && moves > before;
}

/* False: memory of a buffer has gone, and all of it was let go. */
static bool has_memory(struct onecopy_graph *graph)
{
	for (u32 i = 0; i < graph->buffer_count && !graph->gone; i++)
		graph->gone = graph->region[i] && onecopy_region_check(graph->region[i]);
	if (!graph->gone)
		return true;
	if (graph->active)
		end(graph, -ESTALE);
	onecopy_graph_leave_buffers(graph);
	return false;
}

static void move(struct work_struct *work)
{
	struct onecopy_graph *graph = container_of(work, struct onecopy_graph, work);
	/* What a security module asks of who sends is asked of who made it. */
	const struct cred *before = override_creds(graph->cred);
	bool more;

	mutex_lock(&graph->lock);
	more = has_memory(graph) && graph->active && advance(graph);
	mutex_unlock(&graph->lock);
	revert_creds(before);
	if (more)
		queue_work(movers, &graph->work);
}

/* By whoever brings bytes, or room, in any context. */
static int on_wake(struct wait_queue_entry *wait, unsigned int mode, int sync, void *key)
{
	struct onecopy_link *link = container_of(wait, struct onecopy_link, wait);
	unsigned long wants = READ_ONCE(link->wants);
	__poll_t events = key_to_poll(key);

	/* Without a key its state has changed. */
	if (events && !(events & (EPOLLERR | EPOLLHUP)))
		wants &= (events & EPOLLIN ? BIT(ONECOPY_RECV) : 0) |
			 (events & EPOLLOUT ? BIT(ONECOPY_SEND) : 0);
	if (wants)
		queue_work(movers, &link->graph->work);
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct onecopy_graph *graph_of(struct onecopy_file *file)
{
	/* Acquire: pairs with onecopy_graph_make(). */
	return smp_load_acquire(&file->graph);
}

static void discard(struct onecopy_graph *graph)
{
	onecopy_graph_empty(graph);
	put_cred(graph->cred);
	mutex_destroy(&graph->lock);
	kfree(graph);
}

int onecopy_graph_make(struct onecopy_file *file, const struct onecopy_graph_create *call)
{
	struct onecopy_graph *graph;
	int error;

	if (call->flags || !call->lanes || !onecopy_status_has(file, call->word))
		return -EINVAL;
	if (call->socket_count > ONECOPY_GRAPH_PEERS_MOST ||
	    call->buffer_count > ONECOPY_GRAPH_BUFFERS_MOST)
		return -E2BIG;
	if (graph_of(file))
		return -EBUSY;
	graph = kzalloc(sizeof(*graph), GFP_KERNEL_ACCOUNT);
	if (!graph)
		return -ENOMEM;
	mutex_init(&graph->lock);
	INIT_WORK(&graph->work, move);
	graph->file = file;
	graph->cred = get_current_cred();
	graph->buffer_count = call->buffer_count;
	graph->word = call->word;
	graph->lane_word = call->lanes;
	error = onecopy_graph_fill(graph, call);
	if (error) {
		discard(graph);
		return error;
	}
	/* Nothing is wanted of a socket before it is issued. */
	for (u32 i = 0; i < graph->link_count; i++) {
		init_waitqueue_func_entry(&graph->link[i].wait, on_wake);
		if (graph->link[i].socket)
			add_wait_queue(&graph->link[i].socket->wq.wait, &graph->link[i].wait);
	}
	/* Release, as it is a full barrier: pairs with graph_of(). */
	if (!cmpxchg(&file->graph, NULL, graph))
		return 0;
	for (u32 i = 0; i < graph->link_count; i++)
		if (graph->link[i].socket)
			remove_wait_queue(&graph->link[i].socket->wq.wait, &graph->link[i].wait);
	discard(graph);
	return -EBUSY;
}

/* As at its beginning: nothing is over. */
static void rewind(struct onecopy_graph *graph)
{
	graph->left = graph->nodes;
	graph->ready_count = 0;
	for (u32 n = 0; n < graph->nodes; n++) {
		graph->waits[n] = graph->node[n].edges_end - onecopy_edges_begin(graph, n);
		if (!graph->waits[n] && graph->node[n].kind == ONECOPY_GRAPH_CALC)
			graph->ready[graph->ready_count++] = n;
	}
	for (u32 i = 0; i < graph->lane_count; i++) {
		graph->lane[i].at = graph->lane[i].first;
		graph->lane[i].moved = 0;
	}
}

static int issue(struct onecopy_graph *graph)
{
	int error;

	if (graph->active)
		return -EBUSY;
	if (!has_memory(graph))
		return -ESTALE;
	error = onecopy_status_take(graph->file, graph->word);
	if (error)
		return error;
	rewind(graph);
	graph->active = true;
	return 0;
}

/* When it returns no buffer is written any more. */
static void cancel(struct onecopy_graph *graph)
{
	/* A CALC may be long, and what is cut short is not sent. */
	WRITE_ONCE(graph->stopping, true);
	mutex_lock(&graph->lock);
	if (graph->active)
		end(graph, -ECANCELED);
	WRITE_ONCE(graph->stopping, false);
	mutex_unlock(&graph->lock);
}

int onecopy_graph_run(struct onecopy_file *file, u32 what)
{
	struct onecopy_graph *graph = graph_of(file);
	int error = 0;

	if (!graph || what < ONECOPY_GRAPH_ISSUE || what > ONECOPY_GRAPH_CANCEL)
		return -EINVAL;
	if (what == ONECOPY_GRAPH_ISSUE) {
		error = mutex_lock_killable(&graph->lock);
		if (error)
			return error;
		error = issue(graph);
		mutex_unlock(&graph->lock);
	} else if (what == ONECOPY_GRAPH_CANCEL) {
		cancel(graph);
	}
	if (!error && what != ONECOPY_GRAPH_CANCEL)
		queue_work(movers, &graph->work);
	return error;
}

/* ---- ends ------------------------------------------------------------------------------------ */

void onecopy_graph_look(struct onecopy_file *file)
{
	struct onecopy_graph *graph = graph_of(file);

	if (graph)
		queue_work(movers, &graph->work);
}

void onecopy_graph_stop(struct onecopy_file *file)
{
	struct onecopy_graph *graph = file->graph;

	if (!graph)
		return;
	/* A CALC may be long, and what is cut short is not sent. */
	WRITE_ONCE(graph->stopping, true);
	for (u32 i = 0; i < graph->link_count; i++)
		if (graph->link[i].socket)
			remove_wait_queue(&graph->link[i].socket->wq.wait, &graph->link[i].wait);
	mutex_lock(&graph->lock);
	if (graph->active)
		end(graph, -ECANCELED);
	mutex_unlock(&graph->lock);
}

void onecopy_graph_free(struct onecopy_file *file)
{
	if (!file->graph)
		return;
	cancel_work_sync(&file->graph->work);
	discard(file->graph);
}

int onecopy_graphs_begin(void)
{
	/* Before programs, as the network's interrupts are; on a CPU that is idle, if there is
	 * one. WQ_SYSFS: the administrator says otherwise. */
	movers = alloc_workqueue("onecopy_graphs", WQ_UNBOUND | WQ_HIGHPRI | WQ_SYSFS, 0);
	return movers ? 0 : -ENOMEM;
}

void onecopy_graphs_end(void)
{
	destroy_workqueue(movers);
}
