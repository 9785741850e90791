/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/virtual/predict.h"
#include "coll/cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void plans_free(struct oci_plan **plans, uint32_t size)
{
	for (uint32_t v = 0; plans && v < size; v++)
		free(plans[v]);
	free(plans);
}

static int plans_build(struct oci_plan **plans, const struct oci_shape *shape,
		       struct oci_choice choice, char *why, size_t n)
{
	int error = 0;

	for (uint32_t v = 0; v < shape->size; v++) {
		struct oci_plan_key key = { .collective = (uint8_t)shape->collective,
					    .algorithm = choice.algorithm,
					    .commutative = 1,
					    .parameter = choice.parameter,
					    .v = v,
					    .size = shape->size };

		if (shape->hierarchy &&
		    oci_algorithm(shape->collective, choice.algorithm)->by_hierarchy)
			key.hierarchy = shape->hierarchy->id;
		plans[v] = oci_plan_build(&key, &error);
		if (plans[v])
			continue;
		snprintf(why, n, "no plan for rank %u: %s", v, strerror(-error));
		return error;
	}
	return 0;
}

int oci_predict_hierarchy(const struct oci_model *model, uint32_t size,
			  const struct oci_hierarchy **hierarchy)
{
	struct oci_topo_place *places = calloc(size, sizeof(*places));
	uint32_t package = 0, cache = 0;
	int error;

	if (!places)
		return -ENOMEM;
	for (uint32_t r = 0; r < size; r++) {
		enum oci_model_distance distance = r ? oci_model_distance(model, r - 1, r) :
						       OCI_MODEL_CACHE;

		/* A machine that begins anew with its first core has no more places than cores. */
		cache += distance != OCI_MODEL_CACHE;
		package += distance == OCI_MODEL_MACHINE;
		places[r] = (struct oci_topo_place){ .core = r,
						     .l2 = r,
						     .l3 = cache,
						     .numa = oci_model_domain(model, r),
						     .package = package,
						     .cpus = 1 };
	}
	error = oci_hierarchy_get(places, size, hierarchy);
	free(places);
	return error;
}

int oci_predict(const struct oci_model *model, const struct oci_shape *shape,
		struct oci_choice choice, struct oci_virtual_result *result, char *why, size_t n)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice.algorithm);
	struct oci_virtual_call call = {
		.size = shape->size,
		.bytes = shape->bytes,
		.unit = shape->unit,
		.model = model,
		.mechanism = oci_cost_mechanism(shape, model),
		.working = oci_cost_working(shape, model),
	};
	struct oci_plan **plans;
	int error;

	if (!a || !shape->size || (a->fits && !a->fits(shape, choice.parameter))) {
		snprintf(why, n, "%s cannot run %s of %zu bytes on %u ranks", a ? a->name : "mpi",
			 oci_collective_name(shape->collective), shape->bytes, shape->size);
		return -EINVAL;
	}
	plans = calloc(shape->size, sizeof(*plans));
	if (!plans) {
		snprintf(why, n, "no memory for the plans of %u ranks", shape->size);
		return -ENOMEM;
	}
	error = plans_build(plans, shape, choice, why, n);
	call.plans = (const struct oci_plan *const *)plans;
	if (!error)
		error = oci_virtual_run(&call, result, why, n);
	plans_free(plans, shape->size);
	return error;
}
