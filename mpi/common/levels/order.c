/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of all ranks in the order of the nodes, in which a node's are together. Where the ranks of
 * each node follow each other, and the blocks in the buffer, that is the buffer as it is; else they
 * are the elements of a type made for the call. Only the owner of the buffer knows which.
 */
#include "common/levels/levels.h"

MPI_Count oci_levels_count(const struct oci_mpi_side *b, uint32_t rank)
{
	return b->counts ? oci_mpi_number(b->counts, b->long_counts, rank) : b->count;
}

MPI_Count oci_levels_displ(const struct oci_mpi_side *b, uint32_t rank)
{
	return b->displs ? oci_mpi_number(b->displs, b->long_displs, rank) :
			   (MPI_Count)rank * b->count;
}

MPI_Count oci_levels_arrays(const struct plan *p, const struct oci_mpi_side *b,
			    const uint32_t *ranks, uint32_t n, size_t unit)
{
	MPI_Count end = 0;

	for (uint32_t i = 0; i < n; i++) {
		MPI_Count count = oci_levels_count(b, ranks[i]) * (MPI_Count)(unit ? unit : 1);
		MPI_Count displ = unit ? end : oci_levels_displ(b, ranks[i]);

		p->lane->counts[i] = (oci_port_count)count;
		p->lane->displs[i] = (oci_port_count)displ;
		end += count;
	}
	return end;
}

MPI_Count oci_levels_node_arrays(const struct plan *p, const struct oci_mpi_side *b,
				 const struct node *node, size_t unit)
{
	return oci_levels_arrays(p, b, p->l->order + node->start, node->ranks, unit);
}

size_t oci_levels_sum(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
		      uint32_t to)
{
	struct oci_port_type shape;
	size_t sum = 0, own;

	oci_port_type_get(b->type, &shape);
	for (uint32_t k = from; k < to; k++)
		if (__builtin_mul_overflow((size_t)oci_levels_count(b, p->l->order[k]), shape.size,
					   &own) ||
		    __builtin_add_overflow(sum, own, &sum))
			return SIZE_MAX;
	return sum;
}

bool oci_levels_lie_together(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
			     uint32_t to)
{
	const uint32_t *order = p->l->order;
	MPI_Count end = 0;
	bool any = false;

	if (!b->counts && p->l->in_order)
		return true;
	for (uint32_t k = from; k < to; k++) {
		MPI_Count count = oci_levels_count(b, order[k]);
		MPI_Count displ = oci_levels_displ(b, order[k]);

		if (!count)
			continue;
		if (any && displ != end)
			return false;
		any = true;
		end = displ + count;
	}
	return true;
}

/* The lengths are of int, as nothing of 2 GiB or more comes here but what lies together. */
static int make_type(const struct plan *p, const struct oci_mpi_side *b, uint32_t from, uint32_t to,
		     MPI_Datatype *type)
{
	const struct oci_mpi_lane *lane = p->lane;
	const uint32_t *order = p->l->order;
	struct oci_port_type shape;
	int blocks = 0, error;

	oci_port_type_get(b->type, &shape);
	for (uint32_t k = from; k < to; k++) {
		MPI_Count count = oci_levels_count(b, order[k]);

		if (!count)
			continue;
		lane->lengths[blocks] = (int)count;
		lane->places[blocks++] =
			(MPI_Aint)(oci_levels_displ(b, order[k]) * (MPI_Count)shape.extent);
	}
	error = OCI_PORT_MPI(Type_create_hindexed)(blocks, lane->lengths, lane->places, b->type,
						   type);
	if (error != MPI_SUCCESS)
		return error;
	error = OCI_PORT_MPI(Type_commit)(type);
	if (error != MPI_SUCCESS)
		oci_port_type_free(type);
	return error;
}

int oci_levels_run_open(const struct plan *p, const struct oci_mpi_side *b, uint32_t from,
			uint32_t to, struct run *run)
{
	int error;

	*run = (struct run){ .buffer = b->buffer, .type = b->type };
	if (!b->counts && p->l->in_order) {
		run->buffer = oci_levels_at(b->buffer, (MPI_Count)from * b->count, b->type);
		run->count = (MPI_Count)(to - from) * b->count;
		return MPI_SUCCESS;
	}
	if (oci_levels_lie_together(p, b, from, to)) {
		for (uint32_t k = from; k < to; k++) {
			MPI_Count count = oci_levels_count(b, p->l->order[k]);

			if (count && !run->count)
				run->buffer = oci_levels_at(
					b->buffer, oci_levels_displ(b, p->l->order[k]), b->type);
			run->count += count;
		}
		return MPI_SUCCESS;
	}
	error = make_type(p, b, from, to, &run->type);
	if (error != MPI_SUCCESS)
		return error;
	run->made = true;
	run->count = 1;
	return MPI_SUCCESS;
}

void oci_levels_run_close(struct run *run)
{
	if (run->made)
		oci_port_type_free(&run->type);
	run->made = false;
}
