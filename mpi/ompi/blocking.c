/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking calls in general; those that need no preparation take the short way of quick.h. */
#include "component.h"

int oci_ompi_blocking(struct oci_ompi_module *self, oci_ompi_comm *comm,
		      const struct oci_mpi_call *call)
{
	struct oci_mpi_operation operation;
	const char *reason = "";
	int status = OC_HAND_BACK;

	switch (oci_mpi_open(&operation, call, (uint32_t)ompi_comm_rank(comm),
			     (uint32_t)ompi_comm_size(comm), false, &reason)) {
	case OCI_MPI_NOTHING:
		status = MPI_SUCCESS;
		break;
	case OCI_MPI_BACK:
		oci_ompi_count_back(call, reason);
		break;
	case OCI_MPI_ENGINE:
		oci_mpi_load(&operation);
		status = oci_ompi_run(self, comm, &operation.call, operation.status);
		if (status == MPI_SUCCESS)
			status = oci_mpi_store(&operation);
	}
	oci_mpi_close(&operation);
	return status == OC_HAND_BACK ? oci_ompi_previous(self, comm, call) : status;
}
