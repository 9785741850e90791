/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes are taken apart one constructor at a time, in the order of the type map: pieces come
 * out as the bytes of the message do.
 */
#include "common/flatten.h"
#include "common/contents.h"

#include <stdlib.h>
#include <string.h>

/*
 * Of what is packed by the list. A piece costs 0.05 us to list and copy; MPICH 4.0.2 takes that for
 * 128 bytes of MPI_BYTE, and 0.5 ms for 1 MiB in pieces of any length (EPYC, 2026-11-25).
 */
#define PACK_PIECE_BYTES ((size_t)256)
#define PACK_LEAST_BYTES ((size_t)2048)
/* Pieces, after which their mean length is asked about. */
#define FIRST 8

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
	if (pieces->count == pieces->most ||
	    (pieces->count >= FIRST && pieces->bytes < pieces->count * pieces->least))
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

static bool add_elements(struct oci_mpi_pieces *pieces, uintptr_t base, size_t count,
			 MPI_Datatype type);

static ptrdiff_t extent_of(MPI_Datatype type)
{
	struct oci_port_type shape;

	oci_port_type_get(type, &shape);
	return shape.extent;
}

/* `count` blocks of `length` elements, `stride` bytes apart. */
static bool add_strided(struct oci_mpi_pieces *pieces, uintptr_t base, MPI_Count count,
			MPI_Count length, MPI_Count stride, MPI_Datatype type)
{
	if (stride == length * extent_of(type))
		return add_elements(pieces, base, (size_t)(count * length), type);
	for (MPI_Count i = 0; i < count; i++)
		if (!add_elements(pieces, base + (uintptr_t)stride * (uintptr_t)i, (size_t)length,
				  type))
			return false;
	return true;
}

/* Blocks at displacements of `unit` bytes; each of `length` elements, or of lengths[i] where that
 * is given. */
static bool add_indexed(struct oci_mpi_pieces *pieces, uintptr_t base, MPI_Count count,
			const MPI_Count *lengths, MPI_Count length, const MPI_Count *displacements,
			ptrdiff_t unit, MPI_Datatype type)
{
	for (MPI_Count i = 0; i < count; i++) {
		if (!add_elements(pieces, base + (uintptr_t)(displacements[i] * unit),
				  (size_t)(lengths ? lengths[i] : length), type))
			return false;
	}
	return true;
}

/* The innermost dimension is that of neighbours: the last one in C, the first in Fortran. */
struct subarray {
	int dimensions;
	const MPI_Count *sizes, *subsizes, *starts;
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
	for (MPI_Count i = 0; i < a->subsizes[d]; i++)
		if (!add_subarray(pieces, base + (uintptr_t)(i * stride), a, level - 1))
			return false;
	return true;
}

static bool add_struct(struct oci_mpi_pieces *pieces, uintptr_t base,
		       const struct oci_mpi_contents *c)
{
	for (MPI_Count i = 0; i < c->number[0]; i++)
		if (!add_elements(pieces, base + (uintptr_t)c->place[i], (size_t)c->number[1 + i],
				  c->type[i]))
			return false;
	return true;
}

/* One element of a type whose contents are at hand. */
static bool add_one(struct oci_mpi_pieces *pieces, uintptr_t base, const struct oci_mpi_contents *c)
{
	const MPI_Count *n = c->number;

	switch (c->combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		return add_elements(pieces, base, 1, c->type[0]);
	case MPI_COMBINER_CONTIGUOUS:
		return add_elements(pieces, base, (size_t)n[0], c->type[0]);
	case MPI_COMBINER_VECTOR:
		return add_strided(pieces, base, n[0], n[1], n[2] * extent_of(c->type[0]),
				   c->type[0]);
	case MPI_COMBINER_HVECTOR:
		return add_strided(pieces, base, n[0], n[1], c->place[0], c->type[0]);
	case MPI_COMBINER_INDEXED:
		return add_indexed(pieces, base, n[0], n + 1, 0, n + 1 + n[0],
				   extent_of(c->type[0]), c->type[0]);
	case MPI_COMBINER_HINDEXED:
		return add_indexed(pieces, base, n[0], n + 1, 0, c->place, 1, c->type[0]);
	case MPI_COMBINER_INDEXED_BLOCK:
		return add_indexed(pieces, base, n[0], NULL, n[1], n + 2, extent_of(c->type[0]),
				   c->type[0]);
	case MPI_COMBINER_HINDEXED_BLOCK:
		return add_indexed(pieces, base, n[0], NULL, n[1], c->place, 1, c->type[0]);
	case MPI_COMBINER_STRUCT:
		return add_struct(pieces, base, c);
	case MPI_COMBINER_SUBARRAY:
		return add_subarray(pieces, base,
				    &(struct subarray){
					    .dimensions = c->dimensions,
					    .sizes = n,
					    .subsizes = n + c->dimensions,
					    .starts = n + 2 * c->dimensions,
					    .fortran = c->order == MPI_ORDER_FORTRAN,
					    .type = c->type[0],
					    .extent = extent_of(c->type[0]),
				    },
				    c->dimensions - 1);
	default:
		return false;
	}
}

static bool add_elements(struct oci_mpi_pieces *pieces, uintptr_t base, size_t count,
			 MPI_Datatype type)
{
	struct oci_mpi_contents contents;
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
	if (!oci_mpi_contents_open(&contents, type))
		return false;
	for (size_t i = 0; i < count && added; i++)
		added = add_one(pieces, base + (uintptr_t)shape.extent * i, &contents);
	oci_mpi_contents_close(&contents);
	return added;
}

bool oci_mpi_pieces_add_typed(struct oci_mpi_pieces *pieces, const void *user, size_t count,
			      MPI_Datatype type)
{
	return add_elements(pieces, (uintptr_t)user, count, type);
}

/* What the MPI is left to pack. */
static struct oci_mpi_pieces never;

/* The list of one element of this type, as seen from address 0, from its first message on. NULL: no
 * memory. */
static const struct oci_mpi_pieces *list_of(struct oci_mpi_pieces **kept, MPI_Datatype type,
					    size_t size)
{
	/* Acquire: pairs with the release of the thread that made the list. */
	struct oci_mpi_pieces *list = __atomic_load_n(kept, __ATOMIC_ACQUIRE), *other = NULL;

	if (OCI_LIKELY(list))
		return list;
	list = malloc(sizeof(*list));
	if (!list)
		return NULL;
	*list = (struct oci_mpi_pieces){ .least = PACK_PIECE_BYTES,
					 .most = size / PACK_PIECE_BYTES + 1 };
	if (oci_mpi_pieces_add_typed(list, NULL, 1, type)) {
		oci_mpi_pieces_layout(list);
	} else {
		oci_mpi_pieces_close(list);
		free(list);
		list = &never;
	}
	/* Release: the list comes first. Acquire: that of another thread, which was first. */
	if (__atomic_compare_exchange_n(kept, &other, list, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return list;
	oci_mpi_packing_close(list);
	return other;
}

void oci_mpi_packing_close(struct oci_mpi_pieces *kept)
{
	if (!kept || kept == &never)
		return;
	oci_mpi_pieces_close(kept);
	free(kept);
}

/* Each piece of an element, one way or the other. */
static void move_element(const struct oci_mpi_pieces *list, char *packed, uintptr_t user,
			 bool unpack)
{
	for (size_t i = 0; i < list->count; i++) {
		void *there = (void *)(user + (uintptr_t)list->piece[i].address);
		char *at = packed + list->piece[i].at;
		size_t bytes = list->piece[i + 1].at - list->piece[i].at;

		if (unpack)
			memcpy(there, at, bytes);
		else
			memcpy(at, there, bytes);
	}
}

bool oci_mpi_pieces_move(struct oci_mpi_pieces **kept, void *packed, const void *user, size_t count,
			 MPI_Datatype type, bool unpack)
{
	const struct oci_mpi_pieces *list;
	struct oci_port_type shape;
	size_t bytes;

	oci_port_type_get(type, &shape);
	if (__builtin_mul_overflow(count, shape.size, &bytes) || bytes < PACK_LEAST_BYTES)
		return false;
	list = list_of(kept, type, shape.size);
	if (!list || !list->count)
		return false;
	for (size_t i = 0; i < count; i++)
		move_element(list, (char *)packed + i * shape.size,
			     (uintptr_t)user + (uintptr_t)shape.extent * i, unpack);
	return true;
}

bool oci_mpi_lies_together(MPI_Datatype type)
{
	struct oc_piece few[2];
	/* Room for more than the one, so that nothing is allocated. */
	struct oci_mpi_pieces pieces = { .piece = few, .room = 2, .most = 1 };
	struct oci_mpi_contents contents;
	bool together;

	if (!oci_mpi_contents_open(&contents, type))
		return false;
	together = add_one(&pieces, 0, &contents);
	oci_mpi_contents_close(&contents);
	return together;
}
