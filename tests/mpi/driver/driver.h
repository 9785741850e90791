/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios of the MPI-level tests; each prints what it did and counts its failures. */
#ifndef ONECOPY_TESTS_DRIVER_H
#define ONECOPY_TESTS_DRIVER_H

enum { TEST_SKIPPED = 77 };

struct scenario {
	const char *name;
	void (*run)(char **words);
	struct scenario *next;
};

/* `words`: what follows the scenario's name on the command line, NULL-terminated. */
#define SCENARIO(name)                                                           \
	static void name##_scenario(char **words);                               \
	__attribute__((constructor)) static void add_##name(void)                \
	{                                                                        \
		static struct scenario scenario = { #name, name##_scenario, 0 }; \
                                                                                 \
		driver_add(&scenario);                                           \
	}                                                                        \
	static void name##_scenario(__attribute__((unused)) char **words)

void driver_add(struct scenario *scenario);
/* The number of ranks that a word says; ends the driver if it does not. */
int driver_ranks(const char *word);
/* Ends the driver as skipped, with the reason, where the mechanism does not work. */
void driver_need_mechanism(const char *name);

#endif
