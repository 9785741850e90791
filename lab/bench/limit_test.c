// SPDX-License-Identifier: BSD-3-Clause
/* The bytes that a collective has to move: those of two ranks by hand, and laws for all. */
#include "limit.h"
#include "support/test.h"

static size_t share(enum oc_collective c, int rank, int ranks, int cpus, size_t bytes)
{
	struct collective_call call = { c, rank, ranks, 0, bytes, 0 };

	return limit_share(&call, cpus);
}

/* Each of two ranks moves so many quarters of the size. */
TEST(two_ranks_move_what_one_counts)
{
	static const struct {
		enum oc_collective collective;
		size_t quarters;
	} known[] = {
		{ OC_BCAST, 2 },     { OC_SCATTER, 4 },	       { OC_GATHERV, 4 },
		{ OC_ALLGATHER, 8 }, { OC_ALLTOALLV, 8 },      { OC_REDUCE, 3 },
		{ OC_ALLREDUCE, 5 }, { OC_REDUCE_SCATTER, 6 }, { OC_SCAN, 5 },
		{ OC_EXSCAN, 2 },    { OC_BARRIER, 0 },	       { OC_NEIGHBOR_ALLTOALLV, 8 },
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_int_equal(share(known[i].collective, 0, 2, 2, 4096),
				 known[i].quarters * 1024);
		assert_int_equal(share(known[i].collective, 1, 2, 2, 4096),
				 known[i].quarters * 1024);
	}
}

/* Ranks beyond the CPUs do not help; what all copy is the same, but for what is rounded up. */
TEST(fewer_cpus_move_the_same_bytes)
{
	int c, cpus, rank;

	for (c = 0; c < OC_COLLECTIVES; c++) {
		size_t alone = share((enum oc_collective)c, 0, 7, 1, 1000), sum;

		for (cpus = 1; cpus <= 9; cpus++) {
			for (sum = 0, rank = 0; rank < 7; rank++) {
				size_t bytes = share((enum oc_collective)c, rank, 7, cpus, 1000);

				assert_true(rank < cpus || bytes == 0);
				sum += bytes;
			}
			assert_in_range(sum, alone, alone + 6);
		}
	}
}

TEST(one_rank_copies_its_own_block)
{
	assert_int_equal(share(OC_BCAST, 0, 1, 4, 64), 0);
	assert_int_equal(share(OC_EXSCAN, 0, 1, 4, 64), 0);
	assert_int_equal(share(OC_ALLTOALL, 0, 1, 4, 64), 64);
	assert_int_equal(share(OC_ALLREDUCE, 0, 1, 4, 64), 64);
}
