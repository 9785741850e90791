// SPDX-License-Identifier: BSD-3-Clause
/*
 * The check of delivered bytes, checked itself: a right delivery passes, and every kind of wrong
 * one is found. A small model delivers; no MPI is needed.
 */
#include "collective.h"
#include "support/test.h"

#include <errno.h>
#include <string.h>

enum { RANKS = 3, ROOT = 1, MAX_BYTES = 64 };

/* All but the barrier, which delivers nothing. */
#define FOR_EACH_COLLECTIVE(c)               \
	for (c = 0; c < OC_COLLECTIVES; c++) \
		if (c != OC_BARRIER)

static int is(enum oc_collective c, enum oc_collective one, enum oc_collective other)
{
	return c == one || c == other;
}

static struct collective_call call_of(enum oc_collective c, int rank, size_t bytes, uint64_t seed)
{
	return (struct collective_call){ c, rank, RANKS, ROOT, bytes, seed };
}

/* What a right MPI puts into @rank's receive buffer. */
static void deliver(enum oc_collective c, int rank, size_t bytes, uint64_t seed, char *recv)
{
	struct collective_call me = call_of(c, rank, bytes, seed);
	int from, blocks = (int)(collective_recv_bytes(&me) / bytes);

	memset(recv, 0, MAX_BYTES * RANKS);
	for (from = 0; from < RANKS; from++) {
		struct collective_call sender = call_of(c, from, bytes, seed);
		_Alignas(8) char send[MAX_BYTES * RANKS];
		size_t at = 0, i;

		collective_fill(&sender, send);
		if ((c == OC_SCAN && from > rank) || (c == OC_EXSCAN && from >= rank))
			continue;
		if (is(c, OC_REDUCE_SCATTER, OC_REDUCE_SCATTER_BLOCK))
			at = (size_t)rank * bytes;
		if (oci_is_reduction(c)) {
			for (i = 0; i < collective_recv_bytes(&me) / sizeof(float); i++)
				((float *)recv)[i] += ((float *)(send + at))[i];
			continue;
		}
		if (is(c, OC_SCATTER, OC_SCATTERV) || is(c, OC_ALLTOALL, OC_ALLTOALLV) ||
		    c == OC_NEIGHBOR_ALLTOALLV)
			at = (size_t)rank * bytes;
		if (blocks == RANKS)
			memcpy(recv + (size_t)from * bytes, send + at, bytes);
		else if (blocks == 1 && from == ROOT)
			memcpy(recv, send + at, bytes);
	}
}

TEST(right_bytes_pass_for_every_collective_and_rank)
{
	static const size_t sizes[] = { 4, 8, 12, 60, 64 };
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_error error;
	size_t i;
	int c, rank;

	FOR_EACH_COLLECTIVE(c)
	{
		for (rank = 0; rank < RANKS; rank++) {
			for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				struct collective_call me =
					call_of((enum oc_collective)c, rank, sizes[i], 7);

				deliver((enum oc_collective)c, rank, sizes[i], 7, recv);
				assert_int_equal(collective_verify(&me, recv, &error), 0);
			}
		}
	}
}

TEST(every_single_wrong_byte_is_found_and_located)
{
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_error error;
	size_t at;
	int c, rank;

	FOR_EACH_COLLECTIVE(c)
	{
		for (rank = 0; rank < RANKS; rank++) {
			struct collective_call me = call_of((enum oc_collective)c, rank, 20, 7);

			deliver((enum oc_collective)c, rank, 20, 7, recv);
			for (at = 0; at < collective_recv_bytes(&me); at++) {
				recv[at] ^= 0x40;
				assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
				assert_int_equal(error.offset, at);
				assert_int_equal(error.expected ^ error.found, 0x40);
				recv[at] ^= 0x40;
			}
		}
	}
}

TEST(bytes_of_the_call_before_are_wrong)
{
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_error error;
	int c;

	FOR_EACH_COLLECTIVE(c)
	{
		/* Rank 2 gets nothing in gather and reduce; their root does. */
		int rank = is(c, OC_GATHER, OC_GATHERV) || c == OC_REDUCE ? ROOT : 2;
		struct collective_call me = call_of((enum oc_collective)c, rank, 32, 8);

		deliver((enum oc_collective)c, rank, 32, 7, recv);
		assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
	}
}

TEST(blocks_in_another_order_are_wrong)
{
	static const enum oc_collective with_blocks[] = { OC_GATHER,  OC_ALLGATHER,  OC_ALLTOALL,
							  OC_GATHERV, OC_ALLGATHERV, OC_ALLTOALLV };
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_error error;
	char block[16];
	size_t i;

	for (i = 0; i < sizeof(with_blocks) / sizeof(with_blocks[0]); i++) {
		struct collective_call me = call_of(with_blocks[i], ROOT, 16, 7);

		deliver(with_blocks[i], ROOT, 16, 7, recv);
		memcpy(block, recv + 16, 16);
		memcpy(recv + 16, recv + 32, 16);
		memcpy(recv + 32, block, 16);
		assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
		assert_int_equal(error.offset, 16);
	}
}

TEST(a_block_of_another_rank_is_wrong)
{
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_call me = call_of(OC_SCATTER, 2, 16, 7);
	struct collective_error error;

	deliver(OC_SCATTER, 0, 16, 7, recv);
	assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
	deliver(OC_ALLTOALL, 0, 16, 7, recv);
	me.collective = OC_ALLTOALL;
	assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
}

TEST(ranks_without_a_receive_buffer_pass)
{
	struct collective_error error;
	struct collective_call gather = call_of(OC_GATHER, 0, 16, 7);
	struct collective_call reduce = call_of(OC_REDUCE, 0, 16, 7);
	struct collective_call exscan = call_of(OC_EXSCAN, 0, 16, 7);
	struct collective_call bcast = call_of(OC_BCAST, ROOT, 16, 7);

	assert_int_equal(collective_verify(&gather, NULL, &error), 0);
	assert_int_equal(collective_verify(&reduce, NULL, &error), 0);
	assert_int_equal(collective_verify(&bcast, NULL, &error), 0);
	assert_int_equal(collective_verify(&exscan, NULL, &error), 0);
}

TEST(what_is_named_twice_is_measured_once)
{
	struct collective_list list;

	take_collectives(&list, "gather,bcast,gather");
	assert_int_equal(list.n, 2);
	assert_int_equal(list.at[0], OC_GATHER);
}

TEST(what_is_measured_by_default_ends_with_the_barrier)
{
	struct collective_list list;

	collective_list_default(&list);
	assert_int_equal(list.n, 8);
	assert_int_equal(list.at[0], OC_BCAST);
	assert_int_equal(list.at[7], OC_BARRIER);
}

/* A sum over the wrong ranks, or of the wrong block, has wrong bytes. */
TEST(sums_over_other_ranks_or_blocks_are_wrong)
{
	_Alignas(8) char recv[MAX_BYTES * RANKS];
	struct collective_call me = call_of(OC_SCAN, 2, 16, 7);
	struct collective_error error;

	deliver(OC_SCAN, 1, 16, 7, recv);
	assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
	me.collective = OC_EXSCAN;
	deliver(OC_SCAN, 2, 16, 7, recv);
	assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
	me.collective = OC_REDUCE_SCATTER;
	deliver(OC_REDUCE_SCATTER, 1, 16, 7, recv);
	assert_int_equal(collective_verify(&me, recv, &error), -EBADMSG);
}
