/* SPDX-License-Identifier: BSD-3-Clause */
/* deny PROGRAM [ARGUMENT...]: runs it where process_vm_readv and process_vm_writev are forbidden.
 */
#include "filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* Otherwise the test would pass without having tested anything. */
static int is_denied(void)
{
	char from = 1, to = 0;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == EPERM;
}

int main(int argc, char **argv)
{
	int err;

	if (argc < 2)
		return 2;
	err = filter_install();
	if (err) {
		fprintf(stderr, "deny: the filter cannot be installed: %s\n", strerror(-err));
		return 1;
	}
	if (!is_denied()) {
		fprintf(stderr, "deny: process_vm_readv still works\n");
		return 1;
	}
	execv(argv[1], argv + 1);
	fprintf(stderr, "deny: %s: %s\n", argv[1], strerror(errno));
	return 127;
}
