/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that differ in nothing but their names: what may wait for other processes and has no
 * nonblocking form, inside of which a helper drives (helper.c), and what programs call again and
 * again. Calls of one process on a file wait for the file system only, nonblocking collective ones
 * are driven by whoever waits for them, and MPI_File_..._end finds done what _begin has done in
 * MPICH.
 *
 * Arguments are passed on as the words that they are in registers and on the stack. Ten are as many
 * as any of these functions has; of one with fewer, whatever lies there goes along, and nobody
 * reads it. That is not C but the calling convention of x86-64, for which entry.S is written, too.
 */
#include "pmpi.h"

#define WORDS long a, long b, long c, long d, long e, long f, long g, long h, long i, long j
#define THEIRS(name) ((oci_pmpi_any *)(void (*)(void))oci_real.name)(a, b, c, d, e, f, g, h, i, j)

#define MAY_WAIT(name)                           \
	int oci_pmpi_##name(WORDS)               \
	{                                        \
		if (!oci_pmpi_attention())       \
			return THEIRS(name);     \
		return OCI_HELPED(THEIRS(name)); \
	}

#define CALLS_BACK(name)                                   \
	int oci_pmpi_##name(WORDS)                         \
	{                                                  \
		return OCI_HELPED_CALLBACKS(THEIRS(name)); \
	}

uint32_t oci_pmpi_windows;

static int count_windows(int error, uint32_t more)
{
	if (!error)
		__atomic_fetch_add(&oci_pmpi_windows, more, __ATOMIC_RELAXED);
	return error;
}

#define MAKES_WINDOW(name)                                                   \
	int oci_pmpi_##name(WORDS)                                           \
	{                                                                    \
		return count_windows(OCI_HELPED_CALLBACKS(THEIRS(name)), 1); \
	}

static int without_copy(int error)
{
	oci_pmpi_comm_look_anew();
	return error;
}

int oci_pmpi_Win_free(MPI_Win *win)
{
	return without_copy(count_windows(OCI_HELPED_CALLBACKS(PMPI(Win_free)(win)), (uint32_t)-1));
}

#define ENDS_COPY(name)                                                  \
	int oci_pmpi_##name(WORDS)                                       \
	{                                                                \
		return without_copy(OCI_HELPED_CALLBACKS(THEIRS(name))); \
	}

#define POLLED(name)                      \
	int oci_pmpi_##name(WORDS)        \
	{                                 \
		if (oci_pmpi_attention()) \
			oci_pmpi_drive(); \
		return THEIRS(name);      \
	}

/* clang-format off */
OCI_MAY_WAIT(MAY_WAIT)
OCI_CALLS_BACK(CALLS_BACK)
OCI_MAKES_WINDOW(MAKES_WINDOW)
OCI_ENDS_COPY(ENDS_COPY)
OCI_POLLED(POLLED)
/* clang-format on */
