/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Dual BSD/GPL. Graphs of /dev/onecopy: ranks of one process, each with a file of its own, over TCP
 * of the loopback device. Nobody calls while they run: what is seen is seen in the shared words.
 * More than 500 lines, as it is a list of small cases.
 */
#include "calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum { RANKS = 6, NODES = 3000, STATUS = 1, LANES = 2 };

/* ---- a graph --------------------------------------------------------------------------------- */

struct build {
	unsigned int nodes, edges;
	struct onecopy_graph_node node[NODES];
	uint32_t edge[2 * NODES];
};

struct rank {
	int fd, sockets[RANKS];
	volatile uint32_t *words;
	struct onecopy_piece buffer[2];
	struct build build;
};

static struct rank ranks[RANKS];
static uint64_t seed = 20261126;

static uint64_t draw(uint64_t below)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (seed * 0x2545f4914f6cdd1du >> 16) % below;
}

static unsigned int add(struct build *build, struct onecopy_graph_node node)
{
	CHECK(build->nodes < NODES);
	node.edges_end = build->edges;
	build->node[build->nodes] = node;
	return build->nodes++;
}

static unsigned int move(struct build *build, unsigned int kind, unsigned int peer,
			 unsigned int buffer, uint64_t offset, uint64_t bytes)
{
	return add(build, (struct onecopy_graph_node){ .kind = (uint8_t)kind,
						       .peer = peer,
						       .buffer = buffer,
						       .offset = offset,
						       .count = bytes });
}

/* To the node that was added last. */
static void after(struct build *build, unsigned int before)
{
	CHECK(build->edges < 2 * NODES && before + 1 < build->nodes);
	build->edge[build->edges++] = before;
	build->node[build->nodes - 1].edges_end = build->edges;
}

static size_t pack(const struct build *build, uint8_t *packed)
{
	struct onecopy_graph_head head = { .magic = ONECOPY_GRAPH_MAGIC,
					   .version = ONECOPY_GRAPH_VERSION,
					   .nodes = build->nodes,
					   .edges = build->edges };
	size_t nodes = build->nodes * sizeof(build->node[0]), edges = build->edges * 4;

	memcpy(packed, &head, sizeof(head));
	memcpy(packed + sizeof(head), build->node, nodes);
	memcpy(packed + sizeof(head) + nodes, build->edge, edges);
	return sizeof(head) + nodes + edges;
}

static int create_packed(const struct rank *rank, const void *packed, size_t bytes)
{
	struct onecopy_graph_create call = { .size = sizeof(call),
					     .packed = (uintptr_t)packed,
					     .packed_bytes = bytes,
					     .sockets = (uintptr_t)rank->sockets,
					     .buffers = (uintptr_t)rank->buffer,
					     .socket_count = RANKS,
					     .buffer_count = 2,
					     .word = STATUS,
					     .lanes = LANES };

	return ioctl(rank->fd, ONECOPY_GRAPH_CREATE, &call);
}

static int create_graph(const struct rank *rank)
{
	static uint8_t packed[sizeof(struct build) + sizeof(struct onecopy_graph_head)];

	return create_packed(rank, packed, pack(&rank->build, packed));
}

static int tell(const struct rank *rank, unsigned int what)
{
	struct onecopy_graph_run call = { .size = sizeof(call), .what = what };

	return ioctl(rank->fd, ONECOPY_GRAPH_RUN, &call);
}

static int issue(const struct rank *rank)
{
	for (int i = 0; i < 2 * RANKS; i++)
		rank->words[LANES + i] = ONECOPY_LANE_GRANTED;
	return tell(rank, ONECOPY_GRAPH_ISSUE);
}

static uint32_t status_of(const struct rank *rank)
{
	return await_word(&rank->words[STATUS]);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

void tcp_pair(int pair[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(listener >= 0 && !bind(listener, (struct sockaddr *)&address, length));
	CHECK(!listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&address, &length));
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(pair[0], (struct sockaddr *)&address, length));
	pair[1] = accept(listener, NULL, NULL);
	CHECK(pair[1] >= 0);
	close(listener);
}

static void open_rank(struct rank *rank)
{
	rank->fd = open("/dev/onecopy", O_RDWR | O_CLOEXEC);
	CHECK(rank->fd >= 0);
	rank->words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, rank->fd, 0);
	CHECK(rank->words != MAP_FAILED);
	rank->build.nodes = rank->build.edges = 0;
}

static void close_rank(struct rank *rank)
{
	munmap((void *)rank->words, PAGE);
	close(rank->fd);
}

/* All to all; buffers of so many bytes, not at the beginning of a page. */
static void begin(unsigned int count, size_t first, size_t second)
{
	const size_t bytes[2] = { first, second };

	for (unsigned int r = 0; r < RANKS; r++)
		for (unsigned int p = 0; p < RANKS; p++)
			ranks[r].sockets[p] = -1;
	for (unsigned int r = 0; r < count; r++) {
		open_rank(&ranks[r]);
		for (unsigned int p = 0; p < r; p++) {
			int pair[2];

			tcp_pair(pair);
			ranks[r].sockets[p] = pair[0];
			ranks[p].sockets[r] = pair[1];
		}
		for (int b = 0; b < 2; b++)
			ranks[r].buffer[b] =
				(struct onecopy_piece){ (uintptr_t)memory(bytes[b] + PAGE) +
								8 * (1 + r + (unsigned int)b),
							bytes[b] };
	}
}

static uint8_t *bytes_of(unsigned int r, unsigned int buffer)
{
	return (uint8_t *)(uintptr_t)ranks[r].buffer[buffer].addr;
}

static void finish(unsigned int count)
{
	for (unsigned int r = 0; r < count; r++) {
		close_rank(&ranks[r]);
		for (unsigned int p = 0; p < count; p++)
			if (p != r)
				close(ranks[r].sockets[p]);
		for (int b = 0; b < 2; b++)
			munmap((void *)(uintptr_t)(ranks[r].buffer[b].addr & ~(PAGE - 1)),
			       ranks[r].buffer[b].len + PAGE);
	}
}

static void run_all(unsigned int count)
{
	unsigned int first = (unsigned int)draw(count);

	for (unsigned int r = 0; r < count; r++)
		CHECK(!issue(&ranks[(first + r) % count]));
	for (unsigned int r = 0; r < count; r++)
		CHECK(status_of(&ranks[r]) == ONECOPY_STATUS_DONE);
}

/* ---- what it does ---------------------------------------------------------------------------- */

/* A chain (arity 1) or a tree, whose ranks are counted from the root on. */
static void make_bcast(unsigned int count, unsigned int root, unsigned int arity, size_t bytes,
		       size_t segment)
{
	for (unsigned int r = 0; r < count; r++) {
		unsigned int mine = (r + count - root) % count;
		struct build *build = &ranks[r].build;

		for (size_t at = 0; at < bytes; at += segment) {
			size_t length = bytes - at < segment ? bytes - at : segment;
			unsigned int got = 0;

			if (mine)
				got = move(build, ONECOPY_GRAPH_RECV,
					   ((mine - 1) / arity + root) % count, 0, at, length);
			for (unsigned int c = mine * arity + 1;
			     c <= mine * arity + arity && c < count; c++) {
				move(build, ONECOPY_GRAPH_SEND, (c + root) % count, 0, at, length);
				if (mine)
					after(build, got);
			}
		}
		CHECK(!create_graph(&ranks[r]));
	}
}

static void graph_broadcasts(void)
{
	static const struct {
		size_t bytes, segment;
	} rows[] = { { 1, 1 },
		     { 5000, 999 },
		     { 70000, 70000 },
		     { 300001, 65536 },
		     { 2500001, 1 << 20 } };

	for (unsigned int arity = 1; arity < 4; arity++)
		for (unsigned int count = 2; count <= RANKS; count += 2)
			for (unsigned int i = 0; i < 5; i++) {
				unsigned int root = (unsigned int)draw(count);

				begin(count, rows[i].bytes, 1);
				make_bcast(count, root, arity, rows[i].bytes, rows[i].segment);
				for (unsigned int again = 0; again < 2; again++) {
					fill(bytes_of(root, 0), rows[i].bytes, i + again);
					run_all(count);
					for (unsigned int r = 0; r < count; r++)
						CHECK(is_filled(bytes_of(r, 0), rows[i].bytes,
								i + again));
				}
				finish(count);
			}
}

/* Of element i, as 64 bits. */
static uint64_t element_at(const uint8_t *from, unsigned int type, size_t i)
{
	uint64_t value = 0;
	unsigned int bytes = 1u << type / 2;

	memcpy(&value, from + i * bytes, bytes);
	if (!(type & 1) && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~0ull << 8 * bytes;
	return value;
}

static uint64_t combined(unsigned int op, unsigned int type, uint64_t a, uint64_t b)
{
	bool less = type & 1 ? a < b : (int64_t)a < (int64_t)b;

	switch (op) {
	case ONECOPY_CALC_COPY:
		return a;
	case ONECOPY_CALC_SUM:
		return a + b;
	case ONECOPY_CALC_PROD:
		return a * b;
	case ONECOPY_CALC_MIN:
		return less ? a : b;
	case ONECOPY_CALC_MAX:
		return less ? b : a;
	case ONECOPY_CALC_AND:
		return a & b;
	case ONECOPY_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* Rank 1 sends, rank 0 combines; both ends of the CALC lie differently in their pages. */
static void graph_computes(void)
{
	enum { BYTES = 40000 };
	static uint8_t before[BYTES];

	for (unsigned int type = 0; type < 8; type++)
		for (unsigned int op = 0; op <= ONECOPY_CALC_XOR; op++) {
			size_t element = 1u << type / 2, count = BYTES / element;
			struct build *build;

			begin(2, BYTES, BYTES + 64);
			build = &ranks[0].build;
			move(build, ONECOPY_GRAPH_RECV, 1, 1, 56, BYTES);
			add(build, (struct onecopy_graph_node){ .kind = ONECOPY_GRAPH_CALC,
								.op = (uint8_t)op,
								.type = (uint8_t)type,
								.from = 1,
								.from_offset = 56,
								.count = count });
			after(build, 0);
			move(&ranks[1].build, ONECOPY_GRAPH_SEND, 0, 0, 0, BYTES);
			for (int r = 0; r < 2; r++) {
				CHECK(!create_graph(&ranks[r]));
				for (size_t i = 0; i < BYTES; i++)
					bytes_of((unsigned int)r, 0)[i] = (uint8_t)draw(256);
			}
			memcpy(before, bytes_of(0, 0), BYTES);
			run_all(2);
			for (size_t i = 0; i < count; i++) {
				uint64_t wanted = combined(op, type,
							   element_at(bytes_of(1, 0), type, i),
							   element_at(before, type, i));

				CHECK(!memcmp(&wanted, bytes_of(0, 0) + i * element, element));
			}
			finish(2);
		}
}

/*
 * Messages between any ranks, in a row that could happen: of bytes that the sender had, or of such
 * as it got (an edge says so), into bytes that nothing else is written to; CALCs of what was got.
 */
static void make_random(unsigned int count, unsigned int messages, uint8_t (*model)[NODES * 40])
{
	static struct {
		unsigned int rank, node;
		size_t at, bytes;
	} got[NODES];
	unsigned int gots = 0;
	size_t used[RANKS] = { 0 };

	for (unsigned int m = 0; m < messages; m++) {
		unsigned int from = (unsigned int)draw(count);
		unsigned int to = (from + 1 + (unsigned int)draw(count - 1)) % count;
		unsigned int g = gots ? (unsigned int)draw(gots) : 0;
		size_t bytes = 8 + 8 * draw(4), at = 8 * draw(100);
		bool handed_on = gots && got[g].rank == from && draw(4);
		struct build *build = &ranks[from].build;

		if (handed_on) {
			bytes = got[g].bytes;
			at = got[g].at;
			if (draw(2)) {
				add(build, (struct onecopy_graph_node){ .kind = ONECOPY_GRAPH_CALC,
									.op = ONECOPY_CALC_SUM,
									.type = 7,
									.buffer = 1,
									.from = 1,
									.offset = used[from],
									.from_offset = at,
									.count = bytes / 8 });
				after(build, got[g].node);
				memcpy(model[from] + used[from], model[from] + at, bytes);
				got[g].node = build->nodes - 1;
				got[g].at = at = used[from];
				used[from] += bytes;
			}
			move(build, ONECOPY_GRAPH_SEND, to, 1, at, bytes);
			after(build, got[g].node);
			memcpy(model[to] + used[to], model[from] + at, bytes);
		} else {
			move(build, ONECOPY_GRAPH_SEND, to, 0, at, bytes);
			memcpy(model[to] + used[to], bytes_of(from, 0) + at, bytes);
		}
		got[gots].rank = to;
		got[gots].node =
			move(&ranks[to].build, ONECOPY_GRAPH_RECV, from, 1, used[to], bytes);
		got[gots].at = used[to];
		got[gots++].bytes = bytes;
		used[to] += bytes;
		CHECK(used[to] <= sizeof(*model) && used[from] <= sizeof(*model));
	}
}

static void graph_random(void)
{
	static uint8_t model[RANKS][NODES * 40];

	for (int round = 0; round < 4 * (fuzz_seconds < LONG_RUN ? 5 : 50); round++) {
		unsigned int count = 2 + (unsigned int)draw(RANKS - 1);

		begin(count, 1000, sizeof(*model));
		memset(model, 0, sizeof(model));
		for (unsigned int r = 0; r < count; r++)
			for (int i = 0; i < 1000; i++)
				bytes_of(r, 0)[i] = (uint8_t)draw(256);
		make_random(count, 1 + (unsigned int)draw(NODES / 3), model);
		for (unsigned int r = 0; r < count; r++)
			CHECK(!create_graph(&ranks[r]));
		run_all(count);
		for (unsigned int r = 0; r < count; r++)
			CHECK(!memcmp(bytes_of(r, 1), model[r], sizeof(*model)));
		finish(count);
	}
}

/* Both directions at once, each larger than what sockets hold. */
static void graph_crosses(void)
{
	enum { BYTES = 8 << 20 };

	begin(2, BYTES, BYTES);
	for (unsigned int r = 0; r < 2; r++) {
		fill(bytes_of(r, 0), BYTES, r);
		for (size_t at = 0; at < BYTES; at += BYTES / 4) {
			move(&ranks[r].build, ONECOPY_GRAPH_SEND, !r, 0, at, BYTES / 4);
			move(&ranks[r].build, ONECOPY_GRAPH_RECV, !r, 1, at, BYTES / 4);
		}
		CHECK(!create_graph(&ranks[r]));
	}
	run_all(2);
	for (unsigned int r = 0; r < 2; r++)
		CHECK(is_filled(bytes_of(r, 1), BYTES, !r));
	finish(2);
}

/* ---- lanes, ends ----------------------------------------------------------------------------- */

static void graph_lanes(void)
{
	uint64_t count;
	int event = eventfd(0, 0);
	struct onecopy_notify notify = { .size = sizeof(notify), .fd = event };
	struct pollfd wanted = { .fd = event, .events = POLLIN };

	begin(2, 100, 100);
	fill(bytes_of(0, 0), 100, 3);
	move(&ranks[0].build, ONECOPY_GRAPH_SEND, 1, 0, 0, 100);
	move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 1, 0, 50);
	CHECK(!create_graph(&ranks[0]));
	CHECK(!ioctl(ranks[0].fd, ONECOPY_NOTIFY, &notify));
	CHECK(!tell(&ranks[0], ONECOPY_GRAPH_ISSUE));
	REFUSED(tell(&ranks[0], ONECOPY_GRAPH_ISSUE), EBUSY);
	/* It was not granted. */
	CHECK(!poll(&wanted, 1, 100));
	CHECK(recv(ranks[1].sockets[0], bytes_of(1, 0), 100, MSG_DONTWAIT) == -1);
	ranks[0].words[LANES] = ONECOPY_LANE_GRANTED;
	CHECK(!tell(&ranks[0], ONECOPY_GRAPH_LOOK));
	CHECK(recv(ranks[1].sockets[0], bytes_of(1, 0), 100, MSG_WAITALL) == 100);
	CHECK(is_filled(bytes_of(1, 0), 100, 3));
	CHECK(read(event, &count, 8) == 8);
	CHECK(ranks[0].words[LANES] == ONECOPY_LANE_OVER && !ranks[0].words[LANES + 1]);
	CHECK(ranks[0].words[STATUS] == ONECOPY_STATUS_PENDING);
	ranks[0].words[LANES + 1] = ONECOPY_LANE_GRANTED;
	CHECK(!tell(&ranks[0], ONECOPY_GRAPH_LOOK));
	CHECK(send(ranks[1].sockets[0], bytes_of(1, 0), 50, 0) == 50);
	CHECK(status_of(&ranks[0]) == ONECOPY_STATUS_DONE);
	CHECK(is_filled(bytes_of(0, 1), 50, 3) && !bytes_of(0, 1)[50]);
	close(event);
	finish(2);
}

/* Its socket was shut down: the peer sees the end. */
static bool is_shut(int socket)
{
	static uint8_t rest[65536];
	ssize_t got;

	do
		got = recv(socket, rest, sizeof(rest), 0);
	while (got > 0);
	return !got || errno == ECONNRESET;
}

static void graph_peer_dies(void)
{
	enum { BYTES = 32 << 20 };

	for (int sending = 0; sending < 2; sending++) {
		begin(3, BYTES, BYTES);
		move(&ranks[0].build, sending ? ONECOPY_GRAPH_SEND : ONECOPY_GRAPH_RECV, 1, 0, 0,
		     BYTES);
		move(&ranks[0].build, ONECOPY_GRAPH_RECV, 2, 1, 0, 100);
		CHECK(!create_graph(&ranks[0]));
		CHECK(!issue(&ranks[0]));
		usleep(50000);
		CHECK(ranks[0].words[STATUS] == ONECOPY_STATUS_PENDING);
		close(ranks[1].sockets[0]);
		CHECK(status_of(&ranks[0]) == (ONECOPY_STATUS_FAILED | ECONNRESET));
		CHECK(ranks[0].words[LANES] == (ONECOPY_STATUS_FAILED | ECONNRESET));
		CHECK(ranks[0].words[LANES + 1] == ONECOPY_LANE_GRANTED);
		CHECK(is_shut(ranks[2].sockets[0]));
		finish(3);
	}
}

static void graph_cancelled(void)
{
	for (int closing = 0; closing < 2; closing++) {
		begin(2, 1000, 1);
		move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 0, 0, 1000);
		CHECK(!create_graph(&ranks[0]));
		CHECK(!tell(&ranks[0], ONECOPY_GRAPH_CANCEL));
		CHECK(!issue(&ranks[0]));
		CHECK(send(ranks[1].sockets[0], bytes_of(1, 0), 500, 0) == 500);
		while (recv(ranks[0].sockets[1], bytes_of(1, 0), 1, MSG_PEEK | MSG_DONTWAIT) == 1)
			usleep(1000);
		if (closing) {
			close_rank(&ranks[0]);
			open_rank(&ranks[0]);
		} else {
			CHECK(!tell(&ranks[0], ONECOPY_GRAPH_CANCEL));
			CHECK(ranks[0].words[STATUS] == (ONECOPY_STATUS_FAILED | ECANCELED));
		}
		memset(bytes_of(0, 0), 7, 1000);
		CHECK(is_shut(ranks[1].sockets[0]));
		send(ranks[1].sockets[0], bytes_of(1, 0), 500, MSG_NOSIGNAL);
		usleep(20000);
		for (int i = 0; i < 1000; i++)
			CHECK(bytes_of(0, 0)[i] == 7);
		finish(2);
	}
}

/* Also those of a graph that was never issued: its peer hears that they are closed. */
static void graph_lets_sockets_go(void)
{
	struct pollfd wanted = { .events = POLLIN };

	begin(2, 1000, 1);
	move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 0, 0, 1000);
	CHECK(!create_graph(&ranks[0]));
	close_rank(&ranks[0]);
	close(ranks[0].sockets[1]);
	wanted.fd = ranks[1].sockets[0];
	CHECK(poll(&wanted, 1, 10000) == 1);
	CHECK(!recv(wanted.fd, bytes_of(1, 0), 1, MSG_DONTWAIT));
	open_rank(&ranks[0]);
	ranks[0].sockets[1] = dup(0);
	finish(2);
}

static void graph_memory_goes(void)
{
	uint64_t pinned = counters().pages_pinned_now;
	void *place;

	begin(2, 8 * PAGE, 1);
	move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 0, 0, 8 * PAGE);
	CHECK(!create_graph(&ranks[0]));
	CHECK(!issue(&ranks[0]));
	CHECK(counters().pages_pinned_now > pinned);
	/* Fork takes entries away and puts them back. */
	IN_CHILD(CHECK(ranks[0].words[STATUS] == ONECOPY_STATUS_PENDING));
	usleep(20000);
	CHECK(ranks[0].words[STATUS] == ONECOPY_STATUS_PENDING);
	place = (void *)(uintptr_t)(ranks[0].buffer[0].addr & ~(PAGE - 1));
	CHECK(!munmap((uint8_t *)place + 4 * PAGE, PAGE));
	CHECK(status_of(&ranks[0]) == (ONECOPY_STATUS_FAILED | ESTALE));
	CHECK(is_shut(ranks[1].sockets[0]));
	CHECK(pinned_becomes(pinned));
	REFUSED(tell(&ranks[0], ONECOPY_GRAPH_ISSUE), ESTALE);
	finish(2);

	/* A child keeps the file; the owner's memory goes all the same, whether or not it runs. */
	for (int active = 0; active < 2; active++) {
		int hold[2], told[2];
		pid_t owner;
		char byte;

		CHECK(!pipe(hold) && !pipe(told));
		owner = fork();
		if (!owner) {
			begin(2, 8 * PAGE, 1);
			move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 0, 0, 8 * PAGE);
			CHECK(!create_graph(&ranks[0]) && (!active || !issue(&ranks[0])));
			if (!fork()) {
				close(hold[1]);
				_exit((int)read(hold[0], &byte, 1));
			}
			CHECK(write(told[1], "", 1) == 1);
			pause();
		}
		CHECK(read(told[0], &byte, 1) == 1);
		CHECK(counters().pages_pinned_now > pinned);
		kill(owner, SIGKILL);
		CHECK(waitpid(owner, NULL, 0) == owner);
		CHECK(pinned_becomes(pinned));
		close(hold[0]), close(hold[1]), close(told[0]), close(told[1]);
	}
}

/* The program writes for the first time what lies beside the bytes that are sent: its memory is
 * there all the same. */
static void graph_written_beside(void)
{
	uint8_t *untouched =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(untouched != MAP_FAILED);
	begin(2, PAGE, 1);
	ranks[0].buffer[1] = (struct onecopy_piece){ (uintptr_t)untouched, 8 * PAGE };
	move(&ranks[0].build, ONECOPY_GRAPH_SEND, 1, 1, 0, PAGE);
	CHECK(!create_graph(&ranks[0]));
	for (int again = 0; again < 2; again++) {
		CHECK(!tell(&ranks[0], ONECOPY_GRAPH_ISSUE));
		untouched[(5 + again) * PAGE] = 1;
		usleep(20000);
		CHECK(ranks[0].words[STATUS] == ONECOPY_STATUS_PENDING);
		ranks[0].words[LANES] = ONECOPY_LANE_GRANTED;
		CHECK(!tell(&ranks[0], ONECOPY_GRAPH_LOOK));
		CHECK(status_of(&ranks[0]) == ONECOPY_STATUS_DONE);
		CHECK(recv(ranks[1].sockets[0], bytes_of(1, 0), PAGE, MSG_WAITALL) ==
		      (ssize_t)PAGE);
		CHECK(!bytes_of(1, 0)[0]);
		ranks[0].words[LANES] = 0;
	}
	finish(2);
}

/* ---- what it is not to do -------------------------------------------------------------------- */

static int with_node(struct onecopy_graph_node node)
{
	ranks[0].build.nodes = ranks[0].build.edges = 0;
	add(&ranks[0].build, node);
	return create_graph(&ranks[0]);
}

#define SENDS .kind = ONECOPY_GRAPH_SEND, .peer = 1
#define CALCS .kind = ONECOPY_GRAPH_CALC

static void graph_refused_nodes(void)
{
	begin(2, 1000, 1000);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1001 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .offset = 1000 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 2, .offset = -1ull }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = -1ull, .offset = 1 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .buffer = 2 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .from = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .op = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .reserved = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1, .reserved_too = 1 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ .kind = 3, .peer = 1, .count = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ .peer = 0, .count = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ .peer = RANKS, .count = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ .peer = -1u, .count = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 6, .count = 126 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 6, .count = 1, .offset = 4 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 6, .count = 1ull << 61 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .count = 1, .from_offset = 1000 }),
		EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .count = 1, .from = 2 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .count = 1, .peer = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 10, .count = 1 }), EINVAL);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 9, .op = ONECOPY_CALC_AND,
						       .count = 1 }),
		EINVAL);
	/* What a program may have, and the kernel does not do. */
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .type = 8, .op = ONECOPY_CALC_SUM,
						       .count = 1 }),
		EOPNOTSUPP);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .op = 8, .count = 1 }), EOPNOTSUPP);
	REFUSED(with_node((struct onecopy_graph_node){ CALCS, .count = 9, .offset = 8 }),
		EOPNOTSUPP);
	CHECK(!with_node((struct onecopy_graph_node){ CALCS, .type = 9, .from = 1, .count = 100 }));
	REFUSED(with_node((struct onecopy_graph_node){ SENDS, .count = 1 }), EBUSY);
	finish(2);
}

static int with_call(struct onecopy_graph_create change)
{
	static uint8_t packed[sizeof(struct build)];
	struct onecopy_graph_create call = { .size = sizeof(call),
					     .flags = change.flags,
					     .packed = (uintptr_t)packed,
					     .packed_bytes = pack(&ranks[0].build, packed),
					     .sockets = (uintptr_t)ranks[0].sockets,
					     .buffers = (uintptr_t)ranks[0].buffer,
					     .socket_count = RANKS,
					     .buffer_count = 2,
					     .word = STATUS,
					     .lanes = LANES };

	call.packed = change.packed ? change.packed : call.packed;
	call.packed_bytes += change.packed_bytes;
	call.sockets = change.sockets ? change.sockets : call.sockets;
	call.buffers = change.buffers ? change.buffers : call.buffers;
	call.socket_count = change.socket_count ? change.socket_count : call.socket_count;
	call.buffer_count = change.buffer_count ? change.buffer_count : call.buffer_count;
	call.word = change.word ? change.word : call.word;
	call.lanes = change.lanes ? change.lanes : call.lanes;
	return ioctl(ranks[0].fd, ONECOPY_GRAPH_CREATE, &call);
}

static int with_socket(int socket)
{
	int sockets[RANKS] = { -1, socket, -1, -1, -1, -1 };

	return with_call((struct onecopy_graph_create){ .sockets = (uintptr_t)sockets });
}

static void graph_refused_calls(void)
{
	struct onecopy_piece pieces[2] = { { 0, 1000 }, { 0, 0 } };
	void *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int pair[2];

	begin(2, 1000, 1000);
	REFUSED(tell(&ranks[0], ONECOPY_GRAPH_ISSUE), EINVAL);
	move(&ranks[0].build, ONECOPY_GRAPH_RECV, 1, 0, 0, 1000);
	move(&ranks[0].build, ONECOPY_GRAPH_SEND, 1, 0, 0, 1000);
	after(&ranks[0].build, 0);
	REFUSED(with_call((struct onecopy_graph_create){ .flags = 1 }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .packed = 1 }), EFAULT);
	REFUSED(with_call((struct onecopy_graph_create){ .sockets = 1 }), EFAULT);
	REFUSED(with_call((struct onecopy_graph_create){ .buffers = 1 }), EFAULT);
	REFUSED(with_call((struct onecopy_graph_create){ .packed_bytes = 1 }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .packed_bytes = -1ull }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .packed_bytes = 1 << 30 }), E2BIG);
	REFUSED(with_call((struct onecopy_graph_create){ .socket_count = 1 }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .socket_count =
								 ONECOPY_GRAPH_PEERS_MOST + 1 }),
		E2BIG);
	REFUSED(with_call((struct onecopy_graph_create){ .buffer_count =
								 ONECOPY_GRAPH_BUFFERS_MOST + 1 }),
		E2BIG);
	REFUSED(with_call((struct onecopy_graph_create){ .word = PAGE / 4 }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .lanes = PAGE / 4 - 1 }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .lanes = -1u }), EINVAL);
	REFUSED(with_call((struct onecopy_graph_create){ .buffers = (uintptr_t)pieces }), EFAULT);
	pieces[0].addr = (uintptr_t)read_only;
	REFUSED(with_call((struct onecopy_graph_create){ .buffers = (uintptr_t)pieces }), EFAULT);
	REFUSED(with_socket(12345), EBADF);
	REFUSED(with_socket(-2), EBADF);
	REFUSED(with_socket(ranks[0].fd), ENOTSOCK);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	REFUSED(with_socket(pair[0]), EPROTONOSUPPORT);
	close(pair[0]);
	close(pair[1]);
	pair[0] = socket(AF_INET, SOCK_DGRAM, 0);
	REFUSED(with_socket(pair[0]), EPROTONOSUPPORT);
	close(pair[0]);
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	REFUSED(with_socket(pair[0]), ENOTCONN);
	close(pair[0]);
	/* A node behind itself, or one that comes later. */
	ranks[0].build.edge[0] = 1;
	REFUSED(create_graph(&ranks[0]), EINVAL);
	ranks[0].build.edge[0] = -1u;
	REFUSED(create_graph(&ranks[0]), EINVAL);
	ranks[0].build.edge[0] = 0;
	ranks[0].build.node[0].edges_end = 1;
	REFUSED(create_graph(&ranks[0]), EINVAL);
	ranks[0].build.node[1].edges_end = 0;
	REFUSED(create_graph(&ranks[0]), EINVAL);
	/* What is only sent may be read-only memory. */
	ranks[0].build.nodes = ranks[0].build.edges = 0;
	move(&ranks[0].build, ONECOPY_GRAPH_SEND, 1, 0, 0, 1000);
	CHECK(!with_call((struct onecopy_graph_create){ .buffers = (uintptr_t)pieces }));
	REFUSED(tell(&ranks[0], 4), EINVAL);
	REFUSED(tell(&ranks[0], 0), EINVAL);
	finish(2);
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void spoil(uint8_t *packed, size_t bytes)
{
	for (uint64_t m = draw(4); m; m--) {
		size_t at = draw(bytes);

		switch (draw(3)) {
		case 0:
			packed[at] = (uint8_t)draw(256);
			break;
		case 1:
			packed[at] ^= (uint8_t)(1u << draw(8));
			break;
		default:
			/* Whole words, of which those at a border are the worst. */
			at -= at % 4;
			memcpy(packed + at, (uint32_t[]){ (uint32_t)(draw(4) - 2) }, 4);
		}
	}
}

/* One that is spoiled, or not; then whatever comes. */
static void throw_graph(void)
{
	static uint8_t packed[sizeof(struct build)];
	static uint8_t model[RANKS][NODES * 40];
	size_t bytes;

	begin(2, 1000, 20000);
	make_random(2, 1 + (unsigned int)draw(20), model);
	bytes = pack(&ranks[0].build, packed);
	spoil(packed, bytes);
	if (!draw(8))
		ranks[0].buffer[draw(2)].addr += draw(PAGE);
	if (!create_packed(&ranks[0], packed, bytes)) {
		if (!create_graph(&ranks[1]))
			issue(&ranks[1]);
		if (!issue(&ranks[0]))
			for (uint64_t i = draw(6); i; i--)
				switch (draw(8)) {
				case 0:
					tell(&ranks[0], ONECOPY_GRAPH_CANCEL);
					break;
				case 1:
					shutdown(ranks[1].sockets[0], (int)draw(3));
					break;
				case 2:
					issue(&ranks[0]);
					break;
				case 3:
					ranks[0].words[draw(20)] = (uint32_t)draw(4);
					break;
				case 4:
					munmap((void *)(uintptr_t)(ranks[0].buffer[1].addr &
								   ~(PAGE - 1)),
					       PAGE);
					break;
				case 5:
					send(ranks[1].sockets[0], packed, draw(500),
					     MSG_DONTWAIT | MSG_NOSIGNAL);
					break;
				default:
					usleep((useconds_t)draw(300));
				}
	}
	finish(2);
}

static void graph_hostile(void)
{
	uint64_t pinned = counters().pages_pinned_now;
	time_t until = time(NULL) + fuzz_seconds;
	pid_t child[3];

	for (int i = 0; i < 3; i++) {
		child[i] = fork();
		CHECK(child[i] >= 0);
		seed += (uint64_t)i + 1;
		while (!child[i] && time(NULL) < until)
			throw_graph();
		if (!child[i])
			_exit(0);
	}
	for (int i = 0; i < 3; i++)
		CHECK(child_succeeds(child[i]));
	CHECK(pinned_becomes(pinned));
}

/* What a CALC has not combined when its file is closed, or it is cancelled, is sent to nobody. */
static void stop_while_it_computes(bool closing)
{
	enum { BYTES = 16 << 20, LAST = 4096, TRIES = 20 };
	const volatile uint8_t *sums;
	uint8_t got[LAST];
	bool cut = false;

	for (int try = 0; try < TRIES && !cut; try++) {
		ssize_t bytes;

		begin(2, BYTES, BYTES);
		sums = bytes_of(0, 0);
		memset(bytes_of(0, 0), 1, BYTES);
		memset(bytes_of(0, 1), 2, BYTES);
		add(&ranks[0].build, (struct onecopy_graph_node){ .kind = ONECOPY_GRAPH_CALC,
								  .op = ONECOPY_CALC_SUM,
								  .type = 1,
								  .from = 1,
								  .count = BYTES });
		move(&ranks[0].build, ONECOPY_GRAPH_SEND, 1, 0, BYTES - LAST, LAST);
		after(&ranks[0].build, 0);
		CHECK(!create_graph(&ranks[0]));
		CHECK(!issue(&ranks[0]));
		while (sums[BYTES / 16] == 1)
			usleep(100);
		if (closing)
			close_rank(&ranks[0]);
		else
			CHECK(!tell(&ranks[0], ONECOPY_GRAPH_CANCEL));
		cut = sums[BYTES - 1] == 1;
		/* The socket is ours still, and would keep the peer waiting if it were not shut. */
		bytes = recv(ranks[1].sockets[0], got, LAST, MSG_WAITALL);
		CHECK(!cut || bytes <= 0);
		for (ssize_t i = 0; i < bytes; i++)
			CHECK(got[i] == 3);
		if (closing)
			open_rank(&ranks[0]);
		finish(2);
	}
	CHECK(cut);
}

static void graph_closed_while_it_computes(void)
{
	stop_while_it_computes(true);
}

static void graph_cancelled_while_it_computes(void)
{
	stop_while_it_computes(false);
}

/* Of ranks that hand on what comes one is killed at any moment, of some rounds while all run. */
static void graph_killed(void)
{
	enum { COUNT = 3, BYTES = 1 << 20 };
	const int rounds = fuzz_seconds < LONG_RUN ? 30 : 200;
	uint64_t pinned = counters().pages_pinned_now;
	unsigned int *running =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int round = 0; round < rounds; round++) {
		static int sockets[COUNT][RANKS];
		pid_t child[COUNT];

		*running = 0;
		begin(COUNT, 1, 1);
		for (int r = 0; r < COUNT; r++)
			memcpy(sockets[r], ranks[r].sockets, sizeof(sockets[r]));
		for (unsigned int r = 0; r < COUNT; r++) {
			uint32_t status;

			child[r] = fork();
			CHECK(child[r] >= 0);
			if (child[r])
				continue;
			for (int o = 0; o < COUNT; o++)
				for (int p = 0; p < COUNT; p++)
					if (o != (int)r && p != o)
						close(sockets[o][p]);
			for (int o = 0; o < COUNT; o++)
				close_rank(&ranks[o]);
			open_rank(&ranks[r]);
			ranks[r].buffer[0] =
				(struct onecopy_piece){ (uintptr_t)memory(BYTES), BYTES };
			for (size_t at = 0; at < BYTES; at += BYTES / 8) {
				if (r)
					move(&ranks[r].build, ONECOPY_GRAPH_RECV, r - 1, 0, at,
					     BYTES / 8);
				if (r < COUNT - 1)
					move(&ranks[r].build, ONECOPY_GRAPH_SEND, r + 1, 0, at,
					     BYTES / 8);
				if (r && r < COUNT - 1)
					after(&ranks[r].build, ranks[r].build.nodes - 2);
			}
			/* Another may be dead already. */
			if (create_graph(&ranks[r])) {
				CHECK(errno == ENOTCONN);
				_exit(0);
			}
			__atomic_fetch_add(running, 1, __ATOMIC_RELAXED);
			if (!r)
				fill(bytes_of(0, 0), BYTES, 7);
			do {
				CHECK(!issue(&ranks[r]));
				status = status_of(&ranks[r]);
				CHECK(status != ONECOPY_STATUS_DONE ||
				      is_filled(bytes_of(r, 0), BYTES, 7));
			} while (status == ONECOPY_STATUS_DONE);
			CHECK(status == (ONECOPY_STATUS_FAILED | ECONNRESET));
			_exit(0);
		}
		finish(COUNT);
		while (round % 3 && __atomic_load_n(running, __ATOMIC_RELAXED) < COUNT)
			usleep(1000);
		usleep((useconds_t)draw(60000));
		kill(child[round % COUNT], SIGKILL);
		/* The others hear of it. */
		for (int r = 0; r < COUNT; r++)
			CHECK(child_succeeds(child[r]) || r == round % COUNT);
	}
	CHECK(pinned_becomes(pinned));
}

const struct test graph_tests[] = {
	TEST(graph_broadcasts),
	TEST(graph_computes),
	TEST(graph_random),
	TEST(graph_crosses),
	TEST(graph_lanes),
	TEST(graph_peer_dies),
	TEST(graph_cancelled),
	TEST(graph_lets_sockets_go),
	TEST(graph_memory_goes),
	TEST(graph_written_beside),
	TEST(graph_refused_nodes),
	TEST(graph_refused_calls),
	TEST(graph_killed),
	TEST(graph_closed_while_it_computes),
	TEST(graph_cancelled_while_it_computes),
	TEST(graph_hostile),
	NO_MORE_TESTS,
};
