/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A buffer with gaps as the list of its pieces, for the engine's single copies (oc_layout).
 *
 * Worth it where the pieces are large: a piece costs the kernel about what copying 1 KiB costs, and
 * saves the two copies of packing. From pieces of 2 KiB on the list wins (Xeon, 2026-11-20,
 * "Communicators and datatypes" in docs/results/experiments.md).
 */
#ifndef OC_MPI_FLATTEN_H
#define OC_MPI_FLATTEN_H

#include "common/port.h"

#include <onecopy/onecopy.h>

/* Mean length of a piece from which the list is taken, and bytes of a message below which a
 * mechanism with a system call is not chosen anyway. */
#define OCI_FLATTEN_PIECE_BYTES ((size_t)2048)
#define OCI_FLATTEN_LEAST_BYTES ((size_t)32 << 10)

struct oci_mpi_pieces {
	struct oc_piece *piece; /* room for count + 1 */
	size_t count, room;
	size_t bytes; /* listed so far */
	size_t most;  /* pieces; one more and the list is given up */
	size_t least; /* mean bytes of the first pieces; less and it is given up */
};

/* An empty list for a message of `bytes` in all. */
void oci_mpi_pieces_open(struct oci_mpi_pieces *pieces, size_t bytes);
void oci_mpi_pieces_close(struct oci_mpi_pieces *pieces);

/*
 * Appends what follows in the message; neighbours in memory become one piece. False: the pieces are
 * too small, of a type that is not taken apart (distributed arrays, pairs such as MPI_DOUBLE_INT),
 * or there is no memory: pack instead, the list is of no use.
 */
bool oci_mpi_pieces_add_typed(struct oci_mpi_pieces *pieces, const void *user, size_t count,
			      MPI_Datatype type);
/* Are the bytes of one element of a derived type a single piece, in order? Its own shape is not
 * asked for. False also of types that are not taken apart, and where there is no memory. */
bool oci_mpi_lies_together(MPI_Datatype type);
/*
 * Between `count` typed elements and dense bytes, piece by piece. False, and nothing is done: they
 * are few, or in pieces so small that the list costs more than the MPI's own packing. The list of
 * an element is *kept for the next call, NULL at first; as long as the type lives.
 */
bool oci_mpi_pieces_move(struct oci_mpi_pieces **kept, void *packed, const void *user, size_t count,
			 MPI_Datatype type, bool unpack);
/* Gives such a list back; NULL: nothing. */
void oci_mpi_packing_close(struct oci_mpi_pieces *kept);
/* The list as the engine takes it; it lives as long as `pieces` and no longer than the next add. */
struct oc_layout oci_mpi_pieces_layout(struct oci_mpi_pieces *pieces);

#endif
