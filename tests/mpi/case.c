/* SPDX-License-Identifier: BSD-3-Clause */
#include "case.h"

#include "checked.h"
#include "data.h"
#include "form.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64 };
#define GUARD_BYTE 0xa5
#define STALE_BYTE 0x5a /* what a receive buffer holds before the call */

#define NAME(X, ID, name, ...) #name,
const char *const case_names[CASE_FUNCTIONS] = { OC_FUNCTION_ROWS(NAME, ) };

static int world_rank, world_size;
/* Calls of this rank that onecopy must serve, and then those that it can serve. */
static unsigned long served[2 * CASE_FUNCTIONS];
static int counting = 1;
static uint64_t checksum;

/* A buffer of one call between its guards. */
struct zone {
	char *arena;
	size_t room, bytes;
	char *at;
};
static struct zone send_zone, recv_zone;

void case_fail(const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "WRONG: rank %d of %d: %s\n", world_rank, world_size, text);
	fflush(stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

double case_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void case_info_key(char *key, size_t bytes, enum case_collective collective)
{
	static const char *const keys[OC_COLLECTIVES] = OCI_INFO_KEYS;

	snprintf(key, bytes, "%s", keys[case_of(collective)]);
}

enum case_collective case_parse(const char *name, size_t length)
{
	for (int i = 0; i < CASE_FUNCTIONS; i++)
		if (strlen(case_names[i]) == length && !memcmp(case_names[i], name, length))
			return (enum case_collective)i;
	case_fail("no collective is called %.*s", (int)length, name);
}

static void tell_ranks(int *rank, int *ranks)
{
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &world_size);
	if (rank)
		*rank = world_rank;
	if (ranks)
		*ranks = world_size;
}

void case_begin_threads(int *argc, char ***argv, int *provided, int *rank, int *ranks)
{
	MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
	tell_ranks(rank, ranks);
}

void case_begin(int *argc, char ***argv, int *rank, int *ranks)
{
	MPI_Init(argc, argv);
	tell_ranks(rank, ranks);
}

int case_end(const char *format, ...)
{
	va_list arguments;

	case_report();
	va_start(arguments, format);
	if (!world_rank)
		vprintf(format, arguments);
	va_end(arguments);
	MPI_Finalize();
	return 0;
}

int case_has_in_place(enum case_collective collective)
{
	return oci_has_in_place(case_of(collective));
}

int case_has_root(enum case_collective collective)
{
	return oci_is_rooted(case_of(collective));
}

static int has_blocks(enum case_collective collective)
{
	return oci_sends_each(case_of(collective)) || oci_receives_each(case_of(collective));
}

size_t case_buffer_bytes(const struct case_call *call, int ranks)
{
	return call->bytes * (has_blocks(call->collective) ? (size_t)ranks : 1);
}

/* `shift` moves the start about, in multiples of the largest element. */
static char *zone_open(struct zone *zone, size_t bytes, size_t shift)
{
	size_t room = bytes + shift + 2 * GUARD;

	if (room > zone->room) {
		free(zone->arena);
		zone->room = room + 4096;
		zone->arena = aligned_alloc(64, (zone->room + 63) / 64 * 64);
		if (!zone->arena)
			case_fail("no memory for a buffer of %zu bytes", bytes);
	}
	zone->bytes = bytes;
	zone->at = zone->arena + GUARD + shift;
	memset(zone->at - GUARD, GUARD_BYTE, GUARD);
	memset(zone->at, STALE_BYTE, bytes);
	memset(zone->at + bytes, GUARD_BYTE, GUARD);
	return zone->at;
}

static const char *describe(const struct case_call *call, MPI_Comm comm)
{
	static char text[256];
	int ranks;

	MPI_Comm_size(comm, &ranks);
	snprintf(text, sizeof(text), "%s of %zu bytes, root %d of %d ranks, %s, kind %d",
		 case_names[call->collective], call->bytes, call->root, ranks,
		 call->in_place ? "in place" : "two buffers", call->kind);
	return text;
}

static void zone_check(const struct zone *zone, const char *what, const struct case_call *call,
		       MPI_Comm comm)
{
	for (size_t i = 0; i < GUARD; i++) {
		if ((unsigned char)zone->at[-(ptrdiff_t)i - 1] != GUARD_BYTE)
			case_fail("%s: byte %zu in front of the %s buffer was overwritten",
				  describe(call, comm), i + 1, what);
		if ((unsigned char)zone->at[zone->bytes + i] != GUARD_BYTE)
			case_fail("%s: byte %zu behind the %s buffer was overwritten",
				  describe(call, comm), i, what);
	}
}

/* What a call is made of, worked out once for the functions below. */
struct setting {
	const struct case_call *call;
	MPI_Comm comm;
	int rank, ranks;
	uint64_t id;
	int is_root;
	MPI_Datatype type;
	int count;
	MPI_Op op;
	int operand;
	const void *send; /* as passed to MPI */
	void *recv;
};

static void check_block(const struct setting *s, const char *block, uint64_t seed, const char *what)
{
	ptrdiff_t wrong = data_check(block, s->call->bytes, seed);

	if (wrong >= 0)
		case_fail("%s: byte %td of %s is 0x%02x", describe(s->call, s->comm), wrong, what,
			  (unsigned char)block[wrong]);
}

/* Rank `source` sends `block` of its send buffer to us: the one rule behind all data movers. */
static void check_received(const struct setting *s)
{
	size_t bytes = s->call->bytes;
	char what[64];

	switch (s->call->collective) {
	case CASE_BCAST:
		check_block(s, recv_zone.at, data_seed(s->id, s->call->root, 0), "the message");
		return;
	case CASE_SCATTER:
		check_block(s,
			    s->is_root && s->call->in_place ?
				    send_zone.at + bytes * (size_t)s->rank :
				    recv_zone.at,
			    data_seed(s->id, s->call->root, s->rank), "the block");
		return;
	case CASE_GATHER:
		if (!s->is_root)
			return;
		break;
	default:
		break;
	}
	for (int i = 0; i < s->ranks; i++) {
		int block = s->call->collective == CASE_ALLTOALL ? s->rank : 0;

		snprintf(what, sizeof(what), "the block of rank %d", i);
		check_block(s, recv_zone.at + bytes * (size_t)i, data_seed(s->id, i, block), what);
	}
}

static void check_unchanged(const struct setting *s)
{
	size_t blocks = 0;

	if (s->send == MPI_IN_PLACE || !s->send)
		return;
	if (s->call->collective == CASE_ALLTOALL || s->call->collective == CASE_SCATTER)
		blocks = (size_t)s->ranks;
	else if (s->call->collective != CASE_BCAST)
		blocks = 1;
	for (size_t i = 0; i < blocks; i++)
		check_block(s, send_zone.at + i * s->call->bytes, data_seed(s->id, s->rank, (int)i),
			    "the send buffer, after the call,");
}

static void fill_blocks(char *at, const struct setting *s, int blocks)
{
	for (int i = 0; i < blocks; i++)
		data_fill(at + s->call->bytes * (size_t)i, s->call->bytes,
			  data_seed(s->id, s->rank, i));
}

/* Buffers of Bcast, Scatter, Gather, Allgather and Alltoall. */
static void prepare_movement(struct setting *s, size_t shift)
{
	static const size_t element[] = { 1, 4, 8 };
	const struct case_call *call = s->call;
	int kind = call->kind % 3;
	int moves_blocks = call->collective != CASE_BCAST;
	int sends_all = call->collective == CASE_SCATTER || call->collective == CASE_ALLTOALL;
	int takes_all = moves_blocks && call->collective != CASE_SCATTER;
	size_t total = call->bytes * (size_t)s->ranks;
	size_t own = call->bytes * (size_t)s->rank;
	char *send, *recv;

	if (call->bytes % element[kind])
		kind = 0;
	s->type = kind == 0 ? MPI_BYTE : kind == 1 ? MPI_INT : MPI_DOUBLE;
	s->count = (int)(call->bytes / element[kind]);
	send = zone_open(&send_zone, sends_all ? total : moves_blocks ? call->bytes : 0, shift);
	recv = zone_open(&recv_zone, takes_all ? total : call->bytes, 8 + shift);
	s->send = send;
	s->recv = recv;
	switch (call->collective) {
	case CASE_BCAST:
		if (s->is_root)
			data_fill(recv, call->bytes, data_seed(s->id, s->rank, 0));
		return;
	case CASE_SCATTER:
		fill_blocks(send, s, s->is_root ? s->ranks : 0);
		if (!s->is_root)
			s->send = NULL;
		else if (call->in_place)
			s->recv = MPI_IN_PLACE;
		return;
	case CASE_ALLTOALL:
		fill_blocks(call->in_place ? recv : send, s, s->ranks);
		break;
	default:
		if (call->in_place && (s->is_root || call->collective == CASE_ALLGATHER))
			fill_blocks(recv + own, s, 1);
		fill_blocks(send, s, 1);
	}
	if (call->in_place && (s->is_root || call->collective != CASE_GATHER))
		s->send = MPI_IN_PLACE;
}

/* MPICH 4.0.2 by itself reads MPI_IN_PLACE as an address there (stock_faults.c shows it). */
static int in_place_works(const struct setting *s)
{
#ifdef MPICH_VERSION
	if (s->call->collective == CASE_REDUCE && s->call->root && getenv("OC_TEST_STOCK"))
		return 0;
#endif
	return s->call->in_place;
}

static void prepare_reduction(struct setting *s, size_t shift)
{
	const struct case_call *call = s->call;
	const struct data_operand *operand;
	size_t count;

	s->operand = call->kind % DATA_OPERANDS;
	operand = data_operand(s->operand);
	count = call->bytes / operand->bytes;
	if (call->bytes && !count)
		count = 1;
	s->type = operand->type;
	s->op = operand->op;
	s->count = (int)count;
	s->send = zone_open(&send_zone, count * operand->bytes, shift);
	s->recv = zone_open(&recv_zone, count * operand->bytes, 8 + shift);
	data_fill_operand(send_zone.at, count, s->operand, s->id, s->rank);
	if (in_place_works(s) && (s->is_root || call->collective == CASE_ALLREDUCE)) {
		memcpy(recv_zone.at, send_zone.at, count * operand->bytes);
		s->send = MPI_IN_PLACE;
	}
}

static void check_reduction(const struct setting *s)
{
	const struct data_operand *operand = data_operand(s->operand);
	ptrdiff_t wrong;

	if (s->is_root || s->call->collective == CASE_ALLREDUCE) {
		wrong = data_check_result(recv_zone.at, (size_t)s->count, s->operand, s->id,
					  s->ranks);
		if (wrong >= 0)
			case_fail("%s (%s): element %td of the result is wrong",
				  describe(s->call, s->comm), operand->name, wrong);
	}
	/* An operation applied to our send buffer instead of a copy of it. */
	zone_open(&recv_zone, (size_t)s->count * operand->bytes, 8);
	data_fill_operand(recv_zone.at, (size_t)s->count, s->operand, s->id, s->rank);
	if (memcmp(recv_zone.at, send_zone.at, (size_t)s->count * operand->bytes))
		case_fail("%s (%s): the send buffer was changed", describe(s->call, s->comm),
			  operand->name);
}

static int invoke(const struct setting *s)
{
	return form_call(&(struct arguments){
		.collective = s->call->collective,
		.send = s->send,
		.recv = s->recv,
		.send_count = s->count,
		.recv_count = s->count,
		.send_type = s->type,
		.recv_type = s->type,
		.op = s->op,
		.root = s->call->root,
		.comm = s->comm,
	});
}

void case_count(enum case_collective collective, int must)
{
	/* Threads count, too. */
	if (counting)
		__atomic_fetch_add(&served[collective + (must ? 0 : CASE_FUNCTIONS)], 1,
				   __ATOMIC_RELAXED);
}

void case_add_checksum(const void *bytes, size_t length)
{
	if (counting)
		checksum = data_hash(checksum, bytes, length);
}

/* Those that came after the eight: blocks of ints, of layouts that differ by kind. */
static int run_checked(MPI_Comm comm, const struct case_call *call)
{
	enum { ELEMENT = LAYOUT_INTS * 4 };
	struct checked_spec spec = {
		.collective = call->collective,
		.elements =
			(int)((call->bytes + (call->bytes < ELEMENT ? ELEMENT - 1 : 0)) / ELEMENT),
		.root = call->root,
		.in_place = call->in_place,
		.layout = call->kind % 3 ? call->kind : 0,
		.differ = call->kind % 2,
		.maps = call->kind % 2,
		.shape = (unsigned int)call->salt,
		.salt = call->salt,
	};
	struct checked checked;
	int err;

	checked_open(&checked, comm, &spec);
	err = checked_call(&checked);
	if (err == MPI_SUCCESS)
		checked_verify(&checked);
	checked_close(&checked);
	return err;
}

int case_run(MPI_Comm comm, const struct case_call *call)
{
	static size_t calls;
	int is_reduction = call->collective >= CASE_REDUCE;
	struct setting s = { .call = call, .comm = comm };
	size_t shift = (calls++ % 5) * 8;
	int err;

	if (call->collective >= CASE_SCATTERV)
		return run_checked(comm, call);
	s.id = call->salt * CASE_COLLECTIVES + (uint64_t)call->collective;
	MPI_Comm_rank(comm, &s.rank);
	MPI_Comm_size(comm, &s.ranks);
	s.is_root = case_has_root(call->collective) && s.rank == call->root;
	if (is_reduction)
		prepare_reduction(&s, shift);
	else
		prepare_movement(&s, shift);
	/* Open MPI itself returns at once for no data and for one rank alone. */
	case_count(call->collective, s.ranks > 1 && (s.count || call->collective == CASE_BARRIER));
	err = invoke(&s);
	if (err != MPI_SUCCESS || call->collective == CASE_BARRIER)
		return err;
	zone_check(&send_zone, "send", call, comm);
	zone_check(&recv_zone, "receive", call, comm);
	checksum = data_hash(checksum, recv_zone.at, recv_zone.bytes);
	if (is_reduction) {
		check_reduction(&s);
	} else {
		check_received(&s);
		check_unchanged(&s);
	}
	return err;
}

void case_stop_counting(void)
{
	counting = 0;
}

void case_start_counting(void)
{
	counting = 1;
	memset(served, 0, sizeof(served));
}

/* Of all functions that are one collective to onecopy. */
static unsigned long add_functions(const unsigned long *of, enum oc_collective collective)
{
	unsigned long sum = 0;

	for (int f = 0; f < CASE_FUNCTIONS; f++)
		sum += case_of((enum case_collective)f) == collective ? of[f] : 0;
	return sum;
}

unsigned long case_counted(enum case_collective collective, int must)
{
	return add_functions(served + (must ? 0 : CASE_FUNCTIONS), case_of(collective));
}

void case_report(void)
{
	enum { COUNTS = 2 * CASE_FUNCTIONS };
	unsigned long sum[COUNTS + 1], other[COUNTS + 1];

	memcpy(sum, served, sizeof(served));
	sum[COUNTS] = checksum;
	if (world_rank) {
		MPI_Send(sum, COUNTS + 1, MPI_UNSIGNED_LONG, 0, 77, MPI_COMM_WORLD);
		return;
	}
	for (int r = 1; r < world_size; r++) {
		MPI_Recv(other, COUNTS + 1, MPI_UNSIGNED_LONG, r, 77, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		for (int i = 0; i < COUNTS; i++)
			sum[i] += other[i];
		sum[COUNTS] = data_hash(sum[COUNTS], &other[COUNTS], sizeof(other[0]));
	}
	for (int i = 0; i < 2; i++)
		for (int c = 0; c < OC_COLLECTIVES; c++)
			printf("%s %s %lu\n", i ? "besides" : "expect",
			       oci_collective_name((enum oc_collective)c),
			       add_functions(sum + (size_t)i * CASE_FUNCTIONS,
					     (enum oc_collective)c));
	printf("checksum %lx\n", sum[COUNTS]);
	fflush(stdout);
}
