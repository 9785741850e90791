/* SPDX-License-Identifier: BSD-3-Clause */
/* A model for tests, whose terms are dictated. */
#ifndef OC_MODEL_TERMS_TEST_H
#define OC_MODEL_TERMS_TEST_H

#include "model/model.h"

static struct oci_model model;

static inline void give_to(struct oci_model *to, const char *name, double value)
{
	struct oci_term *term = oci_term_of(to, oci_term_named(name));

	term->value = value;
	term->given = true;
}

static inline void give(const char *name, double value)
{
	give_to(&model, name, value);
}

#endif
