/* SPDX-License-Identifier: BSD-3-Clause */
/* CALC: the predefined operations, and the user's. */
#include "graph/packed.h"

#include <string.h>

size_t oci_graph_type_bytes(unsigned int type)
{
	static const uint8_t bytes[OC_GRAPH_TYPES] = { 1, 1, 2, 2, 4, 4, 8, 8, 4, 8 };

	return type < OC_GRAPH_TYPES ? bytes[type] : 0;
}

bool oci_graph_has_op(unsigned int op, unsigned int type)
{
	return type < OC_GRAPH_TYPES &&
	       (op < OC_GRAPH_AND || (op < OC_GRAPH_USER && type < OC_GRAPH_FLOAT));
}

#define LOOP(T, what)                                \
	do {                                         \
		const T *a = from;                   \
		T *b = to;                           \
                                                     \
		for (uint64_t i = 0; i < count; i++) \
			b[i] = (T)(what);            \
	} while (0)

/* U: unsigned and at least an int, so that nothing overflows. */
#define ARITHMETIC(T, U)                            \
	case OC_GRAPH_SUM:                          \
		LOOP(T, (U)a[i] + (U)b[i]);         \
		break;                              \
	case OC_GRAPH_PROD:                         \
		LOOP(T, (U)a[i] * (U)b[i]);         \
		break;                              \
	case OC_GRAPH_MIN:                          \
		LOOP(T, a[i] < b[i] ? a[i] : b[i]); \
		break;                              \
	case OC_GRAPH_MAX:                          \
		LOOP(T, a[i] > b[i] ? a[i] : b[i]); \
		break;

#define BITS(T)                       \
	case OC_GRAPH_AND:            \
		LOOP(T, a[i] & b[i]); \
		break;                \
	case OC_GRAPH_OR:             \
		LOOP(T, a[i] | b[i]); \
		break;                \
	case OC_GRAPH_XOR:            \
		LOOP(T, a[i] ^ b[i]); \
		break;

#define INTEGERS(name, T, U)                                                          \
	static void name(unsigned int op, const void *from, void *to, uint64_t count) \
	{                                                                             \
		switch (op) {                                                         \
			ARITHMETIC(T, U)                                              \
			BITS(T)                                                       \
		}                                                                     \
	}
#define FLOATS(name, T)                                                               \
	static void name(unsigned int op, const void *from, void *to, uint64_t count) \
	{                                                                             \
		switch (op) {                                                         \
			ARITHMETIC(T, T)                                              \
		}                                                                     \
	}

/* clang-format off */
INTEGERS(calc_int8, int8_t, uint32_t)
INTEGERS(calc_uint8, uint8_t, uint32_t)
INTEGERS(calc_int16, int16_t, uint32_t)
INTEGERS(calc_uint16, uint16_t, uint32_t)
INTEGERS(calc_int32, int32_t, uint32_t)
INTEGERS(calc_uint32, uint32_t, uint32_t)
INTEGERS(calc_int64, int64_t, uint64_t)
INTEGERS(calc_uint64, uint64_t, uint64_t)
FLOATS(calc_float, float)
FLOATS(calc_double, double)
/* clang-format on */

void oci_graph_calc(const struct oci_graph_node *node, const struct oc_graph_buffer *buffers,
		    const struct oc_op *ops)
{
	static void (*const calc[])(unsigned int, const void *, void *, uint64_t) = {
		[OC_GRAPH_INT8] = calc_int8,   [OC_GRAPH_UINT8] = calc_uint8,
		[OC_GRAPH_INT16] = calc_int16, [OC_GRAPH_UINT16] = calc_uint16,
		[OC_GRAPH_INT32] = calc_int32, [OC_GRAPH_UINT32] = calc_uint32,
		[OC_GRAPH_INT64] = calc_int64, [OC_GRAPH_UINT64] = calc_uint64,
		[OC_GRAPH_FLOAT] = calc_float, [OC_GRAPH_DOUBLE] = calc_double,
	};
	const void *from = (const char *)buffers[node->from].base + node->from_offset;
	void *to = (char *)buffers[node->buffer].base + node->offset;

	if (node->op >= OC_GRAPH_USER) {
		const struct oc_op *op = &ops[node->op - OC_GRAPH_USER];

		op->apply(op->context, from, to, node->count);
	} else if (node->op == OC_GRAPH_COPY) {
		memmove(to, from, node->count * oci_graph_type_bytes(node->type));
	} else {
		calc[node->type](node->op, from, to, node->count);
	}
}
