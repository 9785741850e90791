/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenarios of the MPI-level tests; each prints what it did and counts its failures. */
#ifndef ONECOPY_TESTS_DRIVER_H
#define ONECOPY_TESTS_DRIVER_H

enum { TEST_SKIPPED = 77 };

/* `words`: what follows the scenario's name on the command line, NULL-terminated. */
void bytes_scenario(char **words);
void random_scenario(char **words);
void program_scenario(char **words);
void alloc_scenario(char **words);
void heap_scenario(char **words);
void beside_scenario(char **words);
void large_scenario(char **words);
void asked_scenario(char **words);
void reproducible_scenario(char **words);
void switched_off_scenario(char **words);
void device_scenario(char **words);
void forced_scenario(char **words);
void communicators_scenario(char **words);
void denied_scenario(char **words);
void recover_scenario(char **words);
void refused_scenario(char **words);
void kill_scenario(char **words);
void mismatch_scenario(char **words);
void command_scenario(char **words);
void environment_scenario(char **words);
void manual_scenario(char **words);
void stock_scenario(char **words);
void hung_scenario(char **words);
void report_scenario(char **words);
void signals_scenario(char **words);
void hang_scenario(char **words);
void foreign_stats_scenario(char **words);

void surroundings_scenario(char **words);
void refused_calls_scenario(char **words);
void memory_group_scenario(char **words);
void files_scenario(char **words);
void kill_random_scenario(char **words);
void kill_finalize_scenario(char **words);

void table_scenario(char **words);
void soak_scenario(char **words);
void foreign_scenario(char **words);
void both_scenario(char **words);

/* The number of ranks that a word says; ends the driver if it does not. */
int driver_ranks(const char *word);
/* Ends the driver as skipped, with the reason, where the mechanism does not work. */
void driver_need_mechanism(const char *name);

#endif
