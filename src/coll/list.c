/* SPDX-License-Identifier: BSD-3-Clause */
/* The ordered lists, forced names, and plans from keys. */
#include "coll/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED(name) &oci_##name,
#define LIST(X, ID, ...) \
	static const struct oci_algorithm *const of_##ID[] = { OCI_ALGORITHMS_##ID(LISTED) };
OC_COLLECTIVE_ROWS(LIST, )
#undef LIST
#undef LISTED

static const struct list {
	const struct oci_algorithm *const *algorithm;
	unsigned int count;
} lists[OC_COLLECTIVES] = {
#define LIST(X, ID, ...) [OC_##ID] = { of_##ID, sizeof(of_##ID) / sizeof(of_##ID[0]) },
	OC_COLLECTIVE_ROWS(LIST, )
#undef LIST
};

const struct oci_algorithm *oci_algorithm(enum oc_collective collective, unsigned int index)
{
	if (collective >= OC_COLLECTIVES || index >= lists[collective].count)
		return NULL;
	return lists[collective].algorithm[index];
}

/* What may stand in ONECOPY_<COLLECTIVE>, as a list. Not one a thread: where a library is loaded
 * late there is little room for thread-local variables. */
static char valid[OC_COLLECTIVES][1024];

static void list_words(enum oc_collective collective)
{
	char *words = valid[collective];
	const size_t most = sizeof(valid[0]);
	size_t at = (size_t)snprintf(words, most, "auto, mpi");
	const struct oci_algorithm *a;

	for (unsigned int i = 0; at < most && (a = oci_algorithm(collective, i)) != NULL; i++) {
		at += (size_t)snprintf(words + at, most - at, ", %s", a->name);
		if (at < most && (a->parameter_min || a->parameter_max))
			at += (size_t)snprintf(words + at, most - at, "[:N] (%u to %u)",
					       a->parameter_min, oci_parameter_most(a));
	}
}

static void list_all_words(void)
{
	for (unsigned int c = 0; c < OC_COLLECTIVES; c++)
		list_words(c);
}

static const char *valid_words(enum oc_collective collective)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, list_all_words);
	return valid[collective];
}

static bool parse_parameter(const char *digits, const struct oci_algorithm *a, uint32_t *parameter)
{
	unsigned long value;
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	value = strtoul(digits, &end, 10);
	if (errno || *end || value < a->parameter_min || value > oci_parameter_most(a) ||
	    (!a->parameter_min && !a->parameter_max))
		return false;
	*parameter = (uint32_t)value;
	return true;
}

int oci_forced_parse(enum oc_collective collective, const char *words, struct oci_forced *forced,
		     const char **expected)
{
	size_t length = strcspn(words, ":");
	const struct oci_algorithm *a;

	if (!strcmp(words, "auto")) {
		*forced = (struct oci_forced){ .forced = false };
		return 0;
	}
	if (!strcmp(words, "mpi")) {
		*forced = (struct oci_forced){ true, { .algorithm = OCI_CHOICE_MPI } };
		return 0;
	}
	for (unsigned int i = 0; (a = oci_algorithm(collective, i)) != NULL; i++) {
		uint32_t parameter = a->parameter_default;

		if (strlen(a->name) != length || strncmp(a->name, words, length))
			continue;
		if (words[length] && !parse_parameter(words + length + 1, a, &parameter))
			break;
		*forced = (struct oci_forced){ true, { (uint8_t)i, parameter } };
		return 0;
	}
	*expected = valid_words(collective);
	return -EINVAL;
}

struct oci_plan *oci_plan_build(const struct oci_plan_key *key, int *error)
{
	const struct oci_algorithm *a = oci_algorithm(key->collective, key->algorithm);
	struct oci_builder *b;

	if (!a) {
		*error = -EINVAL;
		return NULL;
	}
	b = oci_builder_create(key);
	if (!b) {
		*error = -ENOMEM;
		return NULL;
	}
	a->build(b);
	return oci_builder_finish(b, error);
}
