/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's elements are dense: `size` bytes each. Types with gaps, such as the predefined
 * MPI_DOUBLE_INT (12 bytes, extent 16), are spread out into two typed buffers before the
 * operation's function sees them, a chunk at a time, and gathered again.
 */
#include "common/reduction.h"

#include <errno.h>
#include <stdlib.h>

/* The two typed buffers together stay in a second-level cache. */
#define CHUNK_BYTES ((size_t)32 << 10)

static void note(struct oci_mpi_reduction *self, int error)
{
	if (error != MPI_SUCCESS)
		self->failed = error;
}

/* The MPI's function points its elements at their origin, the engine at their first byte. */
static void apply_dense(void *context, const void *in, void *inout, size_t count)
{
	struct oci_mpi_reduction *self = context;

	note(self, oci_port_op_apply(self->mpi, (void *)((uintptr_t)in - self->lower),
				     (void *)((uintptr_t)inout - self->lower), count, self->type));
}

static void apply_spread(void *context, const void *in, void *inout, size_t count)
{
	struct oci_mpi_reduction *self = context;
	size_t size = self->op.bytes;
	const char *from = in;
	char *to = inout;
	size_t chunk;

	for (; count && !self->failed; count -= chunk, from += chunk * size, to += chunk * size) {
		chunk = count < self->chunk ? count : self->chunk;
		note(self, oci_port_unpack(self->in, from, chunk, self->type));
		note(self, oci_port_unpack(self->inout, to, chunk, self->type));
		note(self, oci_port_op_apply(self->mpi, self->in, self->inout, chunk, self->type));
		note(self, oci_port_pack(to, self->inout, chunk, self->type));
	}
}

/*
 * Two buffers of `chunk` elements. The bytes of an element start `true_lb` after its origin, and it
 * is the origin that must be aligned for the members behind it to be.
 */
static int open_scratch(struct oci_mpi_reduction *self, const struct oci_port_type *shape)
{
	ptrdiff_t extent = shape->extent, gap = shape->true_lb, span;
	uintptr_t origin;

	self->chunk = extent > 0 && (size_t)extent < CHUNK_BYTES ? CHUNK_BYTES / (size_t)extent : 1;
	span = shape->true_extent + (ptrdiff_t)(self->chunk - 1) * extent;
	span = (span + (gap & 63) + 63) & ~(ptrdiff_t)63;
	/* User functions may read the gaps as part of a struct: not uninitialised. */
	self->scratch = calloc(2, (size_t)span);
	if (!self->scratch)
		return -ENOMEM;
	origin = (uintptr_t)self->scratch - (uintptr_t)(gap & ~(ptrdiff_t)63);
	self->in = (char *)origin;
	self->inout = (char *)(origin + (uintptr_t)span);
	return 0;
}

int oci_mpi_reduction_open(struct oci_mpi_reduction *self, MPI_Op op, MPI_Datatype type,
			   const struct oci_port_type *shape)
{
	oci_port_function *function = oci_port_op_function(op, type, shape->size);

	*self = (struct oci_mpi_reduction){
		.op = {
			.apply = function ? function : shape->dense ? apply_dense : apply_spread,
			.context = self,
			.bytes = shape->size,
			.commutative = oci_port_op_commutes(op),
			/*
			 * The type is left out on purpose: ranks that mix equal types under
			 * different names (MPI_INT and MPI_INTEGER) work with the MPI alone and
			 * must go on to.
			 */
			.id = oci_port_op_id(op),
			.any_thread = function ||
				      (shape->dense && oci_port_op_any_thread(op, type)),
		},
		.mpi = op,
		.type = type,
		.lower = (uintptr_t)shape->true_lb,
	};
	return shape->dense ? 0 : open_scratch(self, shape);
}

void oci_mpi_reduction_close(struct oci_mpi_reduction *self)
{
	free(self->scratch);
	self->scratch = NULL;
}
