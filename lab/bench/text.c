// SPDX-License-Identifier: BSD-3-Clause
#include "text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lab/harness/options.h"

static const struct {
	const char *name;
	int shift;
} units[] = {
	{ "", 0 },    { "B", 0 },    { "K", 10 }, { "KB", 10 }, { "KiB", 10 }, { "M", 20 },
	{ "MB", 20 }, { "MiB", 20 }, { "G", 30 }, { "GB", 30 }, { "GiB", 30 },
};

int size_parse(const char *text, size_t *bytes)
{
	unsigned long long number;
	char *end;
	size_t i;

	/* strtoull takes "-1" and leading blanks; a size has neither. */
	if (text[0] < '0' || text[0] > '9') {
		return -EINVAL;
	}
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || number == 0 || number > (1ULL << 40)) {
		return -EINVAL;
	}
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(end, units[i].name) == 0) {
			break;
		}
	}
	if (i == sizeof(units) / sizeof(units[0]) || number > ((1ULL << 40) >> units[i].shift)) {
		return -EINVAL;
	}
	*bytes = (size_t)number << units[i].shift;
	return 0;
}

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

int size_list_parse(const char *text, struct size_list *list, char error[TEXT_ERROR_CHARS])
{
	struct size_list found = { .n = 0 };
	char *copy = strdup(text), *rest = copy, *word;
	int err = -EINVAL;

	if (!copy) {
		snprintf(error, TEXT_ERROR_CHARS, "Out of memory while reading a list of sizes.");
		return -ENOMEM;
	}
	while ((word = strsep(&rest, ","))) {
		if (found.n == TEXT_MAX_SIZES) {
			snprintf(error, TEXT_ERROR_CHARS, "More than %d sizes were given.",
				 TEXT_MAX_SIZES);
			goto out;
		}
		if (size_parse(word, &found.bytes[found.n])) {
			snprintf(
				error, TEXT_ERROR_CHARS,
				"'%.60s' is not a size: write a number of bytes above 0, with K, M "
				"or G for powers of 1024, as in 4,1K,64K,1M.",
				word);
			goto out;
		}
		found.n++;
	}
	*list = found;
	err = 0;
out:
	free(copy);
	return err;
}

void size_list_powers_of_4(struct size_list *list, size_t min, size_t max)
{
	size_t bytes;

	list->n = 0;
	for (bytes = 1; bytes <= max && list->n < TEXT_MAX_SIZES; bytes *= 4) {
		if (bytes >= min) {
			list->bytes[list->n++] = bytes;
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

void size_list_take(const char *text, struct size_list *list)
{
	char error[TEXT_ERROR_CHARS];

	if (size_list_parse(text, list, error))
		usage("%s", error);
}

void range_take(const char *text, struct range *range)
{
	if (range_parse(text, 1e6, range))
		usage("--token-ns takes the least and the most time of a token from rank to rank in "
		      "ns, as in 0:140.");
}
