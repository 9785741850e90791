/* SPDX-License-Identifier: BSD-3-Clause */
/* The eager limit follows the model's terms. */

#include "p2p/p2p.h"
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
