// SPDX-License-Identifier: BSD-3-Clause
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/harness/options.h"

const char *size_format(size_t bytes, char out[TEXT_SIZE_CHARS])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB" };
	int unit = 0;

	while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, TEXT_SIZE_CHARS, "%zu %s", bytes, names[unit]);
	return out;
}

void size_list_powers_of_4(struct size_list *list, size_t min, size_t max)
{
	size_t bytes;

	list->count = 0;
	for (bytes = 1; bytes <= max && list->count < SIZES_MOST; bytes *= 4) {
		if (bytes >= min) {
			list->at[list->count++] = bytes;
		}
	}
}

int range_parse(const char *text, double max, struct range *range)
{
	struct range found;
	char *end;

	errno = 0;
	found.low = strtod(text, &end);
	if (errno || end == text || *end != ':' || !(found.low >= 0) ||
	    double_parse(end + 1, found.low, max, &found.high)) {
		return -EINVAL;
	}
	*range = found;
	return 0;
}

void range_take(const char *text, struct range *range)
{
	if (range_parse(text, 1e6, range))
		usage("--token-ns takes the least and the most time of a token from rank to rank in "
		      "ns, as in 0:140.");
}
