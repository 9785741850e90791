/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/state.h"

#include <string.h>

/* What a flag between two CPUs takes, where the ranks are sure to find the same. */
#define CLEARLY_NEAR_S 60e-9
#define CLEARLY_FAR_S 120e-9

/*
 * Was the model measured where two ranks were as far from each other as these are? Of a machine
 * that changes, `onecopy tune` measures one state, whose name compares it with the other. Where it
 * saw one only, what ranks find later may still be another, if it is clearly on the other side.
 */
static bool of_this_state(const struct oci_state *state, enum oci_apart apart)
{
	if (!strcmp(state->name, "near") && state->flag_s <= CLEARLY_FAR_S)
		return apart == OCI_NEAR;
	if (!strcmp(state->name, "far") && state->flag_s > CLEARLY_FAR_S)
		return apart != OCI_NEAR;
	if (!(state->flag_s > 0))
		return true;
	return !(apart == OCI_NEAR && state->flag_s > CLEARLY_FAR_S) &&
	       !(apart == OCI_FAR && state->flag_s < CLEARLY_NEAR_S);
}

enum oci_apart oci_state_apart(const struct oci_model *model)
{
	const struct oci_state *state = &model->state;
	bool near = !strcmp(state->name, "near") ?
			    state->flag_s <= CLEARLY_FAR_S :
			    state->flag_s > 0 && state->flag_s < CLEARLY_NEAR_S;

	return model->calibrated && near ? OCI_NEAR : OCI_APART_UNKNOWN;
}

bool oci_state_decides(const struct oci_model *model)
{
	const struct oci_state *state = &model->state;

	return model->calibrated &&
	       !(of_this_state(state, OCI_APART_UNKNOWN) && of_this_state(state, OCI_NEAR) &&
		 of_this_state(state, OCI_FAR));
}

bool oci_in_its_state(const struct oci_shape *shape, const struct oci_model *model)
{
	if (oci_is_reduction(shape->collective))
		return !oci_state_decides(model);
	return of_this_state(&model->state, shape->apart);
}
