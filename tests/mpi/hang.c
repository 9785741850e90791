/* SPDX-License-Identifier: BSD-3-Clause */
/* hang FILE: all ranks but rank 1 wait for it in a Bcast. FILE gets the ranks' process numbers. */
#include "case.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char bytes[64];

static __attribute__((noinline)) void stays_out(void)
{
	for (;;)
		pause();
}

static __attribute__((noinline)) void comes_alone(void)
{
	MPI_Bcast(bytes, sizeof(bytes), MPI_CHAR, 1, MPI_COMM_WORLD);
	case_fail("rank 1 has come");
}

int main(int argc, char **argv)
{
	char line[32];
	int rank, fd;

	case_begin(&argc, &argv, &rank, NULL);
	if (argc != 2 || (fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600)) < 0)
		case_fail("usage: hang FILE");
	snprintf(line, sizeof(line), "%d\n", (int)getpid());
	if (write(fd, line, strlen(line)) < 0)
		case_fail("%s cannot be written", argv[1]);
	for (int i = 0; i < 10; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1)
		stays_out();
	comes_alone();
	return 0;
}
