/* SPDX-License-Identifier: BSD-3-Clause */
/* What plain numbers of a test are: pure functions of a seed and a place. */
#ifndef ONECOPY_TESTS_DATA_H
#define ONECOPY_TESTS_DATA_H

#include "layout.h"

#include <stdint.h>

uint64_t data_seed(uint64_t call, int rank, int block);
/* Numbers `first` to `first` + `count` - 1, put at the start of the buffer. */
void data_fill(void *buffer, enum plain plain, uint64_t seed, size_t first, size_t count);
/* Those of the buffer with those of another seed, by the layout's operation. */
void data_combine(void *buffer, enum plain plain, uint64_t seed, size_t first, size_t count);
uint64_t data_hash(uint64_t hash, const void *buffer, size_t bytes);

#endif
