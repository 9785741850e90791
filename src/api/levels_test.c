/* SPDX-License-Identifier: BSD-3-Clause */
#include "onecopy/onecopy.h"
#include "support/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one process says with `name` set to `value`: options are read once. */
static uint64_t levels_with(const char *name, const char *value)
{
	uint64_t levels = 0;
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		if (name)
			setenv(name, value, 1);
		levels = oc_levels();
		_exit(write(ends[1], &levels, sizeof(levels)) != sizeof(levels));
	}
	assert_int_equal(read(ends[0], &levels, sizeof(levels)), sizeof(levels));
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ends[0]);
	close(ends[1]);
	return levels;
}

TEST(ranks_that_decide_alike_may_work_in_two_levels)
{
	uint64_t usual = levels_with(NULL, NULL);

	assert_true(usual != 0);
	assert_true(levels_with("ONECOPY_LEVELS", "auto") == usual);
	assert_true(levels_with("ONECOPY_LOG", "error") == usual);
	assert_true(levels_with("ONECOPY_BCAST", "direct-read") == usual);
	assert_true(levels_with("ONECOPY_LEVELS", "on") != usual);
	assert_true(levels_with("ONECOPY_LEVELS", "shares") != levels_with("ONECOPY_LEVELS", "on"));
	assert_true(levels_with("ONECOPY_BCAST", "mpi") != usual);
	assert_true(levels_with("ONECOPY_LEVELS", "off") == 0);
}

TEST(what_gains_nothing_on_several_nodes_is_the_mpis)
{
	assert_null(oc_levels_refusal(OC_BCAST, 8, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_BARRIER, 0, OC_LEVELS_BLOCKING));
	assert_non_null(oc_levels_refusal(OC_SCATTER, 4096, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_GATHER, 4096, OC_LEVELS_BLOCKING));
	assert_non_null(oc_levels_refusal(OC_GATHER, 1 << 20, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_ALLTOALL, 8, OC_LEVELS_BLOCKING));
	assert_non_null(oc_levels_refusal(OC_ALLTOALL, 1 << 20, OC_LEVELS_BLOCKING));
	assert_non_null(oc_levels_refusal(OC_SCAN, 8, OC_LEVELS_BLOCKING));
	assert_non_null(oc_levels_refusal(OC_EXSCAN, 8, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_REDUCE_SCATTER, 1 << 20, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_ALLREDUCE, 1 << 18, OC_LEVELS_OPENMPI));
	assert_non_null(oc_levels_refusal(OC_ALLREDUCE, 1 << 20, OC_LEVELS_OPENMPI));
	assert_null(oc_levels_refusal(OC_ALLREDUCE, 1 << 20, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_REDUCE, 4096, OC_LEVELS_OPENMPI));
	assert_non_null(oc_levels_refusal(OC_REDUCE, 1 << 20, OC_LEVELS_OPENMPI));
	assert_null(oc_levels_refusal(OC_REDUCE, 1 << 20, OC_LEVELS_BLOCKING));
	assert_null(oc_levels_refusal(OC_REDUCE, 1 << 20, OC_LEVELS_MPICH));
	assert_non_null(oc_levels_refusal(OC_ALLREDUCE, 1 << 18, OC_LEVELS_MPICH));
	assert_non_null(oc_levels_refusal(OC_BCAST, 8, OC_LEVELS_MPICH));
	assert_null(oc_levels_refusal(OC_BCAST, 1 << 16, OC_LEVELS_MPICH));
	/* Of these no size is known. */
	assert_non_null(oc_levels_refusal(OC_GATHERV, 0, OC_LEVELS_OPENMPI));
	assert_null(oc_levels_refusal(OC_GATHERV, 0, OC_LEVELS_BLOCKING));
	assert_int_equal(oc_levels_together(OC_SCATTERV, 64, 0), 0);
	assert_int_equal(oc_levels_together(OC_GATHERV, 8, 0), 0);
	assert_true(oc_levels_together(OC_GATHERV, 64, 0) > 0);
	assert_int_equal(oc_levels_together(OC_GATHER, 4, 4096), 4096);
	assert_int_equal(oc_levels_together(OC_GATHER, 4, 16384), 0);
	assert_int_equal(oc_levels_together(OC_GATHER, 4, 32768), 32768);
	assert_int_equal(oc_levels_together(OC_GATHER, 64, 16384), 16384);
	assert_int_equal(oc_levels_together(OC_ALLTOALL, 4, 1024), 1024);
	assert_int_equal(oc_levels_together(OC_ALLTOALL, 4, 2048), 0);
}

TEST(shares_are_of_fewer_bytes_where_more_ranks_wait_for_a_leader)
{
	assert_true(oc_levels_shared(OC_ALLREDUCE, 2, 0) > oc_levels_shared(OC_ALLREDUCE, 4, 0));
	assert_true(oc_levels_shared(OC_ALLREDUCE, 1000000, 0) ==
		    oc_levels_shared(OC_REDUCE, 1000, 0));
	assert_true(oc_levels_shared(OC_ALLREDUCE, 1000000, 0) > 0);
	assert_true(oc_levels_shared(OC_BCAST, 2, 0) == oc_levels_shared(OC_BCAST, 128, 0));
	assert_true(oc_levels_shared(OC_ALLGATHER, 8, 0) == SIZE_MAX);
	assert_true(oc_levels_shared(OC_ALLREDUCE, 64, 1) == SIZE_MAX);
	assert_true(oc_levels_shared(OC_ALLGATHERV, 64, 0) < SIZE_MAX);
}
