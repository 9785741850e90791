/* SPDX-License-Identifier: BSD-3-Clause */
/* A model whose terms are dictated, for tests of choices. Each test begins with dictated(). */
#ifndef OC_COLL_DICTATED_TEST_H
#define OC_COLL_DICTATED_TEST_H

#include "coll/select.h"
#include "model/terms_test.h"

/* A machine of round numbers: a system call is 1 us, a byte 0.1 ns, a page lock 0.1 us which c
 * copiers make c^2 times as long. */
static inline int dictated(void **state)
{
	(void)state;
	oci_model_init(&model);
	give("cma.alpha", 1e-6);
	give("cma.beta", 1e-10);
	give("cma.lock", 1e-7);
	give("cma.page", 4096);
	give("cma.gamma2", 1);
	give("memcpy.cache", 1e-10);
	give("flag.cache", 1e-7);
	give("flag.more", 1e-8);
	give("call", 1e-7);
	give("op", 1e-8);
	give("reduce", 1e-10);
	return 0;
}

static inline int without_terms(void **state)
{
	(void)state;
	oci_model_init(&model);
	return 0;
}

static inline struct oci_shape shape_of(enum oc_collective collective, uint32_t size, size_t bytes)
{
	return (struct oci_shape){ .collective = collective,
				   .bytes = bytes,
				   .unit = 1,
				   .size = size,
				   .common = OCI_TOPO_MACHINE,
				   .single_copy = true };
}

static inline const char *name_of(enum oc_collective collective, struct oci_choice choice)
{
	return choice.algorithm == OCI_CHOICE_MPI ?
		       "mpi" :
		       oci_algorithm(collective, choice.algorithm)->name;
}

#endif
