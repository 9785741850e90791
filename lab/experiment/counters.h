/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counters that the processes of a job leave in ONECOPY_STATS_DIR, added up.
 *
 * A process's file onecopy.HOST.PID.RANK.json and the sum have one form:
 *   {"onecopy": VERSION, "ranks": N, "job_ranks": N, "front_ends": [{"library", "ranks"}...],
 *    "collectives": [{"collective", "algorithm", "mechanism", "calls", "bytes", "recovered"}...],
 *    "two_levels": [{"collective", "calls", "bytes"}...],
 *    "handed_back": [{"collective", "reason", "calls"}...],
 *    "mapped": {"peers", "address_space", "bytes",
 *               "by_kernel": [{"reason", "copies", "bytes"}...]},
 *    "messages": {"copies", "bytes", "shared_copies", "shared_bytes", "pushed_bytes",
 *                 "by_kernel": [{"reason", "copies", "bytes"}...]},
 *    "heap": {"heaps", "bytes_in_use", "most_bytes_in_use", "bytes_given_back",
 *             "bytes_in_large_pages"},
 *    "kmod": {"bytes", "missed_copies", "regions", "reused", "refused", "gone", "replaced"}}
 * where a process's file has "rank", "pid" and "host" instead of "ranks", and "library" (the file
 * that served it: the component for Open MPI, the preload library) instead of "front_ends".
 * "job_ranks" are those of its MPI_COMM_WORLD, in the sum of the largest.
 */
#ifndef EXPERIMENT_COUNTERS_H
#define EXPERIMENT_COUNTERS_H

#include <jansson.h>
#include <stdio.h>

/*
 * The sum over all *.json files in dir; a file that is truncated or not ours is named on standard
 * error and left out. NULL: the directory cannot be read (said).
 */
json_t *counters_collect(const char *dir);

/* As tables for people; `why_none` is the sentence for a job that left no file at all. */
void counters_print(const json_t *counters, FILE *stream, const char *why_none);

/* Removes the directory with the files that are in it. */
void counters_remove(const char *dir);

#endif
