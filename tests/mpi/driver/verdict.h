/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a job did what it was meant to. A test may not pass because nothing was tested: what
 * served the calls is asserted from onecopy's statistics.
 */
#ifndef ONECOPY_TESTS_VERDICT_H
#define ONECOPY_TESTS_VERDICT_H

#include "job.h"

#include <onecopy/collectives.h>

enum { COLLECTIVES = OC_COLLECTIVES };
extern const char *const collective_names[COLLECTIVES];

/* What is said of a failed expectation is printed with the job's output; counted for the exit. */
extern int verdict_failures;
void verdict_fail(const struct job_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The test's one line, if nothing failed. */
void verdict_done(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the driver as skipped where the program says so. */
void verdict_skip(const struct job_result *result);

/* Ended by itself with status 0. Everything else is a failure. */
bool verdict_ended_well(const struct job_result *result, const char *what);
/* Runs the job: has it ended well? Ends the driver as skipped where the program says so. */
bool verdict_run(const struct job *job, struct job_result *result, const char *what);

/* How often `word` is in its output. */
int verdict_count(const struct job_result *result, const char *word);
/* "expect COLLECTIVE CALLS" in the output of the program; 0: it is not there. */
long verdict_expected(const struct job_result *result, const char *collective);
/* The word behind `key` at the start of a line, copied to word; false: there is no such line. */
bool verdict_word(const struct job_result *result, const char *key, char *word, size_t bytes);

/* A number of a part of the statistics, "heap" or "messages". */
long verdict_number(const struct job_result *result, const char *part, const char *name);
/*
 * Calls in the statistics; NULL for algorithm or mechanism: any. An algorithm without a parameter
 * stands for itself with every parameter, a mechanism for every combination that it is part of.
 */
long verdict_served(const struct job_result *result, const char *collective, const char *algorithm,
		    const char *mechanism);
/* Of all collectives for NULL. */
long verdict_recovered(const struct job_result *result, const char *collective);
/* Without those that the MPI made itself. */
long verdict_handed_back(const struct job_result *result, const char *collective);
/* Of them those that a word or a tuning file says so of. */
long verdict_left_to_mpi(const struct job_result *result);
/* Of them those whose ranks could not form one. */
long verdict_without_teams(const struct job_result *result);
/*
 * Fails where calls were handed back for another reason than one that has these words in it.
 */
void verdict_handed_back_only(const struct job_result *result, const char *words);

/*
 * All calls of the collective that the program expects, and no others, were served: by this
 * algorithm and by this mechanism alone (NULL: any), none recovered, none handed back.
 */
void verdict_served_exactly(const struct job_result *result, const char *collective,
			    const char *algorithm, const char *mechanism);
/*
 * As above for each collective, but the MPI itself may have made further ones. A program that
 * expects nothing at all is a failure.
 */
void verdict_served_all(const struct job_result *result, const char *mechanism);
/* As above, but others may have been handed back. */
void verdict_served_at_least(const struct job_result *result, const char *mechanism);

#endif
