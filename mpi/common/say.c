/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One write(2) a line, like the engine's: ranks share a terminal. */
static void say(const char *kind, const char *format, va_list arguments)
{
	char line[1024];
	char host[64] = "?";
	size_t used;
	int written;

	gethostname(host, sizeof(host) - 1);
	used = (size_t)snprintf(line, sizeof(line), "onecopy: [%s:%d] %s: ", host, (int)getpid(),
				kind);
	written = vsnprintf(line + used, sizeof(line) - used, format, arguments);
	if (written > 0)
		used += (size_t)written;
	if (used > sizeof(line) - 1)
		used = sizeof(line) - 1;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		return; /* a closed stderr is not ours to report */
}

void oci_mpi_info(const char *format, ...)
{
	const char *level = getenv("ONECOPY_LOG");
	va_list arguments;

	if (!level || (strcmp(level, "info") && strcmp(level, "debug")))
		return;
	va_start(arguments, format);
	say("info", format, arguments);
	va_end(arguments);
}

void oci_mpi_warn(const char *format, ...)
{
	const char *level = getenv("ONECOPY_LOG");
	va_list arguments;

	if (level && !strcmp(level, "error"))
		return;
	va_start(arguments, format);
	say("warning", format, arguments);
	va_end(arguments);
}

/* The values are those of the option table. */
bool oci_mpi_switched_off(void)
{
	static const char *const off[] = { "off", "0", "no", "false" };
	const char *text = getenv("ONECOPY");

	for (size_t i = 0; text && i < sizeof(off) / sizeof(off[0]); i++)
		if (!strcmp(text, off[i]))
			return true;
	return false;
}
