/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes are taken apart by MPI_Type_get_contents, which any MPI has, one constructor at a time,
 * in the order of the type map: pieces come out as the bytes of the message do.
 */
#include "common/flatten.h"

#include <stdlib.h>
#include <string.h>

struct type_contents {
	int combiner, integers, addresses, types;
	int *integer;
	MPI_Aint *address;
	MPI_Datatype *type;
};

void oci_mpi_pieces_open(struct oci_mpi_pieces *pieces, size_t bytes)
{
	*pieces = (struct oci_mpi_pieces){ .most = bytes / OCI_FLATTEN_PIECE_BYTES + 1 };
}

void oci_mpi_pieces_close(struct oci_mpi_pieces *pieces)
{
	free(pieces->piece);
	*pieces = (struct oci_mpi_pieces){ 0 };
}

static bool add(struct oci_mpi_pieces *pieces, void *address, size_t bytes)
{
	struct oc_piece *last = pieces->count ? &pieces->piece[pieces->count - 1] : NULL;

	if (!bytes)
		return true;
	if (last && (uintptr_t)last->address + (pieces->bytes - last->at) == (uintptr_t)address) {
		pieces->bytes += bytes;
		return true;
	}
	if (pieces->count == pieces->most)
		return false;
	if (pieces->count + 1 >= pieces->room) {
		size_t room = pieces->room ? 2 * pieces->room : 16;
		struct oc_piece *grown = realloc(pieces->piece, room * sizeof(*grown));

		if (!grown)
			return false;
		pieces->piece = grown;
		pieces->room = room;
	}
	pieces->piece[pieces->count++] = (struct oc_piece){ pieces->bytes, address };
	pieces->bytes += bytes;
	return true;
}

struct oc_layout oci_mpi_pieces_layout(struct oci_mpi_pieces *pieces)
{
	pieces->piece[pieces->count] = (struct oc_piece){ .at = pieces->bytes };
	return (struct oc_layout){ pieces->piece, pieces->count };
}

/* Those of MPI_Type_create_f90_real() and its like are predefined too, though without a name. */
static bool is_predefined(MPI_Datatype type)
{
	int integers, addresses, types, combiner;

	PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static void contents_close(struct type_contents *c)
{
	/* Derived types are handed out to be freed; to free a predefined one is an error. */
	for (int i = 0; c->type && i < c->types; i++)
		if (!is_predefined(c->type[i]))
			PMPI_Type_free(&c->type[i]);
	free(c->integer);
	free(c->address);
	free(c->type);
}

/* False: a predefined type, or no memory. */
static bool contents_open(struct type_contents *c, MPI_Datatype type)
{
	*c = (struct type_contents){ 0 };
	if (PMPI_Type_get_envelope(type, &c->integers, &c->addresses, &c->types, &c->combiner) ||
	    c->combiner == MPI_COMBINER_NAMED)
		return false;
	c->integer = malloc(((size_t)c->integers + 1) * sizeof(*c->integer));
	c->address = malloc(((size_t)c->addresses + 1) * sizeof(*c->address));
	c->type = malloc(((size_t)c->types + 1) * sizeof(*c->type));
	if (c->integer && c->address && c->type &&
	    !PMPI_Type_get_contents(type, c->integers, c->addresses, c->types, c->integer,
				    c->address, c->type))
		return true;
	c->types = 0;
	contents_close(c);
	return false;
}

static bool add_elements(struct oci_mpi_pieces *pieces, uintptr_t base, size_t count,
			 MPI_Datatype type);

static ptrdiff_t extent_of(MPI_Datatype type)
{
	struct oci_port_type shape;

	oci_port_type_get(type, &shape);
	return shape.extent;
}

/* `count` blocks of `length` elements, `stride` bytes apart. */
static bool add_strided(struct oci_mpi_pieces *pieces, uintptr_t base, int count, int length,
			MPI_Aint stride, MPI_Datatype type)
{
	for (int i = 0; i < count; i++)
		if (!add_elements(pieces, base + (uintptr_t)stride * (uintptr_t)i, (size_t)length,
				  type))
			return false;
	return true;
}

/* Blocks at displacements; each of `length` elements, or of lengths[i] where that is given. */
static bool add_indexed(struct oci_mpi_pieces *pieces, uintptr_t base, int count,
			const int *lengths, int length, const int *elements, const MPI_Aint *bytes,
			MPI_Datatype type)
{
	ptrdiff_t extent = elements ? extent_of(type) : 0;

	for (int i = 0; i < count; i++) {
		ptrdiff_t at = elements ? elements[i] * extent : bytes[i];

		if (!add_elements(pieces, base + (uintptr_t)at,
				  (size_t)(lengths ? lengths[i] : length), type))
			return false;
	}
	return true;
}

/* The innermost dimension is that of neighbours: the last one in C, the first in Fortran. */
struct subarray {
	int dimensions;
	const int *sizes, *subsizes, *starts;
	bool fortran;
	MPI_Datatype type;
	ptrdiff_t extent;
};

/* Dimensions 0 .. level, counted from the innermost one. */
static bool add_subarray(struct oci_mpi_pieces *pieces, uintptr_t base, const struct subarray *a,
			 int level)
{
	int d = a->fortran ? level : a->dimensions - 1 - level;
	ptrdiff_t stride = a->extent;

	for (int inner = 0; inner < level; inner++)
		stride *= a->sizes[a->fortran ? inner : a->dimensions - 1 - inner];
	base += (uintptr_t)(a->starts[d] * stride);
	if (level == 0)
		return add_elements(pieces, base, (size_t)a->subsizes[d], a->type);
	for (int i = 0; i < a->subsizes[d]; i++)
		if (!add_subarray(pieces, base + (uintptr_t)(i * stride), a, level - 1))
			return false;
	return true;
}

static bool add_struct(struct oci_mpi_pieces *pieces, uintptr_t base, const struct type_contents *c)
{
	for (int i = 0; i < c->integer[0]; i++)
		if (!add_elements(pieces, base + (uintptr_t)c->address[i],
				  (size_t)c->integer[1 + i], c->type[i]))
			return false;
	return true;
}

/* One element of a type whose contents are at hand. */
static bool add_one(struct oci_mpi_pieces *pieces, uintptr_t base, const struct type_contents *c)
{
	const int *i = c->integer;

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return add_elements(pieces, base, 1, c->type[0]);
	case MPI_COMBINER_CONTIGUOUS:
		return add_elements(pieces, base, (size_t)i[0], c->type[0]);
	case MPI_COMBINER_VECTOR:
		return add_strided(pieces, base, i[0], i[1], i[2] * extent_of(c->type[0]),
				   c->type[0]);
	case MPI_COMBINER_HVECTOR:
		return add_strided(pieces, base, i[0], i[1], c->address[0], c->type[0]);
	case MPI_COMBINER_INDEXED:
		return add_indexed(pieces, base, i[0], i + 1, 0, i + 1 + i[0], NULL, c->type[0]);
	case MPI_COMBINER_HINDEXED:
		return add_indexed(pieces, base, i[0], i + 1, 0, NULL, c->address, c->type[0]);
	case MPI_COMBINER_INDEXED_BLOCK:
		return add_indexed(pieces, base, i[0], NULL, i[1], i + 2, NULL, c->type[0]);
	case MPI_COMBINER_HINDEXED_BLOCK:
		return add_indexed(pieces, base, i[0], NULL, i[1], NULL, c->address, c->type[0]);
	case MPI_COMBINER_STRUCT:
		return add_struct(pieces, base, c);
	case MPI_COMBINER_SUBARRAY:
		return add_subarray(pieces, base,
				    &(struct subarray){
					    .dimensions = i[0],
					    .sizes = i + 1,
					    .subsizes = i + 1 + i[0],
					    .starts = i + 1 + 2 * i[0],
					    .fortran = i[1 + 3 * i[0]] == MPI_ORDER_FORTRAN,
					    .type = c->type[0],
					    .extent = extent_of(c->type[0]),
				    },
				    i[0] - 1);
	default:
		return false;
	}
}

static bool add_elements(struct oci_mpi_pieces *pieces, uintptr_t base, size_t count,
			 MPI_Datatype type)
{
	struct type_contents contents;
	struct oci_port_type shape;
	bool added = true;

	oci_port_type_get(type, &shape);
	if (!count || !shape.size)
		return true;
	if (shape.dense)
		return add(pieces, (void *)(base + (uintptr_t)shape.true_lb), count * shape.size);
	if (shape.contiguous) {
		for (size_t i = 0; i < count && added; i++)
			added = add(pieces,
				    (void *)(base + (uintptr_t)shape.true_lb +
					     (uintptr_t)shape.extent * i),
				    shape.size);
		return added;
	}
	if (!contents_open(&contents, type))
		return false;
	for (size_t i = 0; i < count && added; i++)
		added = add_one(pieces, base + (uintptr_t)shape.extent * i, &contents);
	contents_close(&contents);
	return added;
}

bool oci_mpi_pieces_add_typed(struct oci_mpi_pieces *pieces, const void *user, size_t count,
			      MPI_Datatype type)
{
	return add_elements(pieces, (uintptr_t)user, count, type);
}
