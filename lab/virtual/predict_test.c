/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three accounts of one call held together: the formulas of paper 002 written out here, the plans
 * in virtual time, and the algorithms' own closed forms.
 *
 * Where the paper counts p readers or writers of one process there are p - 1: the root's own block
 * is not copied by them. Its formulas are written here with p - 1.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "coll/cost.h"
#include "lab/virtual/predict.h"
#include "model/terms_test.h"
#include "support/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* All terms given, none negligible, as of a machine with two packages of 32 cores. Dictated. */
static int every_term(void **state)
{
	table_iv(state);
	give("cma.push_alpha", 1.1e-6);
	give("cma.push_beta", 1 / 4.5e9);
	give("flag.cache", 0.2e-6);
	give("flag.package", 0.4e-6);
	give("flag.machine", 0.6e-6);
	give("flag.more", 0.03e-6);
	give("call", 0.1e-6);
	give("op", 0.02e-6);
	give("memcpy.cache", 1 / 10e9);
	give("memcpy.memory", 1 / 5e9);
	give("memcpy.slot", 1 / 3e9);
	give("map.beta", 1 / 7e9);
	give("cache.bytes", 1 << 20);
	give("cache.shared", 16 << 20);
	give("reduce", 1 / 6e9);
	give("machine.packages", 2);
	give("machine.package_cores", 32);
	give("machine.cache_cores", 4);
	give("machine.domain_cores", 32);
	give("cma.beta_across", 1.4);
	give("cma.gamma_across", 1.3);
	give("domain", 1 / 80e9);
	give("domain.cache", 1 / 90e9);
	return 0;
}

/* The paper's alpha + n beta + l gamma_c ceil(n / s). */
static double copy(size_t n, double c)
{
	double gamma = c > 1 ? 0.11 * c * c + 1.6 * c : 1;

	return 1.43e-6 + (double)n / 3.29e9 + 0.25e-6 * gamma * ceil((double)n / 4096);
}

static struct oci_choice named(enum oc_collective collective, const char *words)
{
	struct oci_forced forced;
	const char *expected = "";

	if (oci_forced_parse(collective, words, &forced, &expected))
		fail_msg("%s has no %s: %s", oci_collective_name(collective), words, expected);
	return forced.choice;
}

static struct oci_virtual_result predicted(enum oc_collective collective, const char *words,
					   uint32_t p, size_t bytes)
{
	struct oci_shape shape = { .collective = collective,
				   .bytes = bytes,
				   .unit = 1,
				   .size = p,
				   .single_copy = true };
	struct oci_virtual_result result;
	char why[256] = "";

	if (oci_predict(&model, &shape, named(collective, words), &result, why, sizeof(why)))
		fail_msg("%s %s: %s", oci_collective_name(collective), words, why);
	return result;
}

static void takes(enum oc_collective collective, const char *words, uint32_t p, size_t bytes,
		  double want)
{
	double got = predicted(collective, words, p, bytes).end_s;

	if (fabs(got - want) > 1e-9 * want)
		fail_msg("%s %s, %u ranks, %zu bytes: %.9g us, the paper's formula %.9g",
			 oci_collective_name(collective), words, p, bytes, got * 1e6, want * 1e6);
}

static const size_t sizes[] = { 1, 4096, 65536, 100000, 1 << 20, 8 << 20 };
static const uint32_t teams[] = { 2, 5, 16, 28, 64, 65 };

/* IV-A1 to A3 and IV-B1 to B3. */
TEST_WITH(scatter_and_gather_are_the_papers, table_iv, NULL)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t t = 0; t < COUNT(teams); t++) {
			uint32_t p = teams[t];
			size_t n = sizes[i];
			double one = (p - 1) * copy(n, 1);

			takes(OC_SCATTER, "parallel-read", p, n, copy(n, p - 1));
			takes(OC_GATHER, "parallel-write", p, n, copy(n, p - 1));
			takes(OC_SCATTER, "sequential-write", p, n, one);
			takes(OC_GATHER, "sequential-read", p, n, one);
			takes(OC_SCATTER, "throttled-read:65535", p, n, copy(n, p - 1));
			takes(OC_GATHER, "throttled-write:65535", p, n, copy(n, p - 1));
			takes(OC_SCATTER, "throttled-read:1", p, n, one);
			takes(OC_GATHER, "throttled-write:1", p, n, one);
		}
		/* 64 readers, eight or four at a time. */
		takes(OC_SCATTER, "throttled-read:8", 65, sizes[i], 8 * copy(sizes[i], 8));
		takes(OC_GATHER, "throttled-write:4", 65, sizes[i], 16 * copy(sizes[i], 4));
		/* 63: the last turn has seven, where the formula counts ceil(p / k) full ones. */
		takes(OC_SCATTER, "throttled-read:8", 64, sizes[i],
		      7 * copy(sizes[i], 8) + copy(sizes[i], 7));
	}
}

/* IV-C1 and V-A2. */
TEST_WITH(alltoall_and_allgather_are_the_papers_and_free_of_contention, table_iv, NULL)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (size_t t = 0; t < COUNT(teams); t++) {
			double want = (teams[t] - 1) * copy(sizes[i], 1);

			takes(OC_ALLTOALL, "pairwise", teams[t], sizes[i], want);
			takes(OC_ALLGATHER, "ring-source-read", teams[t], sizes[i], want);
			takes(OC_ALLGATHER, "ring-source-write", teams[t], sizes[i], want);
			takes(OC_ALLGATHER, "ring-neighbor:1", teams[t], sizes[i], want);
			assert_int_equal(
				predicted(OC_ALLTOALL, "pairwise", teams[t], sizes[i]).most_copiers,
				1);
			assert_int_equal(
				predicted(OC_ALLGATHER, "ring-source-read", teams[t], sizes[i])
					.most_copiers,
				1);
		}
	}
}

/* V-A3 and A4: lg p start-ups. The formulas have (p - 1) ceil(n / s) page locks, where blocks that
 * are copied together share pages; 4096-byte blocks do not. Bruck's has another (p - 1) n beta for
 * the final shift, which ours does without (allgather_bruck.c), and ours reads in two pieces where
 * a range goes beyond the last block: rank p - 1 from its second step on. */
TEST_WITH(doubling_and_bruck_are_the_papers, table_iv, NULL)
{
	for (uint32_t p = 2; p <= 64; p *= 2) {
		double steps = log2(p);
		double want = steps * 1.43e-6 + (p - 1) * (copy(4096, 1) - 1.43e-6);

		takes(OC_ALLGATHER, "recursive-doubling", p, 4096, want);
		takes(OC_ALLGATHER, "bruck", p, 4096, want + (steps - 1) * 1.43e-6);
	}
}

/* V-B1 to B3. */
TEST_WITH(bcast_is_the_papers, table_iv, NULL)
{
	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n = sizes[i];

		for (size_t t = 0; t < COUNT(teams); t++)
			takes(OC_BCAST, "direct-read", teams[t], n, copy(n, teams[t] - 1));
		for (size_t t = 0; t < COUNT(teams); t++)
			takes(OC_BCAST, "direct-write", teams[t], n, (teams[t] - 1) * copy(n, 1));
		/* Full trees of radix k + 1, where the paper's formula has its log to the base k
		 * for up to k readers of one source: that many readers make k + 1 holders. */
		takes(OC_BCAST, "knomial:3", 64, n, 3 * copy(n, 3));
		takes(OC_BCAST, "knomial:7", 64, n, 2 * copy(n, 7));
		takes(OC_BCAST, "knomial:1", 64, n, 6 * copy(n, 1));
		/* The Scatter is a parallel read, the Allgather a ring. A rank whose part is there
		 * goes on, so that the ring begins together: all parts are equally long. */
		if (n % (64 * 64))
			continue;
		takes(OC_BCAST, "scatter-allgather", 64, n,
		      copy(n / 64, 63) + 63 * copy(n / 64, 1));
		/* VI: the Scatter by sequential writes, for which p is p - 1 here; and throttled.
		 */
		takes(OC_BCAST, "scatter-write-allgather", 64, n, 126 * copy(n / 64, 1));
		takes(OC_BCAST, "scatter-throttled-allgather:7", 64, n,
		      9 * copy(n / 64, 7) + 63 * copy(n / 64, 1));
	}
}

/* Every algorithm with a closed form: it and the executor tell nearly the same. */
static void expect_that_closed_forms_and_plans_agree(void)
{
	static const size_t bytes[] = { 64, 1024, 16384, 131072, 1 << 20 };
	static const uint32_t size[] = { 2, 3, 4, 8, 16, 28, 64 };
	const struct oci_hierarchy *hierarchy[COUNT(size)];
	const struct oci_algorithm *a;
	unsigned int compared = 0;
	double distance = 0;

	for (size_t t = 0; t < COUNT(size); t++)
		assert_int_equal(oci_predict_hierarchy(&model, size[t], &hierarchy[t]), 0);
	for (unsigned int i = 0; i < OC_COLLECTIVES * COUNT(bytes) * COUNT(size) * 16; i++) {
		unsigned int index = i % 16, c = i / 16 % OC_COLLECTIVES;
		struct oci_shape shape = { .collective = c,
					   .bytes = bytes[i / 16 / OC_COLLECTIVES % COUNT(bytes)],
					   .unit = oci_is_reduction(c) ? 4 : 1,
					   .size = size[i / 16 / OC_COLLECTIVES / COUNT(bytes)],
					   .single_copy = true };
		struct oci_virtual_result result;
		struct oci_cost cost;
		char why[256];
		double ratio;

		a = oci_algorithm(c, index);
		/* Where parts are less than a line most ranks have none: nobody cuts so. */
		if (!a || !a->cost || shape.bytes / shape.size < 64 ||
		    (a->fits && !a->fits(&shape, a->parameter_default)))
			continue;
		assert_int_equal(
			oci_predict(&model, &shape,
				    (struct oci_choice){ (uint8_t)index, a->parameter_default },
				    &result, why, sizeof(why)),
			0);
		cost = oci_cost_of(a, &model, &shape, a->parameter_default);
		if (result.end_s == 0 && oci_cost_total(&cost) == 0)
			continue; /* nothing but signals, which this model has for nothing */
		ratio = oci_cost_total(&cost) / result.end_s;
		if (ratio < 0.6 || ratio > 1.65)
			fail_msg("%s %s, %u ranks, %zu bytes: %.3g us by its closed form, %.3g in "
				 "virtual time",
				 oci_collective_name(c), a->name, shape.size, shape.bytes,
				 oci_cost_total(&cost) * 1e6, result.end_s * 1e6);
		distance += fabs(log(ratio));
		compared++;
	}
	for (size_t t = 0; t < COUNT(size); t++)
		oci_hierarchy_put(hierarchy[t]);
	print_message("%u compared, %.1f %% apart on average\n", compared,
		      100 * (exp(distance / compared) - 1));
	assert_true(compared > 500);
	assert_true(distance / compared < log(1.08));
}

TEST_WITH(closed_forms_and_plans_agree, table_iv, NULL)
{
	expect_that_closed_forms_and_plans_agree();
}

TEST_WITH(closed_forms_and_plans_agree_with_every_term, every_term, NULL)
{
	expect_that_closed_forms_and_plans_agree();
}

TEST_WITH(terms_add_up_where_they_belong, table_iv, NULL)
{
	struct oci_shape shape = { .collective = OC_SCATTER,
				   .bytes = 65536,
				   .unit = 1,
				   .size = 17,
				   .single_copy = true };
	struct oci_cost cost;
	struct oci_choice choice = named(OC_SCATTER, "throttled-read:4");

	cost = oci_cost_of(oci_algorithm(OC_SCATTER, choice.algorithm), &model, &shape, 4);
	assert_true(fabs(cost.start - 4 * 1.43e-6) < 1e-15);
	assert_true(fabs(cost.bytes - 4 * 65536 / 3.29e9) < 1e-15);
	assert_true(fabs(cost.lock - 4 * 16 * 0.25e-6) < 1e-15);
	assert_true(fabs(cost.contention - 4 * 16 * 0.25e-6 * (0.11 * 16 + 1.6 * 4 - 1)) < 1e-15);
	assert_true(cost.memory == 0 && cost.reduce == 0 && cost.flags == 0);
}

/* What all ranks of a cache touch decides how much of a copy it holds. */
TEST_WITH(ranks_that_share_a_cache_copy_at_the_rate_of_memory_from_the_right_total_on, table_iv,
	  NULL)
{
	struct oci_shape shape = { .collective = OC_ALLTOALL,
				   .unit = 1,
				   .size = 2,
				   .single_copy = true };
	struct oci_choice choice = named(OC_ALLTOALL, "pairwise");
	struct oci_cost cost;

	give("cache.bytes", 32 << 20);
	give("cache.shared", 64 << 20);
	give("cma.beta_memory", 4 / 3.29e9);
	/* 2 ranks send and receive 2 blocks each: 8 blocks, and as many of the next message. */
	for (size_t mib = 1; mib <= 12; mib++) {
		double part = fmin(fmax(2 * 2.0 * 8 * (double)mib / 64 - 1, 0), 1), plans;

		shape.bytes = mib << 20;
		assert_int_equal(oci_cost_working(&shape, &model), 8 * shape.bytes);
		cost = oci_cost_of(oci_algorithm(OC_ALLTOALL, choice.algorithm), &model, &shape,
				   choice.parameter);
		plans = predicted(OC_ALLTOALL, "pairwise", 2, shape.bytes).end_s;
		assert_true(fabs(cost.bytes * 3.29e9 / (double)shape.bytes - (1 + 3 * part)) <
			    1e-9);
		assert_true(fabs(plans / oci_cost_total(&cost) - 1) < 1e-9);
	}
	/* One buffer a rank, whatever it does to it; one and p blocks; v-variants tell no sizes. */
	shape.collective = OC_BCAST;
	assert_int_equal(oci_cost_working(&shape, &model), 2 * shape.bytes);
	shape.collective = OC_SCATTER;
	assert_int_equal(oci_cost_working(&shape, &model), 4 * shape.bytes);
	shape.collective = OC_ALLGATHERV;
	assert_int_equal(oci_cost_working(&shape, &model), 0);
	shape.collective = OC_ALLTOALL;
	/* A core each has its own. */
	give("machine.cache_cores", 1);
	assert_int_equal(oci_cost_working(&shape, &model), 4 * shape.bytes);
}

TEST_WITH(large_teams_are_modelled_in_seconds, table_iv, NULL)
{
	takes(OC_ALLTOALL, "pairwise", 512, 65536, 511 * copy(65536, 1));
	takes(OC_SCATTER, "throttled-read:7", 512, 65536, 73 * copy(65536, 7));
}

TEST_WITH(what_does_not_fit_is_refused_in_words, table_iv, NULL)
{
	struct oci_shape shape = { .collective = OC_BCAST, .bytes = 497, .unit = 1, .size = 4 };
	struct oci_virtual_result result;
	char why[256] = "";

	assert_int_equal(
		oci_predict(&model, &shape, named(OC_BCAST, "inline"), &result, why, sizeof(why)),
		-EINVAL);
	assert_string_equal(why, "inline cannot run bcast of 497 bytes on 4 ranks");
}

/* V-A5: of two rings one stays in its socket but for two ways, of the other nearly all lead to the
 * other socket, where each is one user more of the memory. */
TEST_WITH(a_ring_of_neighbors_is_faster_than_one_across_sockets, table_iv, NULL)
{
	static const char *const rings[] = { "ring-neighbor:1", "ring-near", "ring-neighbor:15" };
	double s[3];

	give("machine.packages", 2);
	give("machine.package_cores", 14);
	give("machine.domain_cores", 14);
	give("domain", 1 / 13.2e9);
	for (int i = 0; i < 3; i++) {
		struct oci_choice choice = named(OC_ALLGATHER, rings[i]);
		struct oci_shape shape = { .collective = OC_ALLGATHER,
					   .bytes = 1 << 20,
					   .unit = 1,
					   .size = 28,
					   .single_copy = true };
		struct oci_cost cost = oci_cost_of(oci_algorithm(OC_ALLGATHER, choice.algorithm),
						   &model, &shape, choice.parameter);

		s[i] = predicted(OC_ALLGATHER, rings[i], 28, 1 << 20).end_s;
		assert_true(fabs(oci_cost_total(&cost) / s[i] - 1) < 0.1);
	}
	assert_true(fabs(s[1] / s[0] - 1) < 1e-9);
	assert_true(s[2] > 1.5 * s[0]);
}

/* Of 160 ranks on two packages of ten cores every twenty come round, to the same packages. */
TEST(ranks_that_wrap_round_the_cores_multiply_no_package)
{
	const struct oci_hierarchy *h;

	assert_int_equal(oci_model_profile("power8", &model), 0);
	assert_int_equal(oci_predict_hierarchy(&model, 160, &h), 0);
	assert_int_equal(h->levels, 1);
	for (uint32_t rank = 0; rank < 160; rank++)
		assert_int_equal(oci_hierarchy_group(h, 0, rank), rank / 10 % 2 * 10);
	oci_hierarchy_put(h);
	oci_model_destroy(&model);
}

/* Twice round a machine with every level: the second time as the first. */
TEST_WITH(ranks_that_wrap_share_caches_with_those_before, every_term, NULL)
{
	const struct oci_hierarchy *h;

	assert_int_equal(oci_predict_hierarchy(&model, 128, &h), 0);
	assert_int_equal(h->levels, 2);
	for (uint32_t level = 0; level < 2; level++)
		for (uint32_t rank = 0; rank < 64; rank++)
			assert_int_equal(oci_hierarchy_group(h, level, rank + 64),
					 oci_hierarchy_group(h, level, rank));
	assert_int_equal(oci_hierarchy_group(h, 0, 33), 32);
	assert_int_equal(oci_hierarchy_group(h, 1, 66), 0);
	oci_hierarchy_put(h);
}
