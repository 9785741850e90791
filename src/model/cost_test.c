/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs against sums by hand, and what the hash sees. */
#include "model/terms_test.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

/* Copies by themselves. */
static double cma_s(const struct oci_model *m, enum oci_model_direction direction, size_t bytes,
		    enum oci_model_distance distance)
{
	return oci_model_bytes_of_s(m, OCI_MODEL_CMA, direction, bytes, distance,
				    oci_model_beyond(m, bytes, 0));
}

static double memcpy_s(const struct oci_model *m, size_t bytes)
{
	return oci_model_memcpy_of_s(m, bytes, oci_model_beyond(m, bytes, 0));
}

static double fill_s(const struct oci_model *m, size_t bytes)
{
	return oci_model_fill_of_s(m, bytes, oci_model_beyond(m, bytes, 0));
}

/* Of one package of 68 cores. */
static int knl(void **state)
{
	table_iv(state);
	give("machine.package_cores", 68);
	return 0;
}

#define TEST_ON_KNL(name) TEST_WITH(name, knl, NULL)

static void close_to(double got, double want)
{
	if (fabs(got - want) > 1e-12 * fabs(want))
		fail_msg("got %.17g, want %.17g", got, want);
}

TEST_ON_KNL(a_copy_is_start_bytes_and_locks)
{
	close_to(oci_model_copy_s(&model, OCI_MODEL_CMA, 65536, 1),
		 1.43e-6 + 65536 / 3.29e9 + 16 * 0.25e-6);
	/* gamma(8) = 0.11 * 64 + 1.6 * 8 = 19.84; a page begun counts whole */
	close_to(oci_model_copy_s(&model, OCI_MODEL_CMA, 65537, 8),
		 1.43e-6 + 65537 / 3.29e9 + 17 * 19.84 * 0.25e-6);
	close_to(oci_model_copy_s(&model, OCI_MODEL_CMA, 0, 8), 1.43e-6);
}

TEST_ON_KNL(gamma_is_1_alone_and_steps_behind_a_package)
{
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 0), 1);
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 1), 1);
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 2), 3.64);
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 64), 0.11 * 4096 + 1.6 * 64);
	give("machine.package_cores", 32);
	give("cma.gamma_across", 1.5);
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 32), 0.11 * 1024 + 1.6 * 32);
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 64), 1.5 * (0.11 * 4096 + 1.6 * 64));
	give("cma.gamma1", 0.1); /* 0.64 at two: nobody is helped by company */
	close_to(oci_model_gamma(&model, OCI_MODEL_CMA, 2), 1);
}

TEST_ON_KNL(copiers_of_blocks_far_apart_do_not_meet)
{
	close_to(oci_model_contending(&model, OCI_MODEL_CMA, 64, 16 << 20), 64);
	give("cma.lock_span", 2 << 20);
	close_to(oci_model_contending(&model, OCI_MODEL_CMA, 64, 4 << 20), 1);
	close_to(oci_model_contending(&model, OCI_MODEL_CMA, 64, 256 << 10), 8);
	close_to(oci_model_contending(&model, OCI_MODEL_CMA, 4, 256 << 10), 4);
	close_to(oci_model_contending(&model, OCI_MODEL_CMA, 64, 0), 64);
}

TEST(a_term_that_is_not_given_is_left_out)
{
	oci_model_init(&model);
	for (unsigned int i = 0; i < OCI_MODEL_MECHANISMS; i++) {
		assert_false(oci_model_knows(&model, (enum oci_model_mechanism)i));
		close_to(oci_model_copy_s(&model, (enum oci_model_mechanism)i, 1 << 20, 64), 0);
	}
	close_to(memcpy_s(&model, 1 << 20), 0);
	close_to(oci_model_reduce_s(&model, 1 << 20), 0);
	close_to(oci_model_flag_s(&model, OCI_MODEL_MACHINE), 0);
	close_to(oci_model_domain_s(&model, 64), 0);
	assert_int_equal(oci_model_distance(&model, 0, 63), OCI_MODEL_CACHE);
	assert_int_equal(oci_model_domain(&model, 63), 0);
	assert_null(oci_model_cell(&model, "bcast", 2, 4));
	/* One flag known: it stands for the distances that nobody measured. */
	give("flag.cache", 1e-7);
	close_to(oci_model_flag_s(&model, OCI_MODEL_MACHINE), 1e-7);
	give("flag.machine", 3e-7);
	close_to(oci_model_flag_s(&model, OCI_MODEL_MACHINE), 3e-7);
	close_to(oci_model_flag_s(&model, OCI_MODEL_PACKAGE), 1e-7);
	/* Nothing is known of rows: each flag as the first; never dearer than that. */
	close_to(oci_model_flag_more_s(&model, OCI_MODEL_MACHINE), 3e-7);
	give("flag.more", 2e-7);
	close_to(oci_model_flag_more_s(&model, OCI_MODEL_MACHINE), 2e-7);
	close_to(oci_model_flag_more_s(&model, OCI_MODEL_CACHE), 1e-7);
}

TEST_ON_KNL(rates_change_beyond_the_cache_and_between_packages)
{
	give("cache.bytes", 1 << 20);
	give("cma.beta", 1e-10);
	give("cma.beta_memory", 2e-10);
	give("cma.beta_across", 1.5);
	give("memcpy.cache", 3e-11);
	give("memcpy.memory", 9e-11);
	close_to(cma_s(&model, OCI_MODEL_PULL, 1 << 19, OCI_MODEL_CACHE), (1 << 19) * 1e-10);
	close_to(cma_s(&model, OCI_MODEL_PULL, (1 << 19) + 1, OCI_MODEL_PACKAGE),
		 ((1 << 19) + 1) * 2e-10);
	close_to(cma_s(&model, OCI_MODEL_PULL, 4096, OCI_MODEL_MACHINE), 4096 * 1.5e-10);
	close_to(memcpy_s(&model, 1 << 19), (1 << 19) * 3e-11);
	close_to(memcpy_s(&model, 1 << 20), (1 << 20) * 9e-11);
}

TEST_ON_KNL(ranks_that_share_a_cache_get_less_of_it_each)
{
	const size_t mib = 1 << 20;

	give("cache.bytes", 8 << 20);
	close_to(oci_model_beyond(&model, 4 * mib, 0), 0);
	close_to(oci_model_beyond(&model, 4 * mib, 1 << 30), 0); /* its size is not known */
	close_to(oci_model_beyond(&model, 4 * mib + 1, 0), 1);
	give("cache.shared", 32 << 20);
	close_to(oci_model_beyond(&model, 4 * mib, 0), 0);
	close_to(oci_model_beyond(&model, 4 * mib, 8 * mib), 0);
	close_to(oci_model_beyond(&model, 4 * mib, 12 * mib), 0.5);
	close_to(oci_model_beyond(&model, 4 * mib, 16 * mib), 1);
	close_to(oci_model_beyond(&model, 4096, 64 * mib), 1);
	give("cma.beta", 1e-10);
	close_to(oci_model_bytes_of_s(&model, OCI_MODEL_CMA, OCI_MODEL_PULL, 4096, OCI_MODEL_CACHE,
				      0.5),
		 4096 * 1e-10); /* how fast memory is nobody knows */
	give("cma.beta_memory", 3e-10);
	close_to(oci_model_bytes_of_s(&model, OCI_MODEL_CMA, OCI_MODEL_PULL, 4096, OCI_MODEL_CACHE,
				      0.5),
		 4096 * 2e-10);
	give("memcpy.cache", 3e-11);
	give("memcpy.memory", 9e-11);
	give("memcpy.slot", 5e-11);
	close_to(oci_model_memcpy_of_s(&model, 4096, 0.5), 4096 * 6e-11);
	close_to(oci_model_fill_of_s(&model, 4096, 0.5), 4096 * 6e-11);
	close_to(oci_model_fill_of_s(&model, 4096, 0), 4096 * 5e-11);
}

TEST_ON_KNL(what_caches_hold_has_a_limit_of_its_own)
{
	give("domain", 2e-11);
	close_to(oci_model_domain_of_s(&model, 4, 0), 4 * 2e-11);
	give("cache.bytes", 1 << 20);
	close_to(oci_model_domain_of_s(&model, 4, 0), 0);
	give("domain.cache", 1e-11);
	close_to(oci_model_domain_of_s(&model, 4, 0), 4 * 1e-11);
	close_to(oci_model_domain_of_s(&model, 4, 1), 4 * 2e-11);
	close_to(oci_model_domain_of_s(&model, 4, 0.5), 4 * 1.5e-11);
}

TEST_ON_KNL(filling_a_slot_is_never_less_than_a_local_copy)
{
	give("memcpy.cache", 3e-11);
	close_to(fill_s(&model, 4096), 4096 * 3e-11);
	give("memcpy.slot", 2e-11);
	close_to(fill_s(&model, 4096), 4096 * 3e-11);
	give("memcpy.slot", 5e-10);
	close_to(fill_s(&model, 4096), 4096 * 5e-10);
	close_to(memcpy_s(&model, 4096), 4096 * 3e-11);
}

static double write_s(const struct oci_model *model, size_t bytes)
{
	return oci_model_alpha_s(model, OCI_MODEL_CMA, OCI_MODEL_PUSH) +
	       cma_s(model, OCI_MODEL_PUSH, bytes, OCI_MODEL_CACHE);
}

TEST_ON_KNL(writes_are_as_reads_until_they_have_terms_of_their_own)
{
	give("cache.bytes", 1 << 20);
	give("cma.beta_memory", 2e-9);
	close_to(write_s(&model, 4096), 1.43e-6 + 4096 / 3.29e9);
	close_to(write_s(&model, 1 << 20), 1.43e-6 + (1 << 20) * 2e-9);
	give("cma.push_alpha", 1e-6);
	give("cma.push_beta", 1e-10);
	close_to(write_s(&model, 4096), 1e-6 + 4096 * 1e-10);
	/* Where the caches end for reads says nothing of writes. */
	close_to(write_s(&model, 1 << 20), 1e-6 + (1 << 20) * 1e-10);
	give("cma.push_beta_memory", 3e-10);
	close_to(write_s(&model, 1 << 20), 1e-6 + (1 << 20) * 3e-10);
	close_to(oci_model_copy_s(&model, OCI_MODEL_CMA, 4096, 1),
		 1.43e-6 + 4096 / 3.29e9 + 0.25e-6);
}

TEST(ranks_fill_the_machine_core_by_core)
{
	oci_model_init(&model);
	give("machine.packages", 2);
	give("machine.package_cores", 16);
	give("machine.cache_cores", 4);
	give("machine.domain_cores", 8);
	assert_int_equal(oci_model_distance(&model, 0, 3), OCI_MODEL_CACHE);
	assert_int_equal(oci_model_distance(&model, 3, 4), OCI_MODEL_PACKAGE);
	assert_int_equal(oci_model_distance(&model, 15, 16), OCI_MODEL_MACHINE);
	assert_int_equal(oci_model_distance(&model, 0, 32), OCI_MODEL_CACHE);
	assert_int_equal(oci_model_domain(&model, 7), 0);
	assert_int_equal(oci_model_domain(&model, 8), 1);
	assert_int_equal(oci_model_domain(&model, 31), 3);
	assert_int_equal(oci_model_domain(&model, 33), 0);
}

TEST_ON_KNL(the_module_is_preferred_where_its_copies_are_quicker)
{
	assert_false(oci_model_prefers_kmod(&model, 2));
	/* 4 KiB: 0.25 us of locks, 1.245 us of bytes. */
	give("kmod.alpha", 1.43e-6);
	assert_false(oci_model_prefers_kmod(&model, 2));
	give("kmod.beta", 1.1 / 3.29e9);
	assert_true(oci_model_prefers_kmod(&model, 2));
	give("kmod.beta", 1.3 / 3.29e9);
	assert_false(oci_model_prefers_kmod(&model, 2));
	/* Seven that read from one wait for its lock. */
	assert_true(oci_model_prefers_kmod(&model, 8));
	give("kmod.alpha", 1e-2);
	assert_false(oci_model_prefers_kmod(&model, 8));
	/* Of cma nothing is known. */
	oci_model_init(&model);
	give("kmod.beta", 1e-10);
	assert_false(oci_model_prefers_kmod(&model, 8));
}

TEST(the_first_cell_that_fits_counts)
{
	struct oci_model_cell cell[] = {
		{ "bcast", "knomial:4", 4, 8, 1024, 2048 },
		{ "bcast", "direct-read", 2, 64, 0, 1 << 20 },
	};

	oci_model_init(&model);
	model.cells = cell;
	model.cell_count = 2;
	assert_ptr_equal(oci_model_cell(&model, "bcast", 4, 1024), &cell[0]);
	assert_ptr_equal(oci_model_cell(&model, "bcast", 8, 2048), &cell[0]);
	assert_ptr_equal(oci_model_cell(&model, "bcast", 9, 2048), &cell[1]);
	assert_ptr_equal(oci_model_cell(&model, "bcast", 8, 2049), &cell[1]);
	assert_null(oci_model_cell(&model, "bcast", 65, 1024));
	assert_null(oci_model_cell(&model, "bcast", 4, (1 << 20) + 1));
	assert_null(oci_model_cell(&model, "scatter", 4, 1024));
}

TEST_ON_KNL(the_hash_sees_every_term_and_cell_and_nothing_else)
{
	struct oci_model_cell cell[2] = { { "bcast", "knomial:4", 4, 8, 1024, 2048 } };
	const struct oci_term_info *info;
	struct oci_model other;
	uint64_t hash, before;

	hash = oci_model_hash(&model);
	other = model;
	strcpy(other.name, "other");
	strcpy(other.path, "/elsewhere.json");
	strcpy(other.copy[OCI_MODEL_CMA].alpha.source, "hearsay");
	strcpy(other.machine.host, "elsewhere");
	other.copy[OCI_MODEL_CMA].gamma1.residual = 0.5;
	assert_int_equal(oci_model_hash(&other), hash);
	for (unsigned int i = 0; (info = oci_term_info(i)) != NULL; i++) {
		other = model;
		oci_term_of(&other, info)->value += 1;
		assert_int_not_equal(oci_model_hash(&other), hash);
		other = model;
		oci_term_of(&other, info)->given = !oci_term_of(&other, info)->given;
		assert_int_not_equal(oci_model_hash(&other), hash);
	}
	other = model;
	other.calibrated = true;
	assert_int_not_equal(oci_model_hash(&other), hash);
	other = model;
	other.copy[OCI_MODEL_SHM].lock.value = -0.0;
	assert_int_equal(oci_model_hash(&other), hash);
	other.cells = cell;
	other.cell_count = 1;
	before = oci_model_hash(&other);
	assert_int_not_equal(before, hash);
	cell[0].bytes_max++;
	assert_int_not_equal(oci_model_hash(&other), before);
}

TEST(terms_have_names_and_bounds_that_hold_their_default)
{
	const struct oci_term_info *info;
	unsigned int count = 0;

	for (; (info = oci_term_info(count)) != NULL; count++) {
		assert_ptr_equal(oci_term_named(info->name), info);
		assert_true(info->least < info->most);
		assert_true(info->absent == 0 ||
			    (info->absent >= info->least && info->absent <= info->most));
	}
	assert_true(count > 40);
	assert_null(oci_term_named("cma.delta"));
}

/* Value by value, so that a slip in a profile shows. */
TEST(profiles_say_what_the_paper_says)
{
	static const struct {
		const char *name;
		double alpha, rate, lock, page, gamma2, gamma1, packages, cores;
	} row[] = {
		{ "knl", 1.43e-6, 3.29e9, 0.25e-6, 4096, 0.11, 1.6, 1, 68 },
		{ "broadwell", 0.98e-6, 13.2e9, 0.11e-6, 4096, 0.18, 0.83, 2, 14 },
		{ "power8", 0.75e-6, 3.17e9, 0.53e-6, 65536, 0.04, 1.95, 2, 10 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct oci_term_info *info;
		struct oci_model_copy *cma;
		struct oci_model model;

		assert_int_equal(oci_model_profile(row[i].name, &model), 0);
		cma = &model.copy[OCI_MODEL_CMA];
		assert_false(model.calibrated);
		close_to(cma->alpha.value, row[i].alpha);
		assert_true(fabs(cma->beta.value * row[i].rate - 1) < 1e-8);
		close_to(cma->lock.value, row[i].lock);
		close_to(cma->page.value, row[i].page);
		close_to(cma->gamma1.value, row[i].gamma1);
		close_to(cma->gamma2.value, row[i].gamma2);
		close_to(model.packages.value, row[i].packages);
		close_to(model.package_cores.value, row[i].cores);
		for (unsigned int t = 0; (info = oci_term_info(t)) != NULL; t++) {
			const struct oci_term *term = oci_term_in(&model, info);

			if (term->given && strncmp(term->source, "paper 002, ", 11) &&
			    strncmp(term->source, "ours: ", 6))
				fail_msg("%s: %s comes from '%s'", row[i].name, info->name,
					 term->source);
		}
		oci_model_destroy(&model);
	}
}

TEST(the_profile_of_paper_000_tells_its_machine_from_what_is_ours)
{
	const struct oci_term_info *info;
	struct oci_model model;

	assert_int_equal(oci_model_profile("ig", &model), 0);
	assert_false(model.calibrated);
	close_to(model.packages.value, 8);
	close_to(model.package_cores.value, 6);
	close_to(model.domain_cores.value, 6);
	assert_true(oci_model_distance(&model, 5, 6) == OCI_MODEL_MACHINE);
	/* Pinned once: nobody waits for another's lock. */
	close_to(oci_model_lock_s(&model, OCI_MODEL_CMA, 1 << 20, 47), 0);
	for (unsigned int t = 0; (info = oci_term_info(t)) != NULL; t++) {
		const struct oci_term *term = oci_term_in(&model, info);

		if (term->given && strncmp(term->source, "paper 000, ", 11) &&
		    strncmp(term->source, "ours: ", 6))
			fail_msg("%s comes from '%s'", info->name, term->source);
	}
	oci_model_destroy(&model);
}
