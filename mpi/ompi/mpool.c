/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mca_mpool_onecopy.so: MPI_Alloc_mem gives memory that the other ranks can map.
 *
 * Open MPI asks its mpool components for each block and keeps in mind whose it was. A file of its
 * own, as a component is found by the name of its file; the engine that has to know of the memory
 * is the one in mca_coll_onecopy.so beside it, which Open MPI has loaded by then if it is in use.
 */
#include "memory.h"

#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/mca/mpool/base/base.h"
#include "opal/mca/mpool/mpool.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Of the default (malloc): 50. Of one whose hints match: more than 50. */
enum { PRIORITY = 60, ALIGN = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static oci_ompi_memory_fn *memory_of; /* NULL: the other component was not loaded */

static void *pool_alloc(mca_mpool_base_module_t *pool, size_t bytes, size_t align, uint32_t flags)
{
	const struct oci_ompi_memory *memory = memory_of();

	(void)pool;
	(void)flags;
	/* Without a block of ours, MPI_Alloc_mem takes one of malloc's. */
	return memory && align <= ALIGN ? memory->alloc(bytes) : NULL;
}

static void pool_free(mca_mpool_base_module_t *pool, void *block)
{
	const struct oci_ompi_memory *memory = memory_of();

	(void)pool;
	/* NULL: MPI_Finalize has begun. The block stays. */
	if (memory)
		memory->free(block);
}

#ifdef MCA_MPOOL_BASE_VERSION_3_1_0 /* Open MPI 5 */
#define INTERFACE MCA_MPOOL_BASE_VERSION_3_1_0
#else
#define INTERFACE MCA_MPOOL_BASE_VERSION_3_0_0
#endif

static char name[] = "onecopy";
static mca_mpool_base_module_t pool = {
	.mpool_alloc = pool_alloc,
	.mpool_free = pool_free,
	.flags = MCA_MPOOL_FLAGS_MPI_ALLOC_MEM,
	.mpool_allocation_unit = 1,
	.mpool_name = name,
};

static void find(void)
{
	char path[PATH_MAX];
	const char *slash;
	void *library;
	int length;
	union {
		void *data;
		oci_ompi_memory_fn *function;
	} found = { NULL };
	Dl_info self;

	if (!dladdr(&pool, &self) || !self.dli_fname)
		return;
	slash = strrchr(self.dli_fname, '/');
	length = snprintf(path, sizeof(path), "%.*smca_coll_onecopy.so",
			  slash ? (int)(slash + 1 - self.dli_fname) : 0, self.dli_fname);
	if (length < 0 || (size_t)length >= sizeof(path))
		return;
	library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (library)
		found.data = dlsym(library, OCI_OMPI_MEMORY);
	memory_of = found.function;
}

/* Hints are for others. Before the other component is in use, in MPI_Init, there is no pool. */
static int query(const char *hints, int *priority, mca_mpool_base_module_t **module)
{
	extern mca_mpool_base_component_t mca_mpool_onecopy_component;

	if (hints && *hints)
		return OPAL_ERR_NOT_AVAILABLE;
	pthread_once(&once, find);
	if (!memory_of || !memory_of())
		return OPAL_ERR_NOT_AVAILABLE;
	pool.mpool_component = &mca_mpool_onecopy_component;
	*priority = PRIORITY;
	*module = &pool;
	return OPAL_SUCCESS;
}

__attribute__((visibility("default"))) mca_mpool_base_component_t mca_mpool_onecopy_component = {
	.mpool_version = {
		INTERFACE,
		.mca_component_name = "onecopy",
		MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
				      OMPI_RELEASE_VERSION),
	},
	.mpool_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.mpool_query = query,
};
