/* SPDX-License-Identifier: BSD-3-Clause */
/* Where and of what a measurement was made: without this, a number is only a rumour. */
#ifndef HARNESS_HOST_H
#define HARNESS_HOST_H

#include <limits.h>
#include <stdbool.h>

struct host {
	char name[128];
	char cpu[128];
	char kernel[128];
	char date[32];	 /* UTC, ISO 8601 */
	char commit[64]; /* of the repository around the program, or else around us, or "unknown" */
	bool dirty;	 /* the work tree differed from it */
	char huge_pages[64];
	int cores; /* physical cores this process may use; what mpirun binds to */
	int cpus;  /* their hardware threads that it may use */
};

void host_describe(struct host *host);

/* The file of this program, and the folder that it lies in, without the last slash. False: nothing
 * says it. */
bool host_program(char path[PATH_MAX]);
bool host_program_folder(char folder[PATH_MAX]);

/* Makes the folders of a file's path, as far as they are missing. 0 or -errno. */
int host_make_folders(const char *path);

#endif
