/* SPDX-License-Identifier: BSD-3-Clause */
#include "lab/tune/between.h"

#include "lab/tune/fit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* From here on bytes count for more than the start of a message. */
#define LONG 65536.0

bool oci_tune_network_line(struct oci_tune_network *n, const char *line)
{
	double bytes, s;

	if (sscanf(line, "half %lf %lf", &bytes, &s) == 2) {
		if (n->count == OCI_TUNE_NETWORK_SIZES)
			return false;
		n->bytes[n->count] = bytes;
		n->half_s[n->count++] = s;
		return true;
	}
	if (sscanf(line, "eager %lf", &bytes) == 1) {
		n->eager_bytes = (size_t)bytes;
		return true;
	}
	return sscanf(line, "send %lf", &n->send_s) == 1 ||
	       sscanf(line, "receive %lf", &n->receive_s) == 1 ||
	       sscanf(line, "gap %lf", &n->gap_s) == 1;
}

__attribute__((format(printf, 6, 7))) static void give(struct oci_model *model,
						       const struct oci_tune_network *n,
						       const char *name, double value,
						       double residual, const char *method, ...)
{
	const struct oci_term_info *info = oci_term_named(name);
	struct oci_term *term = oci_term_of(model, info);
	time_t now = time(NULL);
	struct tm date;
	va_list arguments;

	*term = (struct oci_term){ .value = fmin(fmax(value, info->least), info->most),
				   .residual = residual,
				   .given = true };
	snprintf(term->source, sizeof(term->source), "measured by %s", n->mpi);
	va_start(arguments, method);
	vsnprintf(term->method, sizeof(term->method), method, arguments);
	va_end(arguments);
	snprintf(term->host, sizeof(term->host), "%s", n->host);
	if (gmtime_r(&now, &date))
		strftime(term->date, sizeof(term->date), "%Y-%m-%d", &date);
}

int oci_tune_network_terms(const struct oci_tune_network *n, struct oci_model *model)
{
	struct oci_fit_line line;
	double overhead;
	size_t small = 0;

	while (small < n->count && n->bytes[small] < LONG)
		small++;
	if (!small || n->count < small + 2 || n->send_s <= 0 || n->receive_s <= 0 || n->gap_s <= 0)
		return -ENODATA;
	line = oci_fit_line(n->bytes + small, n->half_s + small, n->count - small);
	/* A message's way is no shorter than what both CPUs do for it. */
	overhead = fmin((n->send_s + n->receive_s) / 2, n->half_s[0] / 2);
	give(model, n, "net.overhead", overhead, 0,
	     "the mean of MPI_Send of a byte, %.3g us, and MPI_Recv of one that is there, %.3g us",
	     1e6 * n->send_s, 1e6 * n->receive_s);
	give(model, n, "net.latency", n->half_s[0] - 2 * overhead, 0,
	     "half of a byte's way there and back, %.3g us, less two overheads",
	     1e6 * n->half_s[0]);
	give(model, n, "net.gap", n->gap_s, 0,
	     "of many messages of a byte, as their receiver has them");
	give(model, n, "net.gap_byte", line.slope, line.residual,
	     "the slope of half of there and back over %zu sizes of %.0f KiB and more",
	     n->count - small, LONG / 1024);
	if (n->eager_bytes)
		give(model, n, "net.eager", (double)n->eager_bytes, 0,
		     "the largest power of two that MPI_Send gives away before its receiver asks");
	return 0;
}
