// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Dual BSD/GPL. What the CALC nodes of graphs compute: integers alone. Registers of floating point
 * are the processes': to have them in the kernel costs more than short sums, and is not the same on
 * two architectures. */
#include "onecopy.h"

#include <linux/minmax.h>
#include <linux/string.h>

/* Signed and unsigned of each size in turn, then float and double. */
static const u8 type_bytes[] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8 };
#define FLOAT 8

unsigned int onecopy_calc_bytes(unsigned int type)
{
	return type < ARRAY_SIZE(type_bytes) ? type_bytes[type] : 0;
}

int onecopy_calc_check(unsigned int op, unsigned int type)
{
	/* Behind the predefined ones are the program's, whose type is 0. */
	if (op > ONECOPY_CALC_XOR)
		return type ? -EINVAL : -EOPNOTSUPP;
	if (type >= ARRAY_SIZE(type_bytes) || (type >= FLOAT && op >= ONECOPY_CALC_AND))
		return -EINVAL;
	return type >= FLOAT && op != ONECOPY_CALC_COPY ? -EOPNOTSUPP : 0;
}

static u64 combine(unsigned int op, bool is_signed, u64 a, u64 b)
{
	switch (op) {
	case ONECOPY_CALC_SUM:
		return a + b;
	case ONECOPY_CALC_PROD:
		return a * b;
	case ONECOPY_CALC_MIN:
		return is_signed ? min_t(s64, a, b) : min(a, b);
	case ONECOPY_CALC_MAX:
		return is_signed ? max_t(s64, a, b) : max(a, b);
	case ONECOPY_CALC_AND:
		return a & b;
	case ONECOPY_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* Each type widened to 64 bits: what is cut off again is right for all of the operations. */
#define COMBINE(T)                                                                             \
	do {                                                                                   \
		for (size_t i = 0; i < count; i++)                                             \
			((T *)to)[i] = (T)combine(op, (T)-1 < (T)1, (u64)((const T *)from)[i], \
						  (u64)((T *)to)[i]);                          \
	} while (0)

void onecopy_calc(unsigned int op, unsigned int type, void *to, const void *from, size_t count)
{
	if (op == ONECOPY_CALC_COPY) {
		memmove(to, from, count * type_bytes[type]);
		return;
	}
	switch (type) {
	case 0:
		COMBINE(s8);
		break;
	case 1:
		COMBINE(u8);
		break;
	case 2:
		COMBINE(s16);
		break;
	case 3:
		COMBINE(u16);
		break;
	case 4:
		COMBINE(s32);
		break;
	case 5:
		COMBINE(u32);
		break;
	case 6:
		COMBINE(s64);
		break;
	case 7:
		COMBINE(u64);
		break;
	}
}
