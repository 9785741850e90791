/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI_Op as the engine's operation, so that predefined and user-defined operations, C and
 * Fortran, run the MPI's own functions.
 *
 * The engine's elements are dense: `size` bytes each. Types with gaps, such as the predefined
 * MPI_DOUBLE_INT (12 bytes, extent 16), are spread out into two typed buffers before the
 * operation's function sees them, a chunk at a time, and gathered again.
 */
#include "component.h"

#include <stdlib.h>

/* The two typed buffers together stay in a second-level cache. */
#define CHUNK_BYTES ((size_t)32 << 10)

/* The MPI's function points its elements at their origin, the engine at their first byte. */
static void apply_dense(void *context, const void *in, void *inout, size_t count)
{
	struct oci_ompi_reduction *self = context;
	uintptr_t lower = (uintptr_t)self->type->super.true_lb;

	ompi_op_reduce(self->mpi, (void *)((uintptr_t)in - lower),
		       (void *)((uintptr_t)inout - lower), count, self->type);
}

static void apply_spread(void *context, const void *in, void *inout, size_t count)
{
	struct oci_ompi_reduction *self = context;
	size_t size = self->op.bytes;
	const char *from = in;
	char *to = inout;
	size_t chunk;

	for (; count; count -= chunk, from += chunk * size, to += chunk * size) {
		chunk = count < self->chunk ? count : self->chunk;
		if (oci_ompi_unpack(self->in, from, chunk, self->type) != OMPI_SUCCESS ||
		    oci_ompi_unpack(self->inout, to, chunk, self->type) != OMPI_SUCCESS) {
			self->failed = true;
			return;
		}
		ompi_op_reduce(self->mpi, self->in, self->inout, chunk, self->type);
		if (oci_ompi_pack(to, self->inout, chunk, self->type) != OMPI_SUCCESS) {
			self->failed = true;
			return;
		}
	}
}

/*
 * Two buffers of `chunk` elements. The bytes of an element start `gap` after its origin, and it is
 * the origin that must be aligned for the members behind it to be.
 */
static int open_scratch(struct oci_ompi_reduction *self)
{
	ptrdiff_t lower, extent, span, gap;
	uintptr_t origin;

	ompi_datatype_get_extent(self->type, &lower, &extent);
	self->chunk = extent > 0 && (size_t)extent < CHUNK_BYTES ? CHUNK_BYTES / (size_t)extent : 1;
	span = opal_datatype_span(&self->type->super, self->chunk, &gap);
	span = (span + (gap & 63) + 63) & ~(ptrdiff_t)63;
	/* User functions may read the gaps as part of a struct: not uninitialised. */
	self->scratch = calloc(2, (size_t)span);
	if (!self->scratch)
		return OMPI_ERR_OUT_OF_RESOURCE;
	origin = (uintptr_t)self->scratch - (uintptr_t)(gap & ~(ptrdiff_t)63);
	self->in = (char *)origin;
	self->inout = (char *)(origin + (uintptr_t)span);
	return OMPI_SUCCESS;
}

int oci_ompi_reduction_open(struct oci_ompi_reduction *self, ompi_op_t *op, oci_ompi_type *type)
{
	bool dense = oci_ompi_dense(type);

	*self = (struct oci_ompi_reduction){
		.op = {
			.apply = dense ? apply_dense : apply_spread,
			.context = self,
			.bytes = type->super.size,
			.commutative = ompi_op_is_commute(op),
			/*
			 * The Fortran index of a predefined operation is the same everywhere. The
			 * type is left out on purpose: ranks that mix equal types under different
			 * names (MPI_INT and MPI_INTEGER) work with the MPI alone and must go on to.
			 */
			.id = ompi_op_is_intrinsic(op) ? (uint32_t)op->o_f_to_c_index : 0,
		},
		.mpi = op,
		.type = type,
	};
	return dense ? OMPI_SUCCESS : open_scratch(self);
}

void oci_ompi_reduction_close(struct oci_ompi_reduction *self)
{
	free(self->scratch);
	self->scratch = NULL;
}
