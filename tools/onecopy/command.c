/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_end(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	say("standard output: %s", strerror(errno));
	return 1;
}

uint32_t command_ranks(const char *text, uint32_t least, uint32_t most)
{
	unsigned long ranks;
	char *end;

	errno = 0;
	ranks = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || ranks < 1 || ranks > most)
		usage("'%s' is not a number of ranks; valid: %u to %u", text, least, most);
	if (ranks < least)
		usage("--ranks %lu: a collective of one rank moves nothing; valid: %u and "
		      "more",
		      ranks, least);
	return (uint32_t)ranks;
}
