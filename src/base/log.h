/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One line per event on standard error: "onecopy: [host:pid] warning: sentence".
 *
 * The level comes from ONECOPY_LOG (error, warn, info, debug; default warn). Whoever decides an
 * error logs it; callers pass the -errno on. Thread safe, errno is kept, and
 * a line is one write(2), cut at 1 KiB.
 */
#ifndef OC_BASE_LOG_H
#define OC_BASE_LOG_H

#include <stdbool.h>

enum oci_log_level { OCI_LOG_ERROR, OCI_LOG_WARN, OCI_LOG_INFO, OCI_LOG_DEBUG };

void oci_log(enum oci_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool oci_log_enabled(enum oci_log_level level);

#define oci_error(...) oci_log(OCI_LOG_ERROR, __VA_ARGS__)
#define oci_warn(...) oci_log(OCI_LOG_WARN, __VA_ARGS__)
#define oci_info(...) oci_log(OCI_LOG_INFO, __VA_ARGS__)
#define oci_debug(...)                                       \
	do {                                                 \
		if (oci_log_enabled(OCI_LOG_DEBUG))          \
			oci_log(OCI_LOG_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
