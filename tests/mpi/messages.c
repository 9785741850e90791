/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages SEED ROUNDS [THREADS]: random messages between random ranks, from and into memory of all
 * kinds, with wildcards, probes, persistent requests, receives that are too short or cancelled,
 * derived types and to oneself; with threads, each on a communicator of its own. And puts, gets and
 * accumulates. Every byte is checked, also those around; send buffers are written over at once.
 *
 * messages die: rank 1 ends in the middle of its messages. Of that only the end is of interest.
 *
 * Rank 0 prints "large N": messages that a shared heap must serve, from memory of malloc into
 * memory of malloc, contiguous, large for every MPI. One file of more than 500 lines: what a sender
 * makes of a seed the receiver foresees, so both stand side by side.
 */
#include "case.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 24, GUARD = 64, STATIC = 512 << 10, LARGE = 64 << 10, WINDOW = 300000 };
enum { HEAP, STATIC_DATA, MAPPED, KINDS };
enum mode { POSTED, PROBED, PERSISTENT, SHORT, CANCELLED, EXCHANGED, MODES };

static int rank, ranks;

/* Of one thread. */
struct mix {
	MPI_Comm comm;
	int number;
	uint64_t seed;
	uint8_t *fixed; /* STATIC bytes of static memory; NULL: in use, or another thread's */
	long rounds, large;
	int tag; /* the first of this round: a rank may be ahead of another */
};

struct message {
	int from, to, tag;
	size_t bytes;
	int mode, any;			 /* of the receiver: the source (1) or the tag (2) is any */
	int kind[2], gaps[2], offset[2]; /* of the sender, of the receiver */
	int synchronous, cut;		 /* how many bytes the receiver is short of */
};

/* A buffer of one side. */
struct buffer {
	uint8_t *block, *bytes;
	size_t room;
	int kind;
	MPI_Datatype type;
	int count;
};

/* Alike on all ranks. */
static uint64_t pick(struct mix *m, uint64_t below)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (m->seed >> 33) % below;
}

static size_t pick_bytes(struct mix *m)
{
	switch (pick(m, 8)) {
	case 0:
		return pick(m, 100);
	case 1:
		return pick(m, 8192);
	case 2:
		return pick(m, 2 << 20);
	case 3:
		return 4096ull << pick(m, 6);
	default:
		return pick(m, 200 << 10);
	}
}

static uint8_t value(const struct message *msg, int number, size_t at)
{
	return (uint8_t)(msg->tag * 37 + msg->from * 11 + number * 101 + at * 7 + at / 255);
}

/* ---- buffers -------------------------------------------------------------------------------- */

/* Gaps: blocks of 1000 bytes, 500 apart; the last one is a whole one. */
enum { BLOCK = 1000, STRIDE = 1500 };

static size_t extent(size_t bytes, int gaps)
{
	return gaps ? bytes / BLOCK * STRIDE : bytes;
}

static size_t place_of(int gaps, size_t at)
{
	return gaps ? at / BLOCK * STRIDE + at % BLOCK : at;
}

static void get_memory(struct mix *m, struct buffer *b, int kind, size_t room, int offset)
{
	room += (size_t)offset + 2 * GUARD;
	if (kind == STATIC_DATA && (!m->fixed || room > STATIC))
		kind = HEAP;
	b->kind = kind;
	b->room = room;
	switch (kind) {
	case STATIC_DATA:
		b->block = m->fixed;
		m->fixed = NULL;
		break;
	case MAPPED:
		b->block = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);
		if (b->block == MAP_FAILED)
			case_fail("no memory");
		break;
	default:
		b->block = malloc(room);
		if (!b->block)
			case_fail("no memory");
	}
	memset(b->block, 0xa5, room);
	b->bytes = b->block + GUARD + offset;
}

static void make(struct mix *m, const struct message *msg, int side, struct buffer *b)
{
	size_t bytes = msg->bytes - (side ? (size_t)msg->cut : 0);

	get_memory(m, b, msg->kind[side], extent(msg->bytes, msg->gaps[side]), msg->offset[side]);
	b->type = MPI_BYTE;
	b->count = (int)bytes;
	if (msg->gaps[side]) {
		MPI_Type_vector((int)(bytes / BLOCK), BLOCK, STRIDE, MPI_BYTE, &b->type);
		MPI_Type_commit(&b->type);
		b->count = 1;
	}
	for (size_t at = 0; !side && at < msg->bytes; at++)
		b->bytes[place_of(msg->gaps[0], at)] = value(msg, m->number, at);
}

/* What came, and that nothing else did. */
static void check(struct mix *m, const struct message *msg, const struct buffer *b)
{
	size_t at = 0, bytes = msg->bytes - (size_t)msg->cut;

	for (uint8_t *p = b->block; p < b->block + b->room; p++) {
		uint8_t should = 0xa5;

		if (at < bytes && p == b->bytes + place_of(msg->gaps[1], at))
			should = value(msg, m->number, at++);
		if (*p != should)
			case_fail("message %d of rank %d (%zu bytes, kinds %d and %d, gaps %d and "
				  "%d, mode %d): byte %zu of the buffer is %d, not %d",
				  msg->tag, msg->from, msg->bytes, msg->kind[0], msg->kind[1],
				  msg->gaps[0], msg->gaps[1], msg->mode, (size_t)(p - b->block), *p,
				  should);
	}
}

static void drop(struct mix *m, struct buffer *b)
{
	if (b->type != MPI_BYTE)
		MPI_Type_free(&b->type);
	memset(b->block, 0x5a, b->room);
	if (b->kind == STATIC_DATA)
		m->fixed = b->block;
	else if (b->kind == MAPPED)
		munmap(b->block, b->room);
	else
		free(b->block);
}

/* ---- a round -------------------------------------------------------------------------------- */

static struct message plan_message(struct mix *m, int mode, int tag)
{
	struct message msg = { .tag = tag, .mode = mode };

	msg.from = (int)pick(m, (uint64_t)ranks);
	msg.to = (int)pick(m, (uint64_t)ranks);
	msg.bytes = pick_bytes(m);
	msg.any = mode == POSTED ? (int)pick(m, 3) : 0;
	for (int side = 0; side < 2; side++) {
		msg.kind[side] = pick(m, 2) ? HEAP : (int)pick(m, KINDS);
		msg.offset[side] = pick(m, 2) ? 0 : (int)pick(m, 60);
		msg.gaps[side] = pick(m, 5) == 0;
	}
	if (msg.gaps[0] || msg.gaps[1])
		msg.bytes = msg.bytes / BLOCK * BLOCK;
	if (!msg.bytes)
		msg.gaps[0] = msg.gaps[1] = 0;
	msg.synchronous = pick(m, 4) == 0;
	if (mode == SHORT && msg.bytes > 2 * BLOCK && msg.from != msg.to) {
		msg.gaps[0] = msg.gaps[1] = 0;
		msg.cut = 1 + (int)pick(m, msg.bytes - 1);
	}
	return msg;
}

static int is_large(const struct message *msg)
{
	return msg->bytes >= LARGE && msg->from != msg->to && !msg->gaps[0] && !msg->gaps[1] &&
	       !msg->cut && msg->kind[0] == HEAP && msg->kind[1] == HEAP;
}

static void post_receive(struct mix *m, const struct message *msg, struct buffer *b,
			 MPI_Request *request)
{
	int from = msg->any == 1 ? MPI_ANY_SOURCE : msg->from;
	int tag = msg->any == 2 ? MPI_ANY_TAG : msg->tag;

	if (msg->mode == PERSISTENT) {
		MPI_Recv_init(b->bytes, b->count, b->type, from, tag, m->comm, request);
		MPI_Start(request);
	} else {
		MPI_Irecv(b->bytes, b->count, b->type, from, tag, m->comm, request);
	}
}

static void post_send(struct mix *m, const struct message *msg, struct buffer *b,
		      MPI_Request *request)
{
	if (msg->mode == PERSISTENT) {
		MPI_Send_init(b->bytes, b->count, b->type, msg->to, msg->tag, m->comm, request);
		MPI_Start(request);
	} else if (msg->synchronous) {
		MPI_Issend(b->bytes, b->count, b->type, msg->to, msg->tag, m->comm, request);
	} else {
		MPI_Isend(b->bytes, b->count, b->type, msg->to, msg->tag, m->comm, request);
	}
}

/* By a probe, of one kind or the other. */
static void receive_probed(struct mix *m, const struct message *msg, struct buffer *b)
{
	MPI_Message handle;
	MPI_Status status;
	int count, flag = 0;

	switch (msg->tag % 3) {
	case 0:
		MPI_Mprobe(MPI_ANY_SOURCE, msg->tag, m->comm, &handle, &status);
		MPI_Mrecv(b->bytes, b->count, b->type, &handle, MPI_STATUS_IGNORE);
		break;
	case 1:
		MPI_Probe(msg->from, msg->tag, m->comm, &status);
		MPI_Recv(b->bytes, b->count, b->type, msg->from, msg->tag, m->comm,
			 MPI_STATUS_IGNORE);
		break;
	default:
		while (!flag)
			MPI_Iprobe(msg->from, msg->tag, m->comm, &flag, &status);
		MPI_Recv(b->bytes, b->count, b->type, status.MPI_SOURCE, status.MPI_TAG, m->comm,
			 MPI_STATUS_IGNORE);
	}
	MPI_Get_count(&status, MPI_BYTE, &count);
	if (count != (int)msg->bytes)
		case_fail("a probe says %d bytes, not %zu", count, msg->bytes);
}

static void finish_receive(const struct message *msg, MPI_Request *request)
{
	MPI_Status status;
	int error = MPI_Wait(request, &status), class = MPI_SUCCESS, count = 0;

	if (error)
		MPI_Error_class(error, &class);
	if (class != (msg->cut ? MPI_ERR_TRUNCATE : MPI_SUCCESS))
		case_fail("a receive of %zu bytes, %d short, ended with error class %d", msg->bytes,
			  msg->cut, class);
	if (!msg->cut)
		MPI_Get_count(&status, MPI_BYTE, &count);
	if (!msg->cut && (count != (int)msg->bytes || status.MPI_SOURCE != msg->from ||
			  status.MPI_TAG != msg->tag))
		case_fail("%d bytes of rank %d with tag %d, not %zu of %d with %d", count,
			  status.MPI_SOURCE, status.MPI_TAG, msg->bytes, msg->from, msg->tag);
	if (*request != MPI_REQUEST_NULL)
		MPI_Request_free(request);
}

static void finish_send(MPI_Request *request)
{
	MPI_Wait(request, MPI_STATUS_IGNORE);
	if (*request != MPI_REQUEST_NULL)
		MPI_Request_free(request);
}

/* Receives that nobody sends to, and that are taken back. */
enum { UNSENT = 4, NEVER = 32000 };

struct unsent {
	int count;
	struct buffer buffer[UNSENT];
	MPI_Request request[UNSENT];
};

static void post_unsent(struct mix *m, struct unsent *unsent, int count)
{
	unsent->count = count;
	for (int i = 0; i < count; i++) {
		struct message msg = { .from = i % ranks,
				       .tag = NEVER + i,
				       .bytes = (size_t)LARGE << i,
				       .mode = i % 2 ? PERSISTENT : CANCELLED,
				       .any = i / 2 };

		get_memory(m, &unsent->buffer[i], HEAP, msg.bytes, 0);
		unsent->buffer[i].type = MPI_BYTE;
		unsent->buffer[i].count = (int)msg.bytes;
		post_receive(m, &msg, &unsent->buffer[i], &unsent->request[i]);
	}
}

static void take_back(struct mix *m, struct unsent *unsent)
{
	for (int i = 0; i < unsent->count; i++) {
		struct buffer *b = &unsent->buffer[i];
		MPI_Status status;
		int cancelled = 0;

		MPI_Cancel(&unsent->request[i]);
		MPI_Wait(&unsent->request[i], &status);
		MPI_Test_cancelled(&status, &cancelled);
		if (!cancelled)
			case_fail("a receive that nobody sent to was not cancelled");
		if (unsent->request[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&unsent->request[i]);
		for (size_t at = 0; at < b->room; at++)
			if (b->block[at] != 0xa5)
				case_fail("byte %zu of a cancelled receive was written", at);
		drop(m, b);
	}
	unsent->count = 0;
}

static void random_round(struct mix *m, int mode)
{
	struct unsent unsent = { 0 };
	int before = (int)pick(m, 2);
	int count = 1 + (int)pick(m, MOST);
	struct message all[MOST];
	struct buffer in[MOST], out[MOST];
	MPI_Request receive[MOST], send[MOST];

	for (int i = 0; i < count; i++)
		all[i] = plan_message(m, mode, m->tag + i);
	if (mode == CANCELLED)
		post_unsent(m, &unsent, 1 + (int)pick(m, UNSENT));
	for (int i = 0; i < count; i++) {
		if (all[i].to != rank)
			continue;
		make(m, &all[i], 1, &in[i]);
		if (mode != PROBED)
			post_receive(m, &all[i], &in[i], &receive[i]);
	}
	for (int i = 0; i < count; i++) {
		if (all[i].from != rank)
			continue;
		make(m, &all[i], 0, &out[i]);
		post_send(m, &all[i], &out[i], &send[i]);
	}
	if (before)
		take_back(m, &unsent);
	for (int i = 0; i < count; i++) {
		if (all[i].to != rank)
			continue;
		if (mode == PROBED)
			receive_probed(m, &all[i], &in[i]);
		else
			finish_receive(&all[i], &receive[i]);
	}
	for (int i = 0; i < count; i++) {
		if (all[i].from != rank)
			continue;
		finish_send(&send[i]);
		m->large += is_large(&all[i]);
		drop(m, &out[i]);
	}
	for (int i = 0; i < count; i++) {
		if (all[i].to != rank)
			continue;
		/* What comes of a message that is too long is not said. */
		if (!all[i].cut)
			check(m, &all[i], &in[i]);
		drop(m, &in[i]);
	}
	take_back(m, &unsent);
}

/* All at once to the next rank, by blocking calls and arrays on the stack. */
static void exchange_round(struct mix *m)
{
	size_t bytes = 1 + pick(m, 150 << 10);
	uint8_t out[bytes], in[bytes];
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	struct message mine = { .from = rank, .tag = m->tag },
		       theirs = { .from = before, .tag = m->tag };

	for (size_t at = 0; at < bytes; at++)
		out[at] = value(&mine, m->number, at);
	memset(in, 0, bytes);
	MPI_Sendrecv(out, (int)bytes, MPI_BYTE, next, m->tag, in, (int)bytes, MPI_BYTE, before,
		     m->tag, m->comm, MPI_STATUS_IGNORE);
	MPI_Sendrecv_replace(out, (int)bytes, MPI_BYTE, next, m->tag + 1, before, m->tag + 1,
			     m->comm, MPI_STATUS_IGNORE);
	for (size_t at = 0; at < bytes; at++)
		if (in[at] != value(&theirs, m->number, at) || out[at] != in[at])
			case_fail("byte %zu of an exchange of %zu is %d and %d", at, bytes, in[at],
				  out[at]);
}

static void *run(void *argument)
{
	struct mix *m = argument;

	for (long round = 0; round < m->rounds; round++) {
		m->tag = (int)round * MOST;
		enum mode mode = (enum mode)pick(m, MODES);

		if (mode == EXCHANGED)
			exchange_round(m);
		else
			random_round(m, mode);
	}
	return NULL;
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Everybody puts into the next rank's window, gets out of it what it has put, and adds that to it
 * so that nothing is left. */
static void windows(int created)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	uint8_t *memory = NULL, *out = malloc(WINDOW), *in = malloc(WINDOW);
	struct message mine = { .from = rank }, theirs = { .from = before };
	MPI_Win window;

	if (created) {
		memory = malloc(WINDOW);
		MPI_Win_create(memory, WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	} else {
		MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	}
	if (!memory || !out || !in)
		case_fail("no memory");
	for (int call = 0; call < 6; call++) {
		int bytes = WINDOW >> call;

		memset(memory, 0, WINDOW);
		memset(in, 0, WINDOW);
		for (int at = 0; at < bytes; at++)
			out[at] = value(&mine, call, (size_t)at);
		MPI_Win_fence(0, window);
		MPI_Put(out, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, window);
		MPI_Win_fence(0, window);
		MPI_Get(in, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, window);
		MPI_Win_fence(0, window);
		for (int at = 0; at < bytes; at++)
			if (memory[at] != value(&theirs, call, (size_t)at) || in[at] != out[at])
				case_fail("byte %d of a window of %d: put %d, got %d", at, bytes,
					  memory[at], in[at]);
		MPI_Win_fence(0, window);
		MPI_Accumulate(out, bytes, MPI_BYTE, next, 0, bytes, MPI_BYTE, MPI_BXOR, window);
		MPI_Win_fence(0, window);
		for (int at = 0; at < WINDOW; at++)
			if (memory[at])
				case_fail("byte %d of a window of %d: accumulated to %d", at, bytes,
					  memory[at]);
	}
	MPI_Win_free(&window);
	if (created)
		free(memory);
	free(out);
	free(in);
}

/* ---- the end of a rank ---------------------------------------------------------------------- */

/* 1 ends after some messages, while 0 receives; so do the MPIs, which end the job. */
static int die(void)
{
	enum { BYTES = 4 << 20 };
	uint8_t *memory = malloc(BYTES);
	MPI_Request request;

	if (!memory)
		case_fail("no memory");
	memset(memory, rank, BYTES);
	for (int i = 0; rank < 2; i++) {
		if (rank) {
			MPI_Isend(memory, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request);
			/* In the middle of the last one, or before. */
			if (i == 20)
				raise(SIGKILL);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(memory, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (memory[0] != 1 || memory[BYTES - 1] != 1)
				case_fail("other bytes came");
		}
	}
	MPI_Recv(memory, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 1;
}

/* ---- all of it ------------------------------------------------------------------------------ */

enum { THREADS_MOST = 8 };

static long run_mixes(uint64_t seed, long rounds, int threads)
{
	static uint8_t fixed[STATIC];
	struct mix mixes[THREADS_MOST];
	pthread_t ids[THREADS_MOST];
	long large = 0;

	for (int i = 0; i < threads; i++) {
		mixes[i] = (struct mix){ .number = i,
					 .seed = seed + (uint64_t)i * 977,
					 .fixed = i ? NULL : fixed,
					 .rounds = rounds };
		MPI_Comm_dup(MPI_COMM_WORLD, &mixes[i].comm);
		MPI_Comm_set_errhandler(mixes[i].comm, MPI_ERRORS_RETURN);
	}
	for (int i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, run, &mixes[i]))
			case_fail("no thread");
	run(&mixes[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < threads; i++) {
		large += mixes[i].large;
		MPI_Comm_free(&mixes[i].comm);
	}
	return large;
}

int main(int argc, char **argv)
{
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	long large, sum = 0;

	if (threads > 1)
		case_begin_threads(&argc, &argv, &rank, &ranks);
	else
		case_begin(&argc, &argv, &rank, &ranks);
	if (argc == 2 && !strcmp(argv[1], "die"))
		return die();
	if (argc < 3 || threads < 1 || threads > THREADS_MOST)
		case_fail("usage: messages SEED ROUNDS [THREADS], or messages die");
	/* MPICH asks this one's handler what to do in a wait. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	large = run_mixes(strtoull(argv[1], NULL, 10), atol(argv[2]), threads);
	windows(0);
	windows(1);
	MPI_Reduce(&large, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	return case_end("large %ld\n", sum);
}
