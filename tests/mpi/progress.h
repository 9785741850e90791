/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking calls in which a nonblocking collective must go on; see progress.c. */
#ifndef ONECOPY_TESTS_PROGRESS_H
#define ONECOPY_TESTS_PROGRESS_H

#include <mpi.h>

struct progress_blocking {
	const char *name;
	/* Called by all ranks; rank 0's can end only after the others have come to theirs. */
	void (*call)(int bytes);
	/* What must be there before the operation begins; NULL: nothing. */
	void (*prepare)(int bytes);
};

/* Those on windows and files, and MPI_Buffer_detach; the last one has no name. */
extern const struct progress_blocking progress_more[];
/* Those that wait for one other process of a window. */
extern const struct progress_blocking progress_windows[];
/* `comm`: of all ranks, for what these calls do. */
void progress_more_begin(MPI_Comm comm);
void progress_more_end(void);

#endif
