/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPICH over UCX: what it waits in, and what reads large messages on a node.
 *
 * Every wait of MPICH's calls ucp_worker_progress(), and UCX's transport cma reads by
 * process_vm_readv(). Both calls are bound to ours by address, in the one library each.
 */
#include "pmpi.h"

#include <dlfcn.h>

typedef unsigned int progress_fn(void *worker);

static progress_fn *next;

static unsigned int progress(void *worker)
{
	oc_share_turn();
	return next(worker);
}

void oci_pmpi_worker_start(void)
{
	union {
		void *data;
		progress_fn *function;
	} found = { .data = dlsym(RTLD_DEFAULT, "ucp_worker_progress") };

	if (oci_pmpi_job.node_ranks < 2 || !found.data)
		return;
	next = found.function;
	if (oc_share_messages("libuct_cma.so", oci_pmpi_job.node_ranks))
		oc_bind("libmpich.so", "ucp_worker_progress", (void (*)(void))progress);
}
