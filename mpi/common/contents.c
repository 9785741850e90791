/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A constructor with int counts has them among the integers, and distances in bytes among the
 * addresses; one with large counts has all of these, in the same order, among the large counts, and
 * of a subarray two integers in front: dimensions and order (MPI 4.0, section 5.1.13).
 */
#include "common/contents.h"

#include <stdlib.h>
#include <string.h>

bool oci_mpi_is_predefined(MPI_Datatype type)
{
	struct oci_port_envelope e;

	if (oci_port_type_envelope(type, &e) != MPI_SUCCESS)
		return true;
	return e.combiner == MPI_COMBINER_NAMED || e.combiner == MPI_COMBINER_F90_REAL ||
	       e.combiner == MPI_COMBINER_F90_COMPLEX || e.combiner == MPI_COMBINER_F90_INTEGER;
}

void oci_mpi_contents_close(struct oci_mpi_contents *c)
{
	/* Derived types are handed out to be freed; to free a predefined one is an error. */
	for (size_t i = 0; i < c->types; i++)
		if (!oci_mpi_is_predefined(c->type[i]))
			oci_port_type_free(&c->type[i]);
	free(c->memory);
}

/* How many of the large counts come before the distances in bytes. */
static size_t counts_before_places(const struct oci_mpi_contents *c, size_t all)
{
	switch (c->combiner) {
	case MPI_COMBINER_HVECTOR:
	case MPI_COMBINER_HINDEXED_BLOCK:
		return 2;
	case MPI_COMBINER_HINDEXED:
	case MPI_COMBINER_STRUCT:
		return 1 + (size_t)c->number[0];
	default:
		return all;
	}
}

/* `number` has the integers, then the addresses, then the large counts. */
static void sort(struct oci_mpi_contents *c, const struct oci_port_envelope *e)
{
	const MPI_Count *integers = c->number, *counts = integers + e->integers + e->addresses;

	c->place = integers + e->integers;
	if (e->counts) {
		c->number = counts;
		c->place = counts + counts_before_places(c, e->counts);
	}
	if (c->combiner != MPI_COMBINER_SUBARRAY)
		return;
	c->dimensions = (int)integers[0];
	c->order = (int)integers[e->integers - 1];
	c->number = e->counts ? counts : integers + 1;
}

/* In front of each element, as numbers are longer than integers: from the last one on. */
static void widen(MPI_Count *number, size_t count)
{
	const char *integers = (const char *)number;
	int integer;

	for (size_t i = count; i-- > 0;) {
		memcpy(&integer, integers + i * sizeof(integer), sizeof(integer));
		number[i] = integer;
	}
}

bool oci_mpi_contents_open(struct oci_mpi_contents *c, MPI_Datatype type)
{
	struct oci_port_envelope e;
	MPI_Count *number;
	size_t numbers;

	_Static_assert(sizeof(MPI_Count) == sizeof(MPI_Aint), "displacements stand among counts");
	*c = (struct oci_mpi_contents){ 0 };
	if (oci_port_type_envelope(type, &e) != MPI_SUCCESS || e.combiner == MPI_COMBINER_NAMED)
		return false;
	numbers = e.integers + e.addresses + e.counts;
	c->memory = malloc(numbers * sizeof(*number) + e.types * sizeof(*c->type) + 1);
	if (!c->memory)
		return false;
	number = c->memory;
	c->type = (MPI_Datatype *)(number + numbers);
	if (oci_port_type_contents(type, &e, (int *)number, (MPI_Aint *)(number + e.integers),
				   number + e.integers + e.addresses, c->type) != MPI_SUCCESS) {
		free(c->memory);
		return false;
	}
	widen(number, e.integers);
	c->combiner = e.combiner;
	c->types = e.types;
	c->number = number;
	sort(c, &e);
	return true;
}
