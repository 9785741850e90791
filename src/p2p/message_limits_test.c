/* SPDX-License-Identifier: BSD-3-Clause */
/* The eager limit follows the model's terms; past the caches goes what is too much at once. */
#include <stdlib.h>

#include "api/engine.h"
#include "copy/memcpy.h"
#include "lab/mock/mock.h"
#include "p2p/p2p.h"
#include "support/fork_team.h"
#include "support/test.h"

static size_t limit_of(const struct oci_model *model)
{
	struct oci_model calibrated = *model;
	struct oci_p2p_limits limits;

	calibrated.calibrated = true;
	oci_p2p_limits(&calibrated, &limits);
	assert_true(OCI_P2P_EAGER_CHUNK_BYTES <= OCI_P2P_CHUNK_BYTES);
	return limits.near_eager_bytes;
}

TEST(the_eager_limit_rises_with_the_start_of_a_single_copy)
{
	struct oci_model model;
	size_t before, slower, faster;

	assert_int_equal(oci_model_profile("default", &model), 0);
	/* A ring so slow that the limit lies between the least and the most. */
	model.copy[OCI_MODEL_SHM].beta.value = 1.25 * model.copy[OCI_MODEL_CMA].beta.value;
	before = limit_of(&model);
	model.copy[OCI_MODEL_CMA].alpha.value *= 100;
	slower = limit_of(&model);
	model.copy[OCI_MODEL_CMA].alpha.value = 0;
	model.copy[OCI_MODEL_CMA].lock.value = 0;
	faster = limit_of(&model);
	oci_model_destroy(&model);
	assert_true(faster < before && before < slower);
}

TEST(every_profile_has_an_eager_limit)
{
	const char *name;

	for (unsigned int i = 0; (name = oci_model_profile_name(i)); i++) {
		struct oci_model model;

		assert_int_equal(oci_model_profile(name, &model), 0);
		assert_in_range(limit_of(&model), 1024, 16384);
		oci_model_destroy(&model);
	}
}

enum { MOST_MESSAGES = 8 };

/* So many messages at once from rank 0 to rank 1: is any of them to go past the caches? */
static bool stream(unsigned int messages, size_t bytes, bool to_one_place)
{
	struct oc_request *requests[2 * MOST_MESSAGES];
	uint8_t *from = calloc(1, bytes), *to = calloc(messages, bytes);
	struct oc_team *teams[2];
	const uint64_t *told;
	bool streams = false;

	assert_true(from && to);
	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(2, teams), 0);
	told = &teams[1]->team.own->progress.p2p_streams;
	for (unsigned int i = 0; i < messages; i++) {
		uint8_t *place = to + (to_one_place ? 0 : i * bytes);

		assert_int_equal(oc_isend(teams[0], 1, 0, from, bytes, &requests[2 * i]), 0);
		assert_int_equal(oc_irecv(teams[1], 0, 0, place, bytes, NULL, &requests[2 * i + 1]),
				 0);
	}
	for (unsigned int i = 0; i < 2 * messages; i++) {
		int result;

		while (!(result = oc_peek(requests[i]))) {
			oc_progress();
			streams |= oci_load_relaxed(told) != 0;
		}
		assert_int_equal(result, 1);
	}
	/* The next ones begin anew. */
	assert_int_equal(oci_load_relaxed(told), 0);
	assert_int_equal(oct_local_end(2, teams), 0);
	oci_mock = (struct oci_mock){ 0 };
	free(from);
	free(to);
	return streams;
}

/* A message of `bytes` from each of ranks 0 and 1 to rank 2, at once. What rank 2 tells of them. */
static uint64_t told_of_two(size_t bytes, const uint32_t cache[3])
{
	uint8_t *memory = calloc(4, bytes);
	struct oc_request *requests[4];
	struct oc_team *teams[3];
	const uint64_t *word;
	uint64_t told = 0;

	assert_non_null(memory);
	oci_mock = (struct oci_mock){ .enabled = true };
	assert_int_equal(oct_local_teams(3, teams), 0);
	for (unsigned int i = 0; i < 9; i++) {
		struct oci_member *member = &teams[i / 3]->team.member[i % 3];

		teams[i / 3]->team.common = OCI_TOPO_MACHINE;
		member->is_told = true;
		member->place = (struct oci_topo_place){ i % 3, i % 3, cache[i % 3], 0, 0, 1 };
	}
	oci_mock.least_by_cpu = oci_mock.most_by_cpu = 0;
	word = &teams[2]->team.own->progress.p2p_streams;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(oc_isend(teams[i], 2, 0, memory + i * bytes, bytes, &requests[i]),
				 0);
		assert_int_equal(oc_irecv(teams[2], i, 0, memory + (2 + i) * bytes, bytes, NULL,
					  &requests[2 + i]),
				 0);
	}
	for (unsigned int i = 0; i < 4; i++)
		while (!oc_peek(requests[i])) {
			oc_progress();
			told |= oci_load_relaxed(word);
		}
	assert_int_equal(oci_load_relaxed(word), 0);
	assert_int_equal(oct_local_end(3, teams), 0);
	oci_mock.enabled = false;
	free(memory);
	return told;
}

TEST(messages_of_ranks_that_share_a_cache_are_the_cpus_for_longer)
{
	static const uint32_t first[] = { 7, 1, 7 }, none[] = { 0, 1, 2 }, all[] = { 3, 3, 3 };
	size_t bytes = oci_memcpy_dma_min_here() / 3 * 2;

	if (bytes > (size_t)64 << 20)
		oct_skip("no cache is known, or one for which this took too much memory");
	assert_int_equal(told_of_two(bytes, first), OCI_STREAMS_ALL);
	/* That of rank 0 by itself, and that of rank 1 beside it. */
	assert_int_equal(oci_mock.least_by_cpu, bytes);
	assert_true(oci_mock.most_by_cpu >= 2 * bytes);
	assert_int_equal(told_of_two(bytes, none), OCI_STREAMS_ALL);
	assert_true(oci_mock.least_by_cpu >= 2 * bytes);
	assert_int_equal(told_of_two(bytes, all), OCI_STREAMS_ALL | OCI_STREAMS_NEAR);
	assert_true(oci_mock.least_by_cpu >= 2 * bytes);
	oci_mock = (struct oci_mock){ 0 };
}

TEST(messages_at_once_count_together)
{
	size_t least = oci_memcpy_dma_min_here();

	if (least > (size_t)64 << 20)
		oct_skip("no cache is known, or one for which this took too much memory");
	assert_false(stream(1, least, false));
	assert_true(stream(1, least + 1, false));
	/* Paper 001: of 7 messages each may have a seventh. */
	assert_false(stream(7, least / 7, false));
	assert_true(stream(7, least / 7 + 1, false));
	assert_false(stream(7, least / 7 + 1, true));
}
