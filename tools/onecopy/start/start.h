/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program behind `onecopy bench start` leaves in the shared memory that the command made:
 * each rank's values, these first and behind them the time of each call in us. 0: not measured.
 */
#ifndef ONECOPY_START_H
#define ONECOPY_START_H

enum start_value {
	START_INIT_US,	      /* MPI_Init */
	START_LOADED_US,      /* from exec to the end of MPI_Init */
	START_ENDED_US,	      /* from exec to the end of MPI_Finalize */
	START_DUP_US,	      /* MPI_Comm_dup */
	START_NEW_US,	      /* the first call on such a duplicate */
	START_DESCRIPTORS,    /* before MPI_Finalize */
	START_PROPORTIONAL_K, /* memory that the process has, its part of what is shared: KiB */
	START_VALUES
};

/* Calls of the longest run; and how many communicators a run makes, whose median counts. */
enum { START_CALLS_MOST = 2000, START_COMMS = 21 };

#endif
