/* SPDX-License-Identifier: BSD-3-Clause */
/* without_uring EPERM|ENOSYS COMMAND...: runs it where io_uring is forbidden, or hidden, as in a
 * container. Ends with 77 where no filter can be set. */
#include "support/refuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3 || (strcmp(argv[1], "EPERM") && strcmp(argv[1], "ENOSYS"))) {
		fprintf(stderr, "usage: without_uring EPERM|ENOSYS COMMAND...\n");
		return 2;
	}
	if (!oct_refuse(SYS_io_uring_setup, strcmp(argv[1], "EPERM") ? ENOSYS : EPERM)) {
		printf("skipped: no filter of system calls can be set here\n");
		return 77;
	}
	execvp(argv[2], argv + 2);
	fprintf(stderr, "without_uring: %s: %s\n", argv[2], strerror(errno));
	return 127;
}
