/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that is run in our place: its signals, its exit status. */
#ifndef ONECOPY_FOREGROUND_H
#define ONECOPY_FOREGROUND_H

/* Before anything is run: whoever started us may ignore SIGCHLD, and then no end of a child is
 * heard of. The command gets it as it was. */
void foreground_heed_children(void);

/* Becomes the command. Returns only on failure: says why, returns the exit status to end with. */
int foreground_become(char **argv);

/*
 * Runs the command, forwards to it the signals that this process gets, waits for its end. Its exit
 * status, or 128 plus the signal that ended it; *started is 0 if it could not be run (said here).
 */
int foreground_run(char **argv, int *started);

#endif
