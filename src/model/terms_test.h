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

/* A setup (support/test.h). KNL's row of paper 002, Table IV, and nothing else: local copies and
 * signals are free. */
static inline int table_iv(void **state)
{
	(void)state;
	oci_model_init(&model);
	give("cma.alpha", 1.43e-6);
	give("cma.beta", 1 / 3.29e9);
	give("cma.lock", 0.25e-6);
	give("cma.page", 4096);
	give("cma.gamma1", 1.6);
	give("cma.gamma2", 0.11);
	return 0;
}

#endif
