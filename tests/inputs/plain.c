/* SPDX-License-Identifier: BSD-3-Clause */
/* No MPI at all: allocates, says who it is, and ends with 7. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	char *memory = malloc(10 << 20);

	if (!memory)
		return 1;
	memset(memory, 1, 10 << 20);
	printf("ran, user %d, byte %d\n", (int)geteuid(), memory[12345]);
	free(memory);
	return 7;
}
