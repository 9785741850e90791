/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed elements and the dense bytes that the engine moves.
 *
 * A layout without gaps is passed as it is, from its true lower bound on; MPI_BOTTOM and a lower
 * bound other than 0 come out right by this addition. One with large pieces is passed as their list
 * (flatten.h). Everything else is packed into a copy and unpacked from it. A contiguous type whose
 * extent is not its size is such a layout too: its elements are not adjacent. Only this rank knows
 * its layout, so it makes the same engine call as the others either way. In a v-variant each block
 * is one or the other.
 */
#ifndef OC_MPI_DATA_H
#define OC_MPI_DATA_H

#include "common/flatten.h"
#include "common/graph.h"
#include "common/port.h"

#include <onecopy/onecopy.h>

/* Elements that do not lie dense, and where their dense bytes are. */
struct oci_mpi_part {
	char *user, *packed;
	size_t count;
	MPI_Datatype type;
	uint32_t block; /* of a v-variant: whose */
};

/* One side of a call: what a rank sends, or what it receives. All zero: it has none. */
struct oci_mpi_data {
	void *bytes; /* for the engine: the dense bytes; of a v-variant, where offsets count from */
	struct oc_block *blocks;    /* of a v-variant */
	bool allocated;		    /* blocks are */
	struct oci_mpi_part *parts; /* what is packed */
	size_t part_count;
	struct oci_mpi_part whole; /* the one part of what has no blocks */
	char *packed;		   /* the copy; NULL: nothing is packed */
	struct oc_layout layout;   /* in place of `bytes`, where `laid_out` */
	bool laid_out;
	struct oci_mpi_pieces pieces; /* of the layout */
};

/* One side of a call, as the program gave it. */
struct oci_mpi_side {
	void *buffer;
	MPI_Count count;
	/* NULL: a block for each has `count` elements, and they follow each other. */
	const void *counts, *displs;
	MPI_Datatype type;
	const MPI_Datatype *types;     /* of those with a w, else NULL: displacements are bytes */
	bool long_counts, long_displs; /* of MPI_Count and MPI_Aint; else of int */
};

/* The side of a v-variant. */
struct oci_mpi_blocks {
	struct oci_mpi_side side;
	/* Whose blocks they are; NULL: there is one for each rank. */
	const struct oci_mpi_edges *edges;
	bool shared; /* where there are no counts, all are the same one */
};

static inline MPI_Count oci_mpi_number(const void *array, bool is_long, size_t i)
{
	_Static_assert(sizeof(MPI_Count) == sizeof(MPI_Aint), "it is either");
	return is_long ? ((const MPI_Count *)array)[i] : ((const int *)array)[i];
}

/* 0 or -ENOMEM. A dense layout of `count` elements needs no copy and no memory. */
/* `dense`: a list of pieces will not do, as of a reduction. */
int oci_mpi_data_open(struct oci_mpi_data *data, const void *user, size_t count, MPI_Datatype type,
		      bool dense);
/* `few`: room for OCI_MPI_FEW blocks that lives as long as `data`; more are allocated. */
enum { OCI_MPI_FEW = 16 };
int oci_mpi_data_open_blocks(struct oci_mpi_data *data, const struct oci_mpi_blocks *blocks,
			     uint32_t size, struct oc_block *few);
/* Copies what is packed into the copy; a part of it: elements of what has no blocks; a block. */
int oci_mpi_data_pack(const struct oci_mpi_data *data);
int oci_mpi_data_pack_elements(const struct oci_mpi_data *data, size_t first, size_t count);
int oci_mpi_data_pack_block(const struct oci_mpi_data *data, uint32_t block);
/* And back; at most `count` elements of what has no blocks. */
int oci_mpi_data_unpack(const struct oci_mpi_data *data, size_t count);
void oci_mpi_data_close(struct oci_mpi_data *data);

#endif
