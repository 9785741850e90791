/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deny CALL,CALL... ERROR PROGRAM [ARGUMENT...]: runs it where these system calls give ERROR, as in
 * deny process_vm_readv,process_vm_writev EPERM ./bytes
 */
#include "filter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int error_of(const char *name)
{
	static const int errors[] = { EPERM, ENOSYS, EINVAL, ENOMEM, EOPNOTSUPP, EMFILE };

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(strerrorname_np(errors[i]), name))
			return errors[i];
	return 0;
}

int main(int argc, char **argv)
{
	int error = argc > 3 ? error_of(argv[2]) : 0, err;

	if (!error) {
		fprintf(stderr, "usage: deny CALL,CALL... ERROR PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	err = filter_install(argv[1], error);
	if (err) {
		fprintf(stderr, "deny: the filter cannot be installed: %s\n", strerror(-err));
		return 1;
	}
	execv(argv[3], argv + 3);
	fprintf(stderr, "deny: %s: %s\n", argv[3], strerror(errno));
	return 127;
}
