/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/virtual/predict.h"
#include "coll/cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void oci_predict_forget(struct oci_plan **plans, uint32_t size)
{
	for (uint32_t v = 0; v < size; v++)
		free(plans[v]);
	free(plans);
}

int oci_predict_plans(const struct oci_shape *shape, struct oci_choice choice,
		      struct oci_plan ***plans)
{
	const struct oci_algorithm *a = oci_algorithm(shape->collective, choice.algorithm);
	struct oci_plan **list = calloc(shape->size, sizeof(*list));
	int error = list ? 0 : -ENOMEM;

	for (uint32_t v = 0; v < shape->size && !error; v++) {
		struct oci_plan_key key = { .collective = (uint8_t)shape->collective,
					    .algorithm = choice.algorithm,
					    .commutative = 1,
					    .parameter = choice.parameter,
					    .v = v,
					    .size = shape->size };

		if (shape->hierarchy && a->by_hierarchy)
			key.hierarchy = shape->hierarchy->id;
		list[v] = oci_plan_build(&key, &error);
	}
	if (!error)
		*plans = list;
	else if (list)
		oci_predict_forget(list, shape->size);
	return error;
}

int oci_predict_hierarchy(const struct oci_model *model, uint32_t size,
			  const struct oci_hierarchy **hierarchy)
{
	struct oci_topo_place *places = calloc(size, sizeof(*places));
	int error;

	if (!places)
		return -ENOMEM;
	/* Private caches are no terms, nor what ranks of one core share: each is alone in them. */
	for (uint32_t r = 0; r < size; r++)
		places[r] = (struct oci_topo_place){ .core = r,
						     .l2 = r,
						     .l3 = oci_model_cache(model, r),
						     .numa = oci_model_domain(model, r),
						     .package = oci_model_package(model, r),
						     .cpus = 1 };
	error = oci_hierarchy_get(places, size, hierarchy);
	free(places);
	return error;
}

void oci_predict_name(enum oc_collective collective, struct oci_choice choice, char *text, size_t n)
{
	const struct oci_algorithm *a = oci_algorithm(collective, choice.algorithm);

	if (choice.algorithm == OCI_CHOICE_MPI)
		snprintf(text, n, "mpi");
	else if (a->parameter_default)
		snprintf(text, n, "%s:%u", a->name, choice.parameter);
	else
		snprintf(text, n, "%s", a->name);
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
	error = oci_predict_plans(shape, choice, &plans);
	if (error) {
		snprintf(why, n, "no plans for %u ranks: %s", shape->size, strerror(-error));
		return error;
	}
	call.plans = (const struct oci_plan *const *)plans;
	error = oci_virtual_run(&call, result, why, n);
	oci_predict_forget(plans, shape->size);
	return error;
}
