/* SPDX-License-Identifier: BSD-3-Clause */
/* What the C programs here share and is not their subject: numbers that look random, and options.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64's finaliser: a well mixed function of its argument. */
static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* An option: a flag, a number, or what `take` reads. */
struct known_option {
	const char *name;
	uint64_t *number, min, max;
	bool *flag;
	bool (*take)(const char *text);
};

/* False: it is no such number, which opterr = 0 leaves out as it does getopt's own sentences. */
static inline bool take_number(const struct known_option *o, const char *text, const char *program)
{
	char *end;
	uint64_t parsed = strtoull(text, &end, 10);
	bool right = text[0] >= '0' && text[0] <= '9' && !*end && parsed >= o->min &&
		     parsed <= o->max;

	if (right)
		*o->number = parsed;
	else if (opterr)
		fprintf(stderr, "%s: --%s: '%s' is not a number from %llu to %llu\n", program,
			o->name, text, (unsigned long long)o->min, (unsigned long long)o->max);
	return right;
}

enum { OPTIONS_MOST = 16 };

/* All there are, up to one without a name. Every rank parses alike; only the talkative one says
 * what is wrong. */
static inline bool parse_options(int argc, char **argv, bool talk, const struct known_option *known)
{
	const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0];
	struct option rows[OPTIONS_MOST] = { { NULL, 0, NULL, 0 } };
	bool right = true;
	int c;

	for (int i = 0; known[i].name; i++)
		rows[i] = (struct option){ known[i].name,
					   known[i].flag ? no_argument : required_argument, NULL,
					   i };
	opterr = talk;
	while (right && (c = getopt_long(argc, argv, "", rows, NULL)) != -1) {
		if (c == '?')
			right = false;
		else if (known[c].flag)
			*known[c].flag = true;
		else if (known[c].take)
			right = known[c].take(optarg);
		else
			right = take_number(&known[c], optarg, program);
	}
	if (right && optind < argc && talk)
		fprintf(stderr, "%s: unexpected argument '%s'\n", program, argv[optind]);
	return right && optind == argc;
}

#endif
