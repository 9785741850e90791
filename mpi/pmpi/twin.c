/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking calls as their nonblocking twins, while something of ours is outstanding, so that a peer
 * that waits for us is not left waiting. With nothing outstanding: one load and a tail call.
 *
 * Point-to-point calls match each other in all forms, so each rank decides by itself.
 *
 * MPI_Bsend does not wait for anybody. MPI_Buffer_detach does, but has no twin; see README.md.
 */
#include "pmpi.h"

#define OCI_COUNT int
#define OCI_NAME(name) name
#include "twin.h"

#undef OCI_COUNT
#undef OCI_NAME
#define OCI_COUNT MPI_Count
#define OCI_NAME(name) name##_c
#include "twin.h"

int oci_pmpi_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
	uint32_t turns = 0;
	int found = 0, error;

	if (!oci_pmpi_attention())
		return PMPI(Probe)(from, tag, comm, status);
	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Iprobe)(from, tag, comm, &found, status);
		if (error || found)
			return error;
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	return PMPI(Iprobe)(from, tag, comm, flag, status);
}

int oci_pmpi_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	uint32_t turns = 0;
	int found = 0, error;

	if (!oci_pmpi_attention())
		return PMPI(Mprobe)(from, tag, comm, message, status);
	for (;;) {
		oci_pmpi_drive();
		error = PMPI(Improbe)(from, tag, comm, &found, message, status);
		if (error || found)
			return error;
		oci_pmpi_pause(&turns);
	}
}

int oci_pmpi_Improbe(int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
		     MPI_Status *status)
{
	if (oci_pmpi_attention())
		oci_pmpi_drive();
	return PMPI(Improbe)(from, tag, comm, flag, message, status);
}
