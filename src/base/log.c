/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * We run inside other people's programs: no stdio (its locks and buffers are the program's), no
 * allocation, errno left as it was, and one write(2) per line so that lines of ranks that share a
 * terminal do not mix.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer lines are cut. Below PIPE_BUF, so that a pipe takes a line in one piece. */
#define LINE_BYTES 1024

static const char *const level_name[] = { "error", "warning", "info", "debug" };

/* -1: not decided yet. Two threads that decide at once store the same value. */
static int current_level = -1;

/* Not through the option table, which itself logs. A bad value is reported there. */
static int level_from_environment(void)
{
	static const char *const value[] = { "error", "warn", "info", "debug" };
	const char *text = secure_getenv("ONECOPY_LOG");

	for (int i = 0; text && i < 4; i++)
		if (!strcmp(text, value[i]))
			return i;
	return OCI_LOG_WARN;
}

bool oci_log_enabled(enum oci_log_level level)
{
	int limit = __atomic_load_n(&current_level, __ATOMIC_RELAXED);

	if (limit < 0) {
		limit = level_from_environment();
		__atomic_store_n(&current_level, limit, __ATOMIC_RELAXED);
	}
	return (int)level <= limit;
}

/* Writes all of it if the descriptor allows; a closed or full stderr is not our error to report. */
static void write_line(const char *line, size_t count)
{
	while (count) {
		ssize_t done = write(STDERR_FILENO, line, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		line += done;
		count -= (size_t)done;
	}
}

void oci_log(enum oci_log_level level, const char *format, ...)
{
	int saved = errno;
	char host[64] = "?";
	char line[LINE_BYTES];
	int prefix, body;
	size_t used;
	va_list arguments;

	if (!oci_log_enabled(level))
		return;
	gethostname(host, sizeof(host) - 1);
	prefix = snprintf(line, sizeof(line), "onecopy: [%s:%d] %s: ", host, (int)getpid(),
			  level_name[level]);
	if (prefix < 0)
		prefix = 0;
	used = (size_t)prefix;
	errno = saved; /* for %m */
	va_start(arguments, format);
	body = vsnprintf(line + used, sizeof(line) - used, format, arguments);
	va_end(arguments);
	if (body > 0)
		used += (size_t)body;
	if (used > sizeof(line) - 2) {
		used = sizeof(line) - 2;
		memcpy(line + used - 3, "...", 3);
	}
	line[used++] = '\n';
	write_line(line, used);
	errno = saved;
}
