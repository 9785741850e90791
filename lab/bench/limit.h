/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The physical limit of a collective that moves every byte once: its copies by memcpy, by all CPUs
 * that its ranks have. (One that stores what it has read to several places at once reads less.)
 */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include "collective.h"

/*
 * Bytes that this rank copies, its share of what all have to copy. A reduction reads p operands and
 * writes one result, where p copies would read p and write p: so its bytes are half of those read
 * and written, as those of a copy are. 0 where more CPUs than @cpus would be needed for this rank
 * to help, and for a barrier.
 */
size_t limit_share(const struct collective_call *call, int cpus);

#endif
