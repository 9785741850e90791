/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/data.h"

#include "base/shelf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * What an empty buffer points to, as the engine takes NULL for a missing one; and where the offsets
 * of blocks count from, which may lie anywhere.
 */
static char nothing;

/* Through an integer: MPI_BOTTOM is NULL, from which no pointer may be reckoned. */
static char *at(const void *origin, ptrdiff_t bytes)
{
	return (char *)((uintptr_t)origin + (uintptr_t)bytes);
}

static bool lies_dense(const struct oci_port_type *shape, size_t count)
{
	return shape->dense || !count || !shape->size || (count == 1 && shape->contiguous);
}

/* A list that is complete becomes the side's layout; one that is not is dropped. */
static bool lay_out_pieces(struct oci_mpi_data *data, bool complete)
{
	if (!complete) {
		oci_mpi_pieces_close(&data->pieces);
		return false;
	}
	data->layout = oci_mpi_pieces_layout(&data->pieces);
	data->laid_out = true;
	return true;
}

static bool flatten(struct oci_mpi_data *data, const void *user, size_t count, MPI_Datatype type,
		    size_t bytes)
{
	if (bytes < OCI_FLATTEN_LEAST_BYTES)
		return false;
	oci_mpi_pieces_open(&data->pieces, bytes);
	return lay_out_pieces(data, oci_mpi_pieces_add_typed(&data->pieces, user, count, type));
}

int oci_mpi_data_open(struct oci_mpi_data *data, const void *user, size_t count, MPI_Datatype type,
		      bool dense)
{
	struct oci_port_type shape;
	size_t bytes;

	*data = (struct oci_mpi_data){ .bytes = &nothing };
	oci_port_type_get(type, &shape);
	if (__builtin_mul_overflow(count, shape.size, &bytes) || bytes > PTRDIFF_MAX)
		return -ENOMEM;
	if (!bytes)
		return 0;
	if (lies_dense(&shape, count)) {
		data->bytes = at(user, shape.true_lb);
		return 0;
	}
	if (!dense && flatten(data, user, count, type, bytes))
		return 0;
	data->packed = oci_shelf_get(bytes);
	if (!data->packed)
		return -ENOMEM;
	data->bytes = data->packed;
	data->whole = (struct oci_mpi_part){ .user = (char *)(uintptr_t)user,
					     .packed = data->packed,
					     .count = count,
					     .type = type };
	data->parts = &data->whole;
	data->part_count = 1;
	return 0;
}

/*
 * The elements of the n-th of the blocks, in the order of the ranks, and their shape. `edges` are
 * those of `blocks`: where it is known that there are none, nothing here asks for them.
 */
static inline struct oci_mpi_part part_of(const struct oci_mpi_blocks *blocks,
					  const struct oci_mpi_edges *edges, uint32_t n,
					  struct oci_port_type *shape)
{
	uint32_t i = edges ? edges->edge[n].block : n;
	MPI_Count count = edges && !blocks->side.counts ?
				  blocks->side.count :
				  oci_mpi_number(blocks->side.counts, blocks->side.long_counts, i);
	ptrdiff_t displacement =
		edges && !blocks->side.displs ?
			(blocks->shared ? 0 : (ptrdiff_t)(i * (size_t)blocks->side.count)) :
			oci_mpi_number(blocks->side.displs, blocks->side.long_displs, i);
	struct oci_mpi_part part = { .type = blocks->side.types ? blocks->side.types[i] :
								  blocks->side.type,
				     .count = count > 0 ? (size_t)count : 0,
				     .block = edges ? edges->edge[n].rank : n };

	if (blocks->side.types && part.count)
		oci_port_type_get(part.type, shape); /* of no elements, any handle may be there */
	part.user = at(blocks->side.buffer,
		       blocks->side.types ? displacement : displacement * shape->extent);
	return part;
}

/* Do the blocks between this rank and the one of the n-th edge follow each other in memory? */
static bool lie_together(const struct oci_mpi_blocks *blocks, const struct oci_mpi_edges *edges,
			 uint32_t n, struct oci_port_type shape)
{
	uint32_t rank = edges->edge[n].rank;
	char *end = NULL;

	for (; n < edges->count && edges->edge[n].rank == rank; n++) {
		struct oci_mpi_part part = part_of(blocks, edges, n, &shape);
		char *place = at(part.user, shape.true_lb);
		size_t bytes;

		if (__builtin_mul_overflow(part.count, shape.size, &bytes) ||
		    !lies_dense(&shape, part.count) || (bytes && end && place != end))
			return false;
		if (bytes)
			end = at(place, (ptrdiff_t)bytes);
	}
	return true;
}

/* Fills in all blocks; those to be packed get places in the copy. Returns the copy's bytes, or
 * SIZE_MAX where a process cannot have as many. */
static inline __attribute__((always_inline)) size_t lay_out_by(struct oci_mpi_data *data,
							       const struct oci_mpi_blocks *blocks,
							       const struct oci_mpi_edges *edges,
							       uint32_t count,
							       struct oci_mpi_part *parts)
{
	struct oci_port_type shape = { 0 };
	size_t total = 0;
	bool joined = false; /* blocks of one rank that lie apart */

	if (!blocks->side.types && count)
		oci_port_type_get(blocks->side.type, &shape);
	data->part_count = 0;
	for (uint32_t n = 0; n < count; n++) {
		struct oci_mpi_part part;
		struct oc_block *block;
		char *place = &nothing;
		size_t bytes;

		if (edges && !edges->edge[n].place)
			joined = oci_mpi_edge_is_joined(edges, n) &&
				 !lie_together(blocks, edges, n, shape);
		part = part_of(blocks, edges, n, &shape);
		block = &data->blocks[part.block];
		if (__builtin_mul_overflow(part.count, shape.size, &bytes) || bytes > PTRDIFF_MAX)
			return SIZE_MAX;
		if (joined || !lies_dense(&shape, part.count)) {
			place = part.packed = at(data->packed, (ptrdiff_t)total);
			if (parts && bytes)
				parts[data->part_count] = part;
			data->part_count += bytes > 0;
			if (__builtin_add_overflow(total, bytes, &total))
				return SIZE_MAX;
		} else if (bytes) {
			place = at(part.user, shape.true_lb);
		}
		/* Those of one rank follow each other, in the copy or where they are. */
		if (edges && edges->edge[n].place && block->bytes)
			block->bytes += bytes;
		else
			*block = (struct oc_block){ (uintptr_t)place - (uintptr_t)&nothing, bytes };
	}
	return total;
}

static size_t lay_out(struct oci_mpi_data *data, const struct oci_mpi_blocks *blocks, uint32_t size,
		      struct oci_mpi_part *parts)
{
	if (!blocks->edges)
		return lay_out_by(data, blocks, NULL, size, parts);
	memset(data->blocks, 0, size * sizeof(data->blocks[0]));
	return lay_out_by(data, blocks, blocks->edges, blocks->edges->count, parts);
}

/* The same of blocks, some of which have gaps; blocks then count from the front of the list. */
static bool flatten_blocks(struct oci_mpi_data *data, const struct oci_mpi_blocks *blocks,
			   uint32_t size)
{
	struct oci_port_type shape = { 0 };
	bool complete = true;
	size_t total = 0;

	for (uint32_t i = 0; i < size; i++)
		total += data->blocks[i].bytes;
	if (total < OCI_FLATTEN_LEAST_BYTES)
		return false;
	oci_mpi_pieces_open(&data->pieces, total);
	if (!blocks->side.types)
		oci_port_type_get(blocks->side.type, &shape);
	for (uint32_t n = 0; n < (blocks->edges ? blocks->edges->count : size) && complete; n++) {
		struct oci_mpi_part part = part_of(blocks, blocks->edges, n, &shape);

		if (part.count)
			complete = oci_mpi_pieces_add_typed(&data->pieces, part.user, part.count,
							    part.type);
	}
	if (!lay_out_pieces(data, complete))
		return false;
	total = 0;
	for (uint32_t i = 0; i < size; i++) {
		data->blocks[i].offset = total;
		total += data->blocks[i].bytes;
	}
	data->part_count = 0;
	return true;
}

int oci_mpi_data_open_blocks(struct oci_mpi_data *data, const struct oci_mpi_blocks *blocks,
			     uint32_t size, struct oc_block *few)
{
	size_t total;

	*data = (struct oci_mpi_data){ .bytes = &nothing, .allocated = size > OCI_MPI_FEW };
	data->blocks = data->allocated ? malloc(size * sizeof(data->blocks[0])) : few;
	if (!data->blocks)
		return -ENOMEM;
	total = lay_out(data, blocks, size, NULL);
	if (total == SIZE_MAX)
		return -ENOMEM;
	if (!data->part_count || flatten_blocks(data, blocks, size))
		return 0;
	data->packed = oci_shelf_get(total);
	data->parts = malloc(data->part_count * sizeof(data->parts[0]));
	if (!data->packed || !data->parts)
		return -ENOMEM;
	lay_out(data, blocks, size, data->parts);
	return 0;
}

int oci_mpi_data_pack(const struct oci_mpi_data *data)
{
	int error = MPI_SUCCESS;

	for (size_t i = 0; i < data->part_count && error == MPI_SUCCESS; i++) {
		const struct oci_mpi_part *part = &data->parts[i];

		error = oci_port_pack(part->packed, part->user, part->count, part->type);
	}
	return error;
}

int oci_mpi_data_pack_elements(const struct oci_mpi_data *data, size_t first, size_t count)
{
	const struct oci_mpi_part *part = data->parts;
	struct oci_port_type shape;

	if (!data->part_count)
		return MPI_SUCCESS;
	oci_port_type_get(part->type, &shape);
	return oci_port_pack(part->packed + first * shape.size,
			     at(part->user, (ptrdiff_t)first * shape.extent), count, part->type);
}

int oci_mpi_data_pack_block(const struct oci_mpi_data *data, uint32_t block)
{
	for (size_t i = 0; i < data->part_count; i++) {
		const struct oci_mpi_part *part = &data->parts[i];

		if (part->block == block)
			return oci_port_pack(part->packed, part->user, part->count, part->type);
	}
	return MPI_SUCCESS;
}

int oci_mpi_data_unpack(const struct oci_mpi_data *data, size_t count)
{
	int error = MPI_SUCCESS;

	for (size_t i = 0; i < data->part_count && error == MPI_SUCCESS; i++) {
		const struct oci_mpi_part *part = &data->parts[i];
		size_t some = part->count < count ? part->count : count;

		if (some)
			error = oci_port_unpack(part->user, part->packed, some, part->type);
	}
	return error;
}

void oci_mpi_data_close(struct oci_mpi_data *data)
{
	if (!data->part_count && !data->packed && !data->allocated && !data->laid_out)
		return;
	if (data->parts != &data->whole)
		free(data->parts);
	if (data->allocated)
		free(data->blocks);
	oci_shelf_put(data->packed);
	oci_mpi_pieces_close(&data->pieces);
	*data = (struct oci_mpi_data){ 0 };
}
