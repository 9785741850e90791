/* SPDX-License-Identifier: BSD-3-Clause */
/* What mca_mpool_onecopy.so, which has no engine, takes from mca_coll_onecopy.so, which has one. */
#ifndef OC_OMPI_MEMORY_H
#define OC_OMPI_MEMORY_H

#include <stddef.h>

struct oci_ompi_memory {
	void *(*alloc)(size_t bytes); /* oc_alloc(): aligned to 64 bytes */
	void (*free)(void *memory);
};

#define OCI_OMPI_MEMORY "oci_ompi_memory"

/* Type of that symbol. NULL: the component does not serve this process, or it is alone here. */
typedef const struct oci_ompi_memory *oci_ompi_memory_fn(void);
extern oci_ompi_memory_fn oci_ompi_memory;

#endif
