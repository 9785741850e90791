/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "copy/memcpy.h"
#include "lab/topo/machine.h"
#include "support/test.h"

#define ROOM 8192
#define EDGE 192

TEST(every_alignment_and_length_arrives_and_nothing_beside_it)
{
	static const size_t lengths[] = { 0,	1,    63,   64,	  65,	127,  128,  129,  191, 255,
					  4095, 4096, 4097, 4160, 4223, 4224, 4351, 5003, 7777 };
	uint8_t *from = malloc(ROOM), *to = malloc(ROOM), *expected = malloc(ROOM);

	for (size_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		for (size_t shift = 0; shift < 66; shift += 3) {
			size_t target = EDGE / 2 + shift, source = 65 - shift;

			/* Through the caches and past them. */
			for (size_t whole = 0; whole < 2; whole++) {
				memset(to, 0xee, ROOM);
				memset(expected, 0xee, ROOM);
				memcpy(expected + target, from + source, lengths[l]);
				oci_memcpy(to + target, from + source, lengths[l],
					   whole ? SIZE_MAX : 0);
				assert_memory_equal(to, expected, ROOM);
			}
		}
	}
	free(from);
	free(to);
	free(expected);
}

TEST(the_threshold_is_a_share_of_the_largest_cache)
{
	const struct oci_topo *topo = oci_topo_local();
	struct oci_topo_summary s = { 0 };

	if (!topo)
		oct_skip("hwloc says nothing of this machine");
	oci_topo_summary(topo, &s);
	if (!s.l3_bytes || !s.cores_per_l3)
		oct_skip("no L3 cache is known here");
	assert_int_equal(oci_memcpy_dma_min_here(), s.l3_bytes / (2 * s.cores_per_l3));
}

TEST(what_is_more_than_dma_min_goes_past_the_caches)
{
	size_t most = oci_memcpy_dma_min_here();

	if (most == SIZE_MAX || most < (256 << 10))
		oct_skip("no cache is known here");
	assert_false(oci_memcpy_goes_past(most, most));
	assert_true(oci_memcpy_goes_past(most + 1, most + 1));
	/* A part of it, but for short ones. */
	assert_true(oci_memcpy_goes_past(4096, most + 1));
	assert_false(oci_memcpy_goes_past(4095, most + 1));
}
