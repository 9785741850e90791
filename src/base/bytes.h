/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of bytes as text. It is here that the shared heap, which runs inside of malloc, has it
 * too. */
#ifndef OC_BASE_BYTES_H
#define OC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As an option or a command line spells them: "65536", "64K", "1m". false: it is not. */
static inline bool oci_option_bytes(const char *text, size_t *bytes)
{
	unsigned int shift = 0;
	size_t value = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (size_t)(*text - '0'), &value))
			return false;
	switch (*text & ~0x20) {
	case 'G':
		shift += 10;
		__attribute__((fallthrough));
	case 'M':
		shift += 10;
		__attribute__((fallthrough));
	case 'K':
		shift += 10;
		text++;
		break;
	default:
		break;
	}
	if (*text || value > SIZE_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

#endif
