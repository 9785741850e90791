/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole run with few samples: every term is there, in bounds, and survives the file. */
#include "coll/coll.h"
#include "coll/cost.h"
#include "lab/tune/measure.h"
#include "lab/tune/tune.h"
#include "lab/tune/write.h"
#include "os/os.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	unsigned int steps, notes;
	double last;
	char note[512];
	bool one_package, no_module; /* it was said */
};

static void see_step(void *context, const char *what, double done)
{
	struct seen *seen = context;

	assert_true(*what && done >= seen->last && done <= 1);
	seen->last = done;
	seen->steps++;
}

static void see_note(void *context, const char *sentence)
{
	struct seen *seen = context;

	seen->notes++;
	seen->one_package |= strstr(sentence, "cma.gamma_across, is not measured") != NULL;
	seen->no_module |= strstr(sentence, "the kernel module cannot be used here") != NULL;
	strncpy(seen->note, sentence, sizeof(seen->note) - 1);
}

static void check_given(const struct oci_model *model, const char *name)
{
	const struct oci_term_info *info = oci_term_named(name);
	const struct oci_term *term;

	assert_non_null(info);
	term = oci_term_in(model, info);
	if (!term->given)
		fail_msg("%s is missing", name);
	assert_true(term->value >= info->least && term->value <= info->most);
	assert_true(*term->source && *term->method && *term->host && *term->date);
}

static uint64_t channels(void)
{
	struct oci_os_kmod_counters counters = { 0 };
	int fd = oci_os_kmod_open();

	if (fd >= 0)
		oci_os_kmod_count(fd, &counters);
	close(fd);
	return counters.channels;
}

TEST(a_run_gives_every_term_of_this_machine)
{
	static const char *const always[] = { "shm.alpha", "shm.beta", "map.beta", "reduce",
					      "memcpy.cache" };
	static const char *const by_cma[] = { "cma.alpha", "cma.beta",	     "cma.lock",
					      "cma.page",  "cma.push_alpha", "cma.push_beta" };
	static const char *const by_kmod[] = { "kmod.alpha", "kmod.beta", "kmod.lock",
					       "kmod.push_alpha", "kmod.push_beta" };
	static const char *const by_two[] = { "flag.cache", "flag.more", "call", "op",
					      "memcpy.slot" };
	static const char *const by_both[] = { "cma.gamma1", "cma.gamma_range", "domain",
					       "domain.cache" };
	const struct oci_tune_options options = { .ranks = 2,
						  .quick = true,
						  .seconds = 0.01,
						  .turns = 2 };
	struct seen seen = { 0 };
	const struct oci_tune_listener listener = { see_step, see_note, &seen };
	static struct oci_model model, again;
	struct oci_model_error error;
	char why[512] = "", *text;
	bool cma;

	if (oci_tune(&options, &listener, &model, why, sizeof(why)))
		fail_msg("measuring failed: %s", why);
	assert_true(model.calibrated);
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		check_given(&model, always[i]);
	/* Where a sandbox forbids the system call, that is noted and the rest is there. */
	cma = oci_model_knows(&model, OCI_MODEL_CMA);
	assert_true(cma || strstr(seen.note, "cma cannot be used"));
	for (size_t i = 0; cma && i < sizeof(by_cma) / sizeof(*by_cma); i++)
		check_given(&model, by_cma[i]);
	/* In the guest of make kmod-check it is there. */
	if (!access("/dev/onecopy", R_OK | W_OK))
		for (size_t i = 0; i < sizeof(by_kmod) / sizeof(*by_kmod); i++)
			check_given(&model, by_kmod[i]);
	else
		assert_true(seen.no_module && !oci_model_knows(&model, OCI_MODEL_KMOD));
	/* Where the module may use an engine. */
	if (channels())
		check_given(&model, "kmod.dma_min");
	else
		assert_false(model.dma_min.given);
	for (size_t i = 0; oci_tune_cpus(NULL) > 1 && i < sizeof(by_two) / sizeof(*by_two); i++)
		if (strcmp(by_two[i], "flag.cache")) /* the two CPUs may be further apart */
			check_given(&model, by_two[i]);
	for (size_t i = 0; cma && oci_tune_cpus(NULL) > 1 && i < sizeof(by_both) / sizeof(*by_both);
	     i++)
		check_given(&model, by_both[i]);
	assert_true(seen.steps > 5 && seen.last == 1);
	/* What crosses packages is measured, or said not to be. */
	if (cma && seen.one_package)
		assert_false(model.copy[OCI_MODEL_CMA].beta_across.given ||
			     model.copy[OCI_MODEL_CMA].gamma_across.given);
	else if (cma)
		check_given(&model, "cma.beta_across");
	if (model.packages.given && model.packages.value == 1)
		assert_true(seen.one_package || !cma);
	text = oci_model_text(&model);
	assert_non_null(text);
	if (oci_model_parse("tuned", text, strlen(text), 0, NULL, &again, &error))
		fail_msg("%s", error.text);
	assert_int_equal(oci_model_hash(&again), oci_model_hash(&model));
	free(text);
	oci_model_destroy(&again);
	oci_model_destroy(&model);
}

/* `op` is the difference of two calls over that of their operations. */
TEST(the_calls_that_are_timed_have_as_many_operations)
{
	static const struct {
		enum oc_collective collective;
		const char *algorithm;
		double ops;
	} call[] = { { OC_BARRIER, "flat", OCI_MEASURE_BARRIER_OPS },
		     { OC_ALLGATHER, "inline", OCI_MEASURE_SMALL_OPS } };
	struct oci_model model;

	oci_model_init(&model);
	model.op.value = 1;
	for (size_t i = 0; i < 2; i++) {
		struct oci_shape shape = { .collective = call[i].collective,
					   .bytes = 8,
					   .unit = 1,
					   .size = 2 };
		struct oci_forced forced;
		struct oci_cost cost;
		const char *expected;

		assert_int_equal(
			oci_forced_parse(shape.collective, call[i].algorithm, &forced, &expected),
			0);
		cost = oci_cost_of(oci_algorithm(shape.collective, forced.choice.algorithm), &model,
				   &shape, forced.choice.parameter);
		assert_true(oci_cost_total(&cost) == call[i].ops);
	}
}
