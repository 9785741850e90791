/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of io_uring requests, made of the nodes that can go on without the program: those that
 * only wait for nodes that are over, or that are handed over with them.
 *
 * A node joins the chain of the node before it in its lane, if that is the chain's last one; else
 * that of one with an edge to it, unless this one's own lane goes on there without it. So a chain
 * is mostly a lane, and where edges put the nodes of several lanes into one row, that row.
 *
 * A node that waits for one of another chain gets a token: a byte in a pipe between both chains.
 * Tokens between two chains are written and read in one order, so that each is meant for its
 * reader, and a wait for an earlier place than was waited for needs none. A pipe holds 65,536 of
 * them, more than requests are ever under way: no chain waits to write.
 */
#include "graph/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So far behind a node it is looked whether its lane's next one waits for it. */
enum { REACH = 64 };
/* Descriptors are the program's: what would need more pipes goes on when what it waits for is over.
 */
enum { PIPES_MOST = 64 };

int oci_chains_create(struct oci_chains *c, const struct oc_graph_run *run, uint32_t entries)
{
	size_t nodes = (size_t)run->view.nodes + 1;

	*c = (struct oci_chains){ 0 };
	c->chain = malloc(nodes * sizeof(*c->chain));
	c->place = malloc(nodes * sizeof(*c->place));
	c->behind = malloc(nodes * sizeof(*c->behind));
	c->token_of = malloc(nodes * sizeof(*c->token_of));
	c->tokens_begin = malloc(nodes * sizeof(*c->tokens_begin));
	c->lane_back = malloc(nodes * sizeof(*c->lane_back));
	c->first = malloc(nodes * sizeof(*c->first));
	c->last = malloc(nodes * sizeof(*c->last));
	c->put = malloc(entries * sizeof(*c->put));
	if (!c->put || !c->chain || !c->place || !c->behind || !c->token_of || !c->tokens_begin ||
	    !c->lane_back || !c->first || !c->last) {
		oci_chains_destroy(c);
		return -ENOMEM;
	}
	memset(c->lane_back, 0xff, nodes * sizeof(*c->lane_back));
	for (uint32_t n = 0; n < run->view.nodes; n++)
		if (run->lane_next[n] != OCI_GRAPH_NONE)
			c->lane_back[run->lane_next[n]] = n;
	return 0;
}

static void close_pipes(struct oci_chains *c)
{
	for (uint32_t i = 0; i < c->pipe_count; i++) {
		close(c->pipes[i][0]);
		close(c->pipes[i][1]);
	}
	c->pipe_count = 0;
}

void oci_chains_destroy(struct oci_chains *c)
{
	close_pipes(c);
	free(c->put);
	free(c->chain);
	free(c->place);
	free(c->behind);
	free(c->token_of);
	free(c->tokens_begin);
	free(c->lane_back);
	free(c->first);
	free(c->last);
	free(c->tokens);
	free(c->pairs);
	free(c->pipes);
}

void oci_chains_reset(struct oci_chains *c)
{
	close_pipes(c); /* they may hold tokens */
	c->over = 0;
}

/* ---- which nodes, in which chains --------------------------------------------------------------
 */

/* Its bytes that have not moved are more than one request takes. */
static bool is_several(const struct oc_graph_run *run, uint32_t n)
{
	uint32_t i = run->lane_of[n];
	uint64_t moved = i != OCI_GRAPH_NONE && run->lane_at[i] == n ? run->lane_moved[i] : 0;

	return run->view.node[n].count - moved > oci_uring_bytes;
}

/* Is the node over (1), among these (0), or neither (-1)? Nothing is put behind one that takes
 * several requests: the first of them is complete long before the node is over. */
static int is_before(const struct oc_graph_run *run, uint32_t n)
{
	if (run->state[n] == OCI_GRAPH_OVER)
		return 1;
	if (is_several(run, n))
		return -1;
	return run->uring->chains.chain[n] == OCI_GRAPH_NONE ? -1 : 0;
}

static bool can_go(const struct oc_graph_run *run, uint32_t n)
{
	const struct oci_graph_view *view = &run->view;
	uint32_t back = run->uring->chains.lane_back[n];

	if (run->state[n] != OCI_GRAPH_WAITING || run->lane_of[n] == OCI_GRAPH_NONE ||
	    run->links->owner[run->lanes[run->lane_of[n]]] != run)
		return false;
	if (back != OCI_GRAPH_NONE && is_before(run, back) < 0)
		return false;
	for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
		if (is_before(run, view->edges[e]) < 0)
			return false;
	return true;
}

/* Does `to` wait for `from`, as far as the nodes between them say? */
static bool reaches(const struct oc_graph_run *run, uint32_t from, uint32_t to)
{
	const struct oci_graph_view *view = &run->view;
	uint64_t marks = 1; /* bit i: `to` waits for node to - i, or is it */

	if (to <= from || to - from >= REACH)
		return false;
	for (uint32_t n = to; n > from; n--) {
		uint32_t back = run->uring->chains.lane_back[n];

		if (!(marks >> (to - n) & 1))
			continue;
		if (back != OCI_GRAPH_NONE && back >= from)
			marks |= (uint64_t)1 << (to - back);
		for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
			if (view->edges[e] >= from)
				marks |= (uint64_t)1 << (to - view->edges[e]);
	}
	return marks >> (to - from) & 1;
}

static bool is_last(const struct oci_chains *c, uint32_t n)
{
	return c->chain[n] != OCI_GRAPH_NONE && c->last[c->chain[n]] == n;
}

/* The chain that the node joins; NONE: one of its own. */
static uint32_t choose_chain(const struct oc_graph_run *run, uint32_t n)
{
	const struct oci_graph_view *view = &run->view;
	const struct oci_chains *c = &run->uring->chains;
	uint32_t back = c->lane_back[n], best = OCI_GRAPH_NONE;

	if (back != OCI_GRAPH_NONE && is_last(c, back))
		return c->chain[back];
	for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++) {
		uint32_t before = view->edges[e], next = run->lane_next[before];

		if (is_last(c, before) && (next == OCI_GRAPH_NONE || reaches(run, n, next)) &&
		    (best == OCI_GRAPH_NONE || before > best))
			best = before;
	}
	return best == OCI_GRAPH_NONE ? best : c->chain[best];
}

/* Made where there is none; NULL: it cannot be. */
static struct oci_pair *find_pair(struct oci_chains *c, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < c->pair_count; i++)
		if (c->pairs[i].from == from && c->pairs[i].to == to)
			return &c->pairs[i];
	if (oci_graph_grow(&c->pairs, c->pair_count, &c->pair_room, sizeof(*c->pairs)))
		return NULL;
	if (c->pipes_used == c->pipe_count) {
		if (c->pipe_count == PIPES_MOST ||
		    oci_graph_grow(&c->pipes, c->pipe_count, &c->pipe_room, sizeof(*c->pipes)) ||
		    pipe2(c->pipes[c->pipe_count], O_CLOEXEC))
			return NULL;
		c->pipe_count++;
	}
	c->pairs[c->pair_count] = (struct oci_pair){ .from = from,
						     .to = to,
						     .pipe = c->pipes_used++,
						     .awaited = OCI_GRAPH_NONE };
	return &c->pairs[c->pair_count++];
}

/* `after`, which joins chain `to`, waits for `before`. There is room. */
static void add_token(struct oci_chains *c, uint32_t before, uint32_t after, uint32_t to)
{
	struct oci_pair *pair = find_pair(c, c->chain[before], to);

	if (pair->awaited != OCI_GRAPH_NONE && c->place[before] <= pair->awaited)
		return;
	pair->awaited = c->place[before];
	c->tokens[c->token_count] = (struct oci_token){ .before = before,
							.after = after,
							.pipe = pair->pipe,
							.next = c->token_of[before] };
	c->token_of[before] = c->token_count++;
}

/* The e-th node that n waits for, if that is in another chain than `to`, else NONE. Behind the
 * edges its lane's. */
static uint32_t elsewhere(const struct oc_graph_run *run, uint32_t n, uint32_t e, uint32_t to)
{
	const struct oci_graph_view *view = &run->view;
	const struct oci_chains *c = &run->uring->chains;
	uint32_t before = e < view->node[n].edges_end ? view->edges[e] : c->lane_back[n];

	if (before == OCI_GRAPH_NONE || is_before(run, before) || c->chain[before] == to)
		return OCI_GRAPH_NONE;
	return before;
}

/* Tokens for all that the node waits for in other chains; or -errno and none of them. */
static int add_tokens(const struct oc_graph_run *run, uint32_t n, uint32_t to)
{
	struct oci_chains *c = &run->uring->chains;
	uint32_t begin = oci_graph_edges_begin(&run->view, n), end = run->view.node[n].edges_end;
	uint32_t count = c->token_count;

	for (uint32_t e = begin; e <= end; e++) {
		uint32_t before = elsewhere(run, n, e, to);

		if (before == OCI_GRAPH_NONE)
			continue;
		/* Pipes may hold tokens of requests that are under way. */
		if (run->uring->flying)
			return -EBUSY;
		if (!find_pair(c, c->chain[before], to) ||
		    oci_graph_grow(&c->tokens, count++, &c->token_room, sizeof(*c->tokens)))
			return -ENOMEM;
	}
	c->tokens_begin[n] = c->token_count;
	for (uint32_t e = begin; e <= end; e++)
		if (elsewhere(run, n, e, to) != OCI_GRAPH_NONE)
			add_token(c, elsewhere(run, n, e, to), n, to);
	return 0;
}

static void join(struct oci_chains *c, uint32_t n, uint32_t to)
{
	c->chain[n] = to;
	c->behind[n] = OCI_GRAPH_NONE;
	if (to == c->chain_count) {
		c->chain_count++;
		c->first[to] = n;
		c->place[n] = 0;
	} else {
		c->behind[c->last[to]] = n;
		c->place[n] = c->place[c->last[to]] + 1;
	}
	c->last[to] = n;
}

/* Nodes that it waits for and that are not over; behind the edges its lane's. */
static uint32_t count_open(const struct oc_graph_run *run, uint32_t n)
{
	const struct oci_graph_view *view = &run->view;
	uint32_t back = run->uring->chains.lane_back[n], count;

	count = back != OCI_GRAPH_NONE && run->state[back] != OCI_GRAPH_OVER;
	for (uint32_t e = oci_graph_edges_begin(view, n); e < view->node[n].edges_end; e++)
		count += run->state[view->edges[e]] != OCI_GRAPH_OVER;
	return count;
}

/*
 * The nodes that can move now, one a lane: they go whatever else is under way, or those would be
 * held up that a peer waits for before it does its part of the rest.
 */
static uint32_t add_heads(struct oc_graph_run *run, uint32_t room)
{
	struct oci_chains *c = &run->uring->chains;
	uint32_t count = 0;

	for (uint32_t i = 0; i < run->lane_count && count < room; i++) {
		uint32_t n = run->lane_at[i];

		if (n == OCI_GRAPH_NONE || run->waits[n] || c->chain[n] != OCI_GRAPH_NONE ||
		    !can_go(run, n))
			continue;
		c->tokens_begin[n] = c->token_count;
		join(c, n, c->chain_count);
		count++;
	}
	return count;
}

/* Returns how many nodes these are. */
static uint32_t make_chains(struct oc_graph_run *run, uint32_t room)
{
	struct oci_chains *c = &run->uring->chains;
	uint32_t nodes = run->view.nodes, count = 0;
	/* One a lane is left for what can move by itself. */
	uint32_t most = room > run->lane_count ? room - run->lane_count : 0;

	c->chain_count = c->token_count = c->pair_count = c->pipes_used = 0;
	memset(c->chain, 0xff, nodes * sizeof(*c->chain));
	memset(c->token_of, 0xff, nodes * sizeof(*c->token_of));
	while (c->over < nodes && run->state[c->over] == OCI_GRAPH_OVER)
		c->over++;
	for (uint32_t n = c->over; n < nodes; n++) {
		uint32_t to;

		if (!can_go(run, n))
			continue;
		/* It, and at most a token read and written for each that it waits for. */
		if (count + 2 * c->token_count + 2 * count_open(run, n) + 1 > most)
			break;
		to = choose_chain(run, n);
		to = to == OCI_GRAPH_NONE ? c->chain_count : to;
		if (add_tokens(run, n, to))
			continue; /* later, when what it waits for is over */
		join(c, n, to);
		count++;
	}
	return count + add_heads(run, room - count - 2 * c->token_count);
}

/* ---- requests ----------------------------------------------------------------------------------
 */

/* The request before ends a chain unless another one follows. */
static struct io_uring_sqe *put(struct oc_graph_run *run, struct io_uring_sqe **before)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&run->uring->ring);

	if (sqe && *before)
		(*before)->flags |= IOSQE_IO_LINK;
	*before = sqe;
	if (sqe)
		run->uring->chains.put[run->uring->chains.put_count++] = sqe;
	return sqe;
}

static int put_token(struct oc_graph_run *run, const struct oci_token *token, bool writing,
		     struct io_uring_sqe **before)
{
	static const char written = 1;
	static char read_into; /* nobody looks at it */
	struct io_uring_sqe *sqe = put(run, before);
	const int *pipe = run->uring->chains.pipes[token->pipe];

	if (!sqe)
		return -EBUSY;
	if (writing)
		io_uring_prep_write(sqe, pipe[1], &written, 1, 0);
	else
		io_uring_prep_read(sqe, pipe[0], &read_into, 1, 0);
	io_uring_sqe_set_data64(sqe, OCI_URING_TOKEN);
	return 0;
}

static int put_node(struct oc_graph_run *run, uint32_t n, struct io_uring_sqe **before)
{
	const struct oci_graph_node *node = &run->view.node[n];
	uint32_t i = run->lane_of[n];
	uint64_t moved = run->lane_at[i] == n ? run->lane_moved[i] : 0;
	uint64_t left = node->count - moved;
	size_t bytes = left < oci_uring_bytes ? left : oci_uring_bytes;
	int socket = run->links->sockets[node->peer];
	struct io_uring_sqe *sqe = put(run, before);

	if (!sqe)
		return -EBUSY;
	if (node->kind == OCI_GRAPH_SEND)
		io_uring_prep_send(sqe, socket, oci_graph_bytes(run, node) + moved, bytes,
				   MSG_WAITALL | MSG_NOSIGNAL);
	else
		io_uring_prep_recv(sqe, socket, oci_graph_bytes(run, node) + moved, bytes,
				   MSG_WAITALL);
	io_uring_sqe_set_data64(sqe, n);
	run->state[n] = OCI_GRAPH_FLYING;
	return 0;
}

static int put_chain(struct oc_graph_run *run, uint32_t chain)
{
	struct oci_chains *c = &run->uring->chains;
	struct io_uring_sqe *before = NULL;
	int err = 0;

	for (uint32_t n = c->first[chain]; !err && n != OCI_GRAPH_NONE; n = c->behind[n]) {
		for (uint32_t t = c->tokens_begin[n];
		     !err && t < c->token_count && c->tokens[t].after == n; t++)
			err = put_token(run, &c->tokens[t], false, &before);
		if (!err)
			err = put_node(run, n, &before);
		for (uint32_t t = c->token_of[n]; !err && t != OCI_GRAPH_NONE;
		     t = c->tokens[t].next)
			err = put_token(run, &c->tokens[t], true, &before);
	}
	return err;
}

int oci_chains_submit(struct oc_graph_run *run)
{
	struct oci_uring *uring = run->uring;
	struct oci_chains *c = &uring->chains;
	/* What the kernel did not take. */
	uint32_t left = io_uring_sq_ready(&uring->ring);
	uint32_t busy = uring->flying + left, taken = 0;
	uint32_t room = busy < uring->entries ? uring->entries - busy : 0;
	uint32_t count = make_chains(run, room);
	int err = 0, submitted;

	/* All places hold what the kernel refuses: nothing would come back. */
	if (!room && !uring->flying)
		return -EAGAIN;
	if (!count)
		return 0;
	c->put_count = 0;
	for (uint32_t chain = 0; !err && chain < c->chain_count; chain++)
		err = put_chain(run, chain);
	submitted = io_uring_submit(&uring->ring);
	if (submitted > (int)left)
		taken = (uint32_t)submitted - left;
	uring->flying += taken;
	/* What the kernel has not taken it takes with what is put behind it. */
	for (uint32_t i = taken; i < c->put_count; i++) {
		memset(c->put[i], 0, sizeof(*c->put[i]));
		io_uring_prep_nop(c->put[i]);
		io_uring_sqe_set_data64(c->put[i], OCI_URING_NOTHING);
	}
	if (submitted >= 0 && taken != count + 2 * c->token_count)
		err = err ? err : -EAGAIN;
	return submitted < 0 ? submitted : err;
}
