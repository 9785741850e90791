/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums, products, maxima and minima of numbers, with loops of our own.
 *
 * MPICH's MPI_Reduce_local() takes 0.1 us to begin with and 0.33 ns a float; here it is 0.14 ns
 * (docs/results/experiments.md, "Pieces, and sums"). The functions give the bits that MPICH's give:
 * the same operation on the same two elements (of two NaNs it may be the other one). What is not
 * here, and every operation of the program's own, is MPICH's affair.
 */
#include <stdint.h>

#include "pmpi.h"

/* Elements lie where the program put them, aligned or not. */
typedef double number_double __attribute__((aligned(1), may_alias));
typedef float number_float __attribute__((aligned(1), may_alias));
typedef int32_t number_int32 __attribute__((aligned(1), may_alias));
typedef int64_t number_int64 __attribute__((aligned(1), may_alias));
typedef uint32_t number_wrapping32 __attribute__((aligned(1), may_alias));
typedef uint64_t number_wrapping64 __attribute__((aligned(1), may_alias));

/* How elements are compared, and how they are added and multiplied: integers wrap, of either kind.
 */
#define TYPES(X)                                  \
	X(double, number_double, number_double)   \
	X(float, number_float, number_float)      \
	X(int32, number_int32, number_wrapping32) \
	X(int64, number_int64, number_wrapping64)

#define LOOP(name, operation, number, expression)                                                \
	static void operation##_##name(void *context, const void *in, void *inout, size_t count) \
	{                                                                                        \
		const number *a = in;                                                            \
		number *b = inout;                                                               \
                                                                                                 \
		(void)context;                                                                   \
		for (size_t i = 0; i < count; i++)                                               \
			b[i] = (expression);                                                     \
	}
#define LOOPS(name, number, wrapping)                       \
	LOOP(name, sum, wrapping, b[i] + a[i])              \
	LOOP(name, product, wrapping, b[i] * a[i])          \
	LOOP(name, most, number, b[i] > a[i] ? b[i] : a[i]) \
	LOOP(name, least, number, b[i] < a[i] ? b[i] : a[i])

TYPES(LOOPS)

enum kind { NONE, KIND_double, KIND_float, KIND_int32, KIND_int64 };

static bool is_unsigned(MPI_Datatype type)
{
	return type == MPI_UNSIGNED || type == MPI_UNSIGNED_LONG ||
	       type == MPI_UNSIGNED_LONG_LONG || type == MPI_UINT32_T || type == MPI_UINT64_T;
}

/* By the names of MPI; how wide they are is the compiler's affair, of C's and of Fortran's. */
static enum kind kind_of(MPI_Datatype type, size_t size)
{
	if (type == MPI_DOUBLE || type == MPI_FLOAT || type == MPI_REAL ||
	    type == MPI_DOUBLE_PRECISION)
		return size == 8 ? KIND_double : size == 4 ? KIND_float : NONE;
	if (type == MPI_INT || type == MPI_LONG || type == MPI_LONG_LONG || type == MPI_INTEGER ||
	    type == MPI_INT32_T || type == MPI_INT64_T || is_unsigned(type))
		return size == 8 ? KIND_int64 : size == 4 ? KIND_int32 : NONE;
	return NONE;
}

oci_port_function *oci_port_op_function(MPI_Op op, MPI_Datatype type, size_t size)
{
#define ROW(name, number, wrapping) \
	[KIND_##name] = { sum_##name, product_##name, most_##name, least_##name },
	static oci_port_function *const functions[][4] = { TYPES(ROW) };
	enum kind kind = kind_of(type, size);

	if (op == MPI_SUM)
		return functions[kind][0];
	if (op == MPI_PROD)
		return functions[kind][1];
	/* MPICH 4.0.2 compares unsigned numbers as signed ones: its users get what they got. */
	if (is_unsigned(type))
		return NULL;
	if (op == MPI_MAX)
		return functions[kind][2];
	return op == MPI_MIN ? functions[kind][3] : NULL;
}
