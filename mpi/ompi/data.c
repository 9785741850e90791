/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Typed elements and the dense bytes that the engine moves.
 *
 * A layout without gaps is passed as it is, from its true lower bound on; MPI_BOTTOM and a lower
 * bound other than 0 come out right by this addition. Everything else is packed into a copy and
 * unpacked from it with Open MPI's convertor. A contiguous type whose extent is not its size is
 * such a layout too: its elements are not adjacent. Only this rank knows its layout, so it makes
 * the same engine call as the others either way.
 */
#include "component.h"

#include "opal/datatype/opal_convertor.h"

#include <limits.h>
#include <stdlib.h>

/* What an empty buffer points to: the engine takes NULL for a missing one. */
static char nothing;

int oci_ompi_data_open(struct oci_ompi_data *data, const void *user, size_t count,
		       oci_ompi_type *type)
{
	size_t bytes;

	*data = (struct oci_ompi_data){
		.user = (char *)(uintptr_t)user,
		.count = count,
		.type = type,
		.bytes = &nothing,
	};
	if (__builtin_mul_overflow(count, type->super.size, &bytes))
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (!bytes)
		return OMPI_SUCCESS;
	/* Through an integer: MPI_BOTTOM is NULL, from which no pointer may be reckoned. */
	data->bytes = (char *)((uintptr_t)user + (uintptr_t)type->super.true_lb);
	if (oci_ompi_dense(type) ||
	    (count == 1 && (type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS)))
		return OMPI_SUCCESS;
	data->packed = malloc(bytes);
	data->bytes = data->packed;
	return data->packed ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

static int convert(char *packed, char *user, size_t count, const oci_ompi_type *type, bool unpack)
{
	size_t bytes = count * type->super.size;
	opal_convertor_t convertor;
	int status, done = 0;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	if (unpack)
		status = opal_convertor_copy_and_prepare_for_recv(
			ompi_mpi_local_convertor, &type->super, count, user, 0, &convertor);
	else
		status = opal_convertor_copy_and_prepare_for_send(
			ompi_mpi_local_convertor, &type->super, count, user, 0, &convertor);
	while (status == OPAL_SUCCESS && !done && bytes) {
		struct iovec part = { packed, bytes };
		uint32_t parts = 1;
		size_t moved = bytes;

		done = unpack ? opal_convertor_unpack(&convertor, &part, &parts, &moved) :
				opal_convertor_pack(&convertor, &part, &parts, &moved);
		if (done < 0 || !moved)
			status = OMPI_ERROR;
		packed += moved;
		bytes -= moved;
	}
	OBJ_DESTRUCT(&convertor);
	return status == OPAL_SUCCESS ? OMPI_SUCCESS : OMPI_ERROR;
}

int oci_ompi_pack(char *packed, const char *user, size_t count, const oci_ompi_type *type)
{
	return convert(packed, (char *)(uintptr_t)user, count, type, false);
}

int oci_ompi_unpack(char *user, const char *packed, size_t count, const oci_ompi_type *type)
{
	return convert((char *)(uintptr_t)packed, user, count, type, true);
}

int oci_ompi_data_pack(struct oci_ompi_data *data, size_t first, size_t count)
{
	ptrdiff_t lower, extent;

	if (!data->packed)
		return OMPI_SUCCESS;
	ompi_datatype_get_extent(data->type, &lower, &extent);
	return oci_ompi_pack(data->packed + first * data->type->super.size,
			     (char *)((uintptr_t)data->user + (uintptr_t)extent * first), count,
			     data->type);
}

int oci_ompi_data_unpack(struct oci_ompi_data *data)
{
	if (!data->packed)
		return OMPI_SUCCESS;
	return oci_ompi_unpack(data->user, data->packed, data->count, data->type);
}

void oci_ompi_data_close(struct oci_ompi_data *data)
{
	free(data->packed);
	data->packed = NULL;
}
