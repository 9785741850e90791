/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/embedded.h"
#include "model/model.h"

#include <errno.h>
#include <string.h>

const char *oci_model_profile_name(unsigned int index)
{
	const struct oci_embedded *profile = oci_embedded_profiles;

	while (index-- && profile->name)
		profile++;
	return profile->name;
}

int oci_model_profile(const char *name, struct oci_model *model)
{
	const struct oci_embedded *profile = oci_embedded_profiles;
	struct oci_model_error error;

	while (profile->name && strcmp(profile->name, name))
		profile++;
	if (!profile->name)
		return -ENOENT;
	return oci_model_parse(profile->name, profile->text, profile->length, OCI_MODEL_ANY_MACHINE,
			       NULL, model, &error);
}
